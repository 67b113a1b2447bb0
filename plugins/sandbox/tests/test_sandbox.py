"""What the sandbox runtime does beside keeping templates in."""

from __future__ import annotations

import asyncio
import os
import pickle
import platform
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from karenina_sandbox import lockdown
from karenina_sandbox.frames import KEPT
from karenina_sandbox.runtime import SandboxRuntime
from karenina_sandbox.settings import SandboxSettings
from karenina_template.python_source import InProcessRuntime
from karenina_testing.checks import run_checks

from karenina_core.errors import FillError, TemplateError, TemplateRefused
from karenina_core.testing import runtime_checks

sys.path.append(str(Path(__file__).parent))
from sandboxed import MIXED, PRIMITIVES, RIGHT, TRACE, children, judged, memory, runs, source


@pytest.fixture(scope="module")
def runtime() -> Iterator[SandboxRuntime]:
    made = SandboxRuntime(SandboxSettings(seconds=0.5, hard_seconds=60, load_seconds=20, kept=16))
    yield made
    made.close()


async def everything(runtime: Any, text: str, data: Any) -> dict[str, Any]:
    handle = await runtime.load(text, PRIMITIVES)
    filled = await handle.build(data)
    said = {"values": filled.values(), "nulls": filled.nulls, "verdict": await filled.verify(TRACE)}
    said |= {"granular": await filled.granular(), "regex": await filled.regex(TRACE)}
    accepted = filled.accepting(["doses"])
    said |= {"accepted": await accepted.verify(TRACE), "its_values": accepted.values(), "warnings": handle.warnings}
    facts = (handle.schema(), handle.fields(), handle.trace_fields(), handle.ground_truth(), dict(handle.accepted()))
    return said | {"facts": facts}


@pytest.mark.parametrize("data", [RIGHT, {"drug": "x", "doses": [100]}, {"drug": None, "doses": []}])
def test_a_template_says_the_same_inside_and_outside(runtime: SandboxRuntime, data: Any) -> None:
    inside = asyncio.run(everything(runtime, MIXED, data))
    assert inside == asyncio.run(everything(InProcessRuntime(), MIXED, data))


def test_it_keeps_the_promises_of_template_runtimes(runtime: SandboxRuntime) -> None:
    run_checks(runtime_checks(runtime, max_examples=4))


def test_errors_are_the_same_inside_and_outside(runtime: SandboxRuntime) -> None:
    async def error(here: Any, text: str, data: Any) -> tuple[type[Exception], str]:
        with pytest.raises(TemplateError) as caught:
            await judged(here, text, data)
        return caught.type, str(caught.value)

    for text, data, kind in (
        (MIXED, {"drug": "x", "doses": "many"}, FillError),
        (MIXED, {"other": 1}, FillError),
        (source("return 1 / 0"), None, TemplateError),
        (source("return 'yes'"), None, TemplateError),
        ("class Answer(:", None, TemplateError),
        (source("return True", "raise ValueError('é\\ud800')"), None, TemplateError),
    ):
        inside, outside = (asyncio.run(error(here, text, data)) for here in (runtime, InProcessRuntime()))
        assert inside[0] is outside[0] is kind
        assert inside[1] == outside[1].encode("utf-8", "replace").decode()


def test_nothing_of_a_template_is_executed_here(runtime: SandboxRuntime) -> None:
    found = asyncio.run(judged(runtime, source("import os; return os.getpid() != " + str(os.getpid()))))
    assert found.result is True


def test_the_handle_says_how_far_it_is_locked(runtime: SandboxRuntime) -> None:
    level = asyncio.run(runtime.load(MIXED, PRIMITIVES)).isolation
    assert level in ("sandbox-full", "sandbox-no-userns", "sandbox-seccomp-only")


def test_what_cannot_be_locked_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    runtime = SandboxRuntime()
    assert "riscv64" in runtime.unavailable
    with pytest.raises(TemplateRefused, match="seccomp"):
        asyncio.run(runtime.load(MIXED, PRIMITIVES))
    monkeypatch.undo()
    assert lockdown.forecast() == ""


