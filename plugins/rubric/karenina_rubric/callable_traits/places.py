"""Places for calls that may never end: how many there can be at the same time, over all threads and event loops."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future

__all__ = ["Place", "Places"]

Place = object
"""A call that has a place; any object, by its identity. It may have one in several `Places`."""


class Places:
    """So many calls may run; others wait until one has ended.

    A call that was given up on keeps its place until it ends. Where only such calls are left, other calls do not wait
    for them.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._taken: set[Place] = set()
        self._left: set[Place] = set()
        self._waiting: deque[tuple[Place, Future[bool]]] = deque()

    @property
    def unused(self) -> bool:
        with self._lock:
            return not self._taken and not self._waiting

    async def take(self, place: Place) -> bool:
        """Wait for a place; to be given back with `end`. False: calls that were given up on hold all of them."""
        turn: Future[bool] = Future()
        with self._lock:
            self._waiting.append((place, turn))
            self._settle()
        try:
            return await asyncio.wrap_future(turn)
        except BaseException:  # this task was cancelled: perhaps just after it was given the place
            with self._lock:
                turn.cancel()
            self.end(place)
            raise

    def leave(self, place: Place) -> None:
        """No caller waits for the result of the call any more."""
        with self._lock:
            if place in self._taken:  # else it has ended meanwhile
                self._left.add(place)
                self._settle()

    def end(self, place: Place) -> None:
        """The call has ended."""
        with self._lock:
            self._taken.discard(place)
            self._left.discard(place)
            self._settle()

    def _settle(self) -> None:
        """Let those in who can come in; send away all where there is nothing to wait for. Holds the lock."""
        while self._waiting and (len(self._taken) < self.most or len(self._left) >= self.most):
            place, turn = self._waiting.popleft()
            if not turn.set_running_or_notify_cancel():
                continue
            free = len(self._taken) < self.most
            if free:
                self._taken.add(place)
            turn.set_result(free)
