"""Hours pass at once, in the right order, and what would wait for ever says so."""

from __future__ import annotations

import asyncio
import time

import pytest

from karenina_core.testing import VirtualTimeLoop, run_in_virtual_time


def test_an_hour_passes_at_once_and_what_is_due_first_comes_first() -> None:
    async def main() -> list[tuple[float, str]]:
        seen: list[tuple[float, str]] = []

        async def one(seconds: float, name: str) -> None:
            await asyncio.sleep(seconds)
            seen.append((asyncio.get_running_loop().time(), name))

        await asyncio.gather(one(3600.0, "hour"), one(0.25, "quarter"), one(60.0, "minute"), one(60.0, "other"))
        return seen

    started = time.monotonic()
    assert run_in_virtual_time(main()) == [(0.25, "quarter"), (60.0, "minute"), (60.0, "other"), (3600.0, "hour")]
    assert time.monotonic() - started < 20


def test_time_limits_are_about_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1000.0):
                await asyncio.sleep(2000.0)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == 1000.0


def test_work_that_takes_no_waiting_takes_no_time() -> None:
    async def main() -> float:
        for _ in range(1000):
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(main()) == 0.0


def test_tasks_that_wait_for_each_other_do_not_wait_for_ever() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="for ever"):
        run_in_virtual_time(main())


def test_the_loop_can_be_used_by_itself() -> None:
    loop = VirtualTimeLoop()
    try:
        loop.run_until_complete(asyncio.sleep(5.0))
        assert loop.time() == 5.0
    finally:
        loop.close()
