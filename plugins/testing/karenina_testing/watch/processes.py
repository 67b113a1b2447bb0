"""Programs that tests start, found in the table of processes by a word among their arguments."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

LONGEST_END = 3.0
"""Seconds in which a program that was asked to end must have ended."""


def running(mark: str) -> list[str]:
    """The command lines of all programs with the mark in them, where the system has `/proc`; zombies have none."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(entry.read_bytes().decode(errors="replace").replace("\0", " "))
    return [line for line in lines if mark in line]


def still_running(mark: str, seconds: float = LONGEST_END) -> list[str]:
    """Those that are there when all of them had so many seconds to end."""
    until = time.monotonic() + seconds
    while running(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return running(mark)
