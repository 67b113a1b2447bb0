"""How soon another thread has its turn while one computes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["short_turns"]

SHORT = 0.0005
"""Seconds that a thread computes on while another one wants its turn; Python's own: 0.005."""
_before: list[float] = []


@contextmanager
def short_turns() -> Iterator[None]:
    """Whoever writes a journal comes back from SQLite several times for each commit, and waits for a turn each time:
    with Python's own setting a commit takes many times as long while items are worked on. What was set before is set
    again at the end of the last of several.
    """
    _before.append(sys.getswitchinterval())
    sys.setswitchinterval(min(SHORT, _before[-1]))
    try:
        yield
    finally:
        first = _before[0]
        _before.pop()
        if not _before:
            sys.setswitchinterval(first)
