"""What it costs to run the code of a benchmark in the sandbox.

    python -m tests.benchmarks.sandbox

prints how many functions are called for one `verify` of a template's own, as JSON: in this process, and in the worker.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import os
import pstats
import select
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from karenina_sandbox.connection import CPU_CLOCK
from karenina_sandbox.frames import framed
from karenina_sandbox.runtime import SandboxRuntime
from karenina_sandbox.settings import SandboxSettings
from karenina_sandbox.worker import Served
from karenina_template.primitives import NAMES

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig, templates
from karenina_core.errors import TemplateError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

from .measure import Row
from .yardstick import yardstick

__all__ = ["sandbox_rows", "verify_calls"]

PRIMITIVES = {name: getattr(templates, name) for name in NAMES}
TEMPLATE = """
from karenina.schemas.entities import BaseAnswer
from pydantic import Field

class Answer(BaseAnswer):
    number: int = Field(description="The number that is given")

    def model_post_init(self, __context):
        self.correct = {"number": %d}

    def verify(self) -> bool:
        return self.number == self.correct["number"]
"""
ENDLESS = TEMPLATE.replace("return self", "while True: pass\n        return self")
ECHO = "import socket; s = socket.socket(fileno=%d)\nwhile data := s.recv(1 << 16): s.sendall(data)"
MESSAGE = b"x" * 130
"""As long as the reply to `verify`; the request has 82 bytes."""
SECONDS = 1.0
"""What a model takes for one reply on average; each takes from half to one and a half of that."""
TURNS = 5
"""Of each part of `verify`, as a multiple of `--items`: 1,000 by default."""
AT_ONCE = 50
"""Items that are verified at a time."""


def sandbox_rows(items: int, templates: int = 0) -> list[Row]:
    """Wall clock, as what is waited for is another process. `templates` are loaded and used beside, each once."""
    turns = [yardstick().wall for _ in range(3)]
    rows = asyncio.run(_runtime_rows(items, median(turns)))
    many = asyncio.run(_many_rows(templates)) if templates else []
    return [*rows, *many, *_run_rows(5 * items)]


async def _runtime_rows(items: int, turn: float) -> list[Row]:
    runtime = SandboxRuntime(SandboxSettings(seconds=0.2, hard_seconds=0.5))
    filled = await (await runtime.load(TEMPLATE % 0, PRIMITIVES)).build({"number": 0})
    verify, floor = [], []
    with _echo() as there_and_back:
        for _ in range(2 * TURNS * items):
            began = time.perf_counter()
            there_and_back()
            between = time.perf_counter()
            await filled.verify("It is 0.")
            floor.append((between - began) * 1000)
            verify.append((time.perf_counter() - between) * 1000)
            filled.steps = ()
    starts = []
    for number in range(5 * items):
        began = time.perf_counter()
        await runtime.load(TEMPLATE % number, PRIMITIVES)
        starts.append((time.perf_counter() - began) * 1000)
    server = runtime.pool.server.pid
    memory = [_megabytes(pid) for pid in (server, *_children(server))]
    after = [await _after_kill(runtime, number) for number in range(5)]
    parts = await _part_rows(runtime, TURNS * items)
    runtime.close()
    bare, few = median(floor), f"p99 {sorted(verify)[99 * len(verify) // 100]:.3f}; wall, in turns with a bare message"
    most = f"{len(memory) - 1} workers, the largest {max(memory):.0f} MB"
    return [
        Row("sandbox, verify", median(verify), 0.1, median(verify) / bare, few, yardstick=turn),
        Row("a bare message", bare, None, 1.0, "to another process and back, no sandbox; wall"),
        *parts,
        Row("sandbox, start of a template", median(starts), 10.0, None, f"of {len(starts)}; wall", yardstick=turn),
        Row("sandbox, next item after a kill", median(after), 10.0, None, "wall", yardstick=turn),
        Row("sandbox, its server", memory[0], 150.0, None, f"after {len(starts)} templates; {most}", unit="MB"),
    ]


@contextmanager
def _echo(processor: int | None = None) -> Iterator[Callable[[], object]]:
    """Sends a message to another process, which may be kept on one processor, and waits for it to come back: no call of
    another process is quicker."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            command = [sys.executable, "-c", ECHO % theirs.fileno()]
            other = subprocess.Popen(command, pass_fds=[theirs.fileno()])
            if processor is not None:
                os.sched_setaffinity(other.pid, {processor})
        watch = select.poll()
        watch.register(ours, select.POLLIN)

        def there_and_back() -> None:
            ours.send(MESSAGE)
            watch.poll()
            ours.recv(1 << 16)

        there_and_back()  # until it has started
        yield there_and_back
    other.wait()


