"""One session with a server, from the handshake to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from attrs import define, field

from .line import Line

END_SECONDS = 5.0
"""For an orderly end; then the session is cancelled."""
LISTEN_AGAIN_SECONDS = 5.0
ANNOUNCEMENT = "notifications/tools/list_changed"


@define(eq=False)
class Session:
    """A session that any number of tasks call tools in.

    One task of its own enters and leaves the contexts of the SDK, which have to be left by the task that entered them.
    """

    line: Line
    client: Any = None
    fault: Exception | None = None
    """What ended it, beside its own end."""
    stale: bool = True
    """Whether the server may offer other tools than when they were last listed in this session."""
    comparing: asyncio.Lock = field(factory=asyncio.Lock)
    """Held while they are listed again."""
    _calls: int = 0
    _retired: bool = False
    _stop: asyncio.Event = field(factory=asyncio.Event)
    _settled: asyncio.Event = field(factory=asyncio.Event)
    _owner: asyncio.Task[None] | None = None

    @property
    def usable(self) -> bool:
        """Whether new calls may be made in it."""
        return self.client is not None and not self._retired and not self._stop.is_set()

    @property
    def over(self) -> bool:
        """Whether it has ended, with all that belongs to it."""
        return self._owner is not None and self._owner.done()

    async def start(self, transport: AbstractAsyncContextManager[Any], make_client: Any, seconds: float) -> None:
        """Connect. Raises what went wrong: errors of the transport and of the SDK, TimeoutError.

        `make_client` is given the transport and a callback for the notifications of the server.
        """
        self.line.on_end = self._stop.set
        self._owner = asyncio.create_task(self._held(transport, make_client, seconds))
        try:
            await self._settled.wait()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if self.fault is not None:
            raise self.fault

    async def call(self, tool: str, arguments: Mapping[str, Any], seconds: float) -> Any:
        """The `CallToolResult` of the SDK. Raises its errors, and TimeoutError."""
        return await self._within(seconds, lambda: self.client.call_tool(tool, dict(arguments)))

    async def page(self, cursor: str | None, seconds: float) -> Any:
        """One page of the list of tools. Raises like `call`."""
        return await self._within(seconds, lambda: self.client.list_tools(cursor=cursor))

    async def _within(self, seconds: float, work: Any) -> Any:
        self._calls += 1
        try:
            async with asyncio.timeout(seconds):
                return await work()
        finally:
            self._calls -= 1
            self._end_if_idle()

    def retire(self) -> None:
        """Make no new calls in it; it ends when those under way have ended, each of which has its time limit."""
        self._retired = True
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._retired and not self._calls:
            self._stop.set()

    async def aclose(self) -> None:
        """End it now, calls under way too."""
        self._stop.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        if self.client is None:
            owner.cancel()  # it is still connecting
        await asyncio.wait({owner}, timeout=END_SECONDS)
        if not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=END_SECONDS)

    async def _held(self, transport: AbstractAsyncContextManager[Any], make_client: Any, seconds: float) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(seconds):
                    self.client = await stack.enter_async_context(make_client(transport, self._on_message))
                await stack.enter_async_context(self._listening())
                self.line.status = None  # servers of older versions refuse the first question of the SDK
                self._settled.set()
                await self._stop.wait()
        except Exception as error:  # whatever the SDK and what it is built on raise: there is no common base
            self.fault = error
        finally:
            self._stop.set()
            self._settled.set()

    # Announcements: sent to every client in older versions of the protocol, to those who ask in the newest

    async def _on_message(self, message: Any) -> None:
        if getattr(message, "method", None) == ANNOUNCEMENT:
            self.stale = True

    @asynccontextmanager
    async def _listening(self) -> Any:
        """A task that listens while the block runs, where the server says that it announces changes."""
        tools = self.client.server_capabilities.tools
        task = asyncio.create_task(self._listen()) if tools is not None and tools.list_changed else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    async def _listen(self) -> None:
        opened = True
        while opened:
            opened = False
            try:
                async with self.client.listen(tools_list_changed=True) as announcements:
                    opened = True
                    async for _ in announcements:
                        self.stale = True
            except Exception:  # as above; a server that cannot be listened to can still be called
                pass
            self.stale = self.stale or opened  # what was announced since is not known
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)
