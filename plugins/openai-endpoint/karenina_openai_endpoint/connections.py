"""Connections that all models of an event loop share: an answering model and its judge often have the same server."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary, ref

import aiohttp
from attrs import define

__all__ = ["Connections"]


@define(eq=False, weakref_slot=True)
class Connections:
    """The pool of one event loop. What it holds knows nothing of keys: those are in the requests of each session."""

    connector: aiohttp.TCPConnector
    users: int = 0

    @classmethod
    def of_loop(cls) -> Connections:
        """The pool of the running event loop, for one more user, who gives it back with `leave`."""
        loop = asyncio.get_running_loop()
        known = _pools.get(loop)
        found = known() if known is not None else None
        if found is None or found.connector.closed:
            found = cls(aiohttp.TCPConnector(limit=0))
            _pools[loop] = ref(found)
        found.users += 1
        return found

    async def leave(self) -> None:
        """The last user closes the connections."""
        self.users -= 1
        if self.users == 0:
            await self.connector.close()


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Connections]] = WeakKeyDictionary()
"""Held by their users alone."""
