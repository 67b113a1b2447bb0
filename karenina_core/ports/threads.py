"""Anybody's plain functions, away from the event loop: what they do holds up no other work."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from attrs import frozen

__all__ = ["Ended", "in_own_thread"]

T = TypeVar("T")


@frozen
class Ended(Generic[T]):
    """How a call ended: with a value, or with what it raised, which may be SystemExit or KeyboardInterrupt too."""

    value: T | None = None
    error: BaseException | None = None


async def in_own_thread(call: Callable[[], T], name: str) -> Ended[T]:
    """Run `call` in a thread of its own, which is called `name`, with the context variables of the caller.

    It cannot be interrupted: whoever gives up waiting leaves the thread behind. That holds up neither other work nor
    the end of the program, unless the call keeps the interpreter to itself, as a C function may.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Ended[T]] = loop.create_future()

    def settle(ended: Ended[T]) -> None:
        if not answer.done():  # else nobody waits any more
            answer.set_result(ended)

    def work() -> None:
        try:
            ended = Ended(call())
        except BaseException as error:  # anybody's code; not all of these may be set on a future
            ended = Ended(error=error)
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, ended)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=name, daemon=True).start()
    return await answer
