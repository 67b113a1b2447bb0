"""How far apart calls begin at a provider that limits how many it takes in a time, learnt from its refusals.

A weighted up-down rule, as staircases of psychophysics and congestion control have: every refusal keeps calls further
apart, every reply brings them a little closer, and the two steps balance where the wanted share of calls is refused.

Nothing here reads a clock, as in `limits`.
"""

from __future__ import annotations

import math

from attrs import define, field

__all__ = ["Spacing"]

PART_OF_WAIT = 0.2
"""Seconds between two calls, as a part of `Retry-After`, for each call that was taken when the first were refused:
waits are given in whole seconds and rounded up generously, so five calls in one of them are a cautious first guess."""
STEP = 0.1
"""Least part by which a refusal keeps calls further apart; the first one doubles, the n-th adds 1/n, as in stochastic
approximation, so that a first guess that is wrong is left quickly and what is known is not."""
SHARE = 0.1
"""Calls that are refused at most where the rule is in balance, a third of what may be wasted,"""
AT_ONCE = 0.5
"""and refusals in the time of one `Retry-After`: so many calls wait on average, and hold up what needs them."""
IN_VAIN = 2
"""Such refusals that say that nothing is taken for now: a call may come too soon by chance, two that are twice as far
apart hardly do."""
LONGEST = 60.0
"""Seconds between two calls at most."""


@define(eq=False)
class Spacing:
    """`apart` is 0.0 as long as nothing was refused."""

    apart: float = field(default=0.0, init=False)
    """Seconds between the beginnings of two calls."""
    nothing_taken: bool = field(default=False, init=False)
    """Whether the calls that began after a refusal were refused as well, all of them."""
    _next: float = field(default=-math.inf, init=False)
    _first: float = field(default=math.inf, init=False)
    """When the first call began."""
    _taken: int = field(default=0, init=False)
    """Calls that were answered before anything was refused; of the first round with refusals, the others."""
    _open: int = field(default=0, init=False)
    """Calls that began after the last change and are under way."""
    _answered: int = field(default=0, init=False)
    """Such calls that were answered."""
    _changed: float = field(default=-math.inf, init=False)
    """When a refusal changed something."""
    _in_vain: int = field(default=0, init=False)
    """Refusals in a row, each of a call that began after the one before, with nothing taken in between."""
    _before: float = field(default=0.0, init=False)
    """`apart` before the first of them."""
    _step: float = field(default=1.0, init=False)
    """Part by which the last refusal kept calls further apart."""
    _first_round: bool = field(default=True, init=False)
    """Whether what is known are the first refusals, of calls that began together."""
    _refused_at: float = field(default=-math.inf, init=False)
    """When the first call was."""
    _alone_until: float = field(default=-math.inf, init=False)
    """When the latest `Retry-After` ends."""
    _cost: float = field(default=0.0, init=False)
    """Seconds of the last `Retry-After`."""

    def wait(self, now: float) -> float:
        """Seconds until the next call may begin."""
        return max(self._next - now, 0.0)

    def begun(self, now: float) -> None:
        self._open += 1
        self._first = min(self._first, now)
        if self.apart:
            self._next = max(now, self._next) + self.apart

    def not_begun(self) -> None:
        """What `begun` counted did not happen."""
        self._open = max(self._open - 1, 0)
        self._next -= self.apart

    def over(self, begun: float) -> None:
        """A call that began at `begun` is over, whatever came of it."""
        if self.is_news(begun):
            self._open = max(self._open - 1, 0)

    def answered(self, begun: float) -> None:
        """A reply came to a call that began at `begun`."""
        if not self.apart:
            self._taken += 1
        elif self.is_news(begun):
            self._answered, self.nothing_taken = self._answered + 1, False
            share = SHARE if self._step > STEP else min(SHARE, AT_ONCE * self.apart / self._cost)
            self.apart /= 1.0 + self._step * share

    def joined(self, other: Spacing, now: float) -> Spacing:
        """This one, for the calls of a model too that nothing was learnt of but how often it was answered."""
        if other._is_counted(now):
            self.apart = 1.0 / (1.0 / self.apart + other._taken / (now - other._first))
        self._changed, self._answered, self._open = now, 0, 0
        return self

    def is_news(self, begun: float) -> bool:
        """Whether the refusal of a call that began at that time says anything that was not known."""
        return begun > self._changed

    def _is_counted(self, now: float) -> bool:
        return self._taken > 0 and now - self._first > self._cost / 2

    @property
    def is_new(self) -> bool:
        """Whether no call has begun."""
        return self._first == math.inf

    def refused(self, begun: float, now: float, retry_after: float, under_way: int) -> None:
        """A call that began at `begun`, one of so many under way, was refused."""
        self._cost, self._alone_until = retry_after, max(self._alone_until, now + retry_after)
        if not self.apart:
            self._guess(now, under_way)
        elif self.is_news(begun):
            self._in_vain = 0 if self._answered or self._open else self._in_vain + 1
            self.nothing_taken = self._in_vain >= IN_VAIN
            self._step = max(STEP, 1.0 / (1.0 + self._answered + self._open))
            self._first_round = False
            self._before = self.apart if self._in_vain <= 1 else self._before
            self.apart *= 1.0 + self._step
            if self.nothing_taken:  # which says nothing about the pace
                self.apart, self._step = self._before, STEP
        elif self._first_round and begun <= self._refused_at and not self._answered:  # one more of the first round
            self._taken = max(self._taken - 1, 1)
            self.apart = PART_OF_WAIT * retry_after / self._taken
            self._next = self._changed + self.apart
            return
        else:
            return
        self.apart = min(self.apart, LONGEST)
        self._next = now + self.apart if self._first_round else begun + self.apart
        if self.nothing_taken:
            self._next = self._alone_until
        self._changed, self._answered, self._open = now, 0, 0

    def _guess(self, now: float, under_way: int) -> None:
        """Of a provider that has answered for a while, what it has taken; else what it seems to take at once."""
        self._refused_at = now
        if self._is_counted(now):
            self.apart = (1.0 + STEP) * (now - self._first) / self._taken
            self._step, self._first_round = STEP, False
        else:
            self._taken = max(under_way - 1, 1)
            self.apart = PART_OF_WAIT * self._cost / self._taken
