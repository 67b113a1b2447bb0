"""An event loop whose time passes by itself: an hour of waiting is over at once, and always in the same order."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Looks what is ready, and instead of waiting for anything moves the clock on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("every task waits for another, and no timer is set: this would wait for ever")
        self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` begins at 0 and moves only when every task waits: to the moment of the next timer.

    For coroutines that wait for timers and for each other. What comes from outside, such as sockets and threads, comes
    in no time. Where all tasks wait and there is no timer, RuntimeError is raised.
    """

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, with a `VirtualTimeLoop`."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)
