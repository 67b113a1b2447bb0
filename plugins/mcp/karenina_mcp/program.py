"""The line to a program: started with few environment variables, read within bounds, ended with all its children.

The transport of the SDK hands on more variables, reads lines of any length and leaves stderr alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import re
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import anyio
from attrs import define
from karenina_calls.files.process_cleanup import end_marked

from .session import MOST_BYTES, Line

MARK = "KARENINA_TOOL_SERVER"
"""The environment variable by which all that a program has started is found at its end."""
CHUNK = 65536  # bytes; what a pipe of Linux holds
END = 1024
"""Bytes kept of both ends of a line that is too long: the id of the message is in one of them."""
GRACE_SECONDS = 1.0
"""For each step: ending when stdin ends, ending at SIGTERM, having ended after SIGKILL."""
VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
ID_FIRST = re.compile(rb"\s*\{\s*(?:" + VERSION + rb'\s*,\s*)?"id"\s*:\s*(\d+)\s*,')
ID_LAST = re.compile(
    rb',\s*(?:"id"\s*:\s*(\d+)\s*,\s*' + VERSION + rb"|(?:" + VERSION + rb'\s*,\s*)?"id"\s*:\s*(\d+))\s*\}\s*$'
)
INTERNAL_ERROR = -32603  # of JSON-RPC


@asynccontextmanager
async def running(command: Sequence[str], environment: Mapping[str, str], line: Line) -> AsyncIterator[tuple[Any, Any]]:
    """The program, as the streams of messages that the SDK works with. It is ended when the block is left.

    Raises OSError where it cannot be started.
    """
    marked = {**environment, MARK: uuid4().hex}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=marked, start_new_session=True
    )
    arriving, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, leaving = anyio.create_memory_object_stream[Any](0)
    work = [
        asyncio.create_task(_received(process, arriving, line)),
        asyncio.create_task(_sent(process, leaving, arriving)),
        asyncio.create_task(_record_stderr(process, line)),
    ]
    try:
        yield incoming, outgoing
    finally:
        for stream in (incoming, outgoing):  # what still arrives is dropped, so that the program is not blocked
            stream.close()
        try:
            await _ended(process)
        finally:
            _signal(process, "SIGKILL")
            line.exit_code = process.returncode
            # a process that has left the group may hold the pipes open; only asyncio's own name leads to them
            transport = getattr(process, "_transport", None)
            if transport is not None:
                with contextlib.suppress(PermissionError):
                    transport.close()
            # wait a moment for the last output
            await asyncio.wait(work, timeout=0.2)
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            arriving.close()
            leaving.close()
            await asyncio.to_thread(end_marked, MARK, marked[MARK])


async def _received(process: Process, arriving: Any, line: Line) -> None:
    assert process.stdout is not None
    try:
        async for text in _lines(process.stdout):
            ends = text if isinstance(text, _Ends) else _Ends(bytes(text[:END]), bytes(text[-END:]))
            message = (None if text is ends else _message(text)) or _in_place_of(ends, too_long=text is ends)
            if message is not None:
                await arriving.send(message)
            elif text is ends:
                break  # the caller gets the error of the broken connection
            else:
                line.record(ends.head + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        pass  # one of the two sides has ended it
    finally:
        arriving.close()
        line.end()
    with contextlib.suppress(ConnectionError):
        while await process.stdout.read(CHUNK):
            pass


async def _sent(process: Process, leaving: Any, arriving: Any) -> None:
    assert process.stdin is not None
    try:
        async for item in leaving:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(text.encode() + b"\n")
            await process.stdin.drain()
    except (ConnectionError, anyio.ClosedResourceError):
        arriving.close()  # who waits for answers gets the error that there will be none


async def _record_stderr(process: Process, line: Line) -> None:
    assert process.stderr is not None
    while words := await process.stderr.read(CHUNK):
        line.record(words)


# Lines of bounded length


@define(eq=False)
class _Ends:
    """The two ends of a line, by default of one that is too long."""

    head: bytes
    tail: bytes = b""

    def add(self, part: bytes) -> None:
        self.tail = (self.tail + part)[-END:]


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytearray | _Ends]:
    """The lines as they arrive; the two ends of one that is too long."""
    text, ends = bytearray(), None
    while chunk := await stream.read(CHUNK):
        *ended, rest = chunk.split(b"\n")
        for number, part in enumerate((*ended, rest)):
            if ends is None and len(text) + len(part) > MOST_BYTES:
                ends = _Ends(bytes((text + part[:END])[:END]), bytes(text[-END:]))
                text.clear()
            if ends is None:
                text += part
            else:
                ends.add(part)
            if number < len(ended):
                yield text if ends is None else ends
                text, ends = bytearray(), None


def _message(text: bytearray | _Ends) -> Any:
    """The message on a line; None where it cannot be read, or is something else that the program prints."""
    try:
        read = importlib.import_module("mcp_types").jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return None
    return importlib.import_module("mcp.shared.message").SessionMessage(read)


def _in_place_of(line: _Ends, *, too_long: bool) -> Any:
    """An error in place of an answer that was not read; None where it is unknown whose answer it was."""
    found = ID_FIRST.match(line.head) or ID_LAST.search(line.tail)
    if found is None:
        return None
    types = importlib.import_module("mcp_types")
    number = int(next(group for group in found.groups() if group))
    what = f"longer than {MOST_BYTES // 1024**2} MB and was not read; ask for less" if too_long else "no valid message"
    error = types.ErrorData(code=INTERNAL_ERROR, message=f"the answer of the server is {what}")
    answer = types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
    return importlib.import_module("mcp.shared.message").SessionMessage(answer)


# The end


async def _ended(process: Process) -> None:
    """Let the program end by itself, then ask it to, then kill it."""
    assert process.stdin is not None
    process.stdin.close()
    for name in ("", "SIGTERM", "SIGKILL"):
        if name:
            _signal(process, name)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
            return


def _signal(process: Process, name: str) -> None:
    """Send a signal to the program and all that it started; those that outlive it are reached too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.kill()
