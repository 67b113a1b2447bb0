"""Intervals of a rate: equal to scipy and statsmodels, to published examples, and as sure as they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import Interval, StatisticsError, clopper_pearson, jeffreys, wilson

Method = Callable[[int, int, float], Interval | None]
METHODS = (wilson, clopper_pearson, jeffreys)
COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
LEVELS = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99, 0.999])


def limits(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


@settings(deadline=None)
@given(COUNTS, LEVELS)
def test_wilson_equals_scipy_and_statsmodels(count: tuple[int, int], level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    k, n = count
    ours = limits(wilson(k, n, level))
    assert ours == pytest.approx(tuple(scipy.stats.binomtest(k, n).proportion_ci(level, method="wilson")), abs=1e-9)
    assert ours == pytest.approx(proportion_confint(k, n, 1 - level, method="wilson"), abs=1e-9)


@settings(deadline=None)
@given(COUNTS, LEVELS)
def test_clopper_pearson_equals_scipy_and_statsmodels(count: tuple[int, int], level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    k, n = count
    ours = limits(clopper_pearson(k, n, level))
    assert ours == pytest.approx(tuple(scipy.stats.binomtest(k, n).proportion_ci(level, method="exact")), abs=1e-9)
    assert ours == pytest.approx(proportion_confint(k, n, 1 - level, method="beta"), abs=1e-9)


@settings(deadline=None)
@given(COUNTS, LEVELS)
def test_jeffreys_equals_statsmodels_but_for_the_ends_of_0_and_1(count: tuple[int, int], level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    k, n = count
    low, high = proportion_confint(k, n, 1 - level, method="jeffreys")
    expected = (0.0 if k == 0 else low, 1.0 if k == n else high)
    assert limits(jeffreys(k, n, level)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("k", "n", "score", "exact"),
    [
        (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
        (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
        (0, 20, (0.0000, 0.1611), (0.0000, 0.1684)),
        (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
    ],
)
def test_the_examples_of_newcombe(k: int, n: int, score: tuple[float, float], exact: tuple[float, float]) -> None:
    """R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, methods 3 and 5."""
    assert limits(wilson(k, n)) == pytest.approx(score, abs=5e-5)
    assert limits(clopper_pearson(k, n)) == pytest.approx(exact, abs=5e-5)


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None)
@given(count=COUNTS, level=LEVELS)
def test_limits_are_within_0_and_1_and_mirror_each_other(method: Method, count: tuple[int, int], level: float) -> None:
    k, n = count
    low, high = limits(method(k, n, level))
    assert 0 <= low <= k / n <= high <= 1
    assert (low == 0) == (k == 0)
    assert (high == 1) == (k == n)
    assert limits(method(n - k, n, level)) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_without_trials_there_is_no_interval(method: Method) -> None:
    assert method(0, 0, 0.95) is None


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("k", "n", "level"),
    [(3, 2, 0.95), (-1, 2, 0.95), (1, -2, 0.95), (0.5, 2, 0.95), (True, 2, 0.95), (1, 2, 0), (1, 2, 1), (1, 2, 95)],
)
def test_impossible_counts_and_levels_are_refused(method: Method, k: int, n: int, level: float) -> None:
    with pytest.raises(StatisticsError):
        method(k, n, level)


@pytest.mark.parametrize("n", [10, 50, 200])
def test_coverage_is_what_it_says(n: int) -> None:
    """Computed, not simulated: the probability of every count is known."""
    rates = np.linspace(0.005, 0.995, 199)
    chances = scipy.stats.binom.pmf(np.arange(n + 1)[:, None], n, rates[None, :])

    def coverage(method: Method) -> np.ndarray:
        ends = np.array([limits(method(k, n, 0.95)) for k in range(n + 1)])
        return (chances * ((ends[:, :1] <= rates) & (rates <= ends[:, 1:]))).sum(axis=0)

    assert coverage(clopper_pearson).min() >= 0.95
    assert coverage(wilson).mean() == pytest.approx(0.95, abs=0.012)
    assert coverage(jeffreys).mean() == pytest.approx(0.95, abs=0.012)
    assert coverage(wilson).min() > 0.83
