"""`McpServer`: a tool server that speaks the Model Context Protocol, shared by all items of a run."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any

from attrs import evolve
from karenina_calls.ports.text import MOST_NESTED, is_nested_deeper
from karenina_calls.tools.tool_servers import secrets_in_address

from karenina_core.errors import AdapterUnavailableError, PortError, one_line
from karenina_core.log import get_logger
from karenina_core.plugin.registry import is_installed
from karenina_core.ports.values import Tool, ToolOutcome

from .addresses import Program, Service, parse_address
from .session import Line, Session, first_cause, port_error
from .settings import McpSettings
from .tools import Changes, as_outcome, changes_between

PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR")
"""What a program gets to know of the environment, beside what the settings name."""
MOST_PAGES = 100  # chosen, as the next: more than any model can be offered
MOST_TOOLS = 1000
MOST_WORDS = 4000
"""Characters of an error that a server reports outside of a result."""
CONNECTION_CLOSED = -32000  # what the SDK says where the server has ended
NO_SESSION = ("Session terminated", "Session not found")
"""What the SDK says, as a client and as a server, about a session that a service has forgotten."""
FORGOTTEN = ToolOutcome("the service of this tool forgets its sessions at once", is_error=True)
INSTALL = 'pip install "karenina-mcp[sdk]"'
log = get_logger("karenina.mcp")


class McpServer:
    """A `ToolServer`. `address` is a URL (`sse+` in front of it, or `/sse` at its end, for server-sent events) or the
    command line of a program."""

    def __init__(self, name: str, address: str, settings: McpSettings | None = None) -> None:
        self.name = name
        self.address = address
        self.settings = settings or McpSettings()
        self._session: Session | None = None
        self._sessions: set[Session] = set()
        self._opening: asyncio.Task[Session] | None = None
        self._closed = False
        self._pinned: tuple[Tool, ...] | None = None
        self._changes = Changes()

    @staticmethod
    def unavailable() -> str | None:
        """Why no server can be connected to here, whatever its address."""
        return None if is_installed("mcp") else f"tool servers need the package mcp: {INSTALL}"

    def problem(self) -> str | None:
        """Why the server cannot be connected to, as far as that is known without trying."""
        try:
            place = parse_address(self.address)
        except ValueError as error:
            return f"tool server {self.name!r}: {error}"
        problem = self.unavailable() or (place.problem() if isinstance(place, Program) else None)
        variable = self.settings.token_env.get(self.name) if isinstance(place, Service) else None
        if problem is None and variable and not os.environ.get(variable):
            problem = f"set the environment variable {variable} to its token"
        return f"tool server {self.name!r}: {problem}" if problem else None

    async def aopen(self) -> None:
        """Connect. Raises PortError (`connection`, `timeout`, `auth`, `server`, `invalid_request`)."""
        self._closed = False
        await self._connected()

    async def alist(self) -> Sequence[Tool]:
        """The tools that the server offers now; calls are held to them. Raises PortError; `bad_response` for a list
        that makes no sense."""
        session = await self._connected()
        session.stale = False
        self._pinned = await self._listed(session)
        self._changes = Changes()
        return self._pinned

    async def aclose(self) -> None:
        """End the connection, calls under way too, and the program with all that it started."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        sessions, self._session = tuple(self._sessions), None
        if sessions:
            await asyncio.gather(*(session.aclose() for session in sessions))
        self._sessions.difference_update(sessions)

    # Connecting

    async def _connected(self) -> Session:
        """The session, a new one where the last one has ended: one attempt, which all who wait for it share."""
        if self._closed:
            raise PortError(f"the connection to the tool server {self.name!r} is closed", kind="connection")
        if self._session is not None and self._session.usable:
            return self._session
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
            self._opening.add_done_callback(self._after_opening)
        opening = self._opening
        await asyncio.wait({opening})  # one that stops waiting does not stop the attempt
        if opening.cancelled():
            raise PortError(f"the connection to the tool server {self.name!r} is closed", kind="connection")
        return opening.result()

    def _after_opening(self, task: asyncio.Task[Session]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # those who wait have it; there may be none left

    async def _opened(self) -> Session:
        mcp = await _sdk()
        if problem := self.problem():
            raise PortError(problem, kind="invalid_request")
        self._sessions = {session for session in self._sessions if not session.over}
        line = Line()
        session = Session(line)
        self._sessions.add(session)
        place = parse_address(self.address)
        try:
            about = mcp.Implementation(name="karenina", version=version("karenina-core"))
            client = partial(mcp.Client, cache=None, client_info=about)  # it asks the server at every call
            await session.start(await self._transport(place, line), client, self.settings.start_seconds)
        except Exception as error:  # see Session
            words = line.last_output(self._secrets())
            raise port_error(error, f"tool server {self.name!r} ({place})", line, words) from error
        self._session = session
        return session

    async def _transport(self, place: Program | Service, line: Line) -> AbstractAsyncContextManager[Any]:
        if isinstance(place, Program):
            from .program import running  # needs anyio, which comes with the SDK

            return running(place.command, self._environment(), line)
        from .service import reached

        token = os.environ.get(self.settings.token_env.get(self.name, ""))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = {"timeout": self.settings.start_seconds, "read": self.settings.read_seconds}
        return reached(place, headers, line, timeout)

    def _environment(self) -> dict[str, str]:
        """What a program gets to know of the environment."""
        names = (*PASSED_ON, *self.settings.environment.get(self.name, ()))
        return {name: os.environ[name] for name in names if name in os.environ}

    def _secrets(self) -> list[str]:
        """What a program was given and might print: the variables that the settings name, and keys in its arguments."""
        named = [os.environ[n] for n in self.settings.environment.get(self.name, ()) if os.environ.get(n)]
        return [*named, *filter(None, secrets_in_address(self.address))]

    # Listing

    async def _listed(self, session: Session) -> tuple[Tool, ...]:
        """Every page of the list, within the time that a server has for its start. Raises PortError."""
        seconds = self.settings.start_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._pages(session)
        except PortError:
            raise
        except Exception as error:  # see Session
            session.retire()
            cause = first_cause(error)
            late = isinstance(cause, TimeoutError)
            what = f"no list within {seconds:g} s; raise start_seconds in [plugins.mcp]" if late else one_line(cause)
            message = f"the tools of the server {self.name!r} cannot be listed: {what}"
            raise PortError(message, kind="timeout" if late else "connection") from error

    async def _pages(self, session: Session) -> tuple[Tool, ...]:
        listed: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await session.page(cursor, self.settings.start_seconds)
            for tool in page.tools:
                if tool.name in listed or len(listed) == MOST_TOOLS:
                    what = f"has two tools {tool.name!r}" if tool.name in listed else f"has over {MOST_TOOLS} tools"
                    raise PortError(f"the tool server {self.name!r} {what}", kind="bad_response")
                if is_nested_deeper(tool.input_schema):
                    what = f"describes the arguments of {tool.name!r} more than {MOST_NESTED} levels deep"
                    raise PortError(f"the tool server {self.name!r} {what}", kind="bad_response")
                listed[tool.name] = Tool(
                    name=tool.name,
                    description=tool.description or "",
                    input_schema=tool.input_schema,
                    run=partial(self._run, tool.name),
                )
            cursor = page.next_cursor
            if cursor is None:
                return tuple(listed.values())
        raise PortError(f"the list of tools of the server {self.name!r} does not end", kind="bad_response")

    async def _compare(self, session: Session) -> None:
        """See whether the server still offers what this run was given. Raises PortError."""
        async with session.comparing:
            if self._pinned is None or not session.stale:
                return
            session.stale = False  # what is announced from here on makes it stale again
            try:
                now = await self._listed(session)
            except BaseException:
                session.stale = True
                raise
            before, self._changes = self._changes, changes_between(self._pinned, now)
            if self._changes != before:
                log.warning(self._changes.warning(self.name) or f"the tool server {self.name!r} is as it was again")

    # Calling

    async def _run(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """Call a tool. Whatever goes wrong is an error for the model; what is for the user only is logged."""
        try:  # models write halves of characters and numbers that JSON does not know
            json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            no_json = "the arguments cannot be written as JSON; call the tool again with others"
            return ToolOutcome(no_json, is_error=True)
        try:
            for _ in range(2):  # once more where the service does not know the session any more
                session = await self._connected()
                await self._compare(session)
                outcome = self._changes.refusal(tool) or await self._called(session, tool, arguments)
                if outcome is not FORGOTTEN:
                    break
        except PortError as error:
            log.warning("a tool server cannot be reached", server=self.name, tool=tool, error=str(error))
            outcome = ToolOutcome(f"the server of this tool cannot be reached ({error.kind})", is_error=True)
        return evolve(outcome, warning=self._changes.warning(self.name))

    async def _called(self, session: Session, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """One attempt; `FORGOTTEN` where the service did nothing because it does not know the session any more."""
        try:
            outcome = as_outcome(await session.call(tool, arguments, self.settings.call_seconds))
        except Exception as error:  # see Session
            outcome = self._failed(session, tool, first_cause(error))
        if not outcome.is_error or not session.usable:
            return outcome
        session.stale = True  # not every server announces that it has taken a tool away
        with suppress(PortError):  # the call has its answer
            await self._compare(session)
        return self._changes.refusal(tool) or outcome

    def _failed(self, session: Session, tool: str, error: BaseException) -> ToolOutcome:
        if isinstance(error, TimeoutError):
            session.retire()
            log.warning("a tool took too long", server=self.name, tool=tool, seconds=self.settings.call_seconds)
            return ToolOutcome(f"the tool gave no answer within {self.settings.call_seconds:g} s", is_error=True)
        code, text = getattr(error, "code", None), str(getattr(error, "message", ""))
        closed = code == CONNECTION_CLOSED and text == "Connection closed"  # the code alone is used by servers too
        if session.line.status is not None:
            session.retire()  # the service may have forgotten this session
            if session.line.status == 404 and text in NO_SESSION:
                return FORGOTTEN
        elif closed or not session.usable:
            session.retire()
            words = session.line.last_output(self._secrets())
            log.warning("a tool server ended", server=self.name, tool=tool, error=one_line(error), words=words)
            return ToolOutcome("the connection to the server of this tool broke during the call", is_error=True)
        text = text if code is not None else one_line(error)
        return ToolOutcome(text[:MOST_WORDS] or type(error).__name__, is_error=True)


async def _sdk() -> Any:
    """The module mcp, imported when the first server is connected to. That takes most of a second and is done in a
    thread. Raises AdapterUnavailableError."""
    if problem := McpServer.unavailable():
        raise AdapterUnavailableError(problem)
    logging.getLogger("mcp").addHandler(logging.NullHandler())  # no tracebacks on stderr for what is reported here
    try:
        mcp = await asyncio.to_thread(importlib.import_module, "mcp")
    except ImportError as error:
        raise AdapterUnavailableError(f"the package mcp cannot be imported ({one_line(error)}): {INSTALL}") from error
    if not hasattr(mcp, "Client"):
        raise AdapterUnavailableError(f"the package mcp is too old: {INSTALL}")
    return mcp
