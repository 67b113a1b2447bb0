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
KEPT = 64
"""Filled templates that a worker remembers; it fills others again. Chosen: more than there are items at a time."""
TOKEN = 8
"""Random bytes before the JSON of a request, and again before that of its reply: nothing that was written earlier
can pass for a reply."""


_write = json.JSONEncoder(default=repr).encode


def framed(token: bytes, message: Mapping[str, Any]) -> bytes:
    """A message as it is written. Raises ValueError and the like where it is no JSON."""
    body = token + _write(message).encode()
    return HEADER.pack(len(body)) + body


def read_exactly(descriptor: int, length: int) -> bytes | None:
    """So many bytes; None where the other end is closed."""
    found = bytearray()
    while len(found) < length:
        part = os.read(descriptor, length - len(found))
        if not part:
            return None
        found += part
    return bytes(found)


def read_frame(descriptor: int) -> tuple[bytes, Any] | None:
    """Token and message of the next frame of a writer that is trusted; None where the other end is closed."""
    header = read_exactly(descriptor, HEADER.size)
    body = read_exactly(descriptor, HEADER.unpack(header)[0]) if header else None
    return (body[:TOKEN], json.loads(body[TOKEN:])) if body else None


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
