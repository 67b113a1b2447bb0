"""The checks for executors: ours pass all of them, and each broken one fails the check that is meant for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from karenina_runs.execute.local import LocalExecutor
from karenina_testing.checks import Check

from karenina_core.testing import executor_checks

Work = Callable[[Any], Awaitable[None]]


@pytest.mark.parametrize("check", executor_checks(LocalExecutor))
def test_the_local_executor_keeps_its_promises(check: Check) -> None:
    check.run()


class OneByOne:
    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        for job in jobs:
            await work(job)


class AllAtOnce:
    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(work(job))


class Greedy:
    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        await LocalExecutor().execute(list(jobs), work, concurrency=concurrency)


class Batched:
    """The next ones begin when all of the last ones are done."""

    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        batch = []
        for job in jobs:
            batch.append(job)
            if len(batch) == concurrency:
                await asyncio.gather(*map(work, batch))
                batch = []
        await asyncio.gather(*map(work, batch))


class Twice:
    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        async def again(job: Any) -> None:
            await work(job)
            if job == 7:
                await work(job)

        await LocalExecutor().execute(jobs, again, concurrency=concurrency)


class Swallowing:
    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        async def quietly(job: Any) -> None:
            try:
                await work(job)
            except Exception:
                return

        await LocalExecutor().execute(jobs, quietly, concurrency=concurrency)


class Detached:
    """What it began goes on without it."""

    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        waiting = iter(jobs)

        async def worker() -> None:
            for job in waiting:
                await work(job)

        self.tasks = [asyncio.ensure_future(worker()) for _ in range(concurrency)]
        await asyncio.gather(*map(asyncio.shield, self.tasks))


class Remembering:
    """Its jobs belong to the executor and not to the run."""

    async def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None:
        self.jobs, self.work = iter(jobs), work

        async def worker() -> None:
            await asyncio.sleep(0)
            for job in self.jobs:
                await self.work(job)

        await asyncio.gather(*(worker() for _ in range(concurrency)))


class Blocking:
    def execute(self, jobs: Iterable[Any], work: Work, *, concurrency: int) -> None: ...


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (OneByOne, "concurrent"),
        (AllAtOnce, "bounded"),
        (Greedy, "lazy"),
        (Batched, "slow-jobs"),
        (Twice, "every-job-once"),
        (Swallowing, "errors"),
        (Detached, "cancellation"),
        (Remembering, "several-runs"),
        (Blocking, "signature"),
    ],
)
def test_a_broken_executor_fails_its_check(broken: type, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_testing.executors.LONG", 1.0)
    failing = {one.name for one in executor_checks(broken) if one.find_fault() is not None}
    assert check in failing


def test_a_known_failure_must_fail() -> None:
    checks = executor_checks(OneByOne, expected_failures={"concurrent": "it is slow"})
    next(check for check in checks if check.name == "concurrent").run()
