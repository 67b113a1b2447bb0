"""Time limits are suspended while a call waits for its place, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.retry import Attempts, with_retries
from karenina_calls.ports.waiting import standing_still, time_limit
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core.errors import PortError
from karenina_core.values.config import AttemptPolicy, RetryPolicy


def now() -> float:
    return asyncio.get_running_loop().time()


async def waiting(seconds: float) -> None:
    await standing_still(asyncio.sleep(seconds))


async def limited(seconds: float | None, work: Callable[[], Awaitable[object]]) -> tuple[bool, float, float]:
    """Whether the work ended by itself, when, and how much of it did not count."""
    try:
        with time_limit(seconds) as clock:
            await work()
    except TimeoutError:
        assert clock.expired
        return False, now(), clock.waited
    assert not clock.expired
    return True, now(), clock.waited


def test_work_that_takes_too_long_ends_in_time() -> None:
    assert run_in_virtual_time(limited(2.0, lambda: asyncio.sleep(10.0))) == (False, 2.0, 0.0)


def test_without_a_limit_nothing_ends() -> None:
    assert run_in_virtual_time(limited(None, lambda: asyncio.sleep(1e6))) == (True, 1e6, 0.0)


def test_waiting_does_not_count_and_working_before_and_after_does() -> None:
    async def work() -> None:
        await asyncio.sleep(1.5)
        await waiting(100.0)
        await asyncio.sleep(1.0)

    assert run_in_virtual_time(limited(2.0, work)) == (False, 102.0, 100.0)
    assert run_in_virtual_time(limited(3.0, work)) == (True, 102.5, 100.0)


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 5.0)), max_size=8), st.floats(0.1, 10.0))
@settings(max_examples=80, deadline=None)
def test_a_limit_is_about_the_sum_of_what_counts(parts: list[tuple[bool, float]], seconds: float) -> None:
    async def work() -> None:
        for counts, duration in parts:
            await (asyncio.sleep if counts else waiting)(duration)

    worked = sum(duration for counts, duration in parts if counts)
    if abs(worked - seconds) > 1e-6:
        assert run_in_virtual_time(limited(seconds, work))[0] == (worked < seconds)


def test_all_limits_around_are_suspended_the_outer_ones_too() -> None:
    async def inner() -> None:
        assert (await limited(1.0, lambda: waiting(50.0)))[0]

    assert run_in_virtual_time(limited(2.0, inner)) == (True, 50.0, 50.0)


def test_a_limit_that_began_while_waiting_counts_on_its_own() -> None:
    async def work() -> None:
        assert (await standing_still(limited(1.0, lambda: asyncio.sleep(9.0))))[0] is False

    assert run_in_virtual_time(limited(0.5, work)) == (True, 1.0, 1.0)


def test_where_several_wait_the_limit_goes_on_when_the_last_of_them_has_its_place() -> None:
    async def work() -> None:
        async def one(seconds: float) -> None:
            await waiting(seconds)
            await asyncio.sleep(0.5)

        await asyncio.gather(one(3.0), one(7.0))

    assert run_in_virtual_time(limited(1.0, work)) == (True, 7.5, 7.0)


def test_the_limit_counts_again_when_all_who_waited_have_their_places() -> None:
    async def work() -> None:
        async def several() -> None:
            await asyncio.sleep(1.0)
            await waiting(2.0)
            await asyncio.sleep(1.0)

        await standing_still(several())
        await asyncio.sleep(5.0)

    assert run_in_virtual_time(limited(1.0, work)) == (False, 5.0, 4.0)


def test_waiting_twice_at_the_same_time_is_not_counted_twice() -> None:
    async def work() -> None:
        await standing_still(waiting(4.0))
        await asyncio.sleep(0.9)

    assert run_in_virtual_time(limited(1.0, work)) == (True, 4.9, 4.0)


def test_a_cancelled_wait_leaves_no_limit_standing() -> None:
    async def work() -> None:
        task = asyncio.create_task(waiting(1000.0))
        await asyncio.sleep(3.0)
        task.cancel()
        await asyncio.wait({task})
        await asyncio.sleep(5.0)

    ended, at, waited = run_in_virtual_time(limited(1.0, work))
    assert (ended, at, waited) == (False, 4.0, 3.0)


def test_a_wait_that_is_abandoned_when_no_loop_runs_any_more_ends_quietly() -> None:
    async def main() -> list[Coroutine[Any, Any, None]]:
        plain = waiting(1.0)
        plain.send(None)
        with time_limit(1.0):
            limited = waiting(1.0)
            limited.send(None)
        return [plain, limited]

    for abandoned in asyncio.run(main()):
        abandoned.close()


def test_a_task_that_outlives_the_limit_may_still_wait() -> None:
    async def main() -> float:
        with time_limit(1.0) as clock:
            task = asyncio.create_task(waiting(5.0))
            await asyncio.sleep(0)
        await task
        return clock.waited

    assert run_in_virtual_time(main()) == 5.0


def test_an_error_of_the_work_is_no_timeout() -> None:
    expired: list[bool] = []

    async def main() -> None:
        with time_limit(1.0) as clock:
            try:
                await waiting(3.0)
                raise TimeoutError("of the work's own")
            finally:
                expired.append(clock.expired)

    with pytest.raises(TimeoutError, match="own"):
        run_in_virtual_time(main())
    assert expired == [False]


def test_a_cancellation_from_outside_while_waiting_is_one() -> None:
    async def main() -> bool:
        task = asyncio.create_task(limited(1.0, lambda: waiting(1000.0)))
        await asyncio.sleep(10.0)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert run_in_virtual_time(main())


def test_retries_count_what_they_work_and_sleep_and_not_what_they_wait() -> None:
    policy = RetryPolicy(server=AttemptPolicy(3))
    made: list[float] = []

    async def attempt() -> str:
        await waiting(100.0)
        await asyncio.sleep(1.0)
        made.append(now())
        if len(made) < 3:
            raise PortError("not yet", kind="server")
        return "done"

    async def main(seconds: float) -> tuple[str, Attempts]:
        attempts, clock = Attempts(), asyncio.get_running_loop().time
        reply = await with_retries(attempt, policy, max_elapsed=seconds, attempts=attempts, clock=clock)
        return reply, attempts

    reply, attempts = run_in_virtual_time(main(3.5))
    assert (reply, attempts.count, attempts.waited) == ("done", 3, 300.0)
    made.clear()
    with pytest.raises(PortError) as caught:
        run_in_virtual_time(main(2.5))
    assert (str(caught.value), caught.value.attempts) == ("not yet", 3)
