"""How fast, and how many at once: token buckets, and a number of calls that finds its own level.

Nothing here reads a clock: every method is given the time, in seconds of a clock that never goes backwards. Where it
does, no time has passed.
"""

from __future__ import annotations

import math

from attrs import define, field

from .spacing import HOLD as LONG_ENOUGH
from .spacing import PART_OF_WAIT, Spacing

__all__ = ["MOST_AT_FIRST", "PAUSE", "PAUSE_OF_FAILING", "Adaptive", "Bucket"]

MINUTE = 60.0
BURST = 240
"""A bucket holds a quarter of a second's worth, so that a timer that fires late loses nothing."""
DUST = 1e-9
MOST_AT_FIRST = 128
"""Calls under way at the same time before anything is known about the provider."""
CUT = 0.7
PAUSE = (0.1, 5.0)
"""Seconds without new calls after a refusal that does not say how long to wait, and what they grow to, as long as
nothing but refusals comes back."""
PAUSE_OF_FAILING = (0.5, 2.0)
"""The same, where the provider fails rather than refuses: it takes longer to come back, and then takes everything."""
CUT_EVERY = 0.25
LONGEST_GAP = 1.0
"""Seconds between the beginnings of two calls, unless a rate is kept."""
CALM = 3.0
"""After so many rounds without a refusal the limit grows faster:"""
FASTER = 0.25
"""calls for each reply."""
LASTING = 0.25
"""Seconds of a `Retry-After` from which on another refusal costs more than a little speed."""
HOLD, LONGEST_HOLD = 8.0, 64.0
"""So many times as long as it costs, another refusal is not risked; twice as long each time that it is confirmed."""
SOON = 0.9
CUT_HELD = 0.85
STAY_BELOW = 0.94
"""Part of what was too much that is held meanwhile."""
CHANGED = 1.25
"""Where so many times of what was too much are taken, the provider is another than it was."""
CAREFULLY = 0.02
"""Growth of the limit in the time that another refusal would cost."""
SWIFTLY = 0.5
"""Growth of the limit in a second, or in four rounds, towards a level that nobody knows."""
SLACK = 1.5
"""Replies take now more, now less time; where the rate is kept, so many times the limit may be under way."""
LEAST_REPLIES, ROUNDS = 20, 4
"""Replies whose mean says how long a call takes: that many, or those of so many rounds."""


@define(eq=False)
class Bucket:
    """Gives `rate` units a second, and never more than `capacity + rate * seconds` in any time.

    What is larger than the bucket is given when it is full, and leaves a debt.
    """

    rate: float
    capacity: float
    _level: float = field(init=False)
    _at: float = field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._level = self.capacity

    @classmethod
    def per_minute(cls, units: float) -> Bucket:
        """No minute, wherever it begins, sees more than that many units taken (one of several at once ends it)."""
        capacity = max(1.0, units / BURST)
        return cls((units - capacity + 1.0) / MINUTE, capacity)

    def wait(self, amount: float, now: float) -> float:
        """Seconds until so much may be taken; 0.0: now."""
        missing = min(amount, self.capacity) - self._filled(now)
        return missing / self.rate if missing > DUST else 0.0

    def take(self, amount: float, now: float) -> None:
        """Take it, even where that leaves a debt."""
        self._level = self._filled(now) - amount

    def give_back(self, amount: float, now: float) -> None:
        """What was taken too much; less than nothing: what was taken too little."""
        self._level = min(self.capacity, self._filled(now) + amount)

    def tighten(self, other: Bucket) -> Bucket:
        """The slower of two, with what this one still holds."""
        if other.rate >= self.rate:
            return self
        other._level, other._at = min(self._level, other.capacity), self._at
        return other

    def _filled(self, now: float) -> float:
        if now > self._at:
            passed = now - self._at if self._at > -math.inf else 0.0
            self._level = min(self.capacity, self._level + passed * self.rate)
            self._at = now
        return self._level


