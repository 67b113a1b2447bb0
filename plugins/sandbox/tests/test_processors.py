"""A quick call is answered on the processor of its caller, and neither is kept there longer than that."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_sandbox.connection import Worker
from karenina_sandbox.processors import ANYWHERE, HELD, Processors
from karenina_sandbox.runtime import SandboxRuntime

from karenina_core.errors import TemplateError

sys.path.append(str(Path(__file__).parent))
from sandboxed import PRIMITIVES, judged, source

SEVERAL = len(os.sched_getaffinity(0)) > 1


def allowed(runtime: SandboxRuntime) -> Any:
    """Where the process of the last template that was used may run."""
    return os.sched_getaffinity(last(runtime).pid)


def last(runtime: SandboxRuntime) -> Worker:
    return next(reversed(runtime.pool._idle.values()))[-1]


def in_a_thread(call: Callable[[], None]) -> None:
    """For what changes where a thread may run."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def test_a_process_is_beside_its_caller_for_quick_calls_and_anywhere_for_others(runtime: SandboxRuntime) -> None:
    every = os.sched_getaffinity(0)

    async def run() -> list[Any]:
        filled = await (await runtime.load(source("sum(range(int(self.said))); return True"), PRIMITIVES)).build(
            {"said": "2"}
        )
        found = []
        for _ in range(HELD + 3):  # the last ones do not hold the caller
            assert (await filled.verify("")).result is True
            found.append(allowed(runtime))
            assert os.sched_getaffinity(0) == every
        slow = await (await runtime.load(source("import time; time.sleep(0.1); return True"), PRIMITIVES)).build(
            {"said": "2"}
        )
        assert (await slow.verify("")).result is True
        assert allowed(runtime) == os.sched_getaffinity(0) == every
        return found

    found = {len(where) for where in asyncio.run(run())}
    assert 1 in found
    assert found <= {1, len(every)}, "calls that a busy machine delays leave it anywhere"


def test_a_caller_may_run_where_it_could_before_whatever_becomes_of_the_call(runtime: SandboxRuntime) -> None:
    """Also one that was kept on one processor by its own program, and where the process ends or the data is no JSON."""
    every = os.sched_getaffinity(0)
    ends = source("import os; os._exit(3)")

    def calls() -> None:
        os.sched_setaffinity(0, {min(every)})
        for text, data, words in (
            (source("return True"), None, None),
            (ends, None, "exit code 3"),
            (source("return True"), {"said": "x" * 40, "more": {1: {(2,): 3}}}, "cannot be given"),
        ):
            if words is None:
                assert asyncio.run(judged(runtime, text, data)).result is True
            else:
                with pytest.raises(TemplateError, match=words):
                    asyncio.run(judged(runtime, text, data))
            assert os.sched_getaffinity(0) == {min(every)}

    in_a_thread(calls)
    assert os.sched_getaffinity(0) == every


def test_where_processes_may_not_be_moved_calls_are_answered_all_the_same(
    runtime: SandboxRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = runtime.pool.server
    assert (server.processors is not None) is SEVERAL
    monkeypatch.setattr(server, "processors", server.processors)  # put back at the end

    class Refused(Processors):
        def hold(self, pid: int, place: int) -> tuple[int, bytes | None]:
            return super().hold(1 << 30, ANYWHERE)  # there is no such process

    if SEVERAL:
        server.processors = Refused()
    assert asyncio.run(judged(runtime, source("return True"))).result is True
    assert server.processors is None
    assert os.sched_getaffinity(0) == os.sched_getaffinity(os.getpid())


def test_there_is_nothing_to_choose_on_one_processor() -> None:
    def one() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with pytest.raises(OSError, match="no other processor"):
            Processors()

    in_a_thread(one)


def test_the_caller_is_held_again_where_a_call_shows_that_it_would_be_moved(runtime: SandboxRuntime) -> None:
    asyncio.run(judged(runtime, source("return True")))
    pid = last(runtime).pid

    def calls() -> None:
        every = os.sched_getaffinity(0)
        processors = Processors()
        here = ANYWHERE
        for _ in range(HELD):
            here, before = processors.hold(pid, here)
            assert os.sched_getaffinity(0) == os.sched_getaffinity(pid) == {here}
            assert before is not None
            processors.release(here, before)
            assert os.sched_getaffinity(0) == every
        here, before = processors.hold(pid, here)
        assert before is None
        assert os.sched_getaffinity(0) == every
        processors.release(ANYWHERE, before)  # as if it had been woken on another one
        here, before = processors.hold(pid, here)
        assert before is not None
        processors.release(here, before)
        processors.let_go(pid)
        assert os.sched_getaffinity(pid) == every

    if SEVERAL:
        in_a_thread(calls)
