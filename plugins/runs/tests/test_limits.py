"""Token buckets give what they promise at most; a limit follows the provider and never begins before it may."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from karenina_calls.limits.adaptive_limit import IN_VAIN, MOST_AT_FIRST, Adaptive, Bucket

STEPS = st.lists(st.tuples(st.floats(-5.0, 40.0), st.floats(0.01, 8.0)), max_size=40)


def taken(bucket: Bucket, steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """`(time, amount)` of what was given to one who asks at these times; a negative step is a clock that jumps back."""
    now, latest, found = 1000.0, 1000.0, []
    bucket.wait(0.0, now)
    for step, amount in steps:
        now += step
        latest = max(latest, now)
        if bucket.wait(amount, now) == 0.0:
            bucket.take(amount, now)
            found.append((latest, amount))
    return found


def most_in_any_time(found: list[tuple[float, float]], rate: float) -> float:
    """What was given beyond `rate * seconds`, in the worst stretch of time."""
    return max(
        sum(amount for _, amount in found[i : j + 1]) - rate * (found[j][0] - found[i][0])
        for i in range(len(found))
        for j in range(i, len(found))
    )


@given(STEPS, st.floats(0.05, 5.0), st.floats(1.0, 8.0))
@settings(max_examples=100, deadline=None)
def test_a_bucket_never_gives_more_than_its_capacity_and_its_rate_also_when_the_clock_jumps_back(
    steps: list[tuple[float, float]], rate: float, capacity: float
) -> None:
    found = taken(Bucket(rate, capacity), [(step, min(amount, capacity)) for step, amount in steps])
    assert not found or most_in_any_time(found, rate) <= capacity + 1e-6


@given(STEPS, st.floats(0.05, 5.0))
@settings(max_examples=50, deadline=None)
def test_what_is_larger_than_the_bucket_is_given_when_it_is_full_and_waited_for_afterwards(
    steps: list[tuple[float, float]], rate: float
) -> None:
    found = taken(Bucket(rate, 1.0), steps)
    largest = max((amount for _, amount in found), default=0.0)
    assert not found or most_in_any_time(found, rate) <= 1.0 + largest


@given(st.floats(1.0, 10_000.0), st.integers(1, 300))
@settings(max_examples=60, deadline=None)
def test_no_minute_sees_more_calls_than_allowed_and_none_of_them_is_lost(units: float, calls: int) -> None:
    bucket, now, begun = Bucket.per_minute(units), 0.0, []
    for _ in range(calls):
        while (wait := bucket.wait(1.0, now)) > 0.0:
            now += wait
        bucket.take(1.0, now)
        begun.append(now)
    inside = max(sum(1 for other in begun if at <= other < at + 60.0 - 1e-6) for at in begun)
    assert inside <= math.ceil(units)
    assert now <= 60.0 * calls / units * 1.01 + 1e-6


def test_what_was_taken_too_much_comes_back_and_what_was_taken_too_little_is_waited_for() -> None:
    bucket = Bucket(rate=10.0, capacity=10.0)
    bucket.take(10.0, 0.0)
    bucket.give_back(4.0, 0.0)
    assert bucket.wait(4.0, 0.0) == 0.0
    bucket.give_back(-14.0, 0.0)
    assert bucket.wait(10.0, 0.0) == pytest.approx(2.0)
    bucket.give_back(1000.0, 0.0)
    assert bucket.wait(10.0, 0.0) == 0.0
    bucket.take(10.0, 0.0)
    assert bucket.wait(1.0, 0.0) > 0.0, "a bucket is never fuller than full"


def test_of_two_buckets_the_slower_one_counts_and_holds_no_more_than_before() -> None:
    bucket = Bucket(rate=10.0, capacity=10.0)
    bucket.take(9.0, 0.0)
    slower = bucket.tighten(Bucket(rate=1.0, capacity=5.0))
    assert slower.wait(5.0, 0.0) == pytest.approx(4.0)
    assert slower.tighten(Bucket(rate=2.0, capacity=5.0)) is slower


def test_a_clock_that_jumps_back_takes_nothing_away() -> None:
    bucket = Bucket(rate=1.0, capacity=5.0)
    assert bucket.wait(5.0, 100.0) == 0.0
    assert bucket.wait(5.0, 50.0) == 0.0
    bucket.take(5.0, 50.0)
    assert bucket.wait(1.0, 60.0) == pytest.approx(1.0)


def test_the_time_of_day_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = Bucket(rate=1.0, capacity=1.0)
    bucket.take(1.0, 0.0)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert bucket.wait(1.0, 0.0) == pytest.approx(1.0)


# How many at once


def begin(limit: Adaptive, now: float, count: int) -> int:
    """How many of `count` may begin at once."""
    begun = 0
    while begun < count and limit.wait(begun, now) == 0.0:
        limit.begun(now)
        begun += 1
    return begun


def test_it_begins_with_the_cap_and_with_no_more_than_is_sensible_without_one() -> None:
    assert begin(Adaptive(), 0.0, 1000) == MOST_AT_FIRST
    assert begin(Adaptive(cap=7), 0.0, 1000) == 7
    assert begin(Adaptive(cap=700), 0.0, 1000) == MOST_AT_FIRST


def test_it_doubles_with_every_round_until_the_first_refusal_and_never_beyond_the_cap() -> None:
    limit = Adaptive(cap=300)
    for expected in (2 * MOST_AT_FIRST, 300):
        under_way = math.floor(limit.limit)
        for _ in range(under_way):  # others take the places of those that are answered
            limit.answered(1.0, 0.0, under_way)
        assert limit.limit == expected


def test_it_grows_only_where_it_is_used() -> None:
    limit = Adaptive()
    for _ in range(1000):
        limit.answered(1.0, 0.0, 1)
    assert limit.limit == MOST_AT_FIRST


def test_a_refusal_leaves_seven_tenths_once_for_all_calls_of_the_same_round() -> None:
    limit = Adaptive(cap=10)
    begin(limit, 0.0, 10)
    assert limit.refused(0.5, 0.0, 10)
    assert limit.limit == pytest.approx(7.0)
    assert not limit.refused(0.9, 0.0, 9), "it began before the limit was cut"
    assert limit.limit == pytest.approx(7.0)


def test_a_round_that_is_mostly_refused_leaves_what_the_provider_took_of_it() -> None:
    limit = Adaptive()
    begin(limit, 0.0, 64)
    for left in range(64, 12, -1):
        limit.refused(0.1, 0.0, left)
    assert limit.limit == pytest.approx(12.0)


def test_two_refusals_within_a_quarter_of_a_second_cut_once() -> None:
    limit = Adaptive(cap=10)
    assert limit.refused(1.0, 0.0, 10)
    assert not limit.refused(1.2, 1.15, 7)
    assert limit.refused(1.3, 1.15, 7)


@given(st.floats(0.25, 100.0))
def test_a_wait_holds_for_the_call_alone_unless_nothing_else_is_taken_either(seconds: float) -> None:
    limit, now = Adaptive(), 1.0
    limit.begun(0.99)
    limit.refused(now, 0.99, 2, retry_after=seconds)
    for vain in range(1, IN_VAIN + 1):
        now += limit.wait(0, now)
        assert vain > 2 or now < 1.0 + seconds, "others begin before that"
        assert limit.paused_until == -math.inf
        limit.begun(now)
        limit.spacing.over(now)
        limit.refused(now + 0.001, now, 1, retry_after=seconds)
        now += 0.001
        assert (limit.paused_until >= now + seconds) is (vain == IN_VAIN)
    assert limit.wait(0, now + seconds * 0.999) > 0.0


@given(st.floats(0.25, 100.0))
def test_a_reply_between_two_refusals_says_that_something_is_taken(seconds: float) -> None:
    limit, now = Adaptive(), 1.0
    limit.begun(0.0)
    limit.refused(now, 0.0, 2, retry_after=seconds)
    for vain in range(6):
        now += limit.wait(0, now)
        limit.begun(now)
        limit.spacing.over(now)
        if vain % 2:
            limit.answered(now + 0.001, now, 1)
        else:
            limit.refused(now + 0.001, now, 1, retry_after=seconds)
        now += 0.001
    assert limit.paused_until == -math.inf


def test_without_a_hint_nothing_begins_for_a_tenth_of_a_second_and_longer_as_long_as_nothing_comes_back() -> None:
    limit, now, pauses = Adaptive(), 0.0, []
    for _ in range(12):
        limit.refused(now + 0.3, now, 3)
        pauses.append(limit.paused_until - (now + 0.3))
        now = limit.paused_until
    assert pauses[0] == pytest.approx(0.1)
    assert pauses[1] == pytest.approx(0.2)
    assert pauses[-1] == pytest.approx(5.0)
    assert begin(limit, now, 10) == 1, "one call tries whether the provider is back"
    limit.answered(now + 0.1, now, 1)
    assert limit.limit > 1.0


def test_after_two_rounds_without_a_reply_a_single_call_tries_however_many_there_was_room_for() -> None:
    limit = Adaptive()
    limit.refused(1.0, 0.0, 64)
    assert limit.limit > 40
    limit.refused(2.0, 1.5, 40)
    assert limit.limit > 20
    assert begin(limit, 3.0, 100) == 1
    limit.answered(3.5, 3.0, 1)
    assert begin(limit, 3.5, 100) == 1, "evenly"
    assert limit.wait(1, 10.0) == 0.0


def test_after_three_rounds_without_a_refusal_the_limit_grows_faster() -> None:
    limit = Adaptive()
    limit.answered(1.0, 0.0, 1)
    limit.refused(1.5, 0.5, 64)
    while limit.limit < 62.0:
        limit.answered(3.0, 2.0, 64)
    before = limit.limit
    limit.answered(4.0, 3.0, 64)
    assert limit.limit - before == pytest.approx(2.0 / before)
    before = limit.limit
    limit.answered(6.0, 5.0, 64)
    assert limit.limit - before == pytest.approx(0.25)


def test_a_long_call_that_was_taken_after_the_refusals_began_shows_that_not_everything_is_refused() -> None:
    limit = Adaptive()
    limit.refused(1.0, 0.0, 64)
    limit.refused(3.0, 2.0, 40)
    assert limit.refusing_since == 1.0
    limit.answered(4.0, 0.5, 30)
    assert limit.refusing_since == 1.0, "it was taken before"
    limit.answered(5.0, 1.5, 30)
    assert limit.refusing_since == math.inf
    assert limit.wait(10, 60.0) == 0.0


def test_long_calls_do_not_make_a_small_limit_crawl() -> None:
    limit = Adaptive(cap=2)
    limit.answered(300.0, 0.0, 2)
    limit.refused(301.0, 299.0, 2)
    limit.begun(310.0)
    assert 0.0 < limit.wait(0, 310.0) <= 1.0


def test_a_reply_to_a_call_from_before_the_refusal_says_nothing_about_now() -> None:
    limit = Adaptive()
    limit.refused(1.0, 0.0, 64)
    before = limit.limit
    limit.answered(1.1, 0.5, 63)
    assert limit.limit == before


def test_after_the_first_refusal_calls_begin_evenly() -> None:
    limit = Adaptive(cap=10)
    for _ in range(10):
        limit.answered(1.0, 0.0, 1)
    limit.refused(2.0, 1.0, 10)
    now = limit.paused_until
    begun: list[float] = []
    while len(begun) < 5:
        if (wait := limit.wait(len(begun), now)) == 0.0:
            limit.begun(now)
            begun.append(now)
        else:
            now += wait
    gaps = [b - a for a, b in itertools.pairwise(begun)]
    assert gaps == pytest.approx([1.0 / limit.limit] * 4)


def test_a_place_that_nobody_took_does_not_delay_the_next() -> None:
    limit = Adaptive(cap=10)
    limit.answered(1.0, 0.0, 1)
    limit.refused(2.0, 1.0, 10)
    now = limit.paused_until
    limit.begun(now)
    assert limit.wait(0, now) > 0.0
    limit.not_begun()
    assert limit.wait(0, now) == 0.0


def test_a_lower_cap_counts_at_once() -> None:
    limit = Adaptive(cap=20)
    limit.tighten(4)
    limit.tighten(9)
    assert begin(limit, 0.0, 100) == 4


class AnyProvider(RuleBasedStateMachine):
    """Calls begin, are answered and refused in any order, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.cap = 12
        self.limit = Adaptive(self.cap)
        self.now = 0.0
        self.under_way: list[float] = []

    @rule(seconds=st.floats(0.0, 3.0))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def begin(self) -> None:
        if self.limit.wait(len(self.under_way), self.now) == 0.0:
            self.limit.begun(self.now)
            self.under_way.append(self.now)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        begun = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        self.limit.answered(self.now, begun, len(self.under_way) + 1)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), retry_after=st.none() | st.floats(0.0, 20.0))
    def refuse(self, data: st.DataObject, retry_after: float | None) -> None:
        begun = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        self.limit.refused(self.now, begun, len(self.under_way) + 1, retry_after)

    @invariant()
    def never_more_than_the_cap_and_never_stuck(self) -> None:
        assert 1.0 <= self.limit.limit <= self.cap
        assert len(self.under_way) <= self.cap
        if not self.under_way:
            assert self.limit.wait(0, self.now) < math.inf


TestAnyProvider = AnyProvider.TestCase
TestAnyProvider.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
