"""Trying a model call again: by kind of failure, with full jitter, never longer than agreed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TypeVar

from attrs import define, field

from karenina_core.errors import RETRYABLE, PortError
from karenina_core.values.config import RetryPolicy

from ..records.prices import MAY_HAVE_COST
from .waiting import given_away, standing_still, time_limit

T = TypeVar("T")
USUAL = RetryPolicy()
GRACE = 0.01
"""Part of the time limit that an attempt has beyond it, so that an adapter whose own limit ends then says so itself."""
SPREAD = 0.25
"""Part of a `Retry-After` by which waits differ, so that calls that were refused together do not come back together."""


@define
class Attempts:
    """What it took: filled while a call is tried, also when it fails in the end."""

    count: int = 0
    retries: dict[str, int] = field(factory=dict)
    """Failed attempts that were followed by another, by kind."""
    seconds_before: float = 0.0
    """What replies took that came from a store."""
    waited: float = 0.0
    """Seconds in which there was no place for the call; they count nowhere."""
    whole: Attempts | None = None
    """Those of the work that this call is a part of."""
    policy: RetryPolicy = USUAL
    """By which it is tried again."""

    refused_at: float | None = None
    """When it was refused for the first time, on the clock of the queue of the model."""
    kept_out: bool = False
    """Whether an attempt was not made because there was no place for it."""
    asked: int = 0
    """Requests that were counted; none where no middleware counts them."""
    replies: int = 0
    unknown_costs: int = 0
    """Requests without a reply that may be on the provider's bill, and whose tokens and cost are unknown."""

    def begin(self) -> None:
        self.count += 1
        if self.whole is not None:
            self.whole.count += 1

    def not_made(self) -> None:
        """The attempt that has begun was kept out."""
        for attempts in filter(None, (self, self.whole)):
            attempts.count -= 1
            attempts.kept_out = True

    def ended(self, *, replied: bool, unknown_cost: bool = False) -> None:
        """A request is over."""
        for attempts in (self, self.whole):
            if attempts is not None:
                attempts.asked += 1
                attempts.replies += replied
                attempts.unknown_costs += unknown_cost

    def again(self, kind: str, times: int = 1) -> None:
        """Attempts that failed so are followed by others."""
        for attempts in filter(None, (self, self.whole)):
            attempts.retries[kind] = attempts.retries.get(kind, 0) + times

    def idle(self, seconds: float) -> None:
        self.waited += seconds
        if self.whole is not None:
            self.whole.waited += seconds

    def served(self, count: int, retries: Mapping[str, int], seconds: float) -> None:
        """The reply is one from before, and took this: the attempt that has begun was its last."""
        self.ended(replied=True)
        for kind, times in retries.items():
            self.again(kind, times)
        unknown = sum(times for kind, times in retries.items() if kind in MAY_HAVE_COST)
        for attempts in filter(None, (self, self.whole)):
            attempts.unknown_costs += unknown
            attempts.count += count - 1
            attempts.seconds_before += seconds


this_call: ContextVar[Attempts | None] = ContextVar("karenina_attempts", default=None)
"""The attempts at the call that is being made."""


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    max_elapsed: float,
    attempts: Attempts | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Await `attempt()` until it succeeds, its kind of failure is used up, or `max_elapsed` seconds are over.

    Each kind has a budget of its own; failures that are `not_counted` use up none of it in the first `max_elapsed`
    seconds, waits for a place included. A `Retry-After`, and up to a quarter more, replaces the computed wait; that
    of a `queued` failure is time in which the call waits for its place. A wait that would reach beyond the time limit
    is not begun: the last failure is raised at once. Time in which an attempt waits for its place counts nowhere else
    (see `standing_still`). Raises PortError.
    """
    attempts = Attempts(whole=attempts, policy=policy)
    this_call.set(attempts)
    started = clock()
    failures: dict[str, int] = {}
    last: PortError | None = None
    limit = None

    def spent() -> float:
        return clock() - started - attempts.waited

    while True:
        attempts.begin()
        try:
            with time_limit(max(0.0, max_elapsed * (1.0 + GRACE) - spent())) as limit:
                return await attempt()
        except TimeoutError as error:
            if limit is not None and limit.expired:
                last = last or PortError(
                    f"no answer within {max_elapsed:g} s (retry_max_elapsed_seconds)", kind="timeout"
                )
                raise _ended(last, attempts) from error
            last = PortError(str(error) or "the call timed out", kind="timeout")
            last.__cause__ = error
        except PortError as error:
            last = error
        finally:
            attempts.idle(0.0 if limit is None else limit.waited)
        last.not_counted &= clock() - started <= max_elapsed
        wait = _wait(last, failures, policy, max_elapsed - spent(), max_elapsed)
        queued = wait is not None and last.queued and bool(last.retry_after)
        if wait is None or (spent() + wait > max_elapsed and not queued):
            raise _ended(last, attempts)
        attempts.again(last.kind)
        if not queued:
            await sleep(wait)
            continue
        began = clock()
        with given_away():
            await standing_still(sleep(wait))
        attempts.idle(clock() - began)


def _wait(error: PortError, failures: dict[str, int], policy: RetryPolicy, left: float, whole: float) -> float | None:
    """Seconds until the next attempt, or None where there is none; `left`: until the call, which has
    `whole`, has to be over."""
    free = error.not_counted and error.kind in RETRYABLE
    count = failures[error.kind] = failures.get(error.kind, 0) + (not free)
    kind = policy.of(error.kind)
    if error.final or (count >= kind.max_attempts and not free):
        return None
    try:
        ceiling = min(kind.min_wait * kind.multiplier ** (max(count, 1) - 1), kind.max_wait)
    except OverflowError:
        ceiling = kind.max_wait if kind.min_wait else 0.0
    if error.retry_after:
        if error.not_counted and not error.queued:
            return 0.0  # the next attempt finds its model closed
        if error.queued and error.retry_after > whole:
            return None
        most = error.retry_after * SPREAD if error.queued else max(left - error.retry_after, 0.0)
        return error.retry_after + random.uniform(0.0, min(error.retry_after * SPREAD, most))
    return random.uniform(0.0, ceiling)


def _ended(error: PortError, attempts: Attempts) -> PortError:
    error.attempts = attempts.count
    return error
