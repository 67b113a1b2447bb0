"""Garbage collection while a run goes on: less often than Python does by itself, and not where it would lock up."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["fewer_collections", "frame_of"]

OBJECTS = (100_000, 10, 10)
"""New objects between two collections, and after how many of those older ones are looked at; Python's own: 700, 10, 10.
"""
_runs: list[tuple[int, int, int]] = []
"""What was set before each run of this process that goes on."""


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Nearly everything that a run makes goes away without the collector, which looks at all items under way each time:
    with 500 of them that takes a third of the run's own time. What was set before is set again at the end of the last
    run of several; a collector that is off stays off.

    What was there before the run, such as the modules, is not looked at until it ends.
    """
    before = gc.get_threshold()
    _runs.append(before)
    freezes = len(_runs) == 1 and not gc.get_freeze_count()
    if 0 < before[0] < OBJECTS[0]:
        gc.set_threshold(*OBJECTS)
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        first = _runs[0]
        _runs.pop()
        if freezes:
            gc.unfreeze()
        if not _runs:
            gc.set_threshold(*first)


def frame_of(thread: int) -> FrameType | None:
    """Where a thread is, by its identifier; None where there is no such thread.

    Before CPython 3.11.9, a collection that begins while the interpreter makes its list of threads stops the process
    for good where another thread begins or ends at that moment (python/cpython#106883): here none begins.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames().get(thread)
    finally:
        if collects:
            gc.enable()
