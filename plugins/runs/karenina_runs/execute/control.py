"""Ending a run before it is done: first without losing a call that is under way, then at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from attrs import define, field
from karenina_calls.limits.limiter import Gateway

__all__ = ["RunControl"]

A_MOMENT = 0.25
"""Seconds for what needs no more calls: reading the last replies, checking them, keeping the results."""


@define(eq=False)
class RunControl:
    """What may end a run that goes on, from the loop in which it runs."""

    _wanted: asyncio.Event = field(factory=asyncio.Event)

    def drain(self) -> None:
        """No new call begins; those under way are waited for and kept; then the run ends as one that was cancelled."""
        self._wanted.set()

    @property
    def draining(self) -> bool:
        return self._wanted.is_set()

    async def until_drained(self, work: Coroutine[Any, Any, None], gateway: Gateway) -> None:
        """Await the work. Raises what it raises, and CancelledError where it was drained before it was done."""
        task = asyncio.ensure_future(work)
        watch = asyncio.ensure_future(self._drained(task, gateway))
        try:
            await task
        finally:
            watch.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _drained(self, task: asyncio.Future[None], gateway: Gateway) -> None:
        await self._wanted.wait()
        gateway.drain()
        await gateway.quiet()
        await asyncio.wait({task}, timeout=A_MOMENT)
        task.cancel()
