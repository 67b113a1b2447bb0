"""Does an executor do every job once, within its bounds, and leave nothing behind?"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import define, field

from karenina_core.errors import one_line

from .checks import Check, Fault, expecting, promise_checks
from .watch.loops import StillRunning, in_loop, within

__all__ = ["executor_checks"]

JOBS, AT_ONCE = 40, 4
LONG = 10.0
"""Seconds after which an executor is taken to hang."""
SIGNATURE = "async def execute(self, jobs, work, *, concurrency)"
FindFault = Callable[["_Subject"], Coroutine[Any, Any, Fault | None]]


class _Planned(Exception):
    """What a job raises on purpose."""


@define(eq=False)
class _Watch:
    """Jobs and work that keep the books."""

    jobs: int = JOBS
    taken: int = 0
    begun: list[int] = field(factory=list)
    ended: list[int] = field(factory=list)
    running: set[int] = field(factory=set)
    most: int = 0
    ahead: int = 0
    """How many jobs were taken, at most, before they were begun."""

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if self.taken >= self.jobs:
            raise StopIteration
        self.taken += 1
        self.ahead = max(self.ahead, self.taken - len(self.begun))
        return self.taken - 1

    async def work(self, job: int, during: Callable[[int], Awaitable[None]] | None = None) -> None:
        self.begun.append(job)
        self.running.add(job)
        self.most = max(self.most, len(self.running))
        try:
            await asyncio.sleep(0)
            await (during(job) if during is not None else asyncio.sleep(0))
            self.ended.append(job)
        finally:
            self.running.discard(job)


@define(eq=False)
class _Subject:
    factory: Callable[[], Any]

    async def run(
        self, watch: _Watch, during: Callable[[int], Awaitable[None]] | None = None, concurrency: int = AT_ONCE
    ) -> None:
        """Raises what the executor raises, and StillRunning."""
        execution = self.factory().execute(watch, partial(watch.work, during=during), concurrency=concurrency)
        await within(execution, LONG)


def executor_checks(factory: Callable[[], Any], *, expected_failures: Mapping[str, str] | None = None) -> list[Check]:
    """One check for every promise of an executor. `factory` makes one; its class will do."""
    name = getattr(factory, "name", None) or getattr(factory, "__name__", "executor")
    promises = {check: (promise, partial(_examined, find_fault)) for check, (promise, find_fault) in PROMISES.items()}
    return expecting(promise_checks(f"executor {name}", _Subject(factory), promises, _fault_of), expected_failures)


def _examined(find_fault: FindFault, subject: _Subject) -> Iterator[Fault]:
    if fault := in_loop(find_fault(subject)):
        yield fault


def _fault_of(error: BaseException) -> Fault:
    if isinstance(error, StillRunning):
        return Fault(f"it hangs: {error}", remedy="return when every job is done")
    return Fault.raised(error)


async def _signature(subject: _Subject) -> Fault | None:
    execute = getattr(subject.factory(), "execute", None)
    if not inspect.iscoroutinefunction(execute):
        return Fault("it has no `async def execute`", remedy=SIGNATURE)
    try:
        inspect.signature(execute).bind((), None, concurrency=1)
    except TypeError as error:
        return Fault(f"`execute` cannot be called as it is: {error}", remedy=SIGNATURE)
    return None


async def _once(subject: _Subject) -> Fault | None:
    watch = _Watch()
    await subject.run(watch)
    missing, twice = set(range(JOBS)) - set(watch.ended), len(watch.begun) - len(set(watch.begun))
    if missing or twice:
        return Fault(
            f"of {JOBS} jobs {len(missing)} were not done when it returned, and {twice} were done again",
            remedy="await `work(job)` once for every job, and return when all of them are done",
        )
    return None


async def _nothing(subject: _Subject) -> Fault | None:
    watch = _Watch(jobs=0)
    await subject.run(watch)
    return Fault(f"it did {len(watch.begun)} jobs of none") if watch.begun else None


async def _bounded(subject: _Subject) -> Fault | None:
    for concurrency in (1, AT_ONCE):
        watch = _Watch()
        await subject.run(watch, lambda job: asyncio.sleep(0.002), concurrency)
        if watch.most > concurrency:
            return Fault(
                f"{watch.most} jobs were under way at once, where {concurrency} may be",
                remedy="begin a job when another one has ended",
            )
    return None


async def _used(subject: _Subject) -> Fault | None:
    watch = _Watch()
    await subject.run(watch, lambda job: asyncio.sleep(0.005))
    if watch.most < AT_ONCE:
        return Fault(
            f"at most {watch.most} jobs were under way at once, where {AT_ONCE} may be and {JOBS} wait",
            remedy="do as many at the same time as `concurrency` allows",
        )
    return None


async def _lazy(subject: _Subject) -> Fault | None:
    watch = _Watch()
    await subject.run(watch, lambda job: asyncio.sleep(0.001))
    if watch.ahead > AT_ONCE:
        return Fault(
            f"{watch.ahead} jobs were taken from the iterator before they were begun",
            remedy="take a job only when it can begin: a run of a million jobs must not fill the memory",
        )
    return None


async def _slow(subject: _Subject) -> Fault | None:
    watch, others_done = _Watch(), asyncio.Event()

    async def during(job: int) -> None:
        if job == 0:
            await others_done.wait()
        elif len(watch.ended) >= JOBS - 2:
            others_done.set()

    try:
        await subject.run(watch, during)
    except StillRunning:
        return Fault(
            f"one job waited for the others, and only {len(watch.ended)} of {JOBS - 1} were done",
            remedy="a slow job must hold up no other one",
        )
    return None


async def _raises(subject: _Subject) -> Fault | None:
    watch = _Watch()

    async def during(job: int) -> None:
        if job == 5:
            raise _Planned
        await asyncio.sleep(0.005)

    [error] = await asyncio.gather(subject.run(watch, during), return_exceptions=True)
    if error is None:
        return Fault("a job raised an error, and `execute` none", remedy="let it out; what ends a run ends it")
    if not _has(error, _Planned):
        return Fault(f"a job raised an error, and `execute` another one: {one_line(error)}", cause=error)
    if watch.running:
        return Fault(f"{len(watch.running)} jobs went on after it had raised", remedy="cancel them and wait for them")
    if len(watch.begun) == JOBS:
        return Fault("all other jobs were begun after one had raised", remedy="begin no job after that")
    return None


async def _cancelled(subject: _Subject) -> Fault | None:
    watch, full = _Watch(), asyncio.Event()

    async def during(job: int) -> None:
        if len(watch.running) == AT_ONCE:
            full.set()
        await asyncio.sleep(LONG * 10)

    work = partial(watch.work, during=during)
    task = asyncio.ensure_future(subject.factory().execute(watch, work, concurrency=AT_ONCE))
    await within(full.wait(), LONG)
    task.cancel()
    await asyncio.wait({task}, timeout=LONG)
    if not task.done():
        return Fault("it was cancelled, and went on", remedy="let CancelledError out")
    if not task.cancelled():
        return Fault("it was cancelled, and did not say so", remedy="let CancelledError out", cause=task.exception())
    if watch.running:
        return Fault(
            f"it was cancelled, and {len(watch.running)} jobs went on",
            remedy="cancel the jobs that are under way, and wait for their ends: they close files and remove folders",
        )
    return None


async def _stopped(subject: _Subject) -> Fault | None:
    watch = _Watch()

    async def during(job: int) -> None:
        if job == 10:
            watch.jobs = 0  # the run is to end: nothing more is given out
        await asyncio.sleep(0.002)

    await subject.run(watch, during)
    if set(watch.begun) != set(watch.ended):
        return Fault("when there were no more jobs, it left some undone that it had begun")
    return None


async def _twice(subject: _Subject) -> Fault | None:
    first, second = _Watch(), _Watch()
    executor = subject.factory()
    runs = (executor.execute(watch, watch.work, concurrency=AT_ONCE) for watch in (first, second))
    await within(asyncio.gather(*runs), LONG)
    if any(sorted(watch.ended) != list(range(JOBS)) for watch in (first, second)):
        return Fault("two runs at the same time disturbed each other", remedy="keep what belongs to a run in the call")
    return None


def _has(error: BaseException, kind: type[BaseException]) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_has(part, kind) for part in error.exceptions)
    return isinstance(error, kind)


PROMISES: Mapping[str, tuple[str, FindFault]] = {
    "signature": ("It is called as the core calls it.", _signature),
    "every-job-once": ("Every job is done once, and all of them when it returns.", _once),
    "nothing-to-do": ("Without jobs it returns at once.", _nothing),
    "bounded": ("No more jobs are under way at once than `concurrency` says.", _bounded),
    "concurrent": ("As many jobs are under way at once as `concurrency` says, if there are so many.", _used),
    "lazy": ("Jobs are taken from the iterator as they begin.", _lazy),
    "slow-jobs": ("A slow job holds up no other one.", _slow),
    "errors": ("What a job raises ends the execution, and nothing goes on after it.", _raises),
    "cancellation": ("When it is cancelled, so are its jobs, and it waits for them.", _cancelled),
    "early-end": ("When no more jobs come, those that have begun are done.", _stopped),
    "several-runs": ("Two runs at the same time do not disturb each other.", _twice),
}
