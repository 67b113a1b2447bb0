"""What a server of the chat completions protocol says instead of a reply: statuses, errors, waits, broken JSON."""

from __future__ import annotations

import json
import math
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

from karenina_core.errors import ErrorKind, PortError

from ..ports.text import sanitize

RAW_LIMIT = 65536
"""Characters of a body that an error keeps: the 64 KB that `PortError.raw` promises."""
MESSAGE_LIMIT = 300
"""Characters of a server's message in ours, about three lines; the rest is in `raw`."""
HTML_TAG = re.compile(r"<[^<>]*>")
SECONDS = re.compile(r"\s*(\d{1,15}(\.\d{0,15})?|\.\d{1,15})\s*", re.ASCII)
CONTEXT_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|context ?window|prompt is too long"
    r"|(?:maximum|available|model's|the) context (?:length|size|limit)|exceeds? (?:the )?context (?:length|size|limit)"
    r"|exceeds the maximum number of tokens|input is too long for|inputs`? tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
"""What OpenAI, llama.cpp, vLLM, Ollama, Anthropic, litellm, Gemini, Bedrock and TGI say of a request that is too long
for their context."""
CONTENT_FILTER = re.compile(r"content[_ ]?(filter|policy)|responsible[_ ]?ai", re.IGNORECASE)
KINDS: Mapping[int, ErrorKind] = {401: "auth", 402: "auth", 403: "auth", 408: "timeout", 429: "rate_limited"}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large a number")
    return number


STRICT_JSON = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
"""Refuses NaN and Infinity, which the json module reads by default, and numbers such as 1e999 that become infinite."""


def json_from_wire(data: bytes) -> Any:
    """The JSON value in a response body. Raises PortError (`bad_response`) where it is not UTF-8 or not JSON."""
    try:
        return STRICT_JSON.decode(data.removeprefix(BOM_UTF8).decode("utf-8"))
    except UnicodeDecodeError:
        fault = "is not UTF-8"
    except (ValueError, RecursionError):
        fault = "is not JSON" if data.strip() else "is empty"
    raw = data[:RAW_LIMIT].decode("utf-8", "replace")
    raise PortError(f"the body of the reply {fault}", kind="bad_response", raw=raw)


def bad_reply(message: str, body: Any) -> PortError:
    """The error for a body without a usable reply."""
    return PortError(message, kind="bad_response", raw=raw_text(body))


def kind_of_status(status: int) -> ErrorKind:
    """The error kind of an HTTP status that is not a success. 413 is about the request, so it is `invalid_request`."""
    if status in KINDS:
        return KINDS[status]
    return "server" if status >= 500 else "invalid_request" if status >= 300 else "bad_response"


def is_context_overflow(error: PortError) -> bool:
    """Whether the server refused the request because it, or it and the reply, is longer than the model's context."""
    text = f"{error} {error.raw or ''}"
    return error.kind == "invalid_request" and CONTEXT_OVERFLOW.search(text) is not None


def error_from_wire(status: int | None, body: Any, *, where: str = "", retry_after: float | None = None) -> PortError:
    """The error that a server reports: by the status (None: by the `code` in the body) and by what the body says.

    `body` is the parsed JSON, or text. A refusal by a content filter is `content_filter` whatever the status. The
    message begins with `where` and has at most 300 characters of the server's own.
    """
    error = body.get("error", body) if isinstance(body, Mapping) else body
    message, code, category = error, None, None
    if isinstance(error, Mapping):
        message, code, category = error.get("message", error.get("detail")), error.get("code"), error.get("type")
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    number = status or (code if isinstance(code, int) and 400 <= code <= 599 else None)
    kind = kind_of_status(number) if number else "server"
    if CONTENT_FILTER.search(f"{code} {category}"):
        kind = "content_filter"
    parts = (where, f"HTTP {number}" if number else "", _shortened(message))
    text = ": ".join(part for part in parts if part) or "the server reports an error without a message"
    return PortError(text, kind=kind, retry_after=retry_after, status=number, raw=raw_text(body))


def _shortened(message: Any) -> str:
    if message is None:
        return ""
    text = raw_text(message)
    if text.lstrip()[:1] == "<":
        text = HTML_TAG.sub(" ", text[:4096])
    text = " ".join(text[:4096].split())
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def retry_after_seconds(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds, also fractional, or a date).

    None where neither is usable. `now` is the time in seconds since 1970; a date that has passed gives 0.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = lowered.get(name, "")
        if SECONDS.fullmatch(value):
            return float(value) * unit
    try:
        date = parsedate_to_datetime(lowered["retry-after"])
        seconds = date.timestamp() if date.tzinfo else date.replace(tzinfo=UTC).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, seconds - now)


def raw_text(body: Any) -> str:
    """A body as text that can be written, at most 64 KB of it."""
    try:
        text = body if isinstance(body, str) else json.dumps(body, default=str)
    except RecursionError:
        text = "(nested too deeply to be shown)"
    return sanitize(text[:RAW_LIMIT])[0]
