"""Means with Student's t, with clusters and with the bootstrap."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import Estimate, StatisticsError, bootstrap_mean, cluster_mean, mean_interval
from karenina_compare.statistics.resampling import CELLS, acceleration, bca_tails, default_resamples, resampled_means

VALUES = st.lists(st.floats(-1000, 1000, allow_subnormal=False), min_size=2, max_size=60)
LEVELS = st.sampled_from([0.8, 0.95, 0.99])

SUITES = [
    (3.08, 2.60, 3.44, 3.04),
    (2.36, 3.04, 3.28, 2.68),
    (2.00, 2.56, 2.52, 1.88),
    (3.00, 2.88, 3.44, 3.64),
    (2.68, 1.92, 3.28, 3.20),
]
"""Grade point averages of the four students in each of five suites: S. L. Lohr, "Sampling: Design and Analysis" (1999),
example 5.2."""


def limits(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None, estimate.note
    return estimate.interval.low, estimate.interval.high


@pytest.mark.parametrize("level", [0, 1, 2, -0.5, float("nan")])
@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0], [1.0, 2.0]])
def test_a_level_that_is_none_is_refused_also_where_there_is_no_interval(level: float, values: list[float]) -> None:
    for estimated in (lambda: mean_interval(values, level), lambda: cluster_mean(values, values, level)):
        with pytest.raises(StatisticsError, match="level"):
            estimated()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0], [1.0, 2.0]])
def test_an_estimate_names_its_method(values: list[float]) -> None:
    for found, method in (
        (mean_interval(values), "student-t"),
        (cluster_mean(values, range(len(values))), "cluster-robust"),
    ):
        assert found.method == method
        assert found.interval is None or found.interval.method == method


def test_two_units_have_a_bootstrap_interval_and_one_has_none() -> None:
    assert bootstrap_mean([0.0, 1.0], resamples=200, method="percentile").interval is not None
    assert bootstrap_mean([0.0, 1.0, 1.0], [1, 2, 2], resamples=200, method="percentile").interval is not None
    assert bootstrap_mean([0.0, 1.0], [1, 1], resamples=200).interval is None


@settings(deadline=None)
@given(VALUES, LEVELS)
def test_student_equals_scipy(values: list[float], level: float) -> None:
    ours = mean_interval(values, level)
    error = float(scipy.stats.sem(values))
    assert ours.value == pytest.approx(np.mean(values), abs=1e-9)
    assert ours.standard_error == pytest.approx(error, abs=1e-9)
    assert ours.df == len(values) - 1
    if ours.interval is not None:
        expected = scipy.stats.t.interval(level, len(values) - 1, np.mean(values), error)
        assert limits(ours) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    else:
        assert error < 1e-9
        assert "nothing varies" in ours.note


@settings(deadline=None)
@given(VALUES, st.data(), LEVELS)
def test_cluster_robust_equals_least_squares_of_statsmodels(
    values: list[float], data: st.DataObject, level: float
) -> None:
    groups = data.draw(st.lists(st.integers(0, 9), min_size=len(values), max_size=len(values)))
    assume(len(set(groups)) > 1)
    for corrected in (True, False):
        ours = cluster_mean(values, groups, level, small_sample=corrected)
        kwds = {"groups": np.array(groups), "use_correction": corrected}
        from statsmodels.regression.linear_model import OLS  # takes a second

        fit = OLS(np.array(values), np.ones(len(values))).fit(cov_type="cluster", cov_kwds=kwds, use_t=True)
        assert ours.value == pytest.approx(fit.params[0], abs=1e-9)
        assert ours.standard_error == pytest.approx(fit.bse[0], abs=1e-9)
        assert (ours.clusters, ours.df) == (len(set(groups)), len(set(groups)) - 1)
        if ours.interval is not None:
            assert limits(ours) == pytest.approx(tuple(fit.conf_int(1 - level)[0]), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(VALUES)
def test_clusters_of_one_value_are_independent_values(values: list[float]) -> None:
    clustered, plain = cluster_mean(values, range(len(values))), mean_interval(values)
    assert clustered.value == pytest.approx(plain.value, abs=1e-9)
    assert clustered.standard_error == pytest.approx(plain.standard_error, abs=1e-9)


def test_the_formula_of_miller_without_the_correction() -> None:
    values, groups = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b", "c", "d"]
    mean = sum(values) / 6
    sums = [sum(v - mean for v, g in zip(values, groups, strict=True) if g == name) for name in "abcd"]
    expected = math.sqrt(sum(s * s for s in sums)) / 6
    assert cluster_mean(values, groups, small_sample=False).standard_error == pytest.approx(expected, abs=1e-12)


def test_the_suites_of_lohr() -> None:
    """The book samples 5 of 100 suites, so its standard error has the factor sqrt(1 - 5/100): 0.164."""
    values = [grade for suite in SUITES for grade in suite]
    ours = cluster_mean(values, [suite for suite in range(5) for _ in range(4)])
    assert ours.value == pytest.approx(2.826)
    assert ours.standard_error is not None
    assert ours.standard_error * math.sqrt(0.95) == pytest.approx(0.164, abs=5e-4)
    assert (ours.clusters, ours.df) == (5, 4)


def test_darwins_maize_and_students_t() -> None:
    """R. A. Fisher, "The Design of Experiments" (1935), section 17: t = 2.148 with 14 degrees of freedom."""
    inches = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    ours = mean_interval(inches)
    assert ours.value is not None
    assert ours.standard_error is not None
    assert ours.value == pytest.approx(20.933, abs=5e-4)
    assert ours.value / ours.standard_error == pytest.approx(2.148, abs=5e-4)


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=12, max_size=40, unique=True), LEVELS, st.integers(0, 2**32 - 1))
def test_bca_equals_scipy_on_the_same_resamples(values: list[float], level: float, seed: int) -> None:
    assume(max(values) - min(values) > 1e-6)
    theirs: Any = scipy.stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=499, method="BCa", rng=np.random.default_rng(seed)
    )
    ordered = np.sort(values)
    tails = bca_tails(
        theirs.bootstrap_distribution, float(np.mean(values)), acceleration(ordered, np.ones(len(values))), level
    )
    expected = tuple(theirs.confidence_interval)
    assume(np.isfinite(expected).all())  # scipy has no interval where all resamples are on one side
    ties = np.abs(theirs.bootstrap_distribution - np.mean(values)) < 1e-9
    assume(not ties.any())  # rounding decides in scipy what is a tie
    assert tuple(np.quantile(theirs.bootstrap_distribution, tails)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_resampled_means_that_are_all_on_one_side_count_as_half_a_one_on_the_other() -> None:
    bias = scipy.stats.norm.ppf(0.5 / 200)
    tails = scipy.stats.norm.cdf([2 * bias - 1.959963984540054, 2 * bias + 1.959963984540054])
    assert bca_tails(np.ones(200), 0.0, 0.0, 0.95) == pytest.approx(tuple(tails))


@pytest.mark.parametrize("kinds", [2, 20])
@pytest.mark.parametrize("cells", [1, 100, CELLS])
def test_there_are_as_many_resampled_means_as_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, kinds: int, cells: int
) -> None:
    """However many are drawn at once."""
    monkeypatch.setattr("karenina_compare.statistics.resampling.CELLS", cells)
    values = np.sort(np.arange(20.0) % kinds)
    assert len(resampled_means(values, np.ones(20), 253, 1)) == 253


def test_resampled_means_that_equal_the_mean_count_half_on_each_side() -> None:
    """Even if rounding puts them a little above or below: few passes and failures have many such ties."""
    spread = np.repeat([-1.0, 0.0, 1e-15, 1.0], [30, 10, 30, 30])
    assert bca_tails(spread, 0.0, 0.0, 0.95, 1e-13) == pytest.approx((0.025, 0.975), abs=1e-12)


def test_the_unit_of_the_values_does_not_matter() -> None:
    values = np.random.default_rng(6).lognormal(size=30)
    low, high = limits(bootstrap_mean(values))
    for unit in (1e-120, 1e-30, 1e40):
        assert limits(bootstrap_mean(values * unit)) == pytest.approx((low * unit, high * unit), rel=1e-9)
        assert limits(mean_interval(values * unit))[1] == pytest.approx(limits(mean_interval(values))[1] * unit)


@pytest.mark.parametrize("values", [np.arange(40.0) ** 2, np.repeat([0.0, 1.0, 5.0], [200, 300, 20])])
def test_resampled_means_have_mean_and_spread_of_the_values(values: np.ndarray) -> None:
    """Both ways to draw: values that all differ, and values that repeat."""
    means = resampled_means(np.sort(values), np.ones(len(values)), 20_000, 1)
    error = values.std() / math.sqrt(len(values))
    assert means.mean() == pytest.approx(values.mean(), abs=4 * error / math.sqrt(20_000))
    assert means.std() == pytest.approx(error, rel=0.02)
    assert scipy.stats.skew(means) == pytest.approx(scipy.stats.skew(values) / math.sqrt(len(values)), abs=0.08)


@pytest.mark.parametrize("values", [np.arange(1_000.0), np.repeat(np.arange(500.0), 16)])
def test_what_is_held_at_once_does_not_grow_with_the_resamples(values: np.ndarray) -> None:
    """Three numbers of eight bytes for each of the cells that are drawn at once, and some room."""
    tracemalloc.start()
    try:
        resampled_means(values, np.ones(len(values)), 10_000, 1)
        assert tracemalloc.get_traced_memory()[1] < 4 * 8 * CELLS
    finally:
        tracemalloc.stop()


def test_more_units_than_16_bits_are_drawn_in_blocks() -> None:
    values = np.random.default_rng(3).exponential(size=100_000)
    means = resampled_means(np.sort(values), np.ones(len(values)), 400, 1)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * values.std() / math.sqrt(100_000 * 400))
    assert means.std() == pytest.approx(values.std() / math.sqrt(100_000), rel=0.15)


def test_bca_is_skewed_where_the_values_are_and_percentile_is_its_own() -> None:
    values = np.random.default_rng(5).lognormal(sigma=1.2, size=40)
    bca, percentile = bootstrap_mean(values), bootstrap_mean(values, method="percentile")
    assert bca.value == percentile.value == pytest.approx(values.mean())
    (low, high), (percentile_low, percentile_high) = limits(bca), limits(percentile)
    assert low > percentile_low
    assert high > percentile_high
    assert bca.standard_error == pytest.approx(scipy.stats.sem(values), rel=0.05)
    assert bca.resamples == 9_999


def test_a_cluster_bootstrap_is_as_wide_as_the_cluster_robust_interval() -> None:
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(60), rng.integers(1, 8, 60))
    values = rng.normal(size=60)[clusters] + 0.3 * rng.normal(size=len(clusters))
    robust, drawn, naive = cluster_mean(values, clusters), bootstrap_mean(values, clusters), mean_interval(values)
    assert drawn.value == pytest.approx(robust.value)
    assert drawn.standard_error == pytest.approx(robust.standard_error, rel=0.05)
    assert naive.standard_error is not None
    assert robust.standard_error is not None
    assert robust.standard_error > 1.5 * naive.standard_error
    assert drawn.clusters == 60


def test_fewer_resamples_for_very_many_units() -> None:
    assert [default_resamples(n) for n in (0, 10, 10_000, 20_000, 10**6)] == [9_999, 9_999, 9_999, 5_000, 999]


@pytest.mark.parametrize("estimate", [mean_interval, bootstrap_mean, lambda v: cluster_mean(v, range(len(v)))])
def test_what_has_no_interval_says_why(estimate: Any) -> None:
    nothing, one, equal = estimate([]), estimate([0.7]), estimate([0.1] * 30)
    assert (nothing.value, nothing.interval, nothing.n) == (None, None, 0)
    assert "no values" in nothing.note
    assert (one.value, one.standard_error, one.interval) == (0.7, None, None)
    assert "one" in one.note
    assert (equal.value, equal.standard_error, equal.interval) == (pytest.approx(0.1), 0.0, None)
    assert "nothing varies" in equal.note


@pytest.mark.parametrize("estimate", [cluster_mean, bootstrap_mean])
def test_one_cluster_has_no_error(estimate: Any) -> None:
    ours = estimate([1.0, 2.0, 4.0], ["a", "a", "a"])
    assert (ours.value, ours.interval, ours.clusters) == (pytest.approx(7 / 3), None, 1)
    assert ours.note


def test_clusters_that_balance_out_have_no_spread() -> None:
    """Each cluster has the same mean: the estimated error is 0, and no interval of width 0 is claimed."""
    values, clusters = [0.1, 0.3] * 10, [i // 2 for i in range(20)]
    assert cluster_mean(values, clusters).interval is None
    assert bootstrap_mean(values, clusters).interval is None


def test_unknown_methods_and_too_few_resamples_are_refused() -> None:
    with pytest.raises(StatisticsError, match="bca or percentile"):
        bootstrap_mean([1, 2], method="basic")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(StatisticsError, match="from 100 on"):
        bootstrap_mean([1, 2], resamples=10)