async def _part_rows(runtime: SandboxRuntime, turns: int) -> list[Row]:
    """What the time of `verify` is made of, each alone: two processes that change places, and what they compute."""
    filled = await (await runtime.load(TEMPLATE % 0, PRIMITIVES)).build({"number": 0})
    every = os.sched_getaffinity(0)
    with _echo(min(every)) as there_and_back:
        os.sched_setaffinity(0, {min(every)})
        change = median(_timed(there_and_back, turns))
        os.sched_setaffinity(0, every)
    before = time.thread_time(), _used(runtime.pool.server.pid)
    for _ in range(turns):
        await filled.verify("It is 0.")
        filled.steps = ()
    after = time.thread_time(), _used(runtime.pool.server.pid)
    here, there = ((end - begin) * 1000 / turns for begin, end in zip(before, after, strict=True))
    served = _served()
    alone, again = _timed(partial(_verified, served), turns), _timed(partial(_again, served), turns)
    detail = (
        f"no message, nothing between; of it {median(again):.3f} to fill the template again for the second run; wall"
    )
    return [
        Row("a bare message, one processor", change, None, None, "to another process on it and back; wall"),
        Row("sandbox, verify, CPU", here + there, None, None, f"of this process {here:.3f}, of the worker {there:.3f}"),
        Row("sandbox, verify, worker alone", median(alone), None, None, detail),
    ]


def _timed(call: Callable[[], object], turns: int) -> list[float]:
    """Milliseconds of each of many calls."""
    found = []
    for _ in range(turns):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1000)
    return found


def _used(server: int) -> float:
    """Processor seconds that the workers which are there have had. Their clocks are finer than what /proc says."""
    found = 0.0
    for pid in _children(server):
        with suppress(OSError):
            found += time.clock_gettime((~pid << 3) | CPU_CLOCK)
    return found


def _served() -> Served:
    """The inside of a worker, in this process, with a filled template."""
    served = Served(PRIMITIVES, "")
    made = {"data": {"number": 0}, "steps": []}
    for request in ({"do": "template", "text": TEMPLATE % 0}, {"do": "use", "filled": 1, "make": made, "step": None}):
        reply, _ = served.answer(request)
        assert "error" not in reply, reply
    return served


def _verified(served: Served) -> None:
    framed(b"", served.answer({"do": "use", "filled": 1, "step": ["verify", "It is 0.", None, {}]})[0])


def _again(served: Served) -> None:
    served.answer({"do": "use", "filled": 1, "step": ["accepting", []]})


def verify_calls(times: int = 100) -> dict[str, float]:
    """Calls of functions for one `verify`, Python's own and built-in ones: `{"host", "worker"}`. The median of many, as
    a busy machine lets some wait in a thread; on one processor, where no call has to hold its caller."""
    return {"host": median(asyncio.run(_host_calls(times))), "worker": _calls(partial(_verified, _served()))}


async def _host_calls(times: int) -> list[int]:
    runtime = SandboxRuntime()
    filled = await (await runtime.load(TEMPLATE % 0, PRIMITIVES)).build({"number": 0})
    every, found = os.sched_getaffinity(0), []
    os.sched_setaffinity(0, {min(every)})
    for _ in range(times):
        profile = cProfile.Profile()
        with profile:
            await filled.verify("It is 0.")
        found.append(_total(profile))
        filled.steps = ()
    os.sched_setaffinity(0, every)
    runtime.close()
    return found


def _calls(call: Callable[[], object]) -> int:
    call()
    profile = cProfile.Profile()
    with profile:
        call()
    return _total(profile)


def _total(profile: cProfile.Profile) -> int:
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]  # left out of its stub
    return total


