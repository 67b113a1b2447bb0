"""Trying a model call again: by kind of failure, with full jitter, never longer than agreed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from attrs import define, field

from ..errors import PortError
from ..model.config import RetryPolicy

__all__ = ["Attempts", "with_retries"]

T = TypeVar("T")


@define
class Attempts:
    """What it took: filled while a call is tried, also when it fails in the end."""

    count: int = 0
    retries: dict[str, int] = field(factory=dict)
    """Failed attempts that were followed by another, by kind."""


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

    Each kind has a budget of its own. A `Retry-After` replaces the computed wait where it is longer. A wait that
    would reach beyond the time limit is not begun: the last failure is raised at once. Raises PortError.
    """
    attempts = attempts if attempts is not None else Attempts()
    started = clock()
    failures: dict[str, int] = {}
    last: PortError | None = None
    while True:
        attempts.count += 1
        try:
            async with asyncio.timeout(max(0.0, max_elapsed - (clock() - started))) as limit:
                return await attempt()
        except TimeoutError as error:
            if limit.expired():
                last = last or PortError(f"no answer within {max_elapsed:g} s", kind="timeout")
                raise _ended(last, attempts) from error
            last = PortError(str(error) or "the call timed out", kind="timeout")
            last.__cause__ = error
        except PortError as error:
            last = error
        wait = _wait(last, failures, policy)
        if wait is None or clock() - started + wait > max_elapsed:
            raise _ended(last, attempts)
        attempts.retries[last.kind] = attempts.retries.get(last.kind, 0) + 1
        await sleep(wait)


def _wait(error: PortError, failures: dict[str, int], policy: RetryPolicy) -> float | None:
    """Seconds until the next attempt, or None where there is none."""
    failures[error.kind] = failures.get(error.kind, 0) + 1
    kind = policy.of(error.kind)
    if error.final or failures[error.kind] >= kind.max_attempts:
        return None
    try:
        ceiling = min(kind.min_wait * kind.multiplier ** (failures[error.kind] - 1), kind.max_wait)
    except OverflowError:
        ceiling = kind.max_wait if kind.min_wait else 0.0
    return max(random.uniform(0.0, ceiling), error.retry_after or 0.0)


def _ended(error: PortError, attempts: Attempts) -> PortError:
    error.attempts = attempts.count
    return error
