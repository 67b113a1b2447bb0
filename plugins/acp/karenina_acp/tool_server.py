"""karenina's tools as a server of the Model Context Protocol, which an agent reaches through a relay on stdio.

Every agent can use servers on stdio, https://agentclientprotocol.com/protocol/session-setup#mcp-servers. What a server
answers is in https://modelcontextprotocol.io/specification/2025-06-18/server/tools.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from karenina_calls.agents.offered import OfferedCalls, schema_of

from karenina_core import __version__
from karenina_core.errors import PortError

from . import relay
from .rpc import Peer

SERVER = "karenina"
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18")
"""Of the protocol; what is used of it is the same in all."""
LONGEST_LINE = 16_000_000
"""Bytes of one message. Chosen, not measured: far more than the arguments of a call."""


@asynccontextmanager
async def served(calls: OfferedCalls, private: Path) -> AsyncIterator[list[dict[str, Any]]]:
    """The server for `mcpServers` of a session; none where there are no tools. Raises OSError."""
    if not calls.tools:
        yield []
        return
    path = private / "tools"
    connected: set[asyncio.Task[None]] = set()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_serve(calls, reader, writer))
        connected.add(task)
        task.add_done_callback(connected.discard)

    server = await asyncio.start_unix_server(connect, path, limit=LONGEST_LINE)
    try:
        yield [{"name": SERVER, "command": sys.executable, "args": ["-IS", relay.__file__, str(path)], "env": []}]
    finally:
        server.close()
        for task in (tasks := list(connected)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _serve(calls: OfferedCalls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async def send(text: str) -> None:
        with suppress(ConnectionError):
            writer.write(text.encode())
            await writer.drain()

    async def begin(params: Mapping[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        version = asked if asked in VERSIONS else VERSIONS[-1]
        about = {"name": SERVER, "version": __version__}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}

    async def tools(params: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "tools": [
                {"name": tool.name, "description": tool.description, "inputSchema": schema_of(tool)}
                for tool in calls.tools
            ]
        }

    async def call(params: Mapping[str, Any]) -> dict[str, Any]:
        outcome = await calls.run(params["name"], params.get("arguments") or {})
        return {"content": [{"type": "text", "text": outcome.content}], "isError": outcome.is_error}

    async def ping(params: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    answers = {"initialize": begin, "ping": ping, "tools/list": tools, "tools/call": call}
    peer = Peer(send, answers, lambda method, params: None)
    try:
        while line := await reader.readline():
            message = json.loads(line)
            if isinstance(message, dict):
                peer.take(message)
    except (ValueError, ConnectionError, PortError):  # not a client of the protocol, or gone
        pass
    finally:
        await peer.aclose()
        writer.close()
