"""Entry points of installed distributions, read once and read again when a folder of `sys.path` has changed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, EntryPoints, entry_points
from typing import Any


def installed_entry_points(group: str) -> EntryPoints:
    """The entry points of a group. Metadata of packages is read again when a folder of `sys.path` has changed."""
    found: EntryPoints = _installed().select(group=group)
    return found


def _installed() -> Any:
    return _read(tuple((path, _changed(path)) for path in sys.path))


def owner(point: EntryPoint) -> str:
    """The distribution that an entry point is from."""
    return name_and_version(point.dist)[0] if point.dist else "unknown"


@lru_cache(maxsize=1)
def _read(_: tuple[tuple[str, int], ...]) -> Any:
    return entry_points()


@lru_cache
def name_and_version(distribution: Distribution) -> tuple[str, str]:
    """To parse metadata takes longer than all else here, and a package has many entry points."""
    found = distribution.metadata
    return found["Name"], found["Version"]


def _changed(path: str) -> int:
    """When a file was last added to a folder or taken from it, as installing does; 0 where it is not there."""
    with suppress(OSError):
        return os.stat(path or ".").st_mtime_ns
    return 0
