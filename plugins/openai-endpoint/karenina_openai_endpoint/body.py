"""Reading a response body without trusting it: unpacked piece by piece, never more of it than allowed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator

import aiohttp

from karenina_core.errors import PortError

__all__ = ["ACCEPTED_ENCODINGS", "pieces", "too_large", "whole"]

ACCEPTED_ENCODINGS = "gzip, deflate"
STEP = 65536


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
    unpack = _unpacker(encoding)
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


def _unpacker(encoding: str) -> _Unpacker | None:
    if encoding == "identity":
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Unpacker(raw_allowed=encoding == "deflate")
    raise PortError(f"the reply is packed with {encoding[:50]!r}, which was not asked for", kind="bad_response")


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
                self._stream = zlib.decompressobj(self._window(packed[0]))
            try:
                piece = self._stream.decompress(packed, STEP)
            except zlib.error:
                raise PortError("the packed body of the reply is broken", kind="bad_response") from None
            if piece:
                yield piece
            packed = self._stream.unconsumed_tail or self._stream.unused_data
            more = bool(packed) or len(piece) == STEP  # a full piece may leave more inside the stream

    def _window(self, first: int) -> int:
        """zlib's `wbits`: gzip or zlib by their headers; some servers send deflate without any."""
        return -zlib.MAX_WBITS if self._raw_allowed and first & 15 != 8 else zlib.MAX_WBITS | 32
