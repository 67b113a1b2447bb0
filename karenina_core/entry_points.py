"""Entry points of installed distributions, read once and read again when a folder of `sys.path` has changed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from email import message_from_string
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, EntryPoints, entry_points
from typing import Any

UNKNOWN = "an unknown package"


def installed_entry_points(group: str) -> EntryPoints:
    """The entry points of a group. Metadata is read again when a package was added to a folder of `sys.path` or taken
    from it, not when its files are edited in place."""
    return _of_group(group, tuple((path, _changed(path)) for path in sys.path))


def owner(point: EntryPoint) -> str:
    """The distribution that an entry point is from."""
    return name_and_version(point.dist)[0] if point.dist else UNKNOWN


@lru_cache
def _of_group(group: str, folders: tuple[tuple[str, int], ...]) -> EntryPoints:
    found: EntryPoints = _read(folders).select(group=group)
    return found


@lru_cache(maxsize=1)
def _read(_: tuple[tuple[str, int], ...]) -> Any:
    return entry_points()


@lru_cache
def name_and_version(distribution: Distribution) -> tuple[str, str]:
    """Of the headers alone: to parse the description below them takes longer than all else here."""
    headers = (distribution.read_text("METADATA") or "").partition("\n\n")[0]
    found = message_from_string(headers) if headers else distribution.metadata
    return found["Name"], found["Version"]


def _changed(path: str) -> int:
    """When a file was last added to a folder or taken from it, as installing does; 0 where it is not there."""
    with suppress(OSError):
        return os.stat(path or ".").st_mtime_ns
    return 0
