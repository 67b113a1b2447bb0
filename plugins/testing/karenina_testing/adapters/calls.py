"""What an adapter promises about calls and around them, looked at with a scripted server."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import frozen

from karenina_core.errors import ErrorKind, ParseError, PortError, one_line
from karenina_core.ports.values import ParsePortResult

from ..checks import Fault, Promises, Raised, attempt
from ..watch.loops import LONGEST_CANCELLATION, cancel, in_loop, within
from ..watch.source_lines import line_of_error
from .http_replies import resolved
from .ports import ASK, DATA, KEY, Ports, WrongReturn
from .replies import Reply, ServedRequest

ODD = "a\ud800b\0c\u202ed"
ODD_FLAGS = ("lone_surrogate", "nul", "bidi_control")


LLM_CALLS: Promises[Ports] = Promises()
SANITIZE = "pass the text through karenina_calls.ports.text.sanitize and its flags into the response"
RAISE_PARSE = "raise ParseError(..., raw_response=text)"
HANGING = 30.0  # seconds; longer than any check waits
SHORT = 0.3  # seconds of `request_timeout`: a call on loopback takes a hundredth
PATIENCE = 1.5  # seconds more for a busy machine
SETTLING = 2.0  # seconds in which connections are closed; as long for a busy machine
HIDE = "replace the key in messages and in raw, and raise `from None` where the cause holds the request"


@LLM_CALLS.add("success", "A reply has the text and the usage that the server sent.")
def success(ports: Ports) -> Iterator[Fault]:
    with ports.serve(Reply("Paris", usage=(7, 2))) as server:
        reply = ports.use(ports.configured(server.url), ports.ask, "llm")
        asked = server.requests[0].text
    if missing := [message.text for message in ASK if message.text not in asked]:
        yield ports.fault(f"the message {missing[0]!r} did not arrive", "send every message")
    if reply.content != "Paris":
        yield ports.fault(f"the server sent 'Paris', the reply's content is {reply.content!r}")
    used = reply.usage
    if (used.input_tokens, used.output_tokens, used.total_tokens) != (7, 2, 9) or reply.usage_unavailable:
        yield ports.fault(
            f"the server reported 7 and 2 tokens, the usage is {used}", "fill usage=UsageMetadata(...) from the reply"
        )
    if used.cost_usd == 0:
        yield ports.fault("its cost is 0", "a price that is not known is None")


@LLM_CALLS.add("unknown_usage", "Tokens that the server does not report are unknown, not zero.")
def unknown_usage(ports: Ports) -> Iterator[Fault]:
    with ports.serve(Reply("Paris", usage=None)) as server:
        reply = ports.use(ports.configured(server.url), ports.ask, "llm")
    if not reply.usage_unavailable:
        yield ports.fault("the server reported no tokens, and usage_unavailable is False", "set it to True")


@LLM_CALLS.add("temperature", "The temperature of a call wins; None sends none.")
def temperature(ports: Ports) -> Iterator[Fault]:
    with ports.serve("Paris") as server:
        ports.use(ports.configured(server.url, temperature=0.7), ports.asking(temperature=0.0), "llm")
        ports.use(ports.configured(server.url, temperature=None), ports.ask, "llm")
        given, none = (request.temperature for request in server.requests)
    if given != 0.0:
        yield ports.fault(f"asked with temperature 0.0, it sent {given!r}", "send what the call was given")
    if none is not None:
        yield ports.fault(f"configured with temperature None, it sent {none!r}", "send none at all")


@LLM_CALLS.add("odd_text", "Odd text can be sent, and what comes back is safe to write and flagged.")
def odd_text(ports: Ports) -> Iterator[Fault]:
    with ports.serve(Reply(ODD)) as server:
        config = ports.configured(server.url)
        try:
            reply = ports.use(config, ports.asking(messages=(*ASK[:1], type(ASK[1]).user(ODD))), "llm")
        except UnicodeError as error:
            yield Fault(one_line(error), line_of_error(error, None), "pass what is sent through ports.text.sanitize")
    wanted = ODD.replace("\ud800", "\ufffd")
    if reply.content != wanted:
        yield ports.fault(f"the content is {reply.content!r}, not {wanted!r}", SANITIZE)
    if missing := [flag for flag in ODD_FLAGS if flag not in reply.flags]:
        yield ports.fault(f"its flags are {reply.flags}, without {', '.join(missing)}", SANITIZE)


PARSER_CALLS: Promises[Ports] = Promises()


@PARSER_CALLS.add("parsed", "A parser returns the data of a reply, and raises ParseError where there is none.")
def parsed(ports: Ports) -> Iterator[Fault]:
    with ports.serve(lambda request: Reply(DATA) if request.number == 1 else Reply("no data", in_tool=False)) as server:
        config = ports.configured(server.url)
        result = ports.use(config, ports.asking(kind="parser"), "parser")
        if not isinstance(result, ParsePortResult) or dict(result.data) != DATA:
            yield ports.fault(f"the server sent {dict(DATA)!r}, aparse returned {result!r}", method="aparse")
        again = attempt(ports.use, config, ports.asking(kind="parser"), "parser")
    if not isinstance(again, Raised):
        yield ports.fault(f"for a reply without data it returned {again!r}", RAISE_PARSE, method="aparse")
    elif not isinstance(again.error, ParseError):
        yield Fault.raised(again.error, RAISE_PARSE, by="for a reply without data it")


def replies_or_refuses(ports: Ports) -> Iterator[Fault]:
    """Without a server: a call returns a reply or raises PortError."""
    for kind in ports.kinds:
        reply = attempt(ports.use, ports.configured(), ports.asking(kind=kind), kind)
        if isinstance(reply, Raised) and isinstance(reply.error, WrongReturn):
            raise reply.error
        if isinstance(reply, Raised) and not isinstance(reply.error, PortError):
            yield Fault.raised(reply.error, "raise PortError", by=f"the {kind} port")


@frozen
class ServerFault:
    """One way in which a call fails."""

    what: str
    reply: Reply
    kinds: tuple[ErrorKind, ...]
    retry_after: float | None = None

    @property
    def promise(self) -> str:
        passed = ", and the wait that the server asks for is passed on" if self.retry_after else ""
        return f"{self.what} is {' or '.join(self.kinds)}{passed}."


def _status(status: int, kind: ErrorKind, **more: Any) -> ServerFault:
    return ServerFault(f"HTTP {status}", Reply.error(status, **more), (kind,), more.get("retry_after"))


FAULTS: Mapping[str, ServerFault] = {
    "rejected_key": _status(401, "auth"),
    "forbidden": _status(403, "auth"),
    "refused_request": _status(400, "invalid_request"),
    "unknown_model": _status(404, "invalid_request"),
    "server_timeout": _status(408, "timeout"),
    "server_error": _status(500, "server"),
    "overloaded": _status(503, "server", html=True),
    "rate_limited": _status(429, "rate_limited", retry_after=7.5),
    "content_filter": ServerFault(
        "A request that the provider's filter refuses", Reply.error(400, code="content_filter"), ("content_filter",)
    ),
    "reset": ServerFault("A connection that is reset", Reply.reset(), ("connection",)),
    "truncated": ServerFault("A reply that ends too early", Reply.truncated(), ("connection", "bad_response")),
    "empty": ServerFault("A reply without a body", Reply.empty(), ("bad_response",)),
    "garbage": ServerFault("A reply that is not JSON", Reply.garbage(), ("bad_response",)),
    "invalid_utf8": ServerFault("A reply that is not UTF-8", Reply.invalid_utf8(), ("bad_response",)),
    "no_choices": ServerFault("A reply without an answer", Reply.no_choices(), ("bad_response",)),
    "web_page": ServerFault("A web page instead of a reply", Reply.wrong_content_type(), ("bad_response",)),
    "huge": ServerFault("A reply of 16 MB", Reply.huge(16), ("too_large",)),
    "gzip_bomb": ServerFault("A reply that unpacks to 64 MB", Reply.gzip_bomb(64), ("too_large",)),
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
    sent = resolved(ports.wire, fault.reply).status
    if sent >= 400 and error.status != sent:
        problem = f"its status is {error.status!r}, and the server sent {sent}"
        yield Fault(problem, line, "pass status=... on: refused channels of structured output are known by it")


BEHAVIOUR: Promises[Ports] = Promises()


@BEHAVIOUR.add("one_attempt", "It makes one attempt and no retries of its own.")
def one_attempt(ports: Ports) -> Iterator[Fault]:
    """A call that fails is sent once: to repeat it is the core's work."""
    for reply in (Reply.error(500), Reply.error(429, retry_after=0), Reply.error(408), Reply.reset()):
        _, server = ports.fails(reply)
        if server.count != 1:
            what = f"HTTP {reply.status}" if reply.status != 200 else "a reset connection"
            yield ports.fault(
                f"after {what} the server had seen {server.count} requests",
                "make one attempt and raise PortError; switch off the retries of the client library",
            )


