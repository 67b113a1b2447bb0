"""The place of an item among those that are worked on at the same time, which it gives away while its calls wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar, Token

from attrs import define, field

__all__ = ["WorkPlace", "given_away"]


@define(eq=False)
class WorkPlace:
    """One of `places`, as an item has it within `async with`. `on_free` is called when others may have it meanwhile."""

    places: asyncio.Semaphore
    on_free: Callable[[], None]
    _held: bool = field(default=False, init=False)
    _coming_back: asyncio.Lock | None = field(default=None, init=False)
    """Of several calls that have waited, one takes a place again."""
    _token: Token[WorkPlace | None] | None = field(default=None, init=False)

    async def __aenter__(self) -> None:
        await self._take()
        self._token = _work.set(self)

    async def __aexit__(self, *_: object) -> None:
        if self._token is not None:
            _work.reset(self._token)
        self._free()

    @asynccontextmanager
    async def given_away(self) -> AsyncIterator[None]:
        """A call of the item waits in here. Others of its calls go on."""
        if self._held:
            self._free()
            self.on_free()
        yield
        self._coming_back = self._coming_back or asyncio.Lock()
        async with self._coming_back:
            if not self._held:
                await self._take()

    async def _take(self) -> None:
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
