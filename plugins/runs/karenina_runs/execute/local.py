"""The executor of this process: a bounded number of jobs at once, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from karenina_core.plugin.markers import hookimpl

J = TypeVar("J")


class LocalExecutor:
    """Workers that take the next job when they are done with one. Other executors have the same name and method."""

    name = "local"

    async def execute(self, jobs: Iterable[J], work: Callable[[J], Awaitable[None]], *, concurrency: int) -> None:
        """Await `work(job)` for every job, at most `concurrency` at a time; take jobs only as they are needed.

        `work` never raises, except when it is cancelled.
        """
        waiting = iter(jobs)

        async def worker() -> None:
            for job in waiting:
                await work(job)

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(worker())


@hookimpl
def karenina_register_executors(registry: Any) -> None:
    registry.add(LocalExecutor)
