"""Ends a process right before or after one of its operations on files of a folder. Executed in that process.

A write point is what is about to happen: a statement that SQLite is given, and everything else that opens a file for
writing, writes to it, flushes it, renames or removes it there. A process that ends before the operation n has ended
after the operation n - 1.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def watch(folder: str, point: str, nth: int, said: str) -> None:
    """End this process with status 9 when this point comes for the n-th time; "": any point. 0: never.

    Every point is written to the file `said`.
    """
    left = [nth]
    there = os.path.realpath(folder)
    told = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def at(name: str) -> None:
        os.write(told, f"{name}\n".encode())
        if point in ("", name):
            left[0] -= 1
            if left[0] == 0:
                os._exit(9)

    _watch_files(there, at)
    _watch_statements(there, at)


def _watch_files(folder: str, at: Callable[[str], None]) -> None:
    def is_there(path: Any) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and os.path.realpath(os.fsdecode(path)).startswith(folder)

    def audited(event: str, facts: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(facts[2], int) and facts[2] & WRITING and is_there(facts[0]):
            at(f"open {_name(facts[0])}")
        elif event in ("os.rename", "os.link") and is_there(facts[1]):
            at(f"{event[3:]} {_name(facts[0])} to {_name(facts[1])}")
        elif (
            event in ("os.remove", "os.mkdir", "os.truncate")
            and is_there(facts[0])
            and os.path.exists(facts[0]) != (event == "os.mkdir")
        ):
            at(f"{event[3:]} {_name(facts[0])}")

    def wrapped(function: Callable[..., Any], word: str) -> Callable[..., Any]:
        def call(handle: int, *facts: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{handle}")
            if path.startswith(folder):
                at(f"{word} {_name(path)}")
            return function(handle, *facts)

        return call

    sys.addaudithook(audited)
    for word in ("fsync", "fdatasync", "pwrite"):
        setattr(os, word, wrapped(getattr(os, word), word))


def _watch_statements(folder: str, at: Callable[[str], None]) -> None:
    connect = sqlite3.connect

    def connected(path: Any, *facts: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(path, *facts, **options)
        name = str(path).removeprefix("file://").split("?")[0]
        reads = "mode=ro" in str(path)
        if os.path.realpath(name).startswith(folder) and not reads:
            connection.set_trace_callback(lambda statement: at(f"{_name(name)}: {_kind(statement)}"))
        return connection

    sqlite3.connect = connected  # type: ignore[assignment] # in a process that is about to end


def _name(path: Any) -> str:
    """The file's name without what is random in it."""
    name = re.sub(r"^#\d+ \(deleted\)$", "a nameless file", Path(os.fsdecode(path)).name)
    for pattern, by in (
        (r"^\.(.*)\.[a-z0-9_]{8}$", r".\1.*"),
        (r"\.[0-9a-f]{8}\.partial$", ".*.partial"),
        (r"-damaged-\w+", "-damaged-*"),
    ):
        name = re.sub(pattern, by, name)
    return name


def _kind(statement: str) -> str:
    """What a statement does, without its values."""
    found = re.match(
        r"\s*(?:--[^\n]*)?\s*(BEGIN|COMMIT|ROLLBACK|SELECT|PRAGMA \w+(?: = \w+|\(\w+\))?|CREATE TABLE \w+"
        r"|(?:INSERT|INSERT OR \w+) INTO \w+|DELETE FROM \w+)",
        statement,
    )
    return re.sub(r" = \d+", "", found[1]) if found else statement[:40]
