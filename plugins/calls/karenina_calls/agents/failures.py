"""What goes wrong with a program, as errors of karenina."""

from __future__ import annotations

from collections.abc import Sequence

from karenina_core.errors import AgentExecutionError, ErrorKind, PortError, one_line

from .program import AgentProgram, ProgramEnded
from .record import AgentRecord

MESSAGE_LIMIT = 400  # characters; chosen: some lines of a terminal


def failure(
    error: BaseException, program: AgentProgram | None, *, hint: str = "", unreadable: Sequence[str] = ()
) -> PortError:
    """The PortError for whatever ended a session early. It holds the end of what the program printed as `raw`.

    `hint` says how to see whether the program runs; `unreadable` names errors about messages that cannot be used.
    """
    words = program.last_output() if program is not None else ""
    if isinstance(error, PortError):
        found = PortError(str(error), kind=error.kind, status=error.status, raw=error.raw or words or None)
    elif isinstance(error, ProgramEnded):
        code = program.exit_code if program is not None else None
        found = PortError(f"the program ended with code {code} before its work was done{_tail(words)}", kind="server")
        found.raw = words or None
    elif isinstance(error, OSError):
        text = f"the program cannot be started: {one_line(error)}; {hint}"
        found = PortError(text, kind="plugin", raw=words or None)
    else:
        text = program.without_secrets(one_line(error)) if program is not None else one_line(error)
        kind: ErrorKind = "bad_response" if type(error).__name__ in unreadable else "server"
        found = PortError(f"the session with the program failed: {text}{_tail(words)}", kind=kind, raw=words or None)
    return found


def _tail(words: str) -> str:
    last = " ".join(words.split())
    return f": …{last[1 - MESSAGE_LIMIT :]}" if len(last) > MESSAGE_LIMIT else f": {last}" if last else ""


def with_evidence(error: PortError, record: AgentRecord) -> AgentExecutionError:
    """The error of an agent, with what was done until then. That a program broke down is not the provider's doing."""
    kind: ErrorKind = "agent" if error.kind == "server" and error.status is None else error.kind
    found = AgentExecutionError(str(error), stderr=error.raw or "", kind=kind)
    found.status, found.retry_after = error.status, error.retry_after
    found.evidence = {"agent_result": record.agent_result()}
    return found
