"""Waiting for a place in a queue is no work: no time limit counts it, and other items use the place meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, Token
from types import TracebackType, coroutine
from typing import Any, TypeVar, cast

from attrs import define, field

T = TypeVar("T")


@define(eq=False)
class Clock:
    """One limit. `expired` and `waited` can be read when it is over, too."""

    limit: asyncio.Timeout
    waited: float = 0.0
    """Seconds that did not count."""
    _waiting: int = 0
    _stopped: tuple[float, float | None] = (0.0, None)
    """When the first that waits began, and when the limit would then have ended."""

    @property
    def expired(self) -> bool:
        return self.limit.expired()

    def stop(self, now: float) -> None:
        self._waiting += 1
        if self._waiting == 1:
            self._stopped = (now, self.limit.when())
            self._move(None)

    def go_on(self, now: float) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            begun, end = self._stopped
            self.waited += now - begun
            self._move(None if end is None else end + now - begun)

    def _move(self, end: float | None) -> None:
        with suppress(RuntimeError):  # the limit is over, and something that it began still runs
            self.limit.reschedule(end)


_running: ContextVar[tuple[Clock, ...]] = ContextVar("karenina_clocks", default=())


class time_limit:
    """A time limit like `asyncio.timeout`, in which the time of `standing_still` does not count.

    It works for what runs in this task and in the tasks that this one begins. `async with` gives its clock. Raises
    TimeoutError; `expired` of the clock says whether it was this one.
    """

    __slots__ = ("_limit", "_token")

    def __init__(self, seconds: float | None) -> None:
        self._limit = asyncio.timeout(seconds)
        self._token: Token[tuple[Clock, ...]] | None = None

    async def __aenter__(self) -> Clock:
        clock = Clock(await self._limit.__aenter__())
        self._token = _running.set((*_running.get(), clock))
        return clock

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _running.reset(self._token)
        await self._limit.__aexit__(kind, error, trace)


@coroutine
def standing_still(work: Awaitable[T]) -> Generator[Any, Any, T]:
    """What comes of work that waits: all limits around stop until it ends; where several wait within a limit, until the
    last of them ends.

    Most of it need not wait at all: the limits are only touched once something else has its turn.
    """
    clocks, steps = _running.get(), work.__await__()
    if not clocks:
        return (yield from steps)
    try:
        turn = next(steps)
    except StopIteration as done:
        return cast("T", done.value)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for clock in clocks:
        clock.stop(begun)
    try:
        while True:
            try:
                sent = yield turn
            except BaseException as error:
                turn = steps.throw(error)
            else:
                turn = steps.send(sent)
    except StopIteration as done:
        return cast("T", done.value)
    finally:
        ended = loop.time()  # no loop may be running, where the work is abandoned
        for clock in clocks:
            clock.go_on(ended)


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