@BEHAVIOUR.add("key_hidden", "The key is in no error and in no repr.")
def key_hidden(ports: Ports) -> Iterator[Fault]:
    def echoed(request: ServedRequest) -> Reply:
        echo = request.key or KEY
        if request.number == 2:
            return Reply(body=f"not JSON: {echo}".encode())
        return Reply.error(401 if request.number == 1 else 500, f"this key is wrong: {echo}")

    with ports.serve(echoed) as server:
        for _ in range(3):
            outcome = attempt(ports.use, ports.configured(server.url), ports.ask)
            if not isinstance(outcome, Raised):
                continue
            error = outcome.error
            places = {
                "the text of the error": f"{error} {error!r}",
                "the raw reply in the error": str(getattr(error, "raw", None)),
                "an attribute of the error": repr(vars(error)),
                "the traceback with its causes": "".join(traceback.format_exception(error)),
            }
            for place, text in places.items():
                if KEY in text:
                    yield Fault(f"{place} shows the key", line_of_error(error, None), HIDE)
    port = ports.make(ports.kinds[0], ports.configured())
    if KEY in repr(port):
        yield ports.fault("the repr of the port shows the key", "leave the key out of the repr")


def _too_long(ports: Ports, reply: Reply, what: str) -> Iterator[Fault]:
    error, _ = ports.fails(reply, seconds=SHORT + PATIENCE, request_timeout=SHORT)
    remedy = "bound the whole call: async with asyncio.timeout(config.request_timeout); raise kind 'timeout'"
    if not isinstance(error, PortError) or error.kind != "timeout":
        outcome = one_line(error) if error else "it returned a reply"
        yield ports.fault(f"a server {what}, and with request_timeout={SHORT:g}: {outcome}", remedy)


