"""What litellm raises, as errors of karenina: by what really happened, which is in the chain behind its exceptions."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from karenina_calls.secrets.redaction import redactor
from karenina_calls.wire.openai_wire import error_from_wire, kind_of_status, retry_after_seconds

from karenina_core.errors import ErrorKind, PortError

__all__ = ["port_error"]

MOST_CAUSES = 20
MESSAGE_LIMIT = 300
CAUSES: dict[ErrorKind, frozenset[str]] = {
    "plugin": frozenset({"ImportError"}),
    "timeout": frozenset({"TimeoutError", "TimeoutException", "APITimeoutError"}),
    "bad_response": frozenset(
        {"JSONDecodeError", "UnicodeDecodeError", "ValidationError", "APIResponseValidationError"}
    ),
    "connection": frozenset({"TransportError", "ClientError", "APIConnectionError", "OSError"}),
}
"""Classes of httpx, aiohttp, openai and Python, by name, so that none is imported; the first that fits."""
REMEDIES: dict[str, str] = {
    "auth": "check the key (api_key_env in [plugins.embedder-litellm] names the variable that holds it)",
    "connection": "check api_base in [plugins.embedder-litellm] and that the server runs",
    "invalid_request": "check embedding_check_model and api_base in [plugins.embedder-litellm]",
}


def port_error(
    error: BaseException, *, where: str, secrets: Sequence[str] = (), before: BaseException | None = None
) -> PortError:
    """The PortError for anything that litellm raised; `secrets` are blotted out of its message.

    `before` is the exception that was being handled when litellm was called: it is no cause of this one.
    """
    causes = _causes(error, before)
    answers = (_answered(cause, where, secrets) for cause in causes)
    found = next((answer for answer in answers if answer), None) or _unanswered(causes, where, secrets)
    if remedy := REMEDIES.get(found.kind):
        found.args = (f"{found}; {remedy}",)
    return found


def _causes(error: BaseException | None, before: BaseException | None) -> list[BaseException]:
    """The exception and what led to it, the outermost first."""
    seen: list[BaseException] = []
    while error is not None and error is not before and error not in seen and len(seen) < MOST_CAUSES:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


def _names(cause: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(cause).__mro__}


def _answered(cause: BaseException, where: str, secrets: Sequence[str]) -> PortError | None:
    """The error that a server reported with a status. litellm's own exceptions carry made-up responses."""
    if type(cause).__module__ == "litellm.exceptions" or not _names(cause) & {"APIStatusError", "HTTPStatusError"}:
        return None
    response: Any = cause.response  # type: ignore[attr-defined]  # both classes have it
    body: Any = _blotted(response.text, secrets)
    with suppress(ValueError, RecursionError):  # else it stays a text
        body = json.loads(body)
    wait = retry_after_seconds(response.headers, time.time())
    return error_from_wire(response.status_code, body, where=where, retry_after=wait)


def _unanswered(causes: Sequence[BaseException], where: str, secrets: Sequence[str]) -> PortError:
    """The error of a call to which no server gave a usable answer."""
    kind, cause, status = _root(causes)
    text = _blotted(f"{type(cause).__name__}: {' '.join(str(cause).split())}", secrets)
    return PortError(f"{where}: {text[:MESSAGE_LIMIT]}", kind=kind, status=status)


def _root(causes: Sequence[BaseException]) -> tuple[ErrorKind, BaseException, int | None]:
    """The kind that the exceptions of other libraries give, and the innermost that says so; else litellm's own word."""
    foreign = [cause for cause in causes if not type(cause).__module__.startswith("litellm")]
    for kind, names in CAUSES.items():
        if found := [cause for cause in foreign if _names(cause) & names]:
            return kind, found[-1], None
    if keyless := [cause for cause in foreign if type(cause).__name__ == "OpenAIError"]:  # the class itself
        return "auth", keyless[-1], None
    status = getattr(causes[0], "status_code", None)
    if not isinstance(status, int):
        return "plugin", causes[0], None
    if 400 <= status < 500:
        return kind_of_status(status), causes[0], status
    return "bad_response", causes[0], None  # a 5xx that no server sent: litellm could not use the reply


def _blotted(text: str, secrets: Sequence[str]) -> str:
    cleaned: str = redactor(secrets)(text)
    return cleaned
