"""How host, server and workers write messages to each other: a length, then JSON. Nothing is ever pickled."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from typing import Any

HEADER = struct.Struct("<I")
MESSAGE = 1 << 17
"""Bytes of a message to the server or from it."""
ABSENT = "cannot be imported"
"""In what the server notes of modules and primitives."""
PART = 1 << 16
"""Bytes that are read at once. Chosen: more than most messages, and less than what the C library maps and unmaps each
time (128 KB and more), which takes longer than reading a message."""
KEPT = 64
"""Filled templates that a worker remembers; it fills others again. Chosen: more than there are items at a time."""
TOKEN = 8
"""Random bytes before the JSON of a request, and again before that of its reply: nothing that was written earlier
can pass for a reply."""


_read = json.JSONDecoder().raw_decode
# Markers against circles, default, encoder of texts, indent, separators, sort_keys, skipkeys, allow_nan.
_write: Any = json.encoder.c_make_encoder(  # type: ignore[attr-defined]  # no stub; JSONEncoder makes one each time
    None, repr, json.encoder.encode_basestring_ascii, None, ": ", ", ", False, False, True
)


def framed(token: bytes, message: Mapping[str, Any]) -> bytes:
    """A message as it is written. Raises ValueError and the like where it is no JSON."""
    body = token + "".join(_write(message, 0)).encode()
    return HEADER.pack(len(body)) + body


def read_frame(descriptor: int) -> tuple[bytes, Any] | None:
    """Token and message of the next frame of a writer that is trusted, and writes no other one before it has a reply;
    None where the other end is closed."""
    found = bytearray()
    while len(found) < HEADER.size or len(found) < HEADER.size + HEADER.unpack_from(found)[0]:
        part = os.read(descriptor, PART)
        if not part:
            return None
        found += part
    message, _ = _read(found[HEADER.size + TOKEN :].decode())
    return bytes(found[HEADER.size : HEADER.size + TOKEN]), message


def write_all(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])
