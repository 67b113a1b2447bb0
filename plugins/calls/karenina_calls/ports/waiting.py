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


class time_limit:
    """A time limit like `asyncio.timeout`, in which the time of `standing_still` does not count.

    It works for what runs in this task and in the tasks that this one begins. `with` gives it; `expired` and `waited`
    can be read when it is over, too. Raises TimeoutError; `expired` says whether it was this one.
    """

    __slots__ = (
        *("_cancelling", "_end", "_over", "_seconds", "_stopped", "_task", "_timer", "_token", "_waiting"),
        *("expired", "waited"),
    )

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._over = False
        self.expired = False
        self.waited = 0.0
        """Seconds that did not count."""

    def __enter__(self) -> time_limit:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a time limit is for what runs in a task")
        self._task, self._cancelling = task, task.cancelling()
        if self._seconds is not None:
            loop = task.get_loop()
            self._end = loop.time() + self._seconds
            self._timer = loop.call_at(self._end, self._expire)
        self._token = _running.set((*_running.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._unset()
        _running.reset(self._token)
        if self.expired and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _expire(self) -> None:
        self._timer = None
        self.expired = True
        self._task.cancel()

    def _unset(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stop(self, now: float) -> None:
        self._waiting += 1
        if self._waiting == 1:
            self._stopped = now
            self._unset()

    def go_on(self, now: float) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self.waited += now - self._stopped
            if self._end is not None and not self._over and not self.expired:
                self._end += now - self._stopped
                with suppress(RuntimeError):  # the loop is closed
                    self._timer = self._task.get_loop().call_at(self._end, self._expire)


_running: ContextVar[tuple[time_limit, ...]] = ContextVar("karenina_time_limits", default=())


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
