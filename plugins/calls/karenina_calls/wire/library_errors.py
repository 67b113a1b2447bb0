"""What libraries of many providers raise (litellm, langchain), as errors of karenina.

litellm gives one class (InternalServerError, status 500) to a refused connection, to a reply that is no JSON and to a
server's own 500. What really happened is in the chain of exceptions behind it.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from karenina_core.errors import ErrorKind, PortError, shortened
from karenina_core.secrets import MASK, SHORTEST, secrets_in

from ..secrets.redaction import redactor
from .openai_errors import error_from_wire, kind_of_status, retry_after_seconds

MOST_CAUSES = 20  # chosen: far above what libraries raise from one another
MESSAGE_LIMIT = 300  # characters; chosen: some lines of a terminal
SECRET_TEXT = re.compile(r"(?<=Bearer )[^\s'\"]+|(?<=[?&]key=)[^\s&'\"]+", re.IGNORECASE)
WRAPPERS = ("litellm", "langchain_core")
"""Libraries whose exceptions stand for those of a provider's library, which are behind them."""
TRACEBACK = "Traceback (most recent call last)"
DECORATION = re.compile(r"^(?:(?:litellm\.)?[A-Za-z]+(?:Error|Timeout): |[A-Za-z]+Exception - )+")
CAUSES: dict[ErrorKind, frozenset[str]] = {
    "plugin": frozenset({"ImportError"}),
    "timeout": frozenset({"TimeoutError", "TimeoutException", "APITimeoutError"}),
    "invalid_request": frozenset(
        {"LocalProtocolError", "UnsupportedProtocol", "InvalidURL", "TooManyRedirects", "UnicodeEncodeError"}
    ),
    "bad_response": frozenset(
        {"JSONDecodeError", "UnicodeDecodeError", "DecodingError", "ValidationError", "APIResponseValidationError"}
        | {"LengthFinishReasonError"}
    ),
    "connection": frozenset({"TransportError", "ClientError", "APIConnectionError", "OSError"}),
}
"""Classes of httpx, aiohttp, openai, pydantic and Python, by name, so that none is imported; the first that fits."""
UNSUPPORTED = "Leave it out of the model's configuration, for example with temperature: null."
FILTERED = frozenset({"ContentPolicyViolationError", "ContentFilterFinishReasonError"})
GATEWAY = frozenset({"ServiceUnavailableError", "BadGatewayError"})
KEY_HINT = "check the key (api_key_env names the environment variable that holds it)"
NAME_HINT = "check the model's name and endpoint_base_url"
CONTEXT_HINT = "the request is longer than the model's context window"
PACKAGE_HINT = "install the package that is missing"
Hint = Callable[[PortError, Sequence[BaseException]], str]
FAULT_HINT = "this is a mistake of the provider's library or of its adapter, please report it"


def port_error(
    error: BaseException,
    *,
    where: str,
    secrets: Sequence[str] = (),
    before: BaseException | None = None,
    hint: Hint | None = None,
) -> PortError:
    """The PortError for anything that such a library raised. `where` begins its message; `secrets` are masked in it.

    `before` is the exception that was being handled when it was called: it is no cause of this one. `hint` says
    what to do about the error; by default, what to change in the configuration of a model.
    """
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause is not before and cause not in causes and len(causes) < MOST_CAUSES:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    found = _answered(causes, where, secrets) or _unanswered(causes, where, secrets)
    if any(type(cause).__name__ in FILTERED for cause in causes):
        found.kind = "content_filter"
    remedy = (hint or _hint)(found, causes)
    message = f"{found}; {remedy}" if remedy else str(found)
    return PortError(message, kind=found.kind, retry_after=found.retry_after, status=found.status, raw=found.raw)


def _hint(found: PortError, causes: Sequence[BaseException]) -> str:
    if found.kind == "auth":
        return KEY_HINT
    if found.kind == "plugin":
        return PACKAGE_HINT if any(isinstance(cause, ImportError) for cause in causes) else FAULT_HINT
    if any(type(cause).__name__ == "ContextWindowExceededError" for cause in causes):
        return CONTEXT_HINT
    return NAME_HINT if found.status == 404 else ""


def _names(cause: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(cause).__mro__}


def _answered(causes: Sequence[BaseException], where: str, secrets: Sequence[str]) -> PortError | None:
    """The error that a server reported with a status. litellm's own exceptions carry made-up responses."""
    for cause in causes:
        if type(cause).__module__ != "litellm.exceptions" and _names(cause) & {"APIStatusError", "HTTPStatusError"}:
            response: Any = cause.response  # type: ignore[attr-defined]  # both classes have it
            wait = retry_after_seconds(response.headers, time.time())
            return error_from_wire(response.status_code, _body(response, secrets), where=where, retry_after=wait)
        if type(cause) is Exception and isinstance(getattr(cause, "status_code", None), int):
            # litellm's way to say that a body of status 200 reports an error
            reported: Any = cause
            message = _masked(str(getattr(reported, "message", "")), secrets)
            return error_from_wire(None, {"message": message, "code": reported.status_code}, where=where)
    return None


def _body(response: Any, secrets: Sequence[str]) -> Any:
    """The body of an error, without the secrets that it repeats, before any of it is cut off."""
    try:
        text = _masked(response.text, secrets)
    except RuntimeError:  # a streamed body that was not read
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unanswered(causes: Sequence[BaseException], where: str, secrets: Sequence[str]) -> PortError:
    """The error of a call to which no server gave a usable answer."""
    kind, cause = _root(causes)
    if cause is not None:
        parts = (where, type(cause).__name__, _shortened(_masked(str(cause), secrets)))
        return PortError(": ".join(part for part in parts if part), kind=kind)
    error = causes[0]
    status = getattr(error, "status_code", None)
    text = _masked(str(error), secrets)
    if "UnsupportedParamsError" in _names(error):
        text = f"{text.partition('To drop')[0]} {UNSUPPORTED}"
    text = _shortened(DECORATION.sub("", text)) or type(error).__name__
    if isinstance(status, int) and 400 <= status < 500:
        return PortError(f"{where}: {text}", kind=kind_of_status(status), status=status)
    if isinstance(status, int):  # a 5xx that no server sent is a reply that litellm could not use
        kind = "server" if _names(error) & GATEWAY else "bad_response"
    return PortError(f"{where}: {text}", kind=kind)


def _root(causes: Sequence[BaseException]) -> tuple[ErrorKind, BaseException | None]:
    """The kind that the exceptions of other libraries give, and the innermost of them that says so."""
    foreign = [cause for cause in causes if type(cause).__module__.partition(".")[0] not in WRAPPERS]
    for kind, names in CAUSES.items():
        if found := [cause for cause in foreign if _names(cause) & names]:
            return kind, found[-1]
    if keyless := [cause for cause in foreign if type(cause).__name__ == "OpenAIError"]:  # its own class, no subclass
        return "auth", keyless[-1]
    return "plugin", None


def _shortened(text: str) -> str:
    return shortened(" ".join(text.partition(TRACEBACK)[0].split()), MESSAGE_LIMIT)


def known_secrets(*keys: str | None) -> tuple[str, ...]:
    """The given keys and the secrets of the environment."""
    return (*secrets_in(os.environ), *(key for key in keys if key and len(key) >= SHORTEST))


def _masked(text: str, secrets: Sequence[str]) -> str:
    return SECRET_TEXT.sub(MASK, redactor(secrets)(text))
