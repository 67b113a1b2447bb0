"""Does a coroutine hold up its event loop? A thread looks at the loop's thread again and again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import TypeVar

from attrs import frozen
from karenina_runs.execute.loop_watchdog import frame_of

from .source_lines import line_of_frame

__all__ = ["LONGEST_TURN", "Held", "watched_loop"]

T = TypeVar("T")
LONGEST_TURN = 0.5
"""Seconds for which nothing else may have its turn."""
PERIOD = 0.02


@frozen
class Held:
    """The event loop was held up for `LONGEST_TURN` or longer."""

    line: str
    """What its thread was doing then."""


async def watched_loop(work: Awaitable[T]) -> tuple[T, Held | None]:
    """Await something, and see whether the event loop goes on meanwhile."""
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
        self.held: Held | None = None
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
                self.held = Held(line_of_frame(frame_of(self._loop_thread)))
