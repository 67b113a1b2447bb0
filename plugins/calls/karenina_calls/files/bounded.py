"""Files that others may have written: read as far as they may go, and no further."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 1024 * 1024
"""Of a file that is read as a whole. Benchmarks of 100,000 questions have some hundred megabytes."""
MOST_RECORDED = 1024 * 1024 * 1024
"""The same of what was recorded: replies to 100,000 calls have some hundred megabytes."""
MOST_LEVELS = 64
"""Of lists and objects within one another."""
LEVELS_OF_RECORDS = 128
"""The same of what was recorded, which holds what models have said."""


def read_bounded(path: str | Path, most: int = MOST_BYTES, *, pipes: bool = False) -> bytes:
    """The content of a file of at most `most` bytes. Raises OSError, also for one that is larger.

    Without `pipes` it has to be a regular file: opening a pipe could take for ever.
    """
    wait = 0 if pipes else getattr(os, "O_NONBLOCK", 0)
    flags = os.O_RDONLY | wait | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if not pipes and not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        data = b"" if about.st_size > most else file.read(most + 1)
    if about.st_size > most or len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {_megabytes(most)}", str(path))
    return data


def json_bounded(text: str | bytes, levels: int = MOST_LEVELS) -> Any:
    """A document of JSON. Raises ValueError, also for one that is nested deeper than this many levels."""
    try:
        value = json.loads(text)
    except RecursionError:
        value = None
        deep = True
    else:
        deep = is_deeper(value, levels)
    if deep:
        raise ValueError(f"it is nested deeper than {levels} levels")
    return value


def is_deeper(value: Any, levels: int) -> bool:
    """Whether data of JSON has more levels of lists and objects. Takes no more of the stack where it has."""
    layer = _parts([value])
    for _ in range(levels):
        if not layer:
            break
        layer = [part for holder in layer for part in _parts(holder)]
    return bool(layer)


def _parts(holder: dict[str, Any] | list[Any]) -> list[Any]:
    parts = holder.values() if isinstance(holder, dict) else holder
    return [part for part in parts if isinstance(part, dict | list)]


def read_json(path: str | Path, most: int = MOST_BYTES, levels: int = MOST_LEVELS) -> Any:
    """The document in a file. Raises OSError and ValueError, as the two above."""
    return json_bounded(read_bounded(path, most), levels)


def _megabytes(count: int) -> str:
    return f"{count / 2**20:.0f} MB" if count >= 2**20 else f"{count} bytes"