def test_modules_are_there_or_the_error_says_where_to_name_them(runtime: SandboxRuntime) -> None:
    usual = "import math, re, json, datetime, decimal, hashlib, statistics, difflib, random, uuid, dateutil.parser\n"
    late = (
        "datetime.datetime.strptime('2020', '%Y'); 'x'.encode('latin-1'); 'x'.encode('idna'); '{:n}'.format(3); "
        "hashlib.md5(b'x').hexdigest(); uuid.uuid4(); dateutil.parser.parse('3 May 2020 10:00 UTC'); "
        "re.findall(r'\\d', '12'); datetime.datetime.now().astimezone(); statistics.mean([1, 2]); "
    )
    assert asyncio.run(judged(runtime, source(f"{late}return random.random() < 2", usual))).result is True
    with pytest.raises(TemplateError, match=r"No module named 'sqlite3'.*\[plugins\.sandbox-runtime\] imports"):
        asyncio.run(judged(runtime, source("return True", "import sqlite3")))
    more = SandboxRuntime(SandboxSettings(imports=["sqlite3", "no_such_module"]))
    assert asyncio.run(judged(more, source("return sqlite3.sqlite_version > ''", "import sqlite3"))).result is True
    assert "no_such_module cannot be imported" in more.pool.server.notes[0]
    more.close()


def test_templates_are_in_processes_apart_and_few_are_kept(runtime: SandboxRuntime, long: bool) -> None:
    most = 16 + len(os.sched_getaffinity(0))
    count = 60 if long else most + 6

    async def many() -> None:
        handles = [await runtime.load(source(f"return {number} == {number}"), PRIMITIVES) for number in range(count)]
        for handle in handles:
            assert (await (await handle.build({"said": "x"})).verify("")).result is True

    asyncio.run(many())
    before = memory(runtime.pool.server.pid)
    asyncio.run(many())
    end = time.monotonic() + 20
    while len(found := [pid for pid in children(runtime.pool.server.pid) if runs(pid)]) > most:
        assert time.monotonic() < end, f"{len(found)} processes are kept, where 16 and one per processor may be"
        time.sleep(0.01)
    assert memory(runtime.pool.server.pid) < before + 85 * count
    assert before < 150_000


def test_a_process_with_much_memory_is_not_kept(runtime: SandboxRuntime) -> None:
    text = source("self.kept = bytearray(40 << 20); return True")  # twice, as it is asked twice

    async def run() -> list[bool]:
        filled = await (await runtime.load(text, PRIMITIVES)).build({"said": "x"})
        return [(await filled.verify("")).result for _ in range(3)]

    assert asyncio.run(run()) == [True] * 3
    server = runtime.pool.server.pid
    end = time.monotonic() + 20
    while large := [pid for pid in children(server) if runs(pid) and memory(pid) > memory(server) + 65_000]:
        assert time.monotonic() < end, large
        time.sleep(0.01)


def test_what_was_filled_is_filled_again_where_its_process_has_ended(runtime: SandboxRuntime) -> None:
    text = source("self.count = getattr(self, 'count', 0) + 1; return True", "started = []")
    text += "    def verify_granular(self):\n        started.append(1)\n"
    text += "        return float(self.count * 10 + len(started))\n"

    async def run() -> list[float | None]:
        filled = await (await runtime.load(text, PRIMITIVES)).build({"said": "x"})
        await filled.verify("")
        await filled.verify("")
        first = await filled.granular()
        for worker in children(runtime.pool.server.pid):
            with suppress(ProcessLookupError):  # it was about to be ended
                os.kill(worker, signal.SIGKILL)
            while runs(worker):
                time.sleep(0.01)
        return [first, await filled.granular()]

    assert asyncio.run(run()) == [21.0, 22.0]


def test_more_are_filled_than_a_worker_remembers(runtime: SandboxRuntime) -> None:
    async def run() -> list[Any]:
        handle = await runtime.load(source("return self.said == 'x'"), PRIMITIVES)
        filled = [await handle.build({"said": said}) for said in "xy" * KEPT]
        return [(await one.verify("")).result for one in filled]

    assert asyncio.run(run()) == [True, False] * KEPT


