"""Does an executor do every job once, within its bounds, and leave nothing behind?"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import define, field, frozen

from karenina_core.errors import one_line

from .checks import Check, Fault, Promises, expecting, promise_checks
from .watch.loops import StillRunning, in_loop, within

JOBS, AT_ONCE = 40, 4
LONG = 10.0
"""Seconds after which an executor is taken to hang."""
SIGNATURE = "async def execute(self, jobs, work, *, concurrency)"
During = Callable[[int], Awaitable[None]]
"""What a job does, beside what is recorded of it."""


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

    async def work(self, job: int, during: During | None = None) -> None:
        self.begun.append(job)
        self.running.add(job)
        self.most = max(self.most, len(self.running))
        try:
            await asyncio.sleep(0)
            await (during(job) if during is not None else asyncio.sleep(0))
            self.ended.append(job)
        finally:
            self.running.discard(job)


@frozen(eq=False)
class _Subject:
    factory: Callable[[], Any]

    def run(self, during: During | None = None, *, concurrency: int = AT_ONCE, watch: _Watch | None = None) -> _Watch:
        """What became of the jobs. Raises what the executor raises, and StillRunning."""
        watch = watch or _Watch()
        in_loop(within(self.execution(watch, during, concurrency), LONG))
        return watch

    def execution(self, watch: _Watch, during: During | None, concurrency: int = AT_ONCE) -> Coroutine[Any, Any, None]:
        work = partial(watch.work, during=during)
        execution: Coroutine[Any, Any, None] = self.factory().execute(watch, work, concurrency=concurrency)
        return execution


PROMISES: Promises[_Subject] = Promises()


def executor_checks(factory: Callable[[], Any], *, expected_failures: Mapping[str, str] | None = None) -> list[Check]:
    """One check for every promise of an executor. `factory` makes one; its class will do."""
    name = getattr(factory, "name", None) or getattr(factory, "__name__", "executor")

    def fault_of(error: BaseException) -> Fault:
        if isinstance(error, StillRunning):
            return Fault(f"it hangs: {error}", remedy="return when every job is done")
        return Fault.raised(error)

    return expecting(promise_checks(f"executor {name}", _Subject(factory), PROMISES, fault_of), expected_failures)


@PROMISES.add("signature", "It is called as the core calls it.")
def _signature(subject: _Subject) -> Iterator[Fault]:
    execute = getattr(subject.factory(), "execute", None)
    if execute is None or not inspect.iscoroutinefunction(execute):
        yield Fault("it has no `async def execute`", remedy=SIGNATURE)
        return
    try:
        inspect.signature(execute).bind((), None, concurrency=1)
    except TypeError as error:
        yield Fault(f"`execute` cannot be called as it is: {error}", remedy=SIGNATURE)


@PROMISES.add("every-job-once", "Every job is done once, and all of them when it returns.")
def _once(subject: _Subject) -> Iterator[Fault]:
    watch = subject.run()
    missing, twice = set(range(JOBS)) - set(watch.ended), len(watch.begun) - len(set(watch.begun))
    if missing or twice:
        problem = f"of {JOBS} jobs {len(missing)} were not done when it returned, and {twice} were done again"
        yield Fault(problem, remedy="await `work(job)` once for every job, and return when all of them are done")


@PROMISES.add("nothing-to-do", "Without jobs it returns at once.")
def _nothing(subject: _Subject) -> Iterator[Fault]:
    watch = subject.run(watch=_Watch(jobs=0))
    if watch.begun:
        yield Fault(f"it did {len(watch.begun)} jobs of none")


@PROMISES.add("bounded", "No more jobs are under way at once than `concurrency` says.")
def _bounded(subject: _Subject) -> Iterator[Fault]:
    for concurrency in (1, AT_ONCE):
        watch = subject.run(lambda job: asyncio.sleep(0.002), concurrency=concurrency)
        if watch.most > concurrency:
            problem = f"{watch.most} jobs were under way at once, where {concurrency} may be"
            yield Fault(problem, remedy="start a job when another one has ended")


@PROMISES.add("concurrent", "As many jobs are under way at once as `concurrency` says, if there are so many.")
def _used(subject: _Subject) -> Iterator[Fault]:
    watch = subject.run(lambda job: asyncio.sleep(0.005))
    if watch.most < AT_ONCE:
        problem = f"at most {watch.most} jobs were under way at once, where {AT_ONCE} may be and {JOBS} wait"
        yield Fault(problem, remedy="do as many at the same time as `concurrency` allows")


@PROMISES.add("lazy", "Jobs are taken from the iterator as they begin.")
def _lazy(subject: _Subject) -> Iterator[Fault]:
    watch = subject.run(lambda job: asyncio.sleep(0.001))
    if watch.ahead > AT_ONCE:
        problem = f"{watch.ahead} jobs were taken from the iterator before they were started"
        remedy = "take a job only when it can begin: a run of a million jobs must not fill the memory"
        yield Fault(problem, remedy=remedy)


@PROMISES.add("slow-jobs", "A slow job holds up no other one.")
def _slow(subject: _Subject) -> Iterator[Fault]:
    watch, others_done = _Watch(), asyncio.Event()

    async def during(job: int) -> None:
        if job == 0:
            await others_done.wait()
        elif len(watch.ended) >= JOBS - 2:
            others_done.set()

    try:
        subject.run(during, watch=watch)
    except StillRunning:
        problem = f"one job waited for the others, and only {len(watch.ended)} of {JOBS - 1} were done"
        yield Fault(problem, remedy="a slow job must hold up no other one")


@PROMISES.add("errors", "What a job raises ends the execution, and nothing goes on after it.")
def _raises(subject: _Subject) -> Iterator[Fault]:
    watch = _Watch()

    async def during(job: int) -> None:
        if job == 5:
            raise _Planned
        await asyncio.sleep(0.005)

    async def run() -> tuple[BaseException | None, int]:
        [error] = await asyncio.gather(within(subject.execution(watch, during), LONG), return_exceptions=True)
        return error, len(watch.running)

    error, running = in_loop(run())
    if error is None:
        yield Fault("a job raised an error, and `execute` none", remedy="let it out; what ends a run ends it")
        return
    group = error if isinstance(error, BaseExceptionGroup) else BaseExceptionGroup("", [error])
    if not group.subgroup(_Planned):
        yield Fault(f"a job raised an error, and `execute` another one: {one_line(error)}", cause=error)
    if running:
        yield Fault(f"{running} jobs continued after it had raised", remedy="cancel them and wait for them")
    if len(watch.begun) == JOBS:
        yield Fault("all other jobs were started after one had raised", remedy="start no job after that")


@PROMISES.add("cancellation", "When it is cancelled, so are its jobs, and it waits for them.")
def _cancelled(subject: _Subject) -> Iterator[Fault]:
    watch, full = _Watch(), asyncio.Event()

    async def during(job: int) -> None:
        if len(watch.running) == AT_ONCE:
            full.set()
        await asyncio.sleep(LONG * 10)

    async def run() -> tuple[asyncio.Task[None], bool, int]:
        task = asyncio.ensure_future(subject.execution(watch, during))
        await within(full.wait(), LONG)
        task.cancel()
        await asyncio.wait({task}, timeout=LONG)
        return task, task.done(), len(watch.running)

    task, done, running = in_loop(run())
    if not done:
        yield Fault("it was cancelled, and continued", remedy="let CancelledError out")
    if not task.cancelled():
        yield Fault("it was cancelled, and did not say so", remedy="let CancelledError out", cause=task.exception())
    if running:
        remedy = "cancel the jobs that are under way, and wait for their ends: they close files and remove folders"
        yield Fault(f"it was cancelled, and {running} jobs continued", remedy=remedy)


@PROMISES.add("early-end", "When no more jobs come, those that have started are finished.")
def _stopped(subject: _Subject) -> Iterator[Fault]:
    watch = _Watch()

    async def during(job: int) -> None:
        if job == 10:
            watch.jobs = 0  # the run is to end: nothing more is given out
        await asyncio.sleep(0.002)

    subject.run(during, watch=watch)
    if set(watch.begun) != set(watch.ended):
        yield Fault("when there were no more jobs, it left some undone that it had begun")


@PROMISES.add("several-runs", "Two runs at the same time do not disturb each other.")
def _twice(subject: _Subject) -> Iterator[Fault]:
    first, second = _Watch(), _Watch()
    executor = subject.factory()

    async def run() -> None:
        await asyncio.gather(*(executor.execute(each, each.work, concurrency=AT_ONCE) for each in (first, second)))

    in_loop(within(run(), LONG))
    if any(sorted(watch.ended) != list(range(JOBS)) for watch in (first, second)):
        yield Fault("two runs at the same time disturbed each other", remedy="keep what belongs to a run in the call")
