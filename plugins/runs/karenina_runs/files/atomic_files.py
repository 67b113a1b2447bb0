"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any


def _of_new_files() -> int:
    """What the user's mask leaves of the permissions of a new file. To read it sets it for a moment, to a mask that
    lets nobody in, and once: by now other threads may make files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


NEW = _of_new_files()
PIECES = 1024
"""Pieces of JSON, of some ten characters each, that are written at once; chosen: more are no faster."""


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole: after a crash there is the old content or the new, never a part."""
    with replacing(path) as file:
        file.write(data)


def write_json(path: Path, document: Any, indent: int | None = None) -> None:
    """Replace a file by a JSON document, as a whole. Its text is never in memory as a whole. Raises OSError."""
    encoder = json.JSONEncoder(ensure_ascii=False, indent=indent)
    pieces = _entries(document, encoder.encode) if indent is None else encoder.iterencode(document)
    with replacing(path) as file:
        while text := "".join(islice(pieces, PIECES)):
            file.write(text.encode("utf-8", "replace"))


def _entries(value: Any, encode: Callable[[Any], str], levels: int = 2) -> Iterator[str]:
    """The text of a document entry by entry, also those of its own entries: a text at once is written by C."""
    entries: Iterable[tuple[str, Any]]
    if levels and type(value) is dict and all(type(name) is str for name in value):
        begin, end, entries = "{", "}", ((f"{encode(name)}: ", item) for name, item in value.items())
    elif levels and type(value) is list:
        begin, end, entries = "[", "]", (("", item) for item in value)
    else:
        yield encode(value)
        return
    before = begin
    for name, item in entries:
        yield before + name
        yield from _entries(item, encode, levels - 1)
        before = ", "
    yield end if value else begin + end


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of another one as a whole, when all of it is on the disk."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(path.stat().st_mode & 0o777 if path.exists() else NEW)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """Have the names of its files on the disk: a name that is only in memory is lost with the power."""
    with contextlib.suppress(OSError):  # not every platform can flush a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