@define(eq=False)
class Adaptive:
    """How many calls of one model may be under way: more as long as the provider takes them, fewer when it refuses.

    It begins with `cap`, at most `MOST_AT_FIRST`, and doubles with every round of replies until the first refusal (a
    rate limit, or a server that says it is overloaded). Then every reply adds 2/limit. A refusal leaves 0.7 of the
    limit and no more than the provider took of the round in which it came, at most every 250 ms, and nothing begins for
    100 ms; from then on calls begin evenly, as many as the limit in the time that one takes. After several rounds of
    nothing but refusals a single call tries, and pauses grow to 5 s. What fails whatever it is asked is treated alike,
    with pauses of 500 ms that grow to 2 s.

    A `Retry-After` holds for all calls and is never undercut. Where it is long, another refusal would be expensive: the
    rate stays a little below what was too much for 8 times as long, and twice as long each time that it is confirmed,
    before the limit grows little by little. A provider that refuses a single call, or again soon after the wait, limits
    how many it takes in a time: then calls begin as far apart as `Spacing` says.
    """

    cap: int | None = None
    spacing: Spacing = field(factory=Spacing)
    limit: float = field(init=False)
    paused_until: float = field(default=-math.inf, init=False)
    refusing_since: float = field(default=math.inf, init=False)
    """When the provider began to refuse everything; infinite: it does not."""
    _eager_to: float = field(default=math.inf, init=False)
    """Below this limit, every reply adds a whole call."""
    _ceiling: float = field(default=math.inf, init=False)
    _known: float = field(default=0.0, init=False)
    """What was too much time and again, before the provider was another than it was; 0.0: nothing."""
    _patience: float = field(default=HOLD, init=False)
    _held_until: float = field(default=-math.inf, init=False)
    _cost: float = field(default=0.0, init=False)
    """Seconds of the last long `Retry-After`, until the provider is another than it was."""
    _cut_at: float = field(default=-math.inf, init=False)
    _round: int = field(default=0, init=False)
    """Calls that were under way when the limit was cut."""
    _refused: int = field(default=0, init=False)
    _fresh: bool = field(default=False, init=False)
    """Whether that was the first refusal at all."""
    fruitless: int = field(default=0, init=False)
    """Rounds in a row of which nothing came back but refusals."""
    _latency: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)
    _next: float = field(default=-math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self.limit = float(min(self.cap or MOST_AT_FIRST, MOST_AT_FIRST))

    def tighten(self, cap: int) -> None:
        """Never more than `cap` from now on."""
        self.cap = cap if self.cap is None else min(cap, self.cap)
        self.limit = min(self.limit, float(self.cap))

    def wait(self, under_way: int, now: float) -> float:
        """Seconds until another call may begin, infinite: not before one has ended."""
        pause = max(self.paused_until - now, 0.0)
        if under_way >= (1 if self.fruitless > 1 else self._whole()):
            return math.inf
        return max(pause, self._next - now, self.spacing.wait(now))

    def begun(self, now: float) -> None:
        self.spacing.begun(now)
        if self._cut_at > -math.inf and self.fruitless <= 1:
            self._next = max(now, self._next) + self._gap()

    def not_begun(self) -> None:
        """What `begun` counted did not happen."""
        self.spacing.not_begun()
        self._next -= self._gap() if self._next > -math.inf else 0.0

    def _calm(self, now: float) -> bool:
        return now - self._cut_at > CALM * self._latency

    def _gap(self) -> float:
        """Seconds between the beginnings of two calls."""
        if self.spacing.apart:
            return 0.0
        gap = self._latency / self.limit
        return gap if self._cost else min(gap, LONGEST_GAP)

    def answered(self, now: float, begun: float, under_way: int) -> None:
        """A reply came to a call that began at `begun`, one of so many under way."""
        took = now - begun
        self._replies += 1
        self._latency += (took - self._latency) / min(self._replies, max(LEAST_REPLIES, ROUNDS * self.limit))
        if begun >= self.refusing_since:
            self.fruitless, self.refusing_since = 0, math.inf
        if begun < self._cut_at:
            return
        self.spacing.answered(now, begun)
        if 2 * under_way >= self.limit and not self.spacing.apart and not self._quick_enough(now):
            self._grow(now)

    def _quick_enough(self, now: float) -> bool:
        """Whether the provider is asked so much more often than it said that trying out more can wait."""
        often = self.spacing.burst * self._latency < PART_OF_WAIT * self._cost * self.limit
        return often and self._ceiling == math.inf and now - self._cut_at < (1.0 + LONG_ENOUGH) * self._cost

    def _grow(self, now: float) -> None:
        if now < self._held_until:
            limit = min(self.limit + 2.0 / self.limit, max(self.limit, STAY_BELOW * self._ceiling))
        elif self._ceiling < math.inf and self.limit < CHANGED * self._ceiling:
            # Little by little: being wrong is expensive.
            faster = 1.0 + (now - self._held_until) / self._cost
            limit = self.limit + CAREFULLY * faster * self._latency / self._cost
        elif self.limit < STAY_BELOW * self._known:  # it is what it was before
            self._ceiling, self._known = self._known, 0.0
            self._held_until = now + HOLD * self._cost
            limit = self.limit
        elif self._ceiling < math.inf and now - self._cut_at < LONGEST_HOLD * self._cost:  # nobody knows how much more
            limit = self.limit + SWIFTLY * self._latency / max(1.0, ROUNDS * self._latency)
        else:
            self._cost, self._ceiling, self._known = 0.0, math.inf, 0.0
            step = max(2.0 / self.limit, FASTER if self._calm(now) else 0.0)
            limit = self.limit + (1.0 if self.limit < self._eager_to else step)
        self.limit = min(limit, self.cap or math.inf)

    def refused(
        self,
        now: float,
        begun: float,
        under_way: int,
        retry_after: float | None = None,
        pause: tuple[float, float] = PAUSE,
    ) -> bool:
        """The provider took no call that began at `begun`, one of so many under way. Returns whether that cut the
        limit. `pause`: seconds without new calls, twice as many for every further round of refusals, and the most."""
        lasting, resumed = retry_after or 0.0, self.paused_until
        self.pause(now + lasting)
        cut = self._cut(now, begun, under_way, lasting, resumed, pause)
        if lasting >= LASTING:
            self.spacing.refused(begun, now, lasting, alone=self.limit == 1.0 and not self.spacing.shared)
        return cut

    def _cut(
        self, now: float, begun: float, under_way: int, lasting: float, resumed: float, pause: tuple[float, float]
    ) -> bool:
        if begun <= self._cut_at:  # of the round that is known to have been too large
            self._refused += 1
            self._take_in(self._round - self._refused)
            return False
        if now - self._cut_at < CUT_EVERY:
            return False
        self.fruitless += 1
        self.refusing_since = min(self.refusing_since, now)
        self._round, self._refused = under_way, 1
        self._fresh = self._cut_at == -math.inf and lasting >= LASTING
        spaced = self.spacing.apart > 0.0
        much = min(self.limit, under_way + 1.0)
        self._eager_to = max(1.0, much * STAY_BELOW)
        if spaced:
            self._cost = lasting
        elif lasting >= LASTING:
            self._hold(now, lasting, resumed, much)
        else:
            self.limit, self._ceiling = max(1.0, self.limit * CUT), math.inf
        self._cut_at = now
        first, longest = pause
        self.pause(now + min(first * 2.0 ** min(self.fruitless - 1, 10), longest))
        if not spaced:
            self._take_in(under_way - 1)
        return True

    def _hold(self, now: float, lasting: float, resumed: float, much: float) -> None:
        """Stay below what was just too much, for longer each time that it is what was too much before."""
        soon = now - resumed < 2.0 * lasting
        if now >= self._held_until:
            confirmed = STAY_BELOW <= much / self._ceiling < CHANGED  # hardly more than what went well
            self._patience = min(2.0 * self._patience, LONGEST_HOLD) if confirmed else HOLD
            if confirmed:
                self._known = self._ceiling
                much, soon = self._ceiling + (much - self._ceiling) / 4.0, False
        self._cost = lasting
        self._held_until = now + (1.0 + self._patience) * lasting
        self._ceiling = much * (SOON if soon else 1.0)
        self.limit = max(1.0, self._ceiling * CUT_HELD)

    def pause(self, until: float) -> None:
        """Nothing begins before this time."""
        self.paused_until = max(self.paused_until, until)

    def _take_in(self, taken: int) -> None:
        """Of the last round the provider took so many at most."""
        if taken < self.limit:
            self.limit = max(1.0, float(taken))
        if self._fresh and self._cost:
            self._ceiling = min(self._ceiling, self.limit)
            if not self.spacing.shared:
                self.spacing.burst = max(1, taken)
        if 2 * taken < self._round:  # they came at once, or into a storm: that says nothing about more than this round
            self._ceiling, self._held_until = math.inf, -math.inf

    def _whole(self) -> int:
        if self._cut_at == -math.inf:
            return math.floor(self.limit + DUST)
        limit = max(self.limit, self._latency / self.spacing.apart) if self.spacing.apart else self.limit
        most = math.ceil(limit * (SLACK if self._cost else 1.0) - DUST)
        return most if self.cap is None else min(most, self.cap)