BEHAVIOUR |= {
    "timeout": (
        "A silent server is given up after request_timeout.",
        partial(_too_long, reply=Reply.hang(HANGING), what="does not answer"),
    ),
    "total_timeout": (
        "request_timeout is for the whole reply.",
        partial(_too_long, reply=Reply.drip(SHORT / 6, "slow " * 200), what="sends a byte now and then"),
    ),
}


@BEHAVIOUR.add("cancellation", "A cancelled call ends at once and closes its connection.")
def cancellation(ports: Ports) -> Iterator[Fault]:

    async def cancelled(port: Any) -> str:
        task = asyncio.ensure_future(ports.ask(port))
        await asyncio.to_thread(server.wait_for, 1)
        if how := await cancel(task):
            return how
        return "" if await asyncio.to_thread(_settled, lambda: server.in_flight == 0) else "its request stayed open"

    with ports.serve(Reply.hang(HANGING)) as server:
        problem = ports.use(ports.configured(server.url, request_timeout=HANGING), cancelled)
    remedy = "let asyncio.CancelledError through, and release the response in finally"
    if problem:
        yield ports.fault(f"a call was cancelled, and {problem}", remedy)


@BEHAVIOUR.add("closing", "aclose can be called at any time, any number of times, and leaves nothing open.")
def closing(ports: Ports) -> Iterator[Fault]:
    line = ports.line_of("aclose")
    with ports.serve(Reply(DATA)) as server:
        config = ports.configured(server.url)
        ports.use(config, ports.ask)  # what a library keeps for ever after its first use is not the port's
        threads = set(threading.enumerate())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            left = attempt(lambda: in_loop(within(_closed_often(ports, config), HANGING)))
            if isinstance(left, Raised):
                yield Fault.raised(left.error, by="aclose", line=line)
                return
            gc.collect()
        unclosed = [str(warning.message) for warning in caught if issubclass(warning.category, ResourceWarning)]
        if not _settled(lambda: server.connections == 0):
            left.append("a connection")
    _settled(lambda: threads.issuperset(threading.enumerate()))  # one that is about to end is not left behind
    started = [thread.name for thread in threading.enumerate() if thread not in threads]
    if problems := [*left, *unclosed, *(f"the thread {name!r}" for name in started)]:
        yield Fault(f"after aclose there was still {problems[0]}", line, "close in aclose what the port has opened")


async def _closed_often(ports: Ports, config: Any) -> list[str]:
    """Close a port before, after and twice after its use; what is left of it then."""
    before = asyncio.all_tasks()
    unused = ports.make(ports.kinds[0], config)
    await unused.aclose()
    port = ports.make(ports.kinds[0], config)
    if opener := getattr(port, "aopen", None):
        await opener()
    await ports.ask(port)
    await port.aclose()
    await port.aclose()
    tasks = asyncio.all_tasks() - before
    _, pending = await asyncio.wait(tasks, timeout=LONGEST_CANCELLATION / 4) if tasks else (tasks, tasks)
    return [f"the task {task.get_coro()!r}" for task in pending]


def _settled(done: Callable[[], bool]) -> bool:
    """Whether something becomes true in good time."""
    until = time.monotonic() + SETTLING
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
