"""The way to one model: its queue, its limits, and what its calls took so far."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from attrs import define, evolve, field, frozen

from karenina_core.errors import ConfigError, ErrorKind, PortError
from karenina_core.values.config import ModelConfig, Secret
from karenina_core.values.identity import ModelIdentity

from ..ports.retry import Attempts
from ..ports.stored_calls import CallFacts
from ..tools.tool_servers import shown_address
from .adaptive_limit import PAUSE, PAUSE_OF_FAILING, Adaptive, Bucket
from .budget import Estimate, Experience
from .failures import FAILURES, Opening, Storm, Timeouts

OVERLOADED = (503, 529)
"""HTTP statuses of servers that would serve the same call later."""
OFTEN = 10
"""Rounds of nothing but refusals after which a provider may be given up that no call has waited for that long."""
MOST_MOMENTS = 200  # chosen: a plot shows no more
LONG_PAUSE = (
    "{} asks for a pause of {:.0f} s{}, longer than retry_max_elapsed_seconds = {:g} s: it gets no more calls. "
    "Resume the run after that time, or raise that setting"
)
LONG_PAUSE_OF_BATCHES = (
    "{} asks for a pause of {:.0f} s{}, longer than a batch waits ({:g} s): it gets no more calls. Resume the run "
    "after that time"
)
NOTHING_TAKEN = (
    "{} has refused every call for {:.0f} s, and retry_max_elapsed_seconds = {:g} s: it gets no more calls. Check "
    "the limits and the credit of your account, and resume the run later"
)
NOTHING_ANSWERED = (
    "{} has failed every call for {:.0f} s, and retry_max_elapsed_seconds = {:g} s: it gets no more calls. Check "
    "that it runs, and resume the run later"
)


@frozen
class LaneKey:
    """What calls have in common that the provider counts together."""

    interface: str
    provider: str | None
    address: str | None
    key: Secret | None
    model_name: str

    @classmethod
    def of(cls, model: ModelConfig) -> LaneKey:
        try:
            key = model.api_key()
        except ConfigError:  # the call itself says so, if it needs the key
            key = None
        secret = None if key is None else Secret(key)
        return cls(model.interface, model.model_provider, model.endpoint_base_url, secret, model.name)

    def is_near(self, other: LaneKey) -> bool:
        """Whether it is the same but for the model."""
        return evolve(self, model_name=other.model_name) == other

    @property
    def identity(self) -> str:
        """The model as ledgers name it."""
        return str(ModelIdentity(self.interface, self.model_name, self.provider))

    def __str__(self) -> str:
        """For people: without the key."""
        where = f" at {shown_address(self.address)}" if self.address else ""
        return f"{self.identity}{where}"


@frozen
class Moment:
    """A time at which a limit was something else than before."""

    at: float
    limit: float
    why: str
    """`start`, `grown`, `rate_limited`, `overloaded`, `failing` or `timed_out`."""


GROWING = ("start", "grown")
"""Reasons of moments that are no refusals."""


@define(eq=False)
class History:
    """How a limit went, in fewer than `MOST_MOMENTS` points: before there are more, every second one is left out."""

    moments: list[Moment] = field(factory=list)

    def add(self, at: float, limit: float, why: str) -> None:
        self.moments.append(Moment(at, limit, why))
        if len(self.moments) >= MOST_MOMENTS:
            del self.moments[1:-1:2]


@define(eq=False)
class Waiter:
    """A call that waits for its turn."""

    task: str
    model: ModelConfig
    size: int
    """Tokens that it sends, as they are estimated."""
    inside: bool
    """Whether it is made by work that has a place already. It takes none itself: it would wait for its own work."""
    number: int
    """Its place in the order of arrival."""
    since: float
    call: Attempts = field(factory=lambda: Attempts(count=1))
    """The attempts at it, with this one."""
    turn: asyncio.Future[Any] = field(init=False)
    """A place, or a PortError; of a call that does have to wait."""

    @property
    def rank(self) -> tuple[bool, int]:
        """Who comes first: work under way that waits for the call, then by arrival."""
        return not self.inside, self.number


@frozen
class Taken:
    """What a call under way has taken."""

    task: str
    model: ModelConfig
    estimate: Estimate
    begun: float
    inside: bool
    call: Attempts = field(factory=lambda: Attempts(count=1), eq=False, repr=False)


@frozen
class Closed:
    """Nothing is asked of a model any more, until the run is resumed."""

    why: str
    kind: ErrorKind
    never_answered: bool = False


@define(eq=False)
class LaneState:
    """What all configurations that reach the same model in the same way share, whoever asks."""

    name: str
    adaptive: Adaptive = field(factory=Adaptive)
    requests: Bucket | None = None
    tokens: Bucket | None = None
    waiting: deque[Waiter] = field(factory=deque)
    under_way: int = 0
    experience: Experience = field(factory=Experience)
    history: History = field(factory=History)
    storm: Storm = field(factory=Storm)
    closed: Closed | None = None
    key: LaneKey | None = None
    timeouts: Timeouts = field(factory=Timeouts)
    opening: Opening = field(factory=Opening)
    _alone_until: float = -math.inf
    """When it may be asked again, by its `Retry-After`."""
    _answered_at: float = -math.inf
    """When the last reply came."""
    _refused_at: float = -math.inf
    """When the last refusal did. Time without a call afterwards says nothing about the provider."""

    def share_limit(self, others: Iterable[LaneState]) -> None:
        """A call was refused. A model that is refused for the first time, before it was given as many calls as another
        one of the same address and key at first, shares that one's limit and its `Spacing`; else it has its own."""
        own = self.adaptive.spacing
        if self.key is None or own.apart:
            return
        for other in others:
            if other is not self and other.key is not None and other.key.is_near(self.key):
                found = other.adaptive.spacing
                if found.apart and own.taken_at_once < found.taken_at_once:
                    self.adaptive.spacing = found
                    return

    def restrict(self, model: ModelConfig, cap: int | None) -> None:
        """Another configuration of this model: of two limits the lower one counts."""
        if cap is not None:
            self.adaptive.tighten(cap)
        if model.requests_per_minute is not None:
            bucket = Bucket.per_minute(model.requests_per_minute)
            self.requests = self.requests.tighten(bucket) if self.requests else bucket
        if model.tokens_per_minute is not None:
            bucket = Bucket.per_minute(model.tokens_per_minute)
            self.tokens = self.tokens.tighten(bucket) if self.tokens else bucket

    def join(self, waiter: Waiter) -> None:
        """Take the place in the queue that the call has by its rank."""
        behind = len(self.waiting)
        while behind and waiter.rank < self.waiting[behind - 1].rank:
            behind -= 1
        self.waiting.insert(behind, waiter)

    def is_long(self, patience: float, now: float) -> bool:
        """Whether the provider wants to be left alone for longer than that."""
        return self._alone_until - now > patience

    def alone_for(self, now: float) -> float:
        """Seconds for which the provider still wants to be left alone."""
        return max(self._alone_until - now, 0.0)

    def slowed(self, now: float) -> str:
        """What refusals and failures mean now: `waits 12 s`, or `a call every 0.4 s`; empty where there are none."""
        if self.closed is not None:
            return "asked no more"
        pause = max(self.alone_for(now), self.adaptive.paused_until - now)
        if pause >= 1.0:
            return f"waits {pause:.0f} s"
        moments = self.history.moments
        if (apart := self.adaptive.spacing.apart) > 0.0:
            return f"a call every {apart:.2g} s"
        if moments and moments[-1].why not in GROWING:
            return f"{math.ceil(self.adaptive.limit)} at a time"
        return ""

    def answers_others(self, refused: Taken) -> bool:
        """Whether the provider has answered other calls since it refused this one for the first time."""
        call = refused.call
        call.refused_at = refused.begun if call.refused_at is None else call.refused_at
        return self._answered_at > call.refused_at

    def close_to_batches(self, pause: float, patience: float) -> None:
        """Close the lane for this pause, which the provider has asked for when it was asked about a batch."""
        if self.closed is None:
            why = LONG_PAUSE_OF_BATCHES.format(self.name, pause, _until(pause), patience)
            self.closed = Closed(why, "rate_limited")

    def close_if_due(self, waiter: Waiter, patience: float, now: float) -> Closed | None:
        """Close the lane where waiting for it makes no sense: for longer than a call has (`patience`, in seconds) the
        provider asks to be left alone, or has taken nothing, and that was not for want of calls."""
        if self.closed is None:
            refused = self._refused_at - max(self.adaptive.refusing_since, self._answered_at)
            asked = now - waiter.since > patience or self.adaptive.fruitless >= OFTEN
            if self.is_long(patience, now):
                pause = self.alone_for(now)
                self.closed = Closed(LONG_PAUSE.format(self.name, pause, _until(pause), patience), "rate_limited")
            elif refused > patience and asked and not self.under_way:
                why = NOTHING_ANSWERED if self.storm.kind else NOTHING_TAKEN
                self.closed = Closed(why.format(self.name, refused, patience), self.storm.kind or "rate_limited")
        return self.closed

    def wait(self, estimate: Estimate, now: float, *, inside: bool, call: Attempts | None = None) -> float:
        """Seconds until a call may begin, infinite: not before another has ended."""
        wait = max(self.adaptive.paused_until - now, 0.0) if inside else self.adaptive.wait(self.under_way, now)
        if not inside:
            if self.under_way >= self.timeouts.most:
                return math.inf
            wait = max(wait, self.opening.wait(call, self.under_way, now))
        for bucket, amount in self._buckets(estimate):
            wait = max(wait, bucket.wait(amount, now))
        return wait

    def _buckets(self, estimate: Estimate) -> Sequence[tuple[Bucket, float]]:
        """What limits calls in a time, each with how much of it a call takes."""
        if self.requests is None and self.tokens is None:  # as for most models
            return ()
        both = (self.requests, 1.0), (self.tokens, estimate.tokens)
        return [(bucket, amount) for bucket, amount in both if bucket is not None]

    def begin(self, taken: Taken) -> None:
        now = taken.begun
        if not taken.inside:
            self.under_way += 1
            self.adaptive.begun(now)
            self.opening.begun(taken.call)
        for bucket, amount in self._buckets(taken.estimate):
            bucket.take(amount, now)
        if not self.history.moments:
            self.history.add(now, self.adaptive.limit, "start")

    def not_begun(self, taken: Taken, now: float) -> None:
        """The place was given, and the call did not take it."""
        if not taken.inside:
            self.under_way -= 1
            self.adaptive.not_begun()
        for bucket, amount in self._buckets(taken.estimate):
            bucket.give_back(amount, now)

    def ended(self, taken: Taken, facts: CallFacts | None, error: BaseException | None, now: float) -> None:
        under_way = self.under_way
        if not taken.inside:
            self.under_way -= 1
            self.adaptive.spacing.over(taken.begun)
        wait = error.retry_after if isinstance(error, PortError) else None
        self._alone_until = max(self._alone_until, now + (wait or 0.0))
        if facts is not None:
            if self.tokens is not None and not facts.usage_unavailable:
                used = facts.usage.input_tokens + facts.usage.output_tokens
                self.tokens.give_back(taken.estimate.tokens - used, now)
            self.experience.learn(taken.task, facts)
            if not taken.inside:
                self.adaptive.answered(now, taken.begun, under_way)
                self.timeouts.answered(now)
            self._answered_at = now
            self.storm.answered(taken.begun, inside=taken.inside)
            self.opening.answered()
            return
        if isinstance(error, PortError) and not taken.inside:
            self._open(error, taken, now)
        if isinstance(error, PortError) and error.kind == "timeout" and not taken.inside:
            if self.timeouts.timed_out(taken.begun, under_way):
                self.history.add(now, self.timeouts.most, "timed_out")
            error.not_counted = self.timeouts.crowded
        elif why := self._refusal(taken, error, now):
            self._refused_at = now
            if self.tokens is not None:
                self.tokens.give_back(taken.estimate.tokens, now)
            before = self.adaptive.limit
            pause = PAUSE if self.storm.kind is None else PAUSE_OF_FAILING
            if self.adaptive.refused(now, taken.begun, under_way, wait, pause):
                if before > self.history.moments[-1].limit:
                    self.history.add(now, before, "grown")
                self.history.add(now, self.adaptive.limit, why)
            elif self.storm.kind:
                self.adaptive.pause(now + PAUSE_OF_FAILING[0])
        elif wait:  # of a server that is in maintenance, for example
            self.adaptive.pause(now + wait)

    def _open(self, error: PortError, taken: Taken, now: float) -> None:
        """Close the lane where the model has never answered and is not there."""
        self.opening.failed(error, taken.call, taken.call.policy.of(error.kind), now)
        if self.closed is None and (why := self.opening.why(self.name, error)):
            self.closed = Closed(f"{why}. It gets no more calls", error.kind, never_answered=True)

    def _refusal(self, taken: Taken, error: BaseException | None, now: float) -> str:
        """What the history says where the provider had no room for the call, or fails whatever is asked."""
        if not isinstance(error, PortError):
            return ""
        if error.kind == "rate_limited":
            return "rate_limited"
        if error.kind not in FAILURES:
            return ""
        self.storm.failed(error, taken.call, now)
        if error.status in OVERLOADED:
            return "overloaded"
        return "failing" if self.storm.kind else ""


def _until(seconds: float) -> str:
    """The time after so many seconds, on the clock of the wall."""
    try:
        return f" (until {datetime.now().astimezone() + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S})"
    except OverflowError:
        return ""
