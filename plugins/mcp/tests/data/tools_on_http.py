"""Tool servers on the web, written with the SDK, in processes of their own that are forked from this one.

Reads lines `KIND PORT` and starts a server for each; port 0 is any. Prints its process id and its port when it listens.
The SDK takes long to import: this process does it once. Servers that are left end with it, when stdin does.

KIND: `streamable`, `json`, `sse`; `guarded`: refuses who has no token; `older`: speaks no version without sessions.
"""

import asyncio
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress

import uvicorn
from changing_tools import add_to
from mcp.server.mcpserver import MCPServer


class Told(uvicorn.Server):
    listens = False

    async def startup(self, sockets=None):
        await super().startup(sockets)
        os.write(1, f"{os.getpid()} {sockets[0].getsockname()[1]}\n".encode())
        Told.listens = True


def serve(kind, port):
    server = MCPServer("web")
    add_to(server)
    under_way = []

    @server.tool()
    async def meet(others: int) -> str:
        """Answers when so many calls of it are under way at once."""
        under_way.append(1)
        async with asyncio.timeout(15):
            while len(under_way) < others:
                await asyncio.sleep(0.01)
        return "met"

    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", port))
    app = server.sse_app() if kind == "sse" else server.streamable_http_app(json_response=kind == "json")

    async def guarded(scope, receive, send):
        headers = dict(scope.get("headers") or ())
        refused = None
        if kind == "guarded" and headers.get(b"authorization") != b"Bearer let-me-in":
            refused = 401
        if kind == "older" and headers.get(b"mcp-protocol-version", b"") >= b"2026":
            refused = 400
        if refused and scope["type"] == "http":
            await send({"type": "http.response.start", "status": refused, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        await app(scope, receive, send)

    asyncio.run(Told(uvicorn.Config(guarded, log_level="error", timeout_graceful_shutdown=1)).serve([place]))


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are not waited for
started = []
while line := sys.stdin.readline():
    kind, port = line.split()
    started.append(os.fork())
    if started[-1] == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            serve(kind, int(port))
        except BaseException:
            traceback.print_exc()
        finally:
            if not Told.listens:
                os.write(1, b"it does not listen\n")
            os._exit(1)
for process in started:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
