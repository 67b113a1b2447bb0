"""How far apart calls begin at a provider that limits how many it takes in a time, learnt from its refusals.

A search in steps that become smaller, as in stochastic approximation: a refusal keeps calls further apart, replies in a
row bring them closer, and each time that the direction changes from faster to slower the step is halved.

Nothing here reads a clock, as in `limits`.
"""

from __future__ import annotations

import math

from attrs import define, field

PART_OF_WAIT = 0.2
"""Seconds between two calls at first, as a part of `Retry-After`, for each call that was taken at once: waits are given
in whole seconds and rounded up generously. From there the search takes a step or two to 1 to 10 calls in that time."""
FINEST, COARSEST = 0.06, 1.0
"""Steps, as parts of the distance between calls. The finest loses 3 % of the rate on average."""
FINE = 0.2
"""A smaller step wins less than what a refusal may cost, which is a `Retry-After` for one call. So no refusal is risked
for a time of"""
REST = 8.0
"""Retry-Afters. Both were tried out with the rows of plugins/runs/tests/test_gateway_rates.py, over 8 to 20 seeds: 0.13
and 4 lose up to a fifth where waits are long, 0.26 a tenth where they are short."""
REPEATED = 1.5
"""How much larger a step towards slower becomes than the one before, if that was one as well: three of them undo the
halving of two, for a provider that has become slower."""
IN_VAIN = 4
"""Refusals in a row, with waits that double between them, that say that nothing is taken for now: the last comes 15
times as late as the first."""
LONGEST = 60.0
"""Seconds between two calls at most."""


@define(eq=False)
class Spacing:
    """`apart` is 0.0 as long as nothing was refused."""

    apart: float = field(default=0.0, init=False)
    """Seconds between the beginnings of two calls."""
    taken_at_once: int = field(default=0, init=False)
    """Calls that were taken before and when the first was refused."""
    _next: float = field(default=-math.inf, init=False)
    _first: float = field(default=math.inf, init=False)
    """When the first call began."""
    _changed: float = field(default=-math.inf, init=False)
    """When `apart` did, or could have."""
    _open: int = field(default=0, init=False)
    """Calls that began since then and are under way."""
    _answered: int = field(default=0, init=False)
    """Replies to calls that began since then, none of them later than it might have,"""
    _late: float = field(default=-math.inf, init=False)
    """as the one that began at this time."""
    _taken: bool = field(default=False, init=False)
    """Whether any call that began since the last refusal was answered."""
    _in_vain: int = field(default=0, init=False)
    """Refusals in a row, each of a call that began after the one before, with nothing taken in between."""
    _step: float = field(default=COARSEST, init=False)
    _slower: bool = field(default=False, init=False)
    """Whether the last step was one towards slower."""
    _searching: bool = field(default=True, init=False)
    """Whether the pace was not yet once too slow and once too fast."""
    _refused: float = field(default=-math.inf, init=False)
    """When the last refusal came."""
    _until: float = field(default=math.inf, init=False)
    """When the `Retry-After` ends of the first refusal since a call was taken."""
    _rest: float = field(default=0.0, init=False)

    def wait(self, now: float) -> float:
        """Seconds until the next call may begin."""
        return max(self._next - now, 0.0)

    def begun(self, now: float) -> None:
        self._open += 1
        self._first = min(self._first, now)
        if self.apart:
            if now > self._next + self.apart:
                self._late = now
            self._next = max(now, self._next) + self.apart

    def not_begun(self) -> None:
        """What `begun` counted did not happen."""
        self._open = max(self._open - 1, 0)
        self._next -= self.apart

    def over(self, begun: float) -> None:
        """A call that began at `begun` is over, whatever came of it."""
        if begun > self._changed:
            self._open = max(self._open - 1, 0)

    def answered(self, now: float, begun: float) -> None:
        """A reply came to a call that began at `begun`. As many in a row as an empty bucket would not have given at
        this pace, if it were a step too fast, are the reason for a step towards faster."""
        if not self.apart:
            self.taken_at_once += 1
        elif begun > self._changed:
            self._taken, self._in_vain = True, 0
            self._answered += begun > self._late
            rest = self._rest if self._step < FINE else 0.0
            if self._answered * self._step >= 1.0 and begun - self._refused >= rest:
                if self._slower:
                    self._step = max(FINEST, self._step / 2)
                self._slower, before = False, self.apart
                self.apart /= 1.0 + self._step
                self._next -= before - self.apart
                self._changed, self._answered, self._open = now, 0, 0

    @property
    def nothing_taken(self) -> bool:
        """Whether the calls that began after a refusal were refused as well, all of them."""
        return self._in_vain >= IN_VAIN

    def refused(self, begun: float, now: float, retry_after: float, under_way: int) -> None:
        """A call that began at `begun`, one of so many under way, was refused."""
        if not self.apart:
            self._guess(now, retry_after, under_way - 1)
        elif begun > self._changed:
            self._slow_down(begun, now, retry_after)
        elif self._searching and begun <= self._refused and not self._taken:  # began together with the first
            self._guess(self._refused, retry_after, -1)
            return
        else:
            return
        self._changed = self._refused = now
        self._answered, self._open, self._taken = 0, 0, False

    def _guess(self, now: float, retry_after: float, taken: int) -> None:
        """The first pace, where so many calls more than are known were taken: what the provider has taken so far, or
        what it seems to take at once."""
        self.taken_at_once = max(self.taken_at_once + taken, 1)
        known, cautious = now - self._first, PART_OF_WAIT * retry_after
        self.apart = min(max(known, cautious) / self.taken_at_once, LONGEST)
        if known > cautious:
            self._step, self._searching = COARSEST / 2, False
        self._next, self._until, self._rest = now + self.apart, now + retry_after, REST * retry_after

    def _slow_down(self, begun: float, now: float, retry_after: float) -> None:
        """Keep calls further apart, where some were taken since the last refusal. Else that says nothing about the
        pace, but while it is searched for; waits double, and end with the `Retry-After`."""
        if self._taken or self._open:
            self._step = min(COARSEST, self._step * REPEATED) if self._slower else max(FINEST, self._step / 2)
            self._slower, self._searching, self._in_vain = True, False, 0
            self.apart *= 1.0 + self._step
            self._until = now + retry_after
        else:
            self._in_vain += 1
            if now >= self._until:  # also after the wait that was asked for
                self._until = now + retry_after
            if self._searching:
                self.apart = min(2.0 * self.apart, retry_after / self.taken_at_once)
        self.apart, self._rest = min(self.apart, LONGEST), REST * retry_after
        longer = 1.0 if self._searching else 2.0**self._in_vain
        self._next = min(begun + longer * self._step * self.apart, self._until)
