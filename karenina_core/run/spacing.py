"""How far apart calls begin at a provider that limits how many it takes in a time, learnt from its refusals.

Nothing here reads a clock, as in `limits`.
"""

from __future__ import annotations

import math
from collections import deque

from attrs import define, field

__all__ = ["HOLD", "PART_OF_WAIT", "Spacing"]

PART_OF_WAIT = 0.21
"""Seconds between two calls, as a part of `Retry-After`, where nothing says how many a provider takes: at first,"""
SLOWER = 1.25
"""and so many times as many after each refusal. Found by trying out pairs for providers that take one call in a tenth
of `Retry-After` to one in all of it. For 30 to 40 calls these two lose least: 1.3 times the ideal from a fifth on."""
LEAST_TAKEN = 2
"""Calls beyond two bursts that are enough to count how many the provider takes."""
A_LITTLE = 1.08
"""So many times as far apart at least where that was counted: a count of a few calls is some percent wrong."""
MUCH = 1.5
"""So many times what is tried at first, in a second, says more than what is tried at first of two models at once."""
HOLD = 16.0
"""So many times as long as `Retry-After`, another refusal is not risked."""
CAREFULLY = 0.02
"""How much faster calls begin after that, in the time that another refusal would cost."""
MOST_TIMES = 500
"""Calls whose beginnings are kept: enough to count a rate to less than a percent."""
LONGEST = 60.0
"""Seconds between two calls at most."""


@define(eq=False)
class Spacing:
    """`apart` is 0.0 as long as nothing is known. Models of one provider that limits them together share one."""

    burst: int = 1
    """Calls that the provider took at once when it was asked for the first time."""
    apart: float = field(default=0.0, init=False)
    """Seconds between the beginnings of two calls."""
    shared: bool = field(default=False, init=False)
    """Whether several models share it,"""
    certain: bool = field(default=False, init=False)
    """and whether it is sure that they have to."""
    _answered: bool = field(default=True, init=False)
    """Whether a call was since the last change."""
    _next: float = field(default=-math.inf, init=False)
    _begun: deque[float] = field(factory=lambda: deque(maxlen=MOST_TIMES), init=False)
    """When calls have begun since the last change."""
    _changed: float = field(default=-math.inf, init=False)
    """When a refusal changed something."""
    _held_until: float = field(default=-math.inf, init=False)
    _cost: float = field(default=0.0, init=False)
    """Seconds of the last `Retry-After`."""

    def wait(self, now: float) -> float:
        """Seconds until the next call may begin."""
        return max(self._next - now, 0.0)

    def begun(self, now: float) -> None:
        self._begun.append(now)
        if self.apart:
            self._next = max(now, self._next) + self.apart

    def not_begun(self) -> None:
        """What `begun` counted did not happen."""
        if self._begun:
            self._begun.pop()
        self._next -= self.apart

    def answered(self, now: float, begun: float) -> None:
        """A reply came to a call that began at `begun`."""
        self._answered |= begun > self._changed
        if self.apart and now >= self._held_until:
            faster = 1.0 + (now - self._held_until) / self._cost
            self.apart /= 1.0 + CAREFULLY * faster * self.apart / self._cost

    def together(self, other: Spacing, now: float, retry_after: float) -> Spacing | None:
        """One for the calls of both, if these are enough to tell how many the provider takes."""
        if self is other:
            return None
        both = Spacing()
        both._begun = deque(sorted([*self._begun, *other._begun]), MOST_TIMES)
        both.burst, both.shared = max(self.burst, other.burst), True
        at_first = both.burst / (PART_OF_WAIT * retry_after)
        if both.burst == 1 or both._taken_in_a_second(now) < MUCH * at_first:
            return None
        both.apart, both._changed = max(self.apart, other.apart), max(self._changed, other._changed)
        both._cost, both._held_until = max(self._cost, other._cost), max(self._held_until, other._held_until)
        return both

    def is_news(self, begun: float) -> bool:
        """Whether the refusal of a call that began at that time says anything new: calls have begun since the last."""
        return begun > self._changed and len(self._begun) > 0

    def refused(self, begun: float, now: float, retry_after: float, *, alone: bool) -> None:
        """A call that began at `begun` was refused. `alone`: although it was alone, or nearly."""
        first = self._changed == -math.inf
        if (
            not self.is_news(begun) and not first and (self.apart or not alone)
        ):  # nothing has begun since that would say more
            return
        taken = 0.0 if first else self._taken_in_a_second(begun)
        if taken:
            self.apart = max(1.0 / taken, self.apart * A_LITTLE)
        elif self.apart:
            self.apart *= SLOWER if self._answered else 1.0
        elif alone or not first:
            self.apart = PART_OF_WAIT * retry_after / self.burst
        self.apart, self._cost = min(self.apart, LONGEST), retry_after
        self._next = begun + self.apart
        self._changed, self._answered = now, False
        self._begun.clear()
        self._held_until = now + (1.0 + HOLD) * retry_after

    def _taken_in_a_second(self, now: float) -> float:
        """Calls that the provider takes in a second, if it has taken enough to tell; 0.0: it has not.

        In any time that ends now it took at most what it had saved, which is a burst, and what it takes in that time.
        So it takes at least the most that this makes of any such time.
        """
        counted = enumerate(reversed([begun for begun in self._begun if begun < now]), 1)
        least = 2 * self.burst + LEAST_TAKEN
        return max(((n - self.burst + 1) / (now - at) for n, at in counted if n >= least), default=0.0)
