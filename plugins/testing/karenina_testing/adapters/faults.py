"""What can go wrong between an adapter and its server, and what the adapter must call it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from karenina_core.errors import ErrorKind, PortError, one_line

from ..checks import Fault
from ..watch.source_lines import line_of_error
from .ports import Ports
from .replies import Reply

__all__ = ["FAULTS", "ServerFault", "misnamed"]


@frozen
class ServerFault:
    """One way in which a call fails."""

    promise: str
    reply: Reply
    kinds: tuple[ErrorKind, ...]
    retry_after: float | None = None


def _status(status: int, kind: ErrorKind, **more: object) -> ServerFault:
    reply = Reply.error(status, **more)  # type: ignore[arg-type]  # the arguments of Reply.error
    return ServerFault(f"HTTP {status} is {kind}.", reply, (kind,))


FAULTS: Mapping[str, ServerFault] = {
    "rejected_key": _status(401, "auth"),
    "forbidden": _status(403, "auth"),
    "refused_request": _status(400, "invalid_request"),
    "unknown_model": _status(404, "invalid_request"),
    "server_timeout": _status(408, "timeout"),
    "server_error": _status(500, "server"),
    "overloaded": _status(503, "server", html=True),
    "rate_limited": ServerFault(
        "HTTP 429 is rate_limited, and the wait that the server asks for is passed on.",
        Reply.error(429, retry_after=7.5),
        ("rate_limited",),
        retry_after=7.5,
    ),
    "content_filter": ServerFault(
        "A request that the provider's filter refuses is content_filter.",
        Reply.error(400, code="content_filter"),
        ("content_filter",),
    ),
    "reset": ServerFault("A connection that is reset is connection.", Reply.reset(), ("connection",)),
    "truncated": ServerFault(
        "A reply that ends too early is connection or bad_response.", Reply.truncated(), ("connection", "bad_response")
    ),
    "empty": ServerFault("A reply without a body is bad_response.", Reply.empty(), ("bad_response",)),
    "garbage": ServerFault("A reply that is not JSON is bad_response.", Reply.garbage(), ("bad_response",)),
    "invalid_utf8": ServerFault("A reply that is not UTF-8 is bad_response.", Reply.invalid_utf8(), ("bad_response",)),
    "no_choices": ServerFault("A reply without an answer is bad_response.", Reply.no_choices(), ("bad_response",)),
    "web_page": ServerFault(
        "A web page instead of a reply is bad_response.", Reply.wrong_content_type(), ("bad_response",)
    ),
    "huge": ServerFault("A reply of 16 MB is too_large.", Reply.huge(16), ("too_large",)),
    "gzip_bomb": ServerFault("A reply that unpacks to 64 MB is too_large.", Reply.gzip_bomb(64), ("too_large",)),
}
"""Name -> fault. The statuses that a server sends must be on the error, too."""


def misnamed(ports: Ports, fault: ServerFault) -> Iterator[Fault]:
    """What an adapter makes of a fault, where it is not a PortError of the right kind."""
    error, _ = ports.fails(fault.reply)
    wanted = " or ".join(fault.kinds)
    if error is None:
        yield Fault("the call returned a reply", remedy=f"raise PortError(..., kind={wanted!r})")
        return
    line = line_of_error(error, None)
    if not isinstance(error, PortError):
        yield Fault.raised(error, f"turn it into PortError(..., kind={wanted!r})", by="the call")
        return
    if error.kind not in fault.kinds:
        yield Fault(f"the call raised the kind {error.kind!r}: {one_line(error)}", line, f"give it the kind {wanted}")
    if fault.retry_after is not None and error.retry_after != fault.retry_after:
        problem = f"its retry_after is {error.retry_after!r}, and the server asked for {fault.retry_after:g} s"
        yield Fault(problem, line, "pass retry_after=... on, in seconds, fractions included")
    if fault.reply.status >= 400 and error.status != fault.reply.status:
        problem = f"its status is {error.status!r}, and the server sent {fault.reply.status}"
        yield Fault(problem, line, "pass status=... on: refused channels of structured output are known by it")
