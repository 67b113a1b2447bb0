"""Work in a thread that is never left behind: what it does in a folder is over when its caller goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

from attrs import define, field

T = TypeVar("T")


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
