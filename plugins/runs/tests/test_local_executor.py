"""So many jobs at once and no more; jobs are taken when somebody is free for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_runs.execute.local import LocalExecutor

from karenina_core.errors import PortError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]


@given(st.integers(0, 30), st.integers(1, 8))
@settings(deadline=None)
def test_every_job_is_done_once_within_the_bound(jobs: int, concurrency: int) -> None:
    done: list[int] = []
    taken = running = most = 0
    ahead = 0

    def lazily() -> Iterator[int]:
        nonlocal taken
        for number in range(jobs):
            taken += 1
            yield number

    async def work(job: int) -> None:
        nonlocal running, most, ahead
        running += 1
        most, ahead = max(most, running), max(ahead, taken - len(done))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        done.append(job)

    asyncio.run(LocalExecutor().execute(lazily(), work, concurrency=concurrency))
    assert sorted(done) == list(range(jobs))
    assert most == min(jobs, concurrency)
    assert ahead <= concurrency, "jobs were taken before anybody was free for them"


def test_a_slow_job_holds_up_nobody_else() -> None:
    done: list[int] = []
    release = None

    async def work(job: int) -> None:
        if job == 0:
            assert release is not None
            await release.wait()
        done.append(job)
        if len(done) == 9:
            assert release is not None
            release.set()

    async def run() -> None:
        nonlocal release
        release = asyncio.Event()
        await asyncio.wait_for(LocalExecutor().execute(range(10), work, concurrency=2), 5)

    asyncio.run(run())
    assert done == [*range(1, 10), 0]


def test_cancellation_ends_every_job() -> None:
    ended: list[int] = []

    async def work(job: int) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(job)

    async def run() -> None:
        task = asyncio.create_task(LocalExecutor().execute(range(10), work, concurrency=3))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run())
    assert sorted(ended) == [0, 1, 2]


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_the_bound_holds_in_a_whole_run(world: Make, concurrency: int) -> None:
    answerer = ScriptedLLM(lambda call: "It is BCL2.", seconds=0.005)
    here = world(answerer=answerer, questions=12)
    here.run(here.config(concurrency=concurrency))
    assert answerer.most_in_flight == concurrency


@pytest.mark.parametrize("error", [asyncio.CancelledError("stray"), SystemExit(1), PortError("x"), RecursionError()])
def test_no_item_is_lost_whatever_a_model_does(world: Make, error: BaseException) -> None:
    """Every second answer fails in the oddest ways; there is a result for every question all the same."""

    def script(call: Any) -> Any:
        return error if int(call.context.question_id[1:]) % 2 else "It is BCL2."

    here = world(answerer=ScriptedLLM(script), questions=10)
    for concurrency in (1, 4):
        results = here.run(here.config(concurrency=concurrency))
        assert sorted(r.metadata.question_id for r in results) == [f"q{i}" for i in range(10)]
        assert sum(r.metadata.outcome == "error" for r in results) == 5
