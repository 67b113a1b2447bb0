"""Trying again: so often, by kind; waiting what the server asks for; never longer than agreed."""

from __future__ import annotations

import asyncio
import time
from typing import Any, get_args

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.retry import Attempts, this_call, with_retries
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import RETRYABLE, ErrorKind, PortError
from karenina_core.values.config import AttemptPolicy, RetryPolicy

Failure = tuple[ErrorKind, float | None, float]
"""Kind, Retry-After, and how long the attempt took, in seconds."""


@define
class World:
    """A script of failures, with a clock of its own. After the last failure every attempt succeeds."""

    script: list[Failure]
    now: float = 0.0
    waits: list[float] = field(factory=list)
    begun: list[float] = field(factory=list)
    attempts: Attempts = field(factory=Attempts)

    async def attempt(self) -> str:
        number = len(self.begun)
        self.begun.append(self.now)
        if number >= len(self.script):
            return "answer"
        kind, retry_after, seconds = self.script[number]
        self.now += seconds
        raise PortError(f"failure {number}", kind=kind, retry_after=retry_after)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def run(self, policy: RetryPolicy, max_elapsed: float = 120.0) -> Any:
        """The answer, or the PortError."""
        try:
            return asyncio.run(
                with_retries(
                    self.attempt,
                    policy,
                    max_elapsed=max_elapsed,
                    attempts=self.attempts,
                    clock=lambda: self.now,
                    sleep=self.sleep,
                )
            )
        except PortError as error:
            return error


def failures(kind: ErrorKind, count: int, retry_after: float | None = None) -> list[Failure]:
    return [(kind, retry_after, 0.0)] * count


@pytest.mark.parametrize(("kind", "allowed"), [("rate_limited", 5), ("timeout", 3), ("connection", 3), ("server", 2)])
def test_the_default_number_of_attempts(kind: ErrorKind, allowed: int) -> None:
    assert kind in RETRYABLE
    world = World(failures(kind, allowed - 1))
    assert world.run(RetryPolicy(), 10_000) == "answer"
    assert world.attempts.count == allowed
    assert world.attempts.retries == {kind: allowed - 1}
    world = World(failures(kind, allowed))
    error = world.run(RetryPolicy(), 10_000)
    assert (error.kind, error.attempts, str(error)) == (kind, allowed, f"failure {allowed - 1}")


@pytest.mark.parametrize("kind", sorted(set(get_args(ErrorKind)) - RETRYABLE))
def test_other_kinds_are_never_tried_again(kind: ErrorKind) -> None:
    world = World(failures(kind, 1))
    error = world.run(RetryPolicy())
    assert (error.kind, world.attempts.count, world.waits) == (kind, 1, [])


def test_a_final_failure_is_not_tried_again() -> None:
    async def attempt() -> None:
        raise PortError("enough", kind="rate_limited", final=True)

    attempts = Attempts()
    with pytest.raises(PortError, match="enough"):
        asyncio.run(with_retries(attempt, RetryPolicy(), max_elapsed=120, attempts=attempts))
    assert attempts.count == 1


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_failure_that_is_not_counted_uses_up_no_attempts_and_leaves_the_wait_to_the_gateway(allowed: int) -> None:
    made = 0

    async def attempt() -> str:
        nonlocal made
        made += 1
        if made <= 10:
            error = PortError("a storm", kind="server", retry_after=1000.0)
            error.not_counted = True
            raise error
        if made < 10 + allowed:
            raise PortError("its own", kind="server")
        return "answer"

    attempts, waits = Attempts(), World([])
    policy = RetryPolicy(server=AttemptPolicy(allowed, 0.0, 0.0))
    found = asyncio.run(
        with_retries(attempt, policy, max_elapsed=60.0, attempts=attempts, clock=lambda: 0.0, sleep=waits.sleep)
    )
    assert (found, attempts.count) == ("answer", 10 + allowed)
    assert set(waits.waits) == {0.0}


def test_what_would_fail_again_in_the_same_way_is_counted() -> None:
    error = PortError("no key", kind="auth")
    error.not_counted = True
    attempts = Attempts()

    async def attempt() -> None:
        raise error

    with pytest.raises(PortError, match="no key"):
        asyncio.run(with_retries(attempt, RetryPolicy(), max_elapsed=120, attempts=attempts))
    assert attempts.count == 1


