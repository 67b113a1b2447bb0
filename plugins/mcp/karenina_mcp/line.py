"""What is known about the connection to a server beside its messages, and why it could not be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import define, field

from karenina_core.errors import ErrorKind, PortError, one_line

MOST_BYTES = 4 * 1024 * 1024
"""Of one message of a server. What is longer is not read into memory."""
MOST_OUTPUT = 2000
"""Characters of a program's stderr that are kept."""


@define(eq=False)
class Line:
    """The state of one connection, filled in by its transport."""

    on_end: Callable[[], None] = lambda: None
    """Called when the other side has ended the connection."""
    exit_code: int | None = None
    status: int | None = None
    """The last HTTP status that was an error."""
    ended: bool = False
    """Whether the other side has ended the connection."""
    _words: bytearray = field(factory=bytearray)

    def end(self) -> None:
        self.ended = True
        self.on_end()

    def record(self, words: bytes) -> None:
        """Keep the end of what a program says beside its messages."""
        self._words += words[-4 * MOST_OUTPUT :]
        del self._words[: -4 * MOST_OUTPUT]

    def last_output(self, secrets: Iterable[str] = ()) -> str:
        """The end of what the program printed, at most 2000 characters, without secrets."""
        text = self._words.decode(errors="replace").strip()
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text[-MOST_OUTPUT:]


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
