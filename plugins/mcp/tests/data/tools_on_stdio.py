"""A tool server over stdio, written with the SDK: `tools_on_stdio.py PIDS [CHANGE]`.

It writes its process id to the file PIDS. Where it is started for the second time it makes the CHANGE at once.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from changing_tools import add_to, change
from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("tools")
started = Path(sys.argv[1])
with started.open("a") as file:
    file.write(f"{os.getpid()}\n")
add_to(server)


@server.tool()
def environment() -> str:
    """The names and values of the environment."""
    return json.dumps(dict(os.environ))


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("no such thing")


@server.tool(structured_output=False)
def picture() -> list:
    """A text and an image."""
    return ["a picture", Image(data=b"x" * 300, format="png")]


@server.tool()
def die() -> str:
    """Is killed."""
    os.kill(os.getpid(), 9)
    return "never"


@server.tool()
def noise(megabytes: int) -> str:
    """Floods stderr."""
    for _ in range(megabytes):
        sys.stderr.write("n" * 1024 * 1024)
    sys.stderr.flush()
    return "done"


@server.tool()
def freeze() -> str:
    """Stops everything."""
    time.sleep(60)
    return "never"


@server.tool()
def child() -> int:
    """Starts a program that outlives this one, if it is not ended."""
    return subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL).pid


@server.tool()
def babble(kind: str) -> str:
    """Prints what is no message."""
    out = sys.__stdout__.buffer
    for _ in range(200):
        out.write({"lines": b"not a message\n" * 5000, "bytes": bytes(range(256)) * 256, "json": b'{"a": 1}\n'}[kind])
    out.write(b"\n")
    out.flush()
    return "done"


if len(sys.argv) > 2 and len(started.read_text().split()) > 1 and sys.argv[2] in ("forget", "alter", "reword", "more"):
    change(server, sys.argv[2])
server.run()