def test_each_kind_has_a_budget_of_its_own() -> None:
    policy = RetryPolicy(rate_limited=AttemptPolicy(3), server=AttemptPolicy(2), timeout=AttemptPolicy(2))
    script: list[Failure] = [*failures("rate_limited", 2), *failures("server", 1), *failures("timeout", 1)]
    world = World(script)
    assert world.run(policy) == "answer"
    assert world.attempts.retries == {"rate_limited": 2, "server": 1, "timeout": 1}
    world = World([*script, *failures("server", 1)])
    assert world.run(policy).kind == "server"
    assert world.attempts.count == 5


@pytest.mark.parametrize("asked", [0.5, 17.25])
def test_a_retry_after_decides_how_long_to_wait_and_up_to_a_quarter_more(asked: float) -> None:
    policy = RetryPolicy(rate_limited=AttemptPolicy(2, 5.0, 5.0))
    waits = []
    for _ in range(50):
        world = World(failures("rate_limited", 1, asked))
        world.run(policy)
        waits += world.waits
    assert asked <= min(waits) < max(waits) <= 1.25 * asked


def test_a_wait_that_is_longer_than_a_call_has_is_not_begun_in_the_queue_either() -> None:
    made = 0

    async def attempt() -> None:
        nonlocal made
        made += 1
        error = PortError("slowly", kind="rate_limited", retry_after=30.0)
        error.queued = True
        raise error

    waits = World([])
    with pytest.raises(PortError, match="slowly"):
        asyncio.run(with_retries(attempt, RetryPolicy(), max_elapsed=10.0, sleep=waits.sleep))
    assert (made, waits.waits) == (1, [])


def test_refusals_that_use_up_no_attempt_do_so_after_the_time_of_a_call() -> None:
    now, made = 0.0, 0

    async def attempt() -> None:
        nonlocal now, made
        made += 1
        now += 10.0  # most of it in the queue
        this_call.get().idle(9.9)  # type: ignore[union-attr] # an attempt is under way
        error = PortError("slowly", kind="rate_limited", retry_after=1.0)
        error.queued = error.not_counted = True
        raise error

    with pytest.raises(PortError, match="slowly"):
        asyncio.run(with_retries(attempt, RetryPolicy(), max_elapsed=120.0, clock=lambda: now, sleep=World([]).sleep))
    assert made == 12 + 5


def test_waits_grow_with_full_jitter_up_to_their_bound() -> None:
    policy = RetryPolicy(server=AttemptPolicy(6, 1.0, 8.0, 2.0))
    longest = [0.0] * 5
    for _ in range(300):
        world = World(failures("server", 5))
        assert world.run(policy, 10_000) == "answer"
        longest = [max(pair) for pair in zip(longest, world.waits, strict=True)]
    for reached, bound in zip(longest, [1, 2, 4, 8, 8], strict=True):
        assert 0.8 * bound <= reached <= bound


def test_a_wait_beyond_the_limit_is_not_begun() -> None:
    world = World(failures("rate_limited", 1, 121.0))
    error = world.run(RetryPolicy(), 120.0)
    assert (error.kind, error.attempts, world.waits) == ("rate_limited", 1, [])
    world = World(failures("rate_limited", 1, 119.0))
    assert world.run(RetryPolicy(), 120.0) == "answer"


def test_very_many_attempts_overflow_nothing() -> None:
    policy = RetryPolicy(server=AttemptPolicy(5000, 0.001, 0.01, 9.0))
    world = World(failures("server", 2000))
    assert world.run(policy, 10_000) == "answer"
    assert max(world.waits) <= 0.01


def test_an_attempt_that_hangs_is_ended_at_the_limit() -> None:
    async def hang() -> None:
        await asyncio.sleep(60)

    attempts, started = Attempts(), time.monotonic()
    with pytest.raises(PortError, match=r"no answer within 0\.05 s") as caught:
        asyncio.run(with_retries(hang, RetryPolicy(), max_elapsed=0.05, attempts=attempts))
    assert time.monotonic() - started < 2
    assert (caught.value.kind, caught.value.attempts) == ("timeout", 1)


