"""Errors that may be gone when an item is tried again."""

from __future__ import annotations

from collections.abc import Collection

from .journal_reader import Done

__all__ = ["PASSING", "stands"]

PASSING = frozenset({"rate_limited", "timeout", "connection", "server", "budget", "cancelled"})
"""Errors that may be gone when the item is tried again. The budget is that of the run: an agent that used up its own
would do so again."""


def stands(done: Done, again: Collection[str]) -> bool:
    """Whether a result is not one of those that are tried again: errors of these kinds."""
    return done.outcome != "error" or (done.column or "") not in again
