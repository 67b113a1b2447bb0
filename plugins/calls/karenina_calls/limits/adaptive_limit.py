"""How fast, and how many at once: token buckets, a number of calls that finds its own level, and a pace that does.

Nothing here reads a clock: every method is given the time, in seconds of a clock that never goes backwards. Where it
does, no time has passed.
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
    """How far apart calls begin at a provider that limits how many it takes in a time, learnt from its refusals.

    A search in steps that become smaller, as in stochastic approximation: a refusal keeps calls further apart, replies
    in a row bring them closer, and each time that the direction changes from faster to slower the step is halved.
    `apart` is 0.0 as long as nothing was refused.
    """

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


MINUTE = 60.0
BURST = 240
"""A bucket holds a quarter of a second's worth, so that a timer that fires late loses nothing."""
DUST = 1e-9  # below what sums of floats are rounded to
MOST_AT_FIRST = 128
"""Calls under way at the same time before anything is known about the provider."""
CUT = 0.7  # with CUT_EVERY: 6.8 s for a simulated load of 6.4 s, where fixed limits took 8.7 s and more
STAY_BELOW = 0.94
"""Part of what was too much up to which the limit grows quickly again."""
PAUSE = (0.1, 5.0)
"""Seconds without new calls after a refusal that does not say how long to wait, and what they grow to, as long as
nothing but refusals comes back."""
PAUSE_OF_FAILING = (0.5, 2.0)
"""The same, where the provider fails rather than refuses: it takes longer to come back, and then takes everything."""
CUT_EVERY = 0.25  # seconds: refusals of calls that were under way together are one
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
