"""How many items are worked on at the same time: while one waits for a provider, another one has its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from attrs import define, field
from karenina_calls.ports.waiting import WorkPlace, WorkPlaces


@define(eq=False)
class Working:
    """`most` places, and as many items more that wait for a `Retry-After`."""

    most: int
    another: Callable[[], Coroutine[Any, Any, None] | None]
    """Work on what has not been begun; None: there is nothing."""
    _places: WorkPlaces = field(init=False)
    _others: asyncio.TaskGroup | None = field(default=None, init=False)
    _context: Context = field(factory=copy_context, init=False)
    _begun: int = field(default=0, init=False)
    """Work under way that was begun in the place of an item that waited."""

    def __attrs_post_init__(self) -> None:
        self._places = WorkPlaces(self.most, self._is_free)

    def place(self) -> WorkPlace:
        """Wait for a place, and have it."""
        return WorkPlace(self._places)

    async def all_of(self, work: Awaitable[None]) -> None:
        """Await this, and what is begun in places that are free meanwhile."""
        async with asyncio.TaskGroup() as self._others:
            await work

    def _is_free(self) -> None:
        if self._others is None or self._begun >= self.most or (work := self.another()) is None:
            return
        self._begun += 1
        self._others.create_task(work, context=self._context.copy()).add_done_callback(self._over)  # of no item

    def _over(self, _: asyncio.Task[None]) -> None:
        self._begun -= 1
