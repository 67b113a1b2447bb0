"""Errors that may be gone when an item is tried again."""

from __future__ import annotations

from collections.abc import Collection

from .journal_reader import Done

__all__ = ["PASSING", "stands"]

PASSING = frozenset({"rate_limited", "timeout", "connection", "server", "budget", "cancelled"})
"""Errors that may be gone when the item is tried again."""


def stands(done: Done, again: Collection[str]) -> bool:
    """Whether a result is not one of those that are tried again: errors of these kinds."""
    return done.outcome != "error" or (done.detail or "") not in again
