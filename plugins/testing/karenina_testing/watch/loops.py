"""Event loops for foreign coroutines: one for each; what cannot be stopped is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from ..checks import Raised

__all__ = ["LONGEST_CANCELLATION", "StillRunning", "cancel", "in_loop", "within"]

T = TypeVar("T")
LONGEST_CANCELLATION = 1.0
"""Seconds in which a cancelled task must have ended."""


class StillRunning(Exception):
    """Something went on for longer than it was given."""


async def within(work: Awaitable[T], seconds: float) -> T:
    """Await something for so long at most; then it is cancelled and left to itself. Raises StillRunning."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        raise StillRunning(f"it was still waiting after {seconds:g} s")
    return await task


async def cancel(task: asyncio.Task[Any]) -> str:
    """Cancel a task; how it ended where it did not end as a cancelled task should."""
    task.cancel()
    await asyncio.wait({task}, timeout=LONGEST_CANCELLATION)
    if not task.done():
        return f"it went on for more than {LONGEST_CANCELLATION:g} s"
    if task.cancelled():
        return ""
    ended = task.exception() or task.result()
    return f"it ended with {ended.error if isinstance(ended, Raised) else ended!r} instead of CancelledError"


ROUNDS = 5
_stuck: list[object] = []


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but tasks that cannot be cancelled are left behind instead of waited for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        _finish(loop)
        loop.close()


def _finish(loop: asyncio.AbstractEventLoop) -> None:
    for _ in range(ROUNDS):  # a task that is cancelled may leave others behind
        if not (left := asyncio.all_tasks(loop) - {*_stuck}):
            break
        for task in left:
            task.cancel()
        _, pending = loop.run_until_complete(asyncio.wait(left, timeout=LONGEST_CANCELLATION))
        _stuck.extend(pending)  # kept, because to drop them would print complaints about them
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
