"""How bodies are compressed: calls of one task have much in common, and so have results.

The first texts of a kind become its dictionary (zlib's `zdict`), which the journal keeps twice, on pages of their own.
A body says by itself which one it needs: by the Adler-32 in its header, as RFC 1950 has it.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from attrs import define, field

DICTIONARY = "dictionary "
"""How the ids of rows begin that hold one; the kind follows."""
PACKED_FROM = 512
"""Bytes from which a body is compressed; chosen: shorter ones gain little."""
SAMPLE = 16_000
"""Characters that make a dictionary: zlib looks back 32 KB; chosen."""
KINDS = 16
"""Dictionaries at most: the state of each takes 160 KB."""
LARGEST = 256 * 1024 * 1024
"""Bytes of a compressed body at most; a longer one is kept as it is. What a journal of others unpacks to is no more."""
LEVEL, MEMORY = 2, 6
"""zlib's. With its usual memory (8) the state that is copied for each body is a quarter of a megabyte, and that takes
longer than packing most bodies: with 6 a body of 2 KB takes a third of the time and one of 7 KB two thirds, and level 2
then packs as well as 1 does there."""
ZLIB = 0x78
HAS_DICTIONARY = 0x20


@define(eq=False)
class Bodies:
    """Compresses and decompresses the bodies of one journal."""

    _known: dict[int, bytes] = field(factory=dict)
    """By Adler-32."""
    _dictionaries: dict[str, bytes] = field(factory=dict)
    """By kind."""
    _packers: dict[str, Any] = field(factory=dict)
    """By kind; copied for each body."""
    _samples: dict[str, list[str]] = field(factory=dict)

    def learn(self, kind: str, text: str) -> None:
        """A dictionary that the journal holds."""
        data = text.encode("utf-8", "replace")
        self._known[zlib.adler32(data)] = data
        self._dictionaries[kind] = data
        self._packers.pop(kind, None)
        self._samples.pop(kind, None)

    def sample(self, kind: str, text: str) -> str | None:
        """Look at a text. Returns a new dictionary, which is used from now on and has to be kept."""
        if kind in self._dictionaries:
            return None
        if kind not in self._samples and len(self._dictionaries) + len(self._samples) >= KINDS:
            return None
        seen = self._samples.setdefault(kind, [])
        seen.append(text[:SAMPLE])
        if sum(map(len, seen)) < SAMPLE:
            return None
        found = "".join(seen)[-SAMPLE:].encode("utf-8", "replace").decode("utf-8")
        self.learn(kind, found)
        return found

    def packed(self, kind: str, text: str) -> bytes:
        """A body: UTF-8, compressed from `PACKED_FROM` bytes on."""
        data = text.encode("utf-8", "replace")
        if not PACKED_FROM <= len(data) <= LARGEST:
            return data
        try:
            if (dictionary := self._dictionaries.get(kind)) is None:
                return zlib.compress(data, LEVEL)
            if kind not in self._packers:
                self._packers[kind] = zlib.compressobj(LEVEL, zlib.DEFLATED, 15, MEMORY, zdict=dictionary)
            packer = self._packers[kind].copy()
            return bytes(packer.compress(data) + packer.flush())
        except (MemoryError, zlib.error):  # what was paid for is kept as it is
            return data

    def unpacked(self, body: bytes) -> str:
        """The inverse of `packed`: no JSON document begins as compressed data does. Raises ValueError."""
        if body[:1] == b"\x78":
            dictionary = self._known.get(_wanted(body), b"")
            unpacker = zlib.decompressobj(zdict=dictionary) if dictionary else zlib.decompressobj()
            try:
                body = unpacker.decompress(body, LARGEST)
            except zlib.error as error:
                raise ValueError(f"a body cannot be decompressed: {error}") from error
            if unpacker.unconsumed_tail:
                raise ValueError(f"a body holds more than {LARGEST // 2**20} MB")
        return body.decode("utf-8")

    def can_unpack(self, body: bytes) -> bool:
        """Whether the dictionary that it needs is known, if it needs one."""
        wanted = _wanted(body)
        return wanted == 0 or wanted in self._known

    def is_readable(self, body: bytes) -> bool:
        """Whether it is what a journal writes: nothing, or a document of JSON."""
        try:
            text = self.unpacked(body)
            return not text or json.loads(text, parse_int=str) is not None  # of any length
        except (ValueError, RecursionError):
            return False


def _wanted(body: bytes) -> int:
    """The Adler-32 of the dictionary that a body needs; 0 where it needs none."""
    if len(body) < 6 or body[0] != ZLIB or not body[1] & HAS_DICTIONARY:
        return 0
    return int.from_bytes(body[2:6], "big")
