"""How fast, and how many at once: token buckets, and a number of calls that finds its own level.

Nothing here reads a clock: every method is given the time, in seconds of a clock that never goes backwards. Where it
does, no time has passed.
"""

from __future__ import annotations

import math

from attrs import define, field

from .spacing import Spacing

MINUTE = 60.0
BURST = 240
"""A bucket holds a quarter of a second's worth, so that a timer that fires late loses nothing."""
DUST = 1e-9
MOST_AT_FIRST = 128
"""Calls under way at the same time before anything is known about the provider."""
CUT = 0.7
STAY_BELOW = 0.94
"""Part of what was too much up to which the limit grows quickly again."""
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
"""Seconds of a `Retry-After` from which on calls are kept apart rather than counted."""
SLACK = 1.5
"""Replies take now more, now less time; where a rate is kept, so many times the limit may be under way."""
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

    A `Retry-After` belongs to the call that was refused, which waits itself. The others begin as far apart as `Spacing`
    says, and not before the latest `Retry-After` only where nothing else is taken either.
    """

    cap: int | None = None
    spacing: Spacing = field(factory=Spacing)
    limit: float = field(init=False)
    paused_until: float = field(default=-math.inf, init=False)
    refusing_since: float = field(default=math.inf, init=False)
    """When the provider began to refuse everything; infinite: it does not."""
    _eager_to: float = field(default=math.inf, init=False)
    """Below this limit, every reply adds a whole call."""
    _cut_at: float = field(default=-math.inf, init=False)
    _round: int = field(default=0, init=False)
    """Calls that were under way when the limit was cut."""
    _refused: int = field(default=0, init=False)
    fruitless: int = field(default=0, init=False)
    """Rounds in a row of which nothing came back but refusals."""
    _latency: float = field(default=0.0, init=False)
    _replies: int = field(default=0, init=False)
    _next: float = field(default=-math.inf, init=False)
    _alone_until: float = field(default=-math.inf, init=False)
    """When the latest `Retry-After` ends."""

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

    def _gap(self) -> float:
        """Seconds between the beginnings of two calls."""
        return 0.0 if self.spacing.apart else min(self._latency / self.limit, LONGEST_GAP)

    def answered(self, now: float, begun: float, under_way: int) -> None:
        """A reply came to a call that began at `begun`, one of so many under way."""
        took = now - begun
        self._replies += 1
        self._latency += (took - self._latency) / min(self._replies, max(LEAST_REPLIES, ROUNDS * self.limit))
        if begun >= self.refusing_since:
            self.fruitless, self.refusing_since = 0, math.inf
        self.spacing.answered(now, begun)
        if begun < self._cut_at:
            return
        if 2 * under_way >= self.limit:
            calm = now - self._cut_at > CALM * self._latency
            step = 1.0 if self.limit < self._eager_to else max(2.0 / self.limit, FASTER if calm else 0.0)
            self.limit = min(self.limit + step, self.cap or math.inf)

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
        wait = retry_after or 0.0
        self._alone_until = max(self._alone_until, now + wait)
        spaced = wait >= LASTING
        if spaced:
            self.spacing.refused(begun, now, wait, under_way)
        cut = self._cut(now, begun, under_way, pause, spaced=spaced)
        if not spaced or self.spacing.nothing_taken:
            self.pause(self._alone_until)
        return cut

    def _cut(self, now: float, begun: float, under_way: int, pause: tuple[float, float], *, spaced: bool) -> bool:
        if begun <= self._cut_at:  # of the round that is known to have been too large
            self._refused += 1
            if not spaced:
                self._take_in(self._round - self._refused)
            return False
        if now - self._cut_at < CUT_EVERY and not spaced:
            return False
        self.fruitless = self.fruitless + 1 if self.spacing.nothing_taken or not spaced else 0
        self.refusing_since = min(self.refusing_since, now)
        self._cut_at = now
        if spaced:
            return True
        self._round, self._refused = under_way, 1
        self._eager_to = max(1.0, min(self.limit, under_way + 1.0) * STAY_BELOW)
        self.limit = max(1.0, self.limit * CUT)
        first, longest = pause
        self.pause(now + min(first * 2.0 ** min(self.fruitless - 1, 10), longest))
        self._take_in(under_way - 1)
        return True

    def pause(self, until: float) -> None:
        """Nothing begins before this time."""
        self.paused_until = max(self.paused_until, until)

    def _take_in(self, taken: int) -> None:
        """Of the last round the provider took so many at most."""
        if taken < self.limit:
            self.limit = max(1.0, float(taken))

    def _whole(self) -> int:
        if not self.spacing.apart:
            return math.floor(self.limit + DUST) if self._cut_at == -math.inf else math.ceil(self.limit - DUST)
        most = math.ceil(SLACK * max(self.limit, self._latency / self.spacing.apart))
        return most if self.cap is None else min(most, self.cap)
