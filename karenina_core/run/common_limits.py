"""Which models a provider limits together: those of one address and key, as long as it refuses each of them."""

from __future__ import annotations

from collections.abc import Mapping

from .lanes import LaneKey, LaneState
from .spacing import Spacing

__all__ = ["compare"]

IN_A_ROW = 8
"""Refusals of one model in a row, while others are answered, that are no chance: it has a limit of its own. Of two that
are asked equally often it is one in 128."""


def compare(lane: LaneState, lanes: Mapping[LaneKey, LaneState], begun: float, now: float) -> None:
    """A call of this lane that began at `begun` was refused. Lanes that are refused share one `Spacing`, until one of
    them is refused time and again while the others are not: it has its own from then on."""
    if lane.key is None or lane.own_limit:
        return
    near = [other for key, other in lanes.items() if other is not lane and key.is_near(lane.key)]
    shared = lane.adaptive.spacing
    for other in near:
        if other.adaptive.spacing.is_new:
            other.adaptive.spacing = shared
    if not shared.apart:
        for other in near:
            if other.adaptive.spacing.apart and not other.own_limit:
                lane.adaptive.spacing = other.adaptive.spacing.joined(shared, now)
                return
    sharing = [other for other in near if other.adaptive.spacing is shared]
    if not sharing or not shared.is_news(begun):
        return
    for other in sharing:
        other.in_a_row = 0
    lane.in_a_row += 1
    if lane.in_a_row >= IN_A_ROW:
        lane.own_limit = True
        for other in sharing:
            other.adaptive.spacing = Spacing()
