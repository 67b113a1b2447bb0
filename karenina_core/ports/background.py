"""One event loop in a thread of its own, for callers that are not asynchronous: scripts, notebooks, servers."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar, cast

__all__ = ["BackgroundLoop"]

T = TypeVar("T")
_live: weakref.WeakSet[BackgroundLoop] = weakref.WeakSet()


class BackgroundLoop:
    """Runs coroutines for synchronous callers. The thread starts with the first one, and ends with this object or with
    the program."""

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
