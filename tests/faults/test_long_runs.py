"""Many items, and many runs in one process: memory, CPU, the event loop, open files and threads."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from typing import Any

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

BEGIN = """\
import importlib.util, json, os, sys, threading, time
from pathlib import Path

where, place, *given = sys.argv[1:]
spec = importlib.util.spec_from_file_location("fault_world", where)
world = importlib.util.module_from_spec(spec)
spec.loader.exec_module(world)
from karenina_core import ModelConfig, VerificationConfig, hookimpl
"""
MANY = (
    BEGIN
    + """\
import asyncio
from karenina_runs.plan.prepare import prepare
from karenina_runs.execute.runner import Destination, execute
from karenina_core.testing import ScriptedLLM, application

questions, replicates = map(int, given)
items, seen = questions * replicates, []

def resident():
    text = Path("/proc/self/status").read_text("ascii")
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024

class Look:
    done = 0

    @hookimpl
    def karenina_item_finished(self, result, app):
        self.done += 1
        if self.done % (items // 10) == 0:
            seen.append(resident())

class Model(ScriptedLLM):
    async def ainvoke(self, *args, **facts):
        self.calls.clear()
        return await super().ainvoke(*args, **facts)

answerer = Model(lambda call: "It is BCL2. " * 50)
judge = Model(lambda call: {"target": "BCL2"})
plugins = (Look(), answerer.adapter("answering"), judge.adapter("judging"))
app = application(*plugins, installed=world.PLUGINS)
config = VerificationConfig(
    answering_models=[ModelConfig(model_name="a", interface="answering")],
    parsing_models=[ModelConfig(model_name="j", interface="judging")],
    replicate_count=replicates,
    concurrency=16,
)
prepared = prepare(world.benchmark_of(questions), config, app=app)
before, begun, wall = resident(), time.process_time(), time.monotonic()
results = asyncio.run(execute(prepared, Destination(run_dir=Path(place) if place else None)))
cpu, wall = time.process_time() - begun, time.monotonic() - wall
told = {"before": before, "seen": seen, "after": resident(), "cpu": cpu * 1000 / items, "wall": wall}
print(json.dumps({**told, "outcomes": results.get_summary()["outcomes"]}))
"""
)
RUNS = (
    BEGIN
    + """\
url, runs, questions = given[0], int(given[1]), int(given[2])

def open_files():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count()

def run(number):
    here = world.World(Path(place) / str(number), questions=questions)
    outcomes = here.run(here.config(url, concurrency=8)).get_summary()["outcomes"]
    assert outcomes == {"passed": questions}, outcomes

for number in range(2):  # what is opened once
    run(number)
before = open_files()
for number in range(runs):
    run(number + 2)
print(json.dumps({"before": before, "after": open_files()}))
"""
)
LAGS = (
    BEGIN
    + """\
import asyncio
from karenina_runs.execute.watchdogs import TURNS_EVERY, Stalls

url, questions, concurrency = given[0], int(given[1]), int(given[2])

class Look:
    stalls = Stalls()
    lags = []  # seconds that each turn of a timer was late

    def turn(self, due=None):
        loop = asyncio.get_running_loop()
        if due is not None:
            self.lags.append(max(0.0, loop.time() - due))
        self.timer = loop.call_later(TURNS_EVERY, self.turn, loop.time() + TURNS_EVERY)

    @hookimpl
    def karenina_run_started(self, run, app):
        self.stalls.start()
        self.turn()
        self.begun, self.before = time.monotonic(), self.stalls.kept_waiting

    @hookimpl
    def karenina_run_finished(self, summary, status, app):
        self.busy = (self.stalls.kept_waiting - self.before) / (time.monotonic() - self.begun)
        self.stalls.stop()
        self.timer.cancel()

look = Look()
here = world.World(Path(place), questions=questions, plugins=(look,))
results = here.run(here.config(url, concurrency=concurrency))
assert results.get_summary()["outcomes"] == {"passed": questions}
lags = sorted(look.lags)
late = {"p50": lags[len(lags) // 2], "p99": lags[len(lags) * 99 // 100], "largest": lags[-1], "turns": len(lags)}
print(json.dumps({**late, "busy": look.busy, "stalls": look.stalls.count}))
"""
)


def child(forking: Any, script: str, place: Path | str, *given: object, timeout: float = 120.0) -> dict[str, Any]:
    """What the script says in a process of its own, which has imported what a run needs."""
    words = list(map(str, (Path(__file__).with_name("fault_world.py"), place, *given)))
    ran = forking.start(prelude=f"import sys\nsys.argv[1:] = {words!r}\n{script}\nsys.exit(0)")
    assert ran.wait(timeout) == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_memory_does_not_grow_with_the_items_and_each_costs_little(forking: Any, tmp_path: Path, long: bool) -> None:
    """The time of an item depends on the machine: its bound finds only what is several times worse in the short form.
    What an item costs is counted, without a clock, in `test_counted_work`.

    In the full form an item may take a millisecond of the core: that is what it takes without a run directory (0.5 on a
    quiet machine). With one it takes 1.1 to 1.6 in all, the thread that writes the journal included."""
    questions, replicates = (100_000, 3) if long else (360, 3)
    found = child(forking, MANY, tmp_path / "run", questions, replicates, timeout=3600.0 if long else 300.0)
    print(found)
    assert found["outcomes"] == {"passed": questions * replicates}
    first, *_, last = found["seen"]
    assert len(found["seen"]) == 10
    assert last <= (1.05 * first if long else first + 4), "in MB: 2 are taken, and 5 by 540 results"
    assert found["after"] <= (1.1 if long else 1.05) * last, "at the end of 300,000 items 10 MB more are taken"
    assert found["cpu"] <= (2.0 if long else 10.0), "milliseconds of CPU an item; a quiet machine takes 1.2"
    world.invariants.assert_journal(tmp_path / "run")
    if long:
        found = child(forking, MANY, "", 5000, replicates, timeout=300.0)
        print("without a run directory:", found)
        assert found["outcomes"] == {"passed": 5000 * replicates}
        assert found["cpu"] <= 1.0, "milliseconds of CPU an item"


def test_the_event_loop_goes_on_while_many_calls_are_under_way(forking: Any, tmp_path: Path, long: bool) -> None:
    """In the full form within 50 ms for 99 of 100 turns, on a machine that has nothing else to do. In the short one, a
    loop that waits for replies itself, up to fifty in one turn, is seconds late."""
    questions, chance = (2000 if long else 80), random.Random(1)

    def script(request: ServedRequest) -> Reply:
        return Reply(world.right(request), latency=chance.uniform(0.05, 0.25))

    with ScriptedServer(script) as server:
        found = child(forking, LAGS, tmp_path / "run", server.url, questions, 50, timeout=600.0 if long else 300.0)
    print(found)
    assert found["turns"] > 0
    assert found["p99"] < (0.05 if long and found["busy"] < 0.02 else 2.0)


def test_many_runs_in_one_process_leave_no_files_and_no_threads_open(forking: Any, tmp_path: Path, long: bool) -> None:
    with ScriptedServer(world.right) as server:
        found = child(
            forking, RUNS, tmp_path, server.url, *((20, 250) if long else (8, 4)), timeout=600.0 if long else 300.0
        )
        calls = server.count
    print(calls, "calls:", found)
    assert calls == (22 * 500 if long else 10 * 8)
    for before, after in zip(found["before"], found["after"], strict=True):
        assert abs(after - before) <= 2, found
