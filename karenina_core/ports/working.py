"""The place of an item among those that are worked on at the same time, which it gives away while its calls wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from attrs import define, field

__all__ = ["WorkPlace", "given_away"]


@define(eq=False)
class WorkPlace:
    """One of `places`, as an item has it. `on_free` is called when others may have it."""

    places: asyncio.Semaphore
    on_free: Callable[[], None]
    _waiting: int = field(default=0, init=False)
    """Calls of the item that wait for their `Retry-After`."""
    _held: bool = field(default=False, init=False)
    _coming_back: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for a place, and have it for the work that is done in here."""
        await self._take()
        token = _work.set(self)
        try:
            yield
        finally:
            _work.reset(token)
            self._free()

    @asynccontextmanager
    async def given_away(self) -> AsyncIterator[None]:
        self._waiting += 1
        if self._held:
            self._free()
            self.on_free()
        try:
            yield
        finally:
            self._waiting -= 1
        await self._take()

    async def _take(self) -> None:
        async with self._coming_back:
            if not self._held:
                await self.places.acquire()
                self._held = True

    def _free(self) -> None:
        if self._held:
            self._held = False
            self.places.release()


_work: ContextVar[WorkPlace | None] = ContextVar("karenina_work_place", default=None)


@asynccontextmanager
async def given_away() -> AsyncIterator[None]:
    """Others may have the place of the item while its call waits in here; afterwards it waits for one again."""
    place = _work.get()
    if place is None:
        yield
    else:
        async with place.given_away():
            yield
