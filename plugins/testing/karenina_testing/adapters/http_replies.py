"""HTTP/1.1 for the scripted server: reading requests, writing responses, and breaking off in every way a server can."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from attrs import evolve

from .replies import Reply, ServedRequest, spoken
from .wires import Wire

MOST_HEAD_BYTES = 65536  # chosen, as the next: what is longer is a mistake
MOST_BODY_BYTES = 64_000_000  # more than the largest reply of the checks, 50 MB
FILLING = "@filling@"
MEGABYTE = b"x" * 1_000_000
NO_UTF8 = b"caf\xe9 \xff\xfe"


class Arrived(NamedTuple):
    """An HTTP request as it was read."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


class WatchedReader(asyncio.StreamReader):
    """A stream reader that says when its client has gone."""

    def __init__(self) -> None:
        super().__init__(limit=MOST_HEAD_BYTES)
        self.gone = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.gone.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.gone.set()

    async def pause(self, seconds: float) -> None:
        """Sleep. Raises ConnectionResetError as soon as the client has gone."""
        try:
            async with asyncio.timeout(seconds):
                await self.gone.wait()
        except TimeoutError:
            return
        raise ConnectionResetError("the client has gone")


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Arrived | None:
    """The next request of a connection; None where the client has closed it. Raises ValueError for what is not HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while length := int((await reader.readline()).split(b";")[0], 16):
            if not 0 < length <= MOST_BODY_BYTES - len(body):
                raise ValueError("a chunk of a wrong size")
            body += await reader.readexactly(length)
            await reader.readline()
        while (await reader.readline()).strip():
            pass
    else:
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= MOST_BODY_BYTES:
            raise ValueError(f"a body of {length} bytes")
        body = await reader.readexactly(length)
    asked = headers.get("connection", "").lower()
    return Arrived(method, path, headers, body, asked != "close" and (version != "HTTP/1.0" or asked == "keep-alive"))


def resolved(wire: Wire, reply: Reply) -> Reply:
    """The reply with the body of its error, where it is one."""
    if reply.failure is None:
        return reply
    status, body = wire.error(reply)
    waiting = {} if reply.retry_after is None else wire.wait(reply.retry_after)
    sent = json.dumps(body).encode()
    return evolve(reply, status=status, headers={**waiting, **reply.headers}, body=sent, failure=None)


def payload(wire: Wire, request: ServedRequest, reply: Reply) -> tuple[str, bytes]:
    """The content type and the whole body of a response."""
    if reply.body is not None:
        return "application/json", reply.body
    if reply.delivery == "no_answer":
        return "application/json", json.dumps(wire.nothing(request)).encode()
    if reply.delivery == "invalid_utf8":
        body = json.dumps(wire.write(request, spoken(request, evolve(reply, content=FILLING))))
        return "application/json", body.encode().replace(FILLING.encode(), NO_UTF8)
    if request.stream:
        return "text/event-stream", b"".join(wire.events(request, spoken(request, reply)))
    return "application/json", json.dumps(wire.write(request, spoken(request, reply))).encode()


async def deliver(
    wire: Wire, request: ServedRequest, reply: Reply, reader: WatchedReader, writer: asyncio.StreamWriter
) -> bool:
    """Send a reply. True where the connection can serve another request, False where it must be closed.

    Raises ConnectionError where the client has gone.
    """
    if reply.latency > 0:
        await reader.pause(reply.latency)
    match reply.delivery:
        case "whole" if request.stream and reply.body is None:
            await _write_events(writer, reply, list(wire.events(request, spoken(request, reply))))
            writer.write(b"0\r\n\r\n")
            return True
        case "whole" | "no_answer" | "invalid_utf8":
            await write_response(writer, reply, *payload(wire, request, reply))
            return True
        case "reset":
            # No lingering: the kernel answers with RST instead of a tidy close.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        case "hang":
            await reader.pause(reply.amount)
        case "stream_cut" if request.stream:
            events = list(wire.events(request, spoken(request, reply)))
            await _write_events(writer, reply, events[: len(events) // 2])
        case "truncated" | "stream_cut":
            content_type, body = payload(wire, request, reply)
            writer.write(_head(reply, content_type, len(body)) + body[: len(body) // 2])
            await writer.drain()
        case "drip":
            content_type, body = payload(wire, request, reply)
            writer.write(_head(reply, content_type, len(body)))
            for byte in body:
                await reader.pause(reply.amount)
                writer.write(bytes((byte,)))
                await writer.drain()
            return True
        case "huge" | "gzip_bomb":
            await _fill(wire, request, reply, writer)
            return True
    return False


async def write_response(
    writer: asyncio.StreamWriter, reply: Reply, content_type: str = "application/json", body: bytes | None = None
) -> None:
    """Send the status, the headers and the body (by default the reply's own) in one piece."""
    whole = (reply.body or b"") if body is None else body
    writer.write(_head(reply, content_type, len(whole)) + whole)
    await writer.drain()


async def _write_events(writer: asyncio.StreamWriter, reply: Reply, events: list[bytes]) -> None:
    writer.write(_head(reply, "text/event-stream", None))
    for event in events:
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()


async def _fill(wire: Wire, request: ServedRequest, reply: Reply, writer: asyncio.StreamWriter) -> None:
    """Send a body whose text has `reply.amount` megabytes, a megabyte at a time."""
    content_type, framed = payload(wire, request, evolve(reply, content=FILLING))
    before, _, after = framed.partition(FILLING.encode())
    total = int(reply.amount * 1_000_000)
    pieces = (before, *(MEGABYTE[: total - start] for start in range(0, total, len(MEGABYTE))), after)
    if reply.delivery == "huge":
        writer.write(_head(reply, content_type, len(before) + total + len(after)))
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return
    zipped = evolve(reply, headers={"Content-Encoding": "gzip", **reply.headers})
    writer.write(_head(zipped, content_type, None))
    packer = zlib.compressobj(level=1, wbits=31)
    for piece in pieces:
        if packed := packer.compress(piece):
            writer.write(b"%x\r\n%b\r\n" % (len(packed), packed))
            await writer.drain()
    rest = packer.flush()
    writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))
    await writer.drain()


def _head(reply: Reply, content_type: str, length: int | None) -> bytes:
    """The status line and the headers; `length` None: the body comes in chunks."""
    framing: dict[str, Any] = {"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": length}
    given = {name.lower() for name in reply.headers}
    own = {"Content-Type": content_type, **framing}
    headers = {**{name: value for name, value in own.items() if name.lower() not in given}, **reply.headers}
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Scripted"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