@pytest.mark.parametrize("seconds", [0.5, 2.0])
def test_an_adapter_whose_own_limit_ends_at_the_same_time_says_so_itself(seconds: float) -> None:
    async def slow() -> None:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.sleep(600)
        except TimeoutError as error:
            raise PortError("no complete reply (request_timeout)", kind="timeout") from error

    async def whole() -> None:
        clock = asyncio.get_running_loop().time
        await with_retries(slow, RetryPolicy(), max_elapsed=seconds, clock=clock)

    with pytest.raises(PortError, match="request_timeout"):
        run_in_virtual_time(whole())


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        ({}, 360.0),
        ({"request_timeout": 600.0}, 1800.0),
        ({"request_timeout": 5.0}, 120.0),
        ({"retry_max_elapsed_seconds": 7.0, "request_timeout": 600.0}, 7.0),
        ({"retry_policy": RetryPolicy(timeout=AttemptPolicy(5))}, 600.0),
        ({"parsing_models": [ModelConfig(model_name="m", request_timeout=300.0)]}, 900.0),
    ],
)
def test_a_call_has_time_for_all_attempts_that_time_out(facts: dict[str, Any], seconds: float) -> None:
    assert VerificationConfig(**facts).call_seconds == seconds


def test_the_last_real_failure_is_reported_when_the_time_is_over() -> None:
    calls = 0

    async def attempt() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise PortError("slow down", kind="rate_limited")
        await asyncio.sleep(60)

    policy = RetryPolicy(rate_limited=AttemptPolicy(9))
    with pytest.raises(PortError, match="slow down") as caught:
        asyncio.run(with_retries(attempt, policy, max_elapsed=0.05))
    assert (caught.value.kind, caught.value.attempts) == ("rate_limited", 2)


def test_a_time_limit_of_the_adapter_s_own_counts_as_a_timeout_and_is_tried_again() -> None:
    calls = 0

    async def attempt() -> str:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise TimeoutError
        return "answer"

    policy, attempts = RetryPolicy(timeout=AttemptPolicy(3)), Attempts()
    assert asyncio.run(with_retries(attempt, policy, max_elapsed=5, attempts=attempts)) == "answer"
    assert attempts.retries == {"timeout": 2}
    calls = -9
    with pytest.raises(PortError) as caught:
        asyncio.run(with_retries(attempt, policy, max_elapsed=5))
    assert (caught.value.kind, caught.value.attempts) == ("timeout", 3)


def test_cancellation_is_no_failure() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(with_retries(lambda: asyncio.sleep(60), RetryPolicy(), max_elapsed=60))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


# Law

KINDS = st.sampled_from(["rate_limited", "timeout", "connection", "server", "auth", "judge"])
SCRIPTS = st.lists(st.tuples(KINDS, st.none() | st.floats(0, 60), st.floats(0, 20)), max_size=10)
POLICY = st.builds(AttemptPolicy, st.integers(1, 6), st.floats(0, 10), st.floats(0, 40), st.floats(1, 4))
POLICIES = st.builds(RetryPolicy, rate_limited=POLICY, timeout=POLICY, connection=POLICY, server=POLICY)


@given(SCRIPTS, POLICIES, st.floats(0.5, 200))
@settings(deadline=None)
def test_limits_hold_for_every_sequence_of_failures(
    script: list[Failure], policy: RetryPolicy, max_elapsed: float
) -> None:
    world = World(script)
    outcome = world.run(policy, max_elapsed)
    tried = len(world.begun)
    failed = script[:tried]
    # No attempt begins after the time is over, and none is repeated beyond the budget of its kind.
    assert all(begin <= max_elapsed for begin in world.begun)
    for kind in {kind for kind, _, _ in failed}:
        assert sum(k == kind for k, _, _ in failed) <= policy.of(kind).max_attempts
    # What the server asked for is never undercut, and otherwise the bound of the policy holds.
    assert len(world.waits) == tried - 1
    for wait, (kind, retry_after, _) in zip(world.waits, failed, strict=False):
        assert wait >= (retry_after or 0.0)
        assert wait <= (1.25 * retry_after if retry_after else policy.of(kind).max_wait)
    # The account is right.
    assert world.attempts.count == tried
    assert sum(world.attempts.retries.values()) == tried - 1
    if outcome == "answer":
        assert tried == len(script) + 1
    else:
        assert (outcome.kind, outcome.attempts) == (failed[-1][0], tried)
