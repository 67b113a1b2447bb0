"""Which models a provider limits together: those of one address and key, where one is refused before its turn."""

from __future__ import annotations

from collections.abc import Mapping

from .queues import LaneKey, LaneState

__all__ = ["compare"]


def compare(lane: LaneState, lanes: Mapping[LaneKey, LaneState]) -> None:
    """A call of this lane was refused. A model that is refused for the first time before it was given as much as
    another at first shares that one's limit, and from now on its `Spacing`; else it has a limit of its own."""
    own = lane.adaptive.spacing
    if lane.key is None or own.apart:
        return
    for key, other in lanes.items():
        if other is not lane and key.is_near(lane.key):
            found = other.adaptive.spacing
            if found.apart and own.taken_at_once < found.taken_at_once:
                lane.adaptive.spacing = found
                return
