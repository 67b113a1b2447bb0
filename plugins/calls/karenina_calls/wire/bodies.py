"""Bodies of replies, unpacked within bounds, and the events of those that are streamed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

import aiohttp

from karenina_core.errors import PortError

ACCEPTED_ENCODINGS = "gzip, deflate"
STEP = 65536  # bytes unpacked at a time: a bomb is refused at the first piece above the limit
DONE = b"[DONE]"


async def whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The unpacked body. Raises PortError `too_large` where it has more than `limit` bytes."""
    if _encoding(response) == "identity" and response.content_length is not None:  # aiohttp reads no more than that
        if response.content_length > limit:
            raise too_large(limit)
        return await response.read()
    body = bytearray()
    async for piece in pieces(response, limit):
        body += piece
    return bytes(body)


async def pieces(response: aiohttp.ClientResponse, limit: int) -> AsyncIterator[bytes]:
    """The unpacked body as it arrives, in pieces of at most what was received or 64 KB.

    The session must not unpack by itself: aiohttp does so by the whole packet, and a packet of a packed bomb unpacks to
    a thousand times its size. Raises PortError: `too_large` beyond `limit` bytes, `bad_response` for a broken packing.
    """
    encoding = _encoding(response)
    if encoding == "identity" and (response.content_length or 0) > limit:
        raise too_large(limit)
    if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise PortError(f"the reply is packed with {encoding[:50]!r}, which was not requested", kind="bad_response")
    unpack = None if encoding == "identity" else _Unpacker(raw_allowed=encoding == "deflate")
    seen = 0
    async for packed in response.content.iter_any():
        for piece in unpack.feed(packed) if unpack else (packed,):
            seen += len(piece)
            if seen > limit:
                raise too_large(limit)
            yield piece
    if unpack and not unpack.finished:
        raise PortError("the packed body of the reply ends too early", kind="bad_response")


def _encoding(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Content-Encoding", "identity").strip().lower()


def too_large(limit: int) -> PortError:
    return PortError(
        f"the reply is larger than {limit} bytes; allow more with extra_kwargs max_response_bytes", kind="too_large"
    )


class _Unpacker:
    def __init__(self, *, raw_allowed: bool) -> None:
        self._raw_allowed = raw_allowed
        self._stream: zlib._Decompress | None = None

    @property
    def finished(self) -> bool:
        """Whether what was fed ends where a packed stream ends; true for nothing at all."""
        return self._stream is None or self._stream.eof

    def feed(self, packed: bytes) -> Iterator[bytes]:
        more = bool(packed)
        while more:
            if self._stream is None or self._stream.eof:
                if not packed:
                    return
                raw = self._raw_allowed and packed[0] & 15 != 8  # some servers send deflate without a header
                self._stream = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
            try:
                piece = self._stream.decompress(packed, STEP)
            except zlib.error:
                raise PortError("the packed body of the reply is broken", kind="bad_response") from None
            if piece:
                yield piece
            packed = self._stream.unconsumed_tail or self._stream.unused_data
            more = bool(packed) or len(piece) == STEP  # a full piece may leave more inside the stream


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The `data` of each event. Comments and other fields are passed over."""
    rest = bytearray()
    data: list[bytes] = []
    async for piece in pieces:
        rest += piece
        if b"\n" not in piece:
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if data:
        yield b"\n".join(data)
    if rest.strip() == b"data: " + DONE:  # any other line without an end is cut off
        yield DONE
