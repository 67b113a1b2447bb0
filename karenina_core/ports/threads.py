"""Anybody's plain functions, away from the event loop: what they do holds up no other work."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar, cast

from attrs import define, field, frozen

__all__ = ["Ended", "in_own_thread", "to_its_end"]

T = TypeVar("T")


@frozen
class Ended(Generic[T]):
    """How a call ended: with a value, or with what it raised, which may be SystemExit or KeyboardInterrupt too."""

    value: T | None = None
    error: BaseException | None = None

    def result(self) -> T:
        """The value. Raises what the call raised."""
        if self.error is not None:
            raise self.error
        return cast("T", self.value)


async def in_own_thread(call: Callable[[], T], name: str) -> Ended[T]:
    """Run `call` in a thread of its own, which is called `name`, with the context variables of the caller.

    It cannot be interrupted: a caller that gives up waiting leaves the thread behind. That holds up neither other work
    nor the end of the program, unless the call keeps the interpreter to itself, as a C function may.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Ended[T]] = loop.create_future()

    def settle(ended: Ended[T]) -> None:
        if not answer.done():  # else no caller waits any more
            answer.set_result(ended)

    def work() -> None:
        try:
            ended = Ended(call())
        except BaseException as error:  # a caller's code; not all of these may be set on a future
            ended = Ended(error=error)
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, ended)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=name, daemon=True).start()
    return await answer


@define(eq=False)
class _Begun:
    """Whether a call in a thread has begun, or will not begin any more."""

    stopped: threading.Event
    begun: bool = False
    _lock: threading.Lock = field(factory=threading.Lock)

    def begin(self) -> bool:
        with self._lock:
            self.begun = not self.stopped.is_set()
            return self.begun

    def stop(self) -> bool:
        """Returns whether it has begun."""
        with self._lock:
            self.stopped.set()
            return self.begun


async def to_its_end(call: Callable[[threading.Event], T]) -> T:
    """Run `call` in a thread of the event loop's pool, and never leave it behind.

    Whoever is cancelled while it runs is held until it has ended; the event that it is given is set then, so that it
    can end soon. A call that has not begun by then never begins.
    """
    state = _Begun(threading.Event())
    work = asyncio.ensure_future(asyncio.to_thread(lambda: call(state.stopped) if state.begin() else None))
    try:
        result = await asyncio.shield(work)
    except asyncio.CancelledError:
        while state.stop() and not work.done():
            with suppress(asyncio.CancelledError):  # what has to be waited for is bounded
                await asyncio.wait({work})
        if work.done() and not work.cancelled():
            work.exception()  # no caller waits for it any more
        raise
    return cast("T", result)
