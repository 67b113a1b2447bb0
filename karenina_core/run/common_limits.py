"""Which models a provider limits together: that of one address, asked with one key, may do so or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .lanes import LaneKey, LaneState
from .spacing import Spacing

__all__ = ["compare"]

IN_A_ROW = 3
"""Refusals of one model in a row, while others are answered, that are no chance: it has a limit of its own."""


def compare(lane: LaneState, lanes: Mapping[LaneKey, LaneState], begun: float, retry_after: float, now: float) -> None:
    """A call of this lane that began at `begun` was refused, and the lane does not know yet. Lanes that seem to be
    limited together share their `Spacing`; those that seem not to be have their own again.

    Two things say that they are: that nothing of a model is taken although it has been left alone, while the provider
    wants to be left alone about another one; and that several are in use, of which together so much was taken that it
    can be told how much is. The second may be wrong, which is seen from who is refused.
    """
    if lane.key is None or _apart_again(lane, lanes.values(), begun):
        return
    idle = lane.under_way == 1 and not lane.answers(retry_after, now)
    for key, other in lanes.items():
        if other is lane or lane.own_limit or other.own_limit or not key.is_near(lane.key):
            continue
        both: Spacing | None = None
        if idle and other.alone_for(now):
            both = other.adaptive.spacing
            both.shared = both.certain = True
        elif other.answers(retry_after, now):
            both = lane.adaptive.spacing.together(other.adaptive.spacing, now, retry_after)
        if both is not None:
            lane.adaptive.spacing = other.adaptive.spacing = both


def _apart_again(lane: LaneState, lanes: Iterable[LaneState], begun: float) -> bool:
    shared = lane.adaptive.spacing
    if not shared.shared or shared.certain or not shared.is_news(begun):
        return False
    sharing = [other for other in lanes if other.adaptive.spacing is shared]
    for other in sharing:
        other.in_a_row = other.in_a_row + 1 if other is lane else 0
    if lane.in_a_row < IN_A_ROW:
        return False
    for other in sharing:
        other.adaptive.spacing, other.own_limit = Spacing(shared.burst), True
    return True
