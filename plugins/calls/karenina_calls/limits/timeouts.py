"""Servers that let calls wait instead of refusing them: time-outs say how many they work on at the same time."""

from __future__ import annotations

import math
from collections import deque

from attrs import define, field

__all__ = ["TIMED_OUT", "Timeouts"]

TRY_MORE = 20
"""After so many replies for each call that may be under way, without a time-out, twice as many may be. Finding out that
this is still too many costs one call its `request_timeout`."""
MOST_TIMES = 128
"""Replies whose times are kept: as many as calls begin at first."""
TIMED_OUT = "timed out, with up to"
ADVICE = (
    "{} of {} calls of {} " + TIMED_OUT + " {} under way: a local server may work on one at a time. What helps: "
    "--concurrency 1, --set models.{}.max_tokens=512, --set run.request_timeout=600"
)


@define(eq=False)
class Timeouts:
    """When all calls that were under way time out, half as many may be, or as many as were answered meanwhile."""

    most: float = field(default=math.inf, init=False)
    """Calls that may be under way."""
    count: int = field(default=0, init=False)
    """Time-outs so far,"""
    peak: int = field(default=0, init=False)
    """and the most calls that were under way then."""
    crowded: bool = field(default=False, init=False)
    """Whether the last one says less about the call than about how many were under way."""
    ended: int = field(default=0, init=False)
    """Calls that were answered or timed out."""
    _in_a_row: int = field(default=0, init=False)
    _together: int = field(default=0, init=False)
    """Calls that were under way at the first of them."""
    _answered: deque[float] = field(factory=lambda: deque(maxlen=MOST_TIMES), init=False)
    """When the last replies came."""
    _fine: int = field(default=0, init=False)
    """Replies since the last time-out."""

    def answered(self, now: float) -> None:
        self.ended += 1
        self._in_a_row = 0
        self._fine += 1
        self._answered.append(now)
        if self._fine >= TRY_MORE * self.most:
            self.most, self._fine = 2.0 * self.most, 0

    def timed_out(self, begun: float, under_way: int) -> bool:
        """A call that began at `begun`, one of so many under way. Returns whether fewer may be under way now."""
        self.ended += 1
        self.count += 1
        self._in_a_row += 1
        self._fine = 0
        self.peak = max(self.peak, under_way)
        if self._in_a_row == 1:
            self._together = under_way
        meanwhile = sum(at > begun for at in self._answered)  # others have taken their places since
        self.crowded = self._together > 1 and self.most > 1 and meanwhile < self._together
        if not self.crowded or self._in_a_row < self._together - meanwhile:
            return False
        fewer = max(1, meanwhile or self._together // 2)
        self._in_a_row, lower = 0, fewer < self.most
        self.most = min(self.most, float(fewer))
        return lower

    def advice(self, lane: str, model: str) -> str:
        """What to change; empty where that is not known to help."""
        return ADVICE.format(self.count, self.ended, lane, self.peak, model) if self.peak > 1 else ""