async def _many_rows(templates: int) -> list[Row]:
    """Memory and time of so many distinct templates, `AT_ONCE` of them at a time, and how many cores they used."""
    runtime = SandboxRuntime()
    waiting = iter(range(templates))
    verdicts: list[bool] = []
    largest = 0.0

    async def serve() -> None:
        for number in waiting:
            filled = await (await runtime.load(TEMPLATE % number, PRIMITIVES)).build({"number": number})
            verdicts.append((await filled.verify(f"It is {number}.")).result)

    await (await runtime.load(TEMPLATE % -1, PRIMITIVES)).build({"number": 0})
    server = runtime.pool.server.pid
    memory = _megabytes(server)
    began, used = time.perf_counter(), _cpu(server)
    tasks = [asyncio.create_task(serve()) for _ in range(AT_ONCE)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(1)
        largest = max(largest, *(_megabytes(pid) for pid in (server, *_children(server))))
    await asyncio.gather(*tasks)
    took, cores = time.perf_counter() - began, (_cpu(server) - used) / (time.perf_counter() - began)
    assert verdicts == [True] * templates
    grown = _megabytes(server) - memory
    runtime.close()
    detail = f"of {templates} templates, {AT_ONCE} at once; the server grew by {grown:.2f} MB"
    wall = f"each, wall; {cores:.2f} of {len(os.sched_getaffinity(0))} processors used"
    return [
        Row("sandbox, largest process", largest, 150.0, None, detail, unit="MB"),
        Row("sandbox, many templates", took * 1000 / templates, None, None, wall),
    ]


def _cpu(server: int) -> float:
    """Processor seconds of this process, of the server, and of all workers that have ended or are there."""
    found = time.process_time()
    for pid in (server, *_children(server)):
        with suppress(FileNotFoundError, ProcessLookupError):
            parts = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:15]
            found += sum(map(int, parts)) / os.sysconf("SC_CLK_TCK")
    return found


async def _after_kill(runtime: SandboxRuntime, number: int) -> float:
    """Milliseconds from the end of a template that had to be killed to the verdict of another one."""
    other = await (await runtime.load(TEMPLATE % -number, PRIMITIVES)).build({"number": 0})
    endless = await (await runtime.load(ENDLESS % -number, PRIMITIVES)).build({"number": 0})
    try:
        await endless.verify("")
    except TemplateError:
        began = time.perf_counter()
        await other.verify("")
        return (time.perf_counter() - began) * 1000
    raise AssertionError("an endless loop has ended")


def _megabytes(pid: int) -> float:
    """Of a process that may have ended already: 0."""
    try:
        found = Path(f"/proc/{pid}/status").read_text("ascii").partition("VmRSS:")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return int(found[0]) / 1024 if found else 0.0


def _children(pid: int) -> Sequence[int]:
    return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]


def _reply(request: ServedRequest) -> Any:
    latency = SECONDS * (0.5 + zlib.crc32(request.text.encode()) % 1000 / 1000)
    return Reply("It is 7." if request.schema is None else {"number": 7}, latency=latency)


def _run_rows(questions: int) -> list[Row]:
    """A run of so many templates, in the sandbox and trusted."""
    benchmark = Benchmark.create("numbers").with_questions(
        Question(id=f"q{n}", question=f"Which is {n}?", raw_answer="7", answer_template=TEMPLATE % n)
        for n in range(questions)
    )
    walls: dict[str, float] = {}
    outcomes: dict[str, list[str]] = {}
    with ScriptedServer(_reply) as server:
        answering, parsing = (
            ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=server.url) for name in "aj"
        )
        for policy in ("trusted", "sandbox"):
            app = Karenina.installed()
            config = VerificationConfig(
                answering_models=[answering],
                parsing_models=[parsing],
                code_policy=policy,  # type: ignore[arg-type]  # one of its words
                concurrency=AT_ONCE,
            )
            began = time.perf_counter()
            results = benchmark.run_verification(config, app=app)
            walls[policy] = time.perf_counter() - began
            outcomes[policy] = [str(result.outcome) for result in results]
            app.loop.close()
    assert outcomes["trusted"] == outcomes["sandbox"], "the sandbox must not change a result"
    assert set(outcomes["sandbox"]) <= {"passed", "failed"}
    ratio = walls["sandbox"] / walls["trusted"]
    detail = f"wall; {questions} templates, replies of {SECONDS:g} s, {AT_ONCE} at once; budget 1.3 x trusted"
    return [
        Row("run, sandboxed by trusted", ratio, 1.3, ratio, detail, unit="x"),
        Row("run, sandboxed", walls["sandbox"] * 1000, None, None, "wall"),
        Row("run, trusted", walls["trusted"] * 1000, None, None, "wall"),
    ]


if __name__ == "__main__":
    print(json.dumps(verify_calls()))
