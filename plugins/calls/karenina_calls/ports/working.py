"""The place of an item among those that are worked on at the same time, which it gives away while its calls wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token

from attrs import define, field

__all__ = ["WorkPlace", "WorkPlaces", "given_away"]


@define(eq=False)
class WorkPlaces:
    """So many places. `on_free` is called when an item gives its own away."""

    most: int
    on_free: Callable[[], None]
    _free: asyncio.Semaphore = field(init=False)
    _owed: int = field(default=0, init=False)
    """Items that continued after a wait without a place: the next places that are left are theirs. They do not wait for
    one, because who has it may wait for what they do, such as the same call."""

    def __attrs_post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.most)

    async def take(self) -> None:
        await self._free.acquire()

    def take_again(self) -> None:
        self._owed += 1

    def leave(self) -> None:
        if self._owed:
            self._owed -= 1
        else:
            self._free.release()


@define(eq=False)
class WorkPlace:
    """One of `places`, as an item has it within `async with`."""

    places: WorkPlaces
    _waiting: int = field(default=0, init=False)
    """Calls of the item that wait."""
    _token: Token[WorkPlace | None] | None = field(default=None, init=False)

    async def __aenter__(self) -> None:
        await self.places.take()
        self._token = _work.set(self)

    async def __aexit__(self, *_: object) -> None:
        if self._token is not None:
            _work.reset(self._token)
        self.places.leave()

    @contextmanager
    def given_away(self) -> Iterator[None]:
        """A call of the item waits in here. Others of its calls continue."""
        self._waiting += 1
        if self._waiting == 1:
            self.places.leave()
            self.places.on_free()
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.places.take_again()


_work: ContextVar[WorkPlace | None] = ContextVar("karenina_work_place", default=None)


def given_away() -> AbstractContextManager[None]:
    """Others may have the place of the item while its call waits in here."""
    place = _work.get()
    return nullcontext() if place is None else place.given_away()
