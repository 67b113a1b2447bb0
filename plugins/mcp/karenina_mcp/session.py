"""One session with a server, from the handshake to its end: its connection, and why that could not be made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from attrs import define, field

from karenina_core.errors import ErrorKind, PortError, one_line

MOST_BYTES = 4 * 1024 * 1024
"""Of one message of a server. What is longer is not read into memory."""
MOST_OUTPUT = 2000
"""Characters of a program's stderr that are kept."""
END_SECONDS = 5.0
"""For an orderly end; then the session is cancelled."""
LISTEN_AGAIN_SECONDS = 5.0  # chosen: calls find changes too
ANNOUNCEMENT = "notifications/tools/list_changed"


@define(eq=False)
class Line:
    """The state of one connection, filled in by its transport."""

    on_end: Callable[[], None] = lambda: None
    """Called when the other side has ended the connection."""
    exit_code: int | None = None
    status: int | None = None
    """The last HTTP status that was an error."""
    ended: bool = False
    """Whether the other side has ended the connection."""
    _words: bytearray = field(factory=bytearray)

    def end(self) -> None:
        self.ended = True
        self.on_end()

    def record(self, words: bytes) -> None:
        """Keep the end of what a program says beside its messages."""
        self._words += words[-4 * MOST_OUTPUT :]
        del self._words[: -4 * MOST_OUTPUT]

    def last_output(self, secrets: Iterable[str] = ()) -> str:
        """The end of what the program printed, at most 2000 characters, without secrets."""
        text = self._words.decode(errors="replace").strip()
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text[-MOST_OUTPUT:]


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

        `make_client` is given the transport and, as `message_handler`, a callback for what the server announces.
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
                    self.client = await stack.enter_async_context(
                        make_client(transport, message_handler=self._on_message)
                    )
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


def port_error(error: BaseException, what: str, line: Line, words: str) -> PortError:
    """The error of a failed start. `what` names the server; `words` is the end of its stderr."""
    cause = first_cause(error)
    kind, reason = _kind_and_reason(cause, line)
    ending = f"; the end of what it printed: {words}" if words else ""
    return PortError(f"{what}: {reason}{ending}", kind=kind, status=line.status, raw=words or None)


def first_cause(error: BaseException) -> BaseException:
    """The first single error in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _kind_and_reason(cause: BaseException, line: Line) -> tuple[ErrorKind, str]:
    if line.status in (401, 403):
        return "auth", f"it refuses us (HTTP {line.status}); name the variable of its token in [plugins.mcp.token_env]"
    if line.status is not None:
        kind: ErrorKind = "server" if line.status >= 500 else "invalid_request"
        return kind, f"it answers with HTTP {line.status}; check the address"
    if isinstance(cause, TimeoutError):
        return "timeout", "it was not ready in time; raise start_seconds in [plugins.mcp]"
    if line.ended:
        return "connection", f"it ended at once (exit code {line.exit_code}); try its command line in a terminal"
    return "connection", f"it cannot be reached ({one_line(cause)}); check that the address is right and that it runs"