QUANTITY = """
class Answer(BaseAnswer):
    dose: str = VerifiedField("The dose", "0.5 g", QuantityMatch())
"""


def test_what_a_primitive_imports_late_is_there_where_a_template_names_it() -> None:
    made = SandboxRuntime()

    async def run() -> None:
        plain = source("import sys; return 'pint' not in sys.modules")
        filled = await (await made.load(plain, PRIMITIVES)).build({"said": "x"})
        assert (await filled.verify("")).result is True
        before = made.pool.server.pid
        found = await asyncio.gather(
            judged(made, QUANTITY, {"dose": "500 mg"}), filled.verify(""), judged(made, QUANTITY, {"dose": "500 g"})
        )
        assert [verdict.result for verdict in found] == [True, True, False]
        after = made.pool.server.pid
        assert after != before
        assert (await judged(made, source("return True"))).result is True
        assert (await judged(made, QUANTITY, {"dose": "0.5 g"})).result is True
        assert made.pool.server.pid == after

    asyncio.run(run())
    made.close()


def test_templates_run_at_the_same_time(runtime: SandboxRuntime) -> None:
    several = SandboxRuntime(SandboxSettings(workers=3))
    naps = [source(f"import time; time.sleep(0.7); return {number} > -1") for number in range(3)]

    async def run() -> float:
        filled = [await (await several.load(text, PRIMITIVES)).build({"said": "x"}) for text in naps]
        began = time.monotonic()
        await asyncio.gather(*(one.verify("") for one in filled))
        return time.monotonic() - began

    assert asyncio.run(run()) < 2.1, "one after the other"
    several.close()


def test_the_event_loop_goes_on_while_a_template_takes_its_time(runtime: SandboxRuntime) -> None:
    async def run() -> tuple[int, str]:
        filled = await (await runtime.load(source("while True: pass"), PRIMITIVES)).build({"said": "x"})
        task = asyncio.ensure_future(filled.verify(""))
        turns = 0
        while not task.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns, str(task.exception())

    turns, message = asyncio.run(run())
    assert turns > 10
    assert "stopped after 0.5 s of processor time (line 6: while True: pass)" in message


