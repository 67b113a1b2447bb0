"""Whole runs on a clock of their own, in an order that a seed decides: the real engine and the real journal, a provider
that fails in every way, and an end at any moment. Loaded by path; no test is in here."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from attrs import define, evolve, frozen
from karenina_calls.ports.retry import with_retries
from karenina_calls.ports.text import sanitize
from karenina_runs.execute import runner
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.journal.writer import Commits, Writer
from karenina_runs.plan.prepare import prepare
from karenina_testing.virtual_time import VirtualTimeLoop

from karenina_core import Karenina, ModelConfig, VerificationConfig, aresume_run, hookimpl
from karenina_core.errors import PortError
from karenina_core.ports import LLMResponse, threads
from karenina_core.testing import ScriptedCall, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import UsageMetadata

QUESTIONS, JUDGES, CONCURRENCY = 25, 2, 6
ITEMS = QUESTIONS * JUDGES
LONGEST = 1e6
"""Seconds of the simulated clock after which a run is said to hang."""
CRASHED = 9


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world = _load("fault_world")


class SimulatedLoop(VirtualTimeLoop):
    """What the journal's thread says arrives when nothing else is left to do, in the order of the rows: before any time
    passes. What would be done in other threads is done at once."""

    def __init__(self) -> None:
        super().__init__()
        self.journals: list[Commits] = []
        self.said: deque[tuple[Any, tuple[Any, ...], Any]] = deque()
        self.turns = 0
        self.on_turn: Callable[[int], None] = lambda turn: None
        selector, select = self._virtual, self._virtual.select

        def waited(timeout: float | None = None) -> Any:
            self.turns += 1
            self.on_turn(self.turns)
            assert self.time() < LONGEST, "the run does not come to an end"
            if timeout != 0 and self._heard():
                return []
            return select(timeout)

        selector.select = waited  # type: ignore[method-assign]  # this one belongs to this loop

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:
        self.said.append((callback, args, context))

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        self._deliver()
        return future

    def _heard(self) -> bool:
        """Wait, by the real clock, until every row that was given to a journal is settled."""
        deadline = time.monotonic() + 60.0
        while sum(journal.waiting for journal in self.journals) > self._rows():
            assert time.monotonic() < deadline, "the journal does not answer"
            time.sleep(0.0001)
        return self._deliver()

    def _rows(self) -> int:
        return sum(
            len(args[0]) for callback, args, _ in tuple(self.said) if getattr(callback, "__name__", "") == "_settled"
        )

    def _deliver(self) -> bool:
        heard = bool(self.said)
        while self.said:
            callback, args, context = self.said.popleft()
            self.call_soon(callback, *args, context=context)
        return heard


class AtOnce(threading.Thread):
    """While a real thread works, simulated time would pass."""

    def start(self) -> None:
        self.run()


@frozen(kw_only=True)
class Faults:
    """What a seed has decided."""

    often: float
    """How many of all calls fail."""
    storm: tuple[float, float]
    """From when to when nothing is served."""
    crash_at: int | None = None
    """The turn of the loop at which the process is gone."""
    commit: int | None = None
    """The commit in the middle of which it is gone."""
    drain_at: float | None = None
    budget: int | None = None

    @classmethod
    def of(cls, chance: random.Random) -> Faults:
        begin = chance.uniform(0.0, 20.0)
        facts: dict[str, Any] = {
            "often": chance.choice([0.0, 0.1, 0.3, 0.6]),
            "storm": (begin, begin + chance.choice([0.0, 5.0, 30.0])),
        }
        match chance.choice(["crash", "crash", "commit", "drain", "budget"]):
            case "crash":
                facts["crash_at"] = int(chance.expovariate(1 / 400)) + 1
            case "commit":
                facts["commit"] = int(chance.expovariate(1 / 25)) + 1
            case "drain":
                facts["drain_at"] = chance.uniform(0.0, 30.0)
            case _:
                facts["budget"] = chance.randint(1, 20 * ITEMS * 2)
        return cls(**facts)


QUIET = Faults(often=0.0, storm=(0.0, 0.0))


@define(eq=False)
class Provider:
    """Answers and judges, and fails as it is told to. `said` hears of every reply that is paid for."""

    chance: random.Random
    faults: Faults
    said: Callable[[str], None]

    async def __call__(self, call: ScriptedCall) -> Any:
        loop, task = asyncio.get_running_loop(), call.task
        number = world.number_of(call)
        self.said(f"asked {number} {task}")
        await asyncio.sleep(self.chance.expovariate(2.0))
        if self.faults.storm[0] <= loop.time() < self.faults.storm[1]:
            raise PortError("no room", kind="server", status=503)
        if self.chance.random() < self.faults.often:
            reply = await self._fault(task, number)
        else:
            reply = self._good(task, number)
        self.said(f"paid {number} {task}")
        return reply

    def _good(self, task: str, number: int) -> LLMResponse:
        """Every third answer is wrong, and some are odd."""
        target = "MCL1" if number % 3 == 0 else "BCL2"
        text = f'{{"target": "{target}"}}' if task == "parsing" else f"It is {target} (answer {number})."
        text, flags = sanitize(text + (" \ud800\0\u202e🧬" if number % 5 == 0 and task != "parsing" else ""))
        return LLMResponse(content=text, flags=flags, usage=UsageMetadata(20, 5, 25, 0.25))

    async def _fault(self, task: str, number: int) -> Any:
        judged = ("prose", "schema") if task == "parsing" else ()
        kinds = ("limited", "busy", "server", "reset", "hang", "slow", "nonsense", "large", *judged)
        match kind := self.chance.choice(kinds):
            case "limited":
                wait = self.chance.choice([None, 0.0, self.chance.uniform(0.0, 3.0)])
                raise PortError("too many", kind="rate_limited", status=429, retry_after=wait)
            case "busy" | "server":
                raise PortError("no", kind="server", status=503 if kind == "busy" else 500)
            case "reset":
                raise PortError("gone", kind="connection")
            case "hang":
                await asyncio.sleep(LONGEST / 2)
            case "slow":
                await asyncio.sleep(60.0)
                raise PortError("no reply within 60 s", kind="timeout")
            case "nonsense":
                raise PortError("no JSON", kind="bad_response", raw="<html>" * self.chance.randint(0, 99))
            case "large":
                raise PortError("too large", kind="too_large")
        content = "The target is BCL2." if kind == "prose" else '{"aim": "BCL2", "passed": false}'
        return LLMResponse(content=content, usage=UsageMetadata(20, 5, 25, 0.25))


@define(eq=False)
class Heard:
    """A plugin that says what is acknowledged."""

    said: Callable[[str], None]

    @hookimpl
    def karenina_item_finished(self, result: Any, app: Karenina) -> None:
        self.said(f"done {result.metadata.result_id}")


def app_of(script: Any, said: Callable[[str], None] = lambda text: None) -> Karenina:
    return application(Heard(said), ScriptedLLM(script).adapter("simulated"), installed=world.PLUGINS)


def config_of(faults: Faults = QUIET) -> VerificationConfig:
    model = ModelConfig(model_name="m", interface="simulated", temperature=0.5)
    judges = [evolve(model, model_name="j", id=f"judge {number}", temperature=0.0) for number in range(JUDGES)]
    return VerificationConfig(
        answering_models=[model],
        parsing_models=judges,
        concurrency=CONCURRENCY,
        retry_policy=RetryPolicy(**dict.fromkeys(world.KINDS, AttemptPolicy(4, 0.1, 5.0))),
        retry_max_elapsed_seconds=120.0,
        budget_tokens=faults.budget,
    )


def live(folder: Path, seed: int, faults: Faults, said: Callable[[str], None] = lambda text: None) -> None:
    """Begin the run in this folder, or go on with it, until it ends by itself or as the faults say. To be called in a
    process of its own: what it changes stays so."""
    random.seed(seed)
    with asyncio.Runner(loop_factory=SimulatedLoop) as made:
        loop: Any = made.get_loop()
        _prepared_for(loop, faults, said)
        made.run(_lived(folder, Provider(random.Random(seed), faults, said), faults, said))


def _prepared_for(loop: SimulatedLoop, faults: Faults, said: Callable[[str], None]) -> None:
    with_retries.__kwdefaults__["clock"] = loop.time
    runner.stalls_logged = contextlib.nullcontext  # type: ignore[assignment]  # it would look every 25 simulated ms
    threads.threading = SimpleNamespace(**{**vars(threading), "Thread": AtOnce})  # type: ignore[assignment]
    start, commits = Commits.start, iter(range(1, 10**9))

    def before_commit(self: Writer) -> None:
        if next(commits) == faults.commit:
            said("gone")
            os._exit(CRASHED)

    def started(self: Commits, connection: Any, *args: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")  # processes end here, and not the machine
        start(self, connection, *args)
        loop.journals.append(self)
        assert self._writer is not None
        self._writer.window = 0.0

    Writer._before_commit = before_commit  # type: ignore[method-assign]  # in this process alone
    Commits.start = started  # type: ignore[method-assign]

    def turn(number: int) -> None:
        if number == faults.crash_at:
            said("gone")
            os._exit(CRASHED)

    loop.on_turn = turn


async def _lived(folder: Path, provider: Provider, faults: Faults, said: Callable[[str], None]) -> None:
    control = RunControl()
    if faults.drain_at is not None:
        asyncio.get_running_loop().call_later(faults.drain_at, control.drain)
    with contextlib.suppress(asyncio.CancelledError):
        await gone_on(folder, app_of(provider, said), config_of(faults), control)
    said("ended")


async def gone_on(folder: Path, app: Karenina, config: VerificationConfig, control: RunControl | None = None) -> None:
    benchmark = world.benchmark_of(QUESTIONS)
    if (folder / "manifest.json").exists():
        await aresume_run(folder, benchmark=benchmark, config=config, app=app, control=control)
    else:
        prepared = prepare(benchmark, config, app=app, run_name="simulated")
        await execute(prepared, Destination(run_dir=folder), control=control)


def words(said: list[str], first: str) -> Iterator[list[str]]:
    return (line.split()[1:] for line in said if line.split()[0] == first)
