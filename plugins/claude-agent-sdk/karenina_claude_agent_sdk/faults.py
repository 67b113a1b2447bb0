"""What goes wrong in a session, as errors of karenina."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from karenina_calls.wire.openai_errors import kind_of_status

from karenina_core.errors import ErrorKind, PortError, one_line, shortened

from .program import Program, ProgramEnded
from .record import Record

__all__ = ["failure", "reported"]

KINDS: Mapping[str, ErrorKind] = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "rate_limit": "rate_limited",
    "invalid_request": "invalid_request",
    "server_error": "server",
}
"""What the SDK calls an error that came in place of a reply."""
PATTERNS: Mapping[ErrorKind, re.Pattern[str]] = {
    "timeout": re.compile(r"timed out|timeout|ETIMEDOUT", re.IGNORECASE),
    "connection": re.compile(r"connect|network|socket|ECONN|ENOTFOUND|EAI_AGAIN|fetch failed", re.IGNORECASE),
}
NO_STRUCTURE = "error_max_structured_output_retries"
HINTS: Mapping[str, str] = {
    "auth": "log in with the program itself, or check the key (api_key_env names the variable that holds it)",
    "invalid_request": "check the model's name and endpoint_base_url",
}
MESSAGE_LIMIT = 400
UNREADABLE = frozenset({"MessageParseError", "CLIJSONDecodeError"})
"""Errors of the SDK: it could not make anything of a message."""
START_HINT = "check that the program runs at all (claude --version)"


def reported(record: Record) -> PortError | None:
    """The error that the program reported with its result; None where the work went well or a limit ended it."""
    result = record.result
    if result is None or not result.is_error or record.limit is not None:
        return None
    status = result.api_error_status if isinstance(result.api_error_status, int) else None
    message = "; ".join(str(text) for text in result.errors or ()) or record.final_text() or record.refusal_text
    kind = _kind(result.subtype, status, record.refusal, message)
    parts = [shortened(" ".join(record.clean(message or result.subtype).split()), MESSAGE_LIMIT), HINTS.get(kind, "")]
    wait = max(0.0, record.resets_at - time.time()) if kind == "rate_limited" and record.resets_at else None
    return PortError(f"the agent reports: {'; '.join(filter(None, parts))}", kind=kind, status=status, retry_after=wait)


def _kind(subtype: str, status: int | None, refusal: str | None, message: str) -> ErrorKind:
    if status is not None and status >= 300:
        return kind_of_status(status)
    if refusal is not None and refusal in KINDS:
        return KINDS[refusal]
    if refusal is not None:  # a request failed without a status and a known kind
        return next((kind for kind, words in PATTERNS.items() if words.search(message)), "server")
    return "bad_response" if subtype == NO_STRUCTURE else "agent"


def failure(error: BaseException, program: Program | None) -> PortError:
    """The PortError for whatever ended a session early. It holds the end of what the program printed as `raw`."""
    words = program.last_words() if program is not None else ""
    if isinstance(error, PortError):
        found = PortError(str(error), kind=error.kind, status=error.status, raw=error.raw or words or None)
    elif isinstance(error, ProgramEnded):
        code = program.exit_code if program is not None else None
        found = PortError(f"the program ended with code {code} before its work was done{_tail(words)}", kind="server")
        found.raw = words or None
    elif isinstance(error, OSError):
        text = f"the program cannot be started: {one_line(error)}; {START_HINT}"
        found = PortError(text, kind="plugin", raw=words or None)
    else:
        text = program.without_secrets(one_line(error)) if program is not None else one_line(error)
        kind: ErrorKind = "bad_response" if type(error).__name__ in UNREADABLE else "server"
        found = PortError(f"the session with the program failed: {text}{_tail(words)}", kind=kind, raw=words or None)
    return found


def _tail(words: str) -> str:
    last = " ".join(words.split())
    return f": …{last[1 - MESSAGE_LIMIT :]}" if len(last) > MESSAGE_LIMIT else f": {last}" if last else ""
