"""pass@k and pass^k: published examples, and no bias."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import (
    StatisticsError,
    cluster_mean,
    mean_interval,
    pass_at_k,
    pass_at_k_by_question,
    pass_hat_k,
    pass_hat_k_by_question,
)

SAMPLES = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n)))


@settings(deadline=None)
@given(SAMPLES)
def test_both_are_the_fractions_of_binomial_coefficients(drawn: tuple[int, int, int]) -> None:
    c, n, k = drawn
    assert pass_at_k_by_question([c], [n], k)[0] == pytest.approx(1 - comb(n - c, k) / comb(n, k), abs=1e-12)
    assert pass_hat_k_by_question([c], [n], k)[0] == pytest.approx(comb(c, k) / comb(n, k), abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_both_are_averages_over_all_ways_to_pick_k_answers(drawn: tuple[int, int, int]) -> None:
    c, n, k = drawn
    picks = list(itertools.combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k_by_question([c], [n], k)[0] == pytest.approx(np.mean([any(pick) for pick in picks]), abs=1e-12)
    assert pass_hat_k_by_question([c], [n], k)[0] == pytest.approx(np.mean([all(pick) for pick in picks]), abs=1e-12)


@settings(deadline=None)
@given(st.floats(0, 1).map(lambda rate: round(rate, 6)), st.integers(1, 25), st.data())
def test_both_are_unbiased(rate: float, n: int, data: st.DataObject) -> None:
    """The expectation over the number of passing answers is what k fresh answers do."""
    k = data.draw(st.integers(1, n))
    passed = np.arange(n + 1)
    chances = scipy.stats.binom.pmf(passed, n, rate)
    samples = np.full(n + 1, n)
    assert chances @ pass_at_k_by_question(passed, samples, k) == pytest.approx(1 - (1 - rate) ** k, abs=1e-9)
    assert chances @ pass_hat_k_by_question(passed, samples, k) == pytest.approx(rate**k, abs=1e-9)


def test_the_example_samples_of_human_eval() -> None:
    """github.com/openai/human-eval, README: six samples of one task, three of which pass, yield 0.5 pass@1."""
    assert pass_at_k([3], [6], 1).value == pytest.approx(0.4999999999999999, abs=1e-12)
    assert pass_at_k([3], [6], 2).value == pytest.approx(0.8)
    assert pass_at_k([3], [6], 4).value == pytest.approx(1.0)


def test_the_naive_estimate_is_another_one() -> None:
    """1 - (1 - c/n)^k is too low: with one of two answers right, two fresh answers of the two contain it for sure."""
    assert pass_at_k([1], [2], 2).value == 1.0 != 1 - (1 - 1 / 2) ** 2


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=30), st.integers(1, 8))
def test_the_error_is_the_one_between_questions(passed: list[int], k: int) -> None:
    ours = pass_at_k(passed, [8] * len(passed), k)
    rates = pass_at_k_by_question(passed, [8] * len(passed), k)
    assert ours.method == f"pass@{k}"
    assert ours.standard_error == pytest.approx(mean_interval(rates).standard_error, abs=1e-12)
    if ours.interval is not None:
        assert 0 <= ours.interval.low <= ours.value <= ours.interval.high <= 1  # type: ignore[operator]  # a value is there
    groups = [i // 2 for i in range(len(passed))]
    clustered = pass_hat_k(passed, [8] * len(passed), k, clusters=groups)
    expected = cluster_mean(pass_hat_k_by_question(passed, [8] * len(passed), k), groups)
    assert (clustered.standard_error, clustered.clusters) == (expected.standard_error, expected.clusters)


def test_questions_may_have_different_numbers_of_answers() -> None:
    assert pass_at_k([1, 2], [2, 5], 2).value == pytest.approx((1 + (1 - comb(3, 2) / comb(5, 2))) / 2)


def test_more_answers_than_there_are_cannot_be_asked_for() -> None:
    with pytest.raises(StatisticsError, match=r"k = 3 needs at least 3 answers .* 1 of 2 have fewer \(the fewest: 2\)"):
        pass_at_k([1, 1], [2, 3], 3)
    with pytest.raises(StatisticsError, match="run more replicates"):
        pass_hat_k([0], [0], 1)


@pytest.mark.parametrize(
    ("passed", "samples", "k"),
    [
        ([3], [2], 1),
        ([1], [2, 3], 1),
        ([0.5], [2], 1),
        ([-1], [2], 1),
        ([1], [2], 0),
        ([1], [2], 1.5),
        ([1], [2], True),
    ],
)
def test_impossible_counts_are_refused(passed: list[float], samples: list[float], k: int) -> None:
    with pytest.raises(StatisticsError):
        pass_at_k(passed, samples, k)


def test_without_questions_nothing_is_claimed() -> None:
    ours = pass_at_k([], [], 3)
    assert (ours.value, ours.interval, ours.method) == (None, None, "pass@3")


def test_many_answers_neither_overflow_nor_lose_digits() -> None:
    assert pass_at_k_by_question([1], [100_000], 50_000)[0] == pytest.approx(0.5, abs=1e-9)
    assert pass_hat_k_by_question([2_000], [2_000], 2_000)[0] == 1.0
