"""One session of an agent, from its prompt to its end.

https://agentclientprotocol.com/protocol/overview. Version 1 of the protocol is spoken.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import field, frozen
from karenina_calls.agents.failures import failure
from karenina_calls.agents.offered import OfferedCalls
from karenina_calls.agents.program import AgentProgram, Surroundings, uninterrupted

from karenina_core import __version__
from karenina_core.errors import ErrorKind, PortError, shortened

from .permissions import Permissions
from .record import Record
from .rpc import Peer, RpcError
from .settings import Choices
from .terminals import Terminals
from .tool_server import served

VERSION = 1  # of the protocol
START_SECONDS = 60.0
"""For an agent to be ready: some install packages when they start. Chosen, not measured."""
CANCEL_SECONDS = 2.0
"""For an agent to end its work and report its usage where it is cancelled. Chosen, not measured."""
AUTH_REQUIRED = -32000
KINDS: Mapping[int, ErrorKind] = {
    AUTH_REQUIRED: "auth",
    -32600: "invalid_request",
    -32601: "invalid_request",
    -32602: "invalid_request",
}
"""Codes of errors, https://agentclientprotocol.com/protocol/schema#errorcode; others are failures of the agent."""
OWN_MODEL = "default"
"""The name of a model that leaves the choice to the agent."""
MESSAGE_LIMIT = 400  # characters; chosen: some lines of a terminal
START_HINT = "check that its command runs at all"


@frozen(kw_only=True)
class Session:
    """What an agent is asked to do."""

    choices: Choices
    model: str
    prompt: str
    allow: frozenset[str]
    calls: OfferedCalls
    servers: Sequence[Mapping[str, Any]] = field(default=())
    """Servers of tools that the agent connects to itself."""

    async def run(self, record: Record, surroundings: Surroundings, seconds: float | None) -> None:
        """Fill the record. Raises PortError, and TimeoutError where the time is up; the program is ended all the same.

        Where a limit of the record is reached, the agent is cancelled in the middle of its work.
        """
        record.secrets = surroundings.secrets
        program = AgentProgram(self.choices.command, surroundings, self.choices.most_bytes)
        try:
            async with served(self.calls, surroundings.private) as own:
                await _Talk(self, record, surroundings, program).run([*own, *self.servers], seconds)
        except TimeoutError:
            raise
        except RpcError as error:
            raise failure(refused(error, program), program) from error
        except Exception as error:
            raise failure(error, program, hint=START_HINT) from error
        finally:
            await uninterrupted(program.end())


