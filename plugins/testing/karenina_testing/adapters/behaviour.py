"""How an adapter behaves around its calls: attempts, secrets, time limits, cancellation, closing."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from karenina_core.errors import PortError, one_line

from ..checks import Fault, Promises, Raised, attempt
from ..watch.loops import LONGEST_CANCELLATION, cancel, in_loop, within
from ..watch.source_lines import line_of_error
from .ports import DATA, KEY, Ports
from .replies import Reply, ServedRequest

HANGING = 30.0
SHORT = 0.3
PATIENCE = 1.5
SETTLING = 2.0
HIDE = "replace the key in messages and in raw, and raise `from None` where the cause holds the request"


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
        echo = request.headers.get("authorization", "") or KEY
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


@BEHAVIOUR.add("timeout", "A silent server is given up after request_timeout.")
def timeout(ports: Ports) -> Iterator[Fault]:
    yield from _too_long(ports, Reply.hang(HANGING), "does not answer")


@BEHAVIOUR.add("total_timeout", "request_timeout is for the whole reply.")
def total_timeout(ports: Ports) -> Iterator[Fault]:
    yield from _too_long(ports, Reply.drip(SHORT / 6, "slow " * 200), "sends a byte now and then")


def _too_long(ports: Ports, reply: Reply, what: str) -> Iterator[Fault]:
    error, _ = ports.fails(reply, seconds=SHORT + PATIENCE, request_timeout=SHORT)
    remedy = f"bound the whole call: async with asyncio.timeout(config.request_timeout); raise kind {'timeout'!r}"
    if not isinstance(error, PortError) or error.kind != "timeout":
        outcome = one_line(error) if error else "it returned a reply"
        yield ports.fault(f"a server {what}, and with request_timeout={SHORT:g}: {outcome}", remedy)


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
