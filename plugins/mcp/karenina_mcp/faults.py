"""Why a server could not be connected to."""

from __future__ import annotations

from karenina_core.errors import ErrorKind, PortError, one_line

from .line import Line

__all__ = ["first_cause", "port_error"]


def port_error(error: BaseException, what: str, line: Line, words: str) -> PortError:
    """The error of a failed start. `what` names the server; `words` is the end of its stderr."""
    cause = first_cause(error)
    kind, reason = _kind_and_reason(cause, line)
    ending = f"; the end of what it printed: {words}" if words else ""
    return PortError(f"{what}: {reason}{ending}", kind=kind, status=line.status, raw=words or None)


def first_cause(error: BaseException) -> BaseException:
    """The first single error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _kind_and_reason(cause: BaseException, line: Line) -> tuple[ErrorKind, str]:
    if line.status in (401, 403):
        return "auth", f"it refuses us (HTTP {line.status}); name the variable of its token in [plugins.mcp.token_env]"
    if line.status is not None:
        kind: ErrorKind = "server" if line.status >= 500 else "invalid_request"
        return kind, f"it answers with HTTP {line.status}; check the address"
    if isinstance(cause, TimeoutError):
        return "timeout", "it was not ready in time; raise start_seconds in [plugins.mcp]"
    if line.ended:
        return "connection", f"it ended at once (exit code {line.exit_code}); try its command line in a terminal"
    return "connection", f"it cannot be reached ({one_line(cause)}); check that the address is right and that it runs"