class _Talk:
    """The conversation with one program."""

    def __init__(self, session: Session, record: Record, surroundings: Surroundings, program: AgentProgram) -> None:
        self._session, self._record, self._program = session, record, program
        self._folder = surroundings.folder
        self._terminals = Terminals(surroundings.folder, surroundings.environment)
        self._permissions = Permissions(surroundings.folder, session.allow)
        self._over = asyncio.Event()
        record.terminal = self._terminals.shown
        may = {name: name in session.allow for name in ("read", "edit", "execute")}
        self._able = {"fs": {"readTextFile": may["read"], "writeTextFile": may["edit"]}, "terminal": may["execute"]}
        terminals = self._terminals
        answers = {
            "session/request_permission": self._permitted,
            "fs/read_text_file": self._permissions.read,
            "fs/write_text_file": self._permissions.write,
        }
        if may["execute"]:
            answers |= {
                "terminal/create": terminals.create,
                "terminal/output": terminals.output,
                "terminal/wait_for_exit": terminals.wait_for_exit,
                "terminal/kill": terminals.kill,
                "terminal/release": terminals.release,
            }
        self._peer = Peer(program.write, answers, self._notified)

    async def run(self, servers: Sequence[Mapping[str, Any]], seconds: float | None) -> None:
        """Raises TimeoutError where the time is up, RpcError and whatever else goes wrong."""
        await self._program.start()
        reading = asyncio.create_task(self._read())
        over = asyncio.create_task(self._over.wait())
        prompt: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(seconds):
                await self._started(servers)
                prompt = asyncio.create_task(self._prompted())
                await asyncio.wait([prompt, over], return_when=asyncio.FIRST_COMPLETED)
            if not prompt.done():
                await self._cancelled(prompt)
            await prompt
        except TimeoutError:
            if prompt is not None:
                await self._cancelled(prompt)
            raise
        finally:
            if prompt is not None:
                prompt.cancel()
            over.cancel()
            reading.cancel()
            await self._peer.aclose()
            await self._terminals.aclose()

    async def _read(self) -> None:
        try:
            async for message in self._program.messages():
                self._peer.take(message)
        except Exception as error:  # whoever waits for an answer gets it
            self._peer.fail(error)

    async def _started(self, servers: Sequence[Mapping[str, Any]]) -> None:
        """Until the agent is ready for a prompt."""
        try:
            async with asyncio.timeout(START_SECONDS) as clock:
                hello = await self._asked(
                    "initialize",
                    protocolVersion=VERSION,
                    clientCapabilities=self._able,
                    clientInfo={"name": "karenina", "title": "karenina", "version": __version__},
                )
                if hello.get("protocolVersion") != VERSION:
                    text = f"the agent speaks version {hello.get('protocolVersion')!r} of the protocol, not {VERSION}"
                    raise PortError(f"{text}; install another version of it", kind="invalid_request")
                if self._session.choices.auth_method is not None:
                    await self._asked("authenticate", methodId=self._session.choices.auth_method)
                able = (hello.get("agentCapabilities") or {}).get("mcpCapabilities") or {}
                for server in servers:
                    if (kind := server.get("type", "stdio")) != "stdio" and not able.get(kind):
                        text = f"the agent cannot connect to the tool server {server['name']!r} over {kind}"
                        raise PortError(text, kind="invalid_request")
                made = await self._asked("session/new", cwd=str(self._folder), mcpServers=list(servers))
                self._record.session_id = str(made["sessionId"])
                await self._chosen(made.get("configOptions") or ())
        except TimeoutError:
            if clock.expired():
                raise PortError(f"the agent was not ready within {START_SECONDS:g} s", kind="timeout") from None
            raise
        except (KeyError, AttributeError, TypeError) as error:
            raise PortError(f"the agent did not begin as the protocol says: {error!r}", kind="bad_response") from error

    async def _chosen(self, options: Sequence[Mapping[str, Any]]) -> None:
        """Choose the model, and set the options of the session."""
        model = self._session.model
        wanted = list(self._session.choices.session_options)
        offered = next((option for option in options if option.get("category") == "model"), None)
        if offered is not None and model != OWN_MODEL:
            names = list(_values(offered.get("options") or ()))
            if model not in names:
                text = f"the agent has no model {model!r}; available: {', '.join(names)}, or {OWN_MODEL!r} for its own"
                raise PortError(shortened(text, MESSAGE_LIMIT), kind="invalid_request")
            wanted.append((offered["id"], model))
            self._record.actual_model = model
        elif offered is not None:
            self._record.actual_model = str(offered.get("currentValue"))
        for option, value in wanted:
            given = {"configId": option, "value": value, **({"type": "boolean"} if isinstance(value, bool) else {})}
            await self._asked("session/set_config_option", sessionId=self._record.session_id, **given)

    async def _prompted(self) -> None:
        text = {"type": "text", "text": self._session.prompt}
        result = await self._peer.request("session/prompt", {"sessionId": self._record.session_id, "prompt": [text]})
        self._record.end(result)
        self._program.finished = True

    async def _cancelled(self, prompt: asyncio.Task[None]) -> None:
        """Ask the agent to stop, and wait a moment for what it reports then."""
        self._permissions.over = True
        with suppress(Exception):  # that the work was ended is known already
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._peer.notify("session/cancel", {"sessionId": self._record.session_id})
                await asyncio.wait([prompt])
        if not prompt.done():
            prompt.cancel()
            self._program.hurry()
        with suppress(Exception, asyncio.CancelledError):
            await prompt

    async def _asked(self, method: str, **params: Any) -> dict[str, Any]:
        result = await self._peer.request(method, params)
        return result if isinstance(result, dict) else {}

    # What the agent says and asks

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        update = params.get("update")
        if (
            method == "session/update"
            and isinstance(update, dict)
            and params.get("sessionId") == self._record.session_id
        ):
            self._record.take(update)
            if self._record.limit is not None:
                self._over.set()

    async def _permitted(self, params: Mapping[str, Any]) -> dict[str, Any]:
        call = params["toolCall"]
        return self._permissions.decided(self._record.call(str(call["toolCallId"]), call), params["options"])


def _values(options: Sequence[Mapping[str, Any]]) -> list[str]:
    """The values of an option, also where they are in groups."""
    found: list[str] = []
    for option in options:
        found.extend(_values(option["options"]) if "options" in option else [str(option["value"])])
    return found


def refused(error: RpcError, program: AgentProgram) -> PortError:
    """The error with which an agent refused a request, without secrets."""
    kind = KINDS.get(error.code, "agent")
    details = error.data.get("details") or error.data.get("message") if isinstance(error.data, dict) else error.data
    text = ": ".join(str(part) for part in (error, details) if part)
    text = shortened(" ".join(program.without_secrets(text).split()), MESSAGE_LIMIT)
    hint = "; log in with the agent itself, or name its key in api_key_env" if kind == "auth" else ""
    return PortError(f"the agent reports: {text}{hint}", kind=kind)


def server_of(name: str, address: Any) -> dict[str, Any]:
    """A tool server for `mcpServers`: an address as in `mcp_urls_dict`, or the protocol's own form."""
    if isinstance(address, Mapping):
        return {"name": name, **address}
    if "://" in address:
        return {"type": "http", "name": name, "url": address, "headers": []}
    program, *arguments = shlex.split(address)
    return {"name": name, "command": shutil.which(program) or os.path.abspath(program), "args": arguments, "env": []}
