"""The way to one model: its queue, its limits, and what its calls took so far."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Any

from attrs import define, field, frozen

from ..errors import ConfigError, ErrorKind, PortError
from ..model.config import ModelConfig, Secret
from ..model.identity import ModelIdentity
from ..ports.metered import CallFacts
from ..ports.tool_servers import shown_address
from .budget import Estimate, Experience
from .limits import PAUSE, PAUSE_OF_FAILING, Adaptive, Bucket

__all__ = ["History", "LaneKey", "LaneState", "Moment", "Taken", "Waiter"]

OVERLOADED = (503, 529)
"""HTTP statuses of servers that would serve the same call later."""
IN_A_ROW = 5
"""Failures of the server or of the connection to it, with no reply between them, that are nobody's own."""
MOST_MOMENTS = 200


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

    def __str__(self) -> str:
        """For people: without the key."""
        where = f" at {shown_address(self.address)}" if self.address else ""
        return f"{ModelIdentity(self.interface, self.model_name, self.provider)}{where}"


@frozen
class Moment:
    """A time at which a limit was something else than before."""

    at: float
    limit: float
    why: str
    """`start`, `grown`, `rate_limited`, `overloaded` or `failing`."""


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
    attempt: int = 1
    """Which one of the call this is."""
    turn: asyncio.Future[Any] = field(init=False)
    """A place, or a PortError; of a call that does have to wait."""

    @property
    def rank(self) -> tuple[bool, int]:
        """Who comes first: work under way that cannot go on without the call, then by arrival."""
        return not self.inside, self.number


@frozen
class Taken:
    """What a call under way has taken."""

    task: str
    model: ModelConfig
    estimate: Estimate
    begun: float
    inside: bool


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
    failing_as: ErrorKind | None = None
    """How every call fails since the last reply, if several did; nobody's attempts are to be used up by that."""
    _has_answered: bool = False
    """Before the first reply it is more likely that the address is wrong, and nothing is waited for."""
    _failures: int = 0
    """In a row."""

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

    def first(self) -> Waiter:
        """Whose turn it is. What finds out whether a provider that fails is back should have further attempts."""
        if self.failing_as is None:
            return self.waiting[0]
        return min(self.waiting, key=lambda waiter: (not waiter.inside, waiter.attempt, waiter.number))

    def wait(self, estimate: Estimate, now: float, *, inside: bool) -> float:
        """Seconds until a call may begin, infinite: not before another has ended."""
        wait = max(self.adaptive.paused_until - now, 0.0) if inside else self.adaptive.wait(self.under_way, now)
        if self.requests is not None:
            wait = max(wait, self.requests.wait(1.0, now))
        if self.tokens is not None:
            wait = max(wait, self.tokens.wait(estimate.tokens, now))
        return wait

    def begin(self, taken: Taken) -> None:
        now = taken.begun
        if not taken.inside:
            self.under_way += 1
            self.adaptive.begun(now)
        if self.requests is not None:
            self.requests.take(1.0, now)
        if self.tokens is not None:
            self.tokens.take(taken.estimate.tokens, now)
        if not self.history.moments:
            self.history.add(now, self.adaptive.limit, "start")

    def not_begun(self, taken: Taken, now: float) -> None:
        """The place was given, and nobody was there any more to take it."""
        if not taken.inside:
            self.under_way -= 1
            self.adaptive.not_begun()
        if self.requests is not None:
            self.requests.give_back(1.0, now)
        if self.tokens is not None:
            self.tokens.give_back(taken.estimate.tokens, now)

    def ended(self, taken: Taken, facts: CallFacts | None, error: BaseException | None, now: float) -> None:
        under_way = self.under_way
        if not taken.inside:
            self.under_way -= 1
        if facts is not None:
            self._answered(taken, facts, under_way, now)
        elif why := self._refusal(error):
            if self.tokens is not None:
                self.tokens.give_back(taken.estimate.tokens, now)
            before = self.adaptive.limit
            pause = PAUSE if self.failing_as is None else PAUSE_OF_FAILING
            if self.adaptive.refused(now, taken.begun, under_way, _retry_after(error), pause):
                self._tell(now, before, why)
        elif wait := _retry_after(error):
            self.adaptive.pause(now + wait)

    def _answered(self, taken: Taken, facts: CallFacts, under_way: int, now: float) -> None:
        if self.tokens is not None and not facts.usage_unavailable:
            used = facts.usage.input_tokens + facts.usage.output_tokens
            self.tokens.give_back(taken.estimate.tokens - used, now)
        self.experience.learn(taken.task, facts)
        if not taken.inside:
            self.adaptive.answered(now, taken.begun, under_way)
        self._has_answered = True
        if taken.inside or self.adaptive.refusing_since == math.inf:  # not of a call from before all this
            self._failures, self.failing_as = 0, None

    def _refusal(self, error: BaseException | None) -> str:
        """What the history says where the provider had no room for the call, or fails whatever is asked."""
        if not isinstance(error, PortError):
            return ""
        if error.kind == "rate_limited":
            return "rate_limited"
        if error.kind not in ("server", "connection"):
            return ""
        self._failures += 1
        if self._has_answered and self._failures >= IN_A_ROW:
            self.failing_as = error.kind
        if error.status in OVERLOADED:
            return "overloaded"
        return "failing" if self.failing_as else ""

    def _tell(self, now: float, before: float, why: str) -> None:
        if before > self.history.moments[-1].limit:
            self.history.add(now, before, "grown")
        self.history.add(now, self.adaptive.limit, why)


def _retry_after(error: BaseException | None) -> float | None:
    return error.retry_after if isinstance(error, PortError) else None
