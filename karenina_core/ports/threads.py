"""Threads: plain functions away from the event loop, and an event loop for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from attrs import frozen

T = TypeVar("T")
_live: weakref.WeakSet[BackgroundLoop] = weakref.WeakSet()


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

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name=name, daemon=True).start()
    return await answer


class BackgroundLoop:
    """One event loop in a thread, for synchronous callers: scripts, notebooks, servers.

    The thread starts with the first coroutine, and ends with this object or with the program.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result.

        An interrupt cancels the coroutine, waits for it and is raised again.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError(
                "this is karenina's own event loop: await the method with the same name and an 'a' in front"
            )
        future = asyncio.run_coroutine_threadsafe(_contained(coroutine), self._started())
        try:
            result, error = future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                self._settle()
            raise
        if error is not None:
            raise error
        return cast(T, result)

    def close(self) -> None:
        """Stop the thread. The next `run` starts a new one."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            _stop(loop)
            thread.join(timeout=5)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="karenina", daemon=True)
                self._thread.start()
                weakref.finalize(self, _stop, self._loop).atexit = False  # at exit, `_close_all` waits for the threads
                _live.add(self)
            return self._loop

    def _settle(self) -> None:
        """Give cancelled tasks the time to clean up."""

        async def others() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            if tasks:
                await asyncio.wait(tasks, timeout=5)

        asyncio.run_coroutine_threadsafe(others(), self._started()).result()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:  # it cancels what is left, and closes the loop
        runner.get_loop().run_forever()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(loop.stop)


@atexit.register
def _close_all() -> None:
    for loop in list(_live):
        loop.close()


async def _contained(coroutine: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """The outcome as data: an exit that is raised in a task would end the loop, and its caller would wait for ever."""
    try:
        return await coroutine, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error
