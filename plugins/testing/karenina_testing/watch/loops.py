"""Event loops for foreign coroutines: one for each; what cannot be stopped is left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from karenina_runs.execute.watchdogs import frame_of

from ..checks import Raised
from .source_lines import line_of_frame

T = TypeVar("T")
LONGEST_CANCELLATION = 1.0
"""Seconds in which a cancelled task must have ended."""
ROUNDS = 5  # chosen: tasks that start tasks that start tasks
_stuck: list[object] = []
LONGEST_TURN = 0.5
"""Seconds for which nothing else may have its turn."""
PERIOD = 0.02  # seconds; a turn of LONGEST_TURN is seen by 25 looks


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
        return f"it took more than {LONGEST_CANCELLATION:g} s"
    if task.cancelled():
        return ""
    ended = task.exception() or task.result()
    return f"it ended with {ended.error if isinstance(ended, Raised) else ended!r} instead of CancelledError"


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, but tasks that cannot be cancelled are left behind instead of waited for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        for _ in range(ROUNDS):  # a task that is cancelled may leave others behind
            if not (left := asyncio.all_tasks(loop) - {*_stuck}):
                break
            for task in left:
                task.cancel()
            _, pending = loop.run_until_complete(asyncio.wait(left, timeout=LONGEST_CANCELLATION))
            _stuck.extend(pending)  # kept, because to drop them would print complaints about them
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def watched_loop(work: Awaitable[T]) -> tuple[T, str | None]:
    """Await something. Beside its result, the line that held the event loop up for `LONGEST_TURN` or longer."""
    watch = _Watch()
    ticking = asyncio.ensure_future(watch.tick())
    thread = threading.Thread(target=watch.run, name="karenina-watch", daemon=True)
    thread.start()
    try:
        result = await work
    finally:
        ticking.cancel()
        watch.done.set()
        thread.join()
    return result, watch.held


class _Watch:
    """Only times at which the watching thread itself ran are counted: a machine that is busy with something
    else, or a library that lets no thread run, is no fault here."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.held: str | None = None
        self._loop_thread = threading.get_ident()
        self._turns = 0

    async def tick(self) -> None:
        while True:
            self._turns += 1
            await asyncio.sleep(PERIOD / 2)

    def run(self) -> None:
        seen, times = self._turns, 0
        while not self.done.wait(PERIOD):
            times = times + 1 if self._turns == seen else 0
            seen = self._turns
            if self.held is None and times * PERIOD >= LONGEST_TURN:
                self.held = line_of_frame(frame_of(self._loop_thread))