def test_who_waits_no_more_leaves_no_process_at_work(runtime: SandboxRuntime) -> None:
    async def run() -> bool:
        filled = await (await runtime.load(source("while True: pass"), PRIMITIVES)).build({"said": "x"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await filled.verify("")
        return (await judged(runtime, source("return True"))).result

    def at_work() -> list[int]:
        found = [pid for pid in children(runtime.pool.server.pid) if runs(pid)]
        return [pid for pid in found if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"]

    assert asyncio.run(run()) is True
    end = time.monotonic() + 20
    while at_work() and time.monotonic() < end:
        time.sleep(0.01)
    assert at_work() == []


def test_whatever_is_cancelled_or_killed_the_others_go_on(runtime: SandboxRuntime, long: bool) -> None:
    draw = random.Random(7)
    texts = [source(f"sum(range({10 ** (2 + number % 5)})); return self.said == 'x'") for number in range(12)]

    async def one(text: str) -> Any:
        filled = await (await runtime.load(text, PRIMITIVES)).build({"said": "x"})
        return (await filled.verify("")).result

    async def disturb() -> None:
        for _ in range(40 if long else 20):
            await asyncio.sleep(0.02)
            if found := [pid for pid in children(runtime.pool.server.pid) if runs(pid)]:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(found), signal.SIGKILL)

    async def run() -> list[Any]:
        disturber = asyncio.ensure_future(disturb())
        tasks = [asyncio.ensure_future(one(draw.choice(texts))) for _ in range(60 if long else 30)]
        for task in tasks:
            await asyncio.sleep(0.005)
            if draw.random() < 0.3:
                task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await disturber
        return [*found, *await asyncio.gather(*map(one, texts))]

    disturbed = asyncio.run(asyncio.wait_for(run(), 120))
    assert disturbed[-len(texts) :] == [True] * len(texts)
    for result in disturbed:
        assert result is True or isinstance(result, TemplateError | asyncio.CancelledError), repr(result)
    assert runtime.pool.free == (runtime.pool.settings.workers or len(os.sched_getaffinity(0)))


def test_another_server_is_started_where_one_has_ended(runtime: SandboxRuntime) -> None:
    async def run() -> list[Any]:
        filled = await (await runtime.load(source("return True"), PRIMITIVES)).build({"said": "x"})
        server = runtime.pool.server.pid
        os.kill(server, signal.SIGKILL)
        while runs(server):
            time.sleep(0.01)
        return [(await filled.verify("")).result, (await judged(runtime, MIXED, RIGHT)).result]

    assert asyncio.run(run()) == [True, True]


def test_a_call_during_which_the_server_ends_is_made_again_once(runtime: SandboxRuntime) -> None:
    """Whatever ends it, such as a system without memory, the template has done nothing."""

    async def run(*, often: int) -> Any:
        filled = await (await runtime.load(source("import time; time.sleep(0.3); return True"), PRIMITIVES)).build(
            {"said": "x"}
        )
        task = asyncio.ensure_future(filled.verify(""))
        killed: set[int] = set()
        while len(killed) < often and not task.done():
            await asyncio.sleep(0.05)
            if (server := runtime.pool.server.pid) not in killed and children(server):
                os.kill(server, signal.SIGKILL)
                killed.add(server)
        return (await task).result

    assert asyncio.run(run(often=1)) is True
    with pytest.raises(TemplateError, match="sandbox"):
        asyncio.run(run(often=10))


HOST = """
import asyncio, os, sys, time
from karenina_sandbox.runtime import SandboxRuntime
async def main():
    runtime = SandboxRuntime()
    await runtime.load('class Answer(BaseAnswer):\\n    x: int = 1\\n    def verify(self): return True', {})
    task = asyncio.ensure_future((await (await runtime.load(SLOW, {})).build({'said': 'x'})).verify(''))
    await asyncio.sleep(0.3)
    print(runtime.pool.server.pid, flush=True)
    await task
"""


def test_all_of_it_ends_with_the_host() -> None:
    code = f"SLOW = {source('while True: pass')!r}\n{HOST}\nasyncio.run(main())"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        server = int(host.stdout.readline())
        workers = children(server)
        host.kill()
    assert len(workers) >= 2
    end = time.monotonic() + 20
    while time.monotonic() < end and any(runs(pid) for pid in (server, *workers)):
        time.sleep(0.05)
    assert [pid for pid in (server, *workers) if runs(pid)] == []


def test_ending_and_interrupting_twice_is_nothing(runtime: SandboxRuntime) -> None:
    server = runtime.pool.server
    worker = server.fork()
    assert server.end(worker, wait=True) == -signal.SIGKILL
    worker.ended = False
    server.interrupt(worker)
    server.end(worker)
    assert server.runs
    assert asyncio.run(judged(runtime, source("return True"))).result is True


# Functions of traits


class Leaves:
    def __reduce__(self) -> Any:
        return os.system, ("touch it-ran",)


def test_functions_of_traits_run_there_too(
    runtime: SandboxRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(code: bytes, text: str = "BCL2") -> Any:
        return await (await runtime.load_function(code)).call(text)

    monkeypatch.chdir(tmp_path)
    assert asyncio.run(run(pickle.dumps(str.isupper))) is True
    assert asyncio.run(run(b"def evaluate(text): return len(text) / 2")) == 2.0
    other = asyncio.run(run(b"def evaluate(text): return [text]"))
    assert (other.type, other.shown) == ("list", "['BCL2']")
    for code, words in (
        (pickle.dumps(Leaves()), "not a function|instead of a function"),
        (b"def other(text): pass", "defines no function evaluate"),
        (b"def evaluate(text): return 1 / 0", "ZeroDivisionError"),
        (b"def evaluate(text):\n    while True: pass", "stopped after 0.5 s"),
        (b"\x80\x04garbage", "Unpickling|pickle"),
    ):
        with pytest.raises(TemplateError, match=words):
            asyncio.run(run(code))
    assert list(tmp_path.iterdir()) == []
