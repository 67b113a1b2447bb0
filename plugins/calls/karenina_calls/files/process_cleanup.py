"""Processes that a program has left behind, found by a mark in the environment that they inherited."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

SWEEPS = 3
"""A process that is found may be starting another; each sweep finds those of the one before. Chosen, not measured."""
PROCESSES = Path("/proc")


def end_marked(variable: str, value: str) -> None:
    """Kill every process whose environment has this variable with this value, also those in groups and sessions
    of their own. Only Linux shows which they are; elsewhere nothing is done. One that has cleared its environment is
    not found.
    """
    mark = f"{variable}={value}".encode()
    for _ in range(SWEEPS):
        found = [int(folder.name) for folder in PROCESSES.glob("[0-9]*") if _is_marked(folder, mark)]
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not found:
            return


def end_children() -> None:
    """Kill every process that this one has started, and all that those have started, also in sessions of their own.
    Only Linux shows which they are; elsewhere nothing is done."""
    parents = dict(filter(None, map(_with_parent, PROCESSES.glob("[0-9]*"))))
    ours, found = {os.getpid()}, True
    while found:
        found = bool(more := {child for child, parent in parents.items() if parent in ours} - ours)
        ours |= more
    for number in ours - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)


def _with_parent(folder: Path) -> tuple[int, int] | None:
    try:
        after_name = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return int(folder.name), int(after_name[1])
    except (OSError, IndexError, ValueError):
        return None


def _is_marked(folder: Path, mark: bytes) -> bool:
    try:
        return mark in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
