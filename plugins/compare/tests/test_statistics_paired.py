"""Two sides on the same questions: McNemar, sign flips, t tests and their intervals."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import (
    StatisticsError,
    bootstrap_mean,
    cluster_mean,
    flips,
    mcnemar,
    paired_bootstrap,
    paired_rate_difference,
    paired_test,
    permutation_test,
)

DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
"""Differences in height of fifteen pairs of maize plants, in eighths of an inch."""

SCORES = st.integers(-(50 * 2**20), 50 * 2**20).map(lambda number: number / 2**20)
"""Their differences are exact, and never so small that they count as rounding."""
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=40)
BOOLS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_equals_statsmodels_and_the_binomial_test(b: int, c: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar as mcnemar_of_statsmodels

    found = mcnemar(b, c)
    ours = found.p_value
    assert (found.only_first, found.only_second) == (b, c)
    assert ours == pytest.approx(mcnemar_of_statsmodels([[0, b], [c, 0]], exact=True).pvalue, abs=1e-9)
    if b + c:
        assert ours == pytest.approx(scipy.stats.binomtest(b, b + c).pvalue, abs=1e-9)


def test_differences_that_add_up_to_nothing_are_exactly_that_however_many_there_are() -> None:
    """None is drawn: every sum is as far from 0 as theirs."""
    values = [sign * size for size in range(1, 41) for sign in (-1, 1)]
    found = permutation_test(values, [0] * len(values))
    assert (found.difference, found.p_value, found.exact, found.resamples) == (0.0, 1.0, True, None)


@pytest.mark.parametrize("kinds", [(1, 2), (1, 3, 5, 7, 9, 11, 13, 15)])
def test_signs_that_are_drawn_give_nearly_the_share_of_all_signs(kinds: tuple[int, ...]) -> None:
    """Of which there are too many to look at each; the sums of whole numbers can be counted."""
    often = 64 // len(kinds)
    values = [size if place % 8 < 5 else -size for size in kinds for place in range(often)]
    ways = np.ones(1)
    for value in values:
        step = np.zeros(2 * abs(value) + 1)
        step[[0, -1]] = 0.5
        ways = np.convolve(ways, step)
    sums = np.abs(np.arange(len(ways)) - len(ways) // 2)
    share = float(ways[sums >= abs(sum(values))].sum())
    found = permutation_test(values, [0] * len(values))
    assert not found.exact
    assert found.p_value == pytest.approx(share, abs=4 * math.sqrt(share / 9_999))
    assert 0.005 < share < 0.5


def test_published_mcnemar_tests() -> None:
    """Airway hyper-responsiveness before and after transplantation, M. W. Fagerland, S. Lydersen, P. Laake, BMC Medical
    Research Methodology 13 (2013) 91: p = 0.0703."""
    assert mcnemar(1, 7).p_value == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar(0, 0).p_value == 1.0


def test_the_approval_of_the_prime_minister() -> None:
    """A. Agresti, "Categorical Data Analysis" (2nd ed. 2002), section 10.1: of 1,600 voters 150 change from approval to
    disapproval and 86 back. The change is -0.04, its standard error 0.0095, the interval (-0.06, -0.02)."""
    before = [True] * 944 + [False] * 656
    after = [True] * 794 + [False] * 150 + [True] * 86 + [False] * 570
    assert flips(after, before) == (86, 150)
    ours = paired_test(after, before)
    assert ours.difference.value == pytest.approx(-0.04)
    assert ours.difference.standard_error == pytest.approx(0.0095, abs=1e-4)
    interval = ours.difference.interval
    assert interval is not None
    assert (interval.low, interval.high) == (pytest.approx(-0.06, abs=0.005), pytest.approx(-0.02, abs=0.005))
    adjusted = paired_rate_difference(86, 150, 1600).interval
    assert adjusted is not None
    assert (adjusted.low, adjusted.high) == pytest.approx((interval.low, interval.high), abs=5e-4)
    assert mcnemar(86, 150).p_value == pytest.approx(permutation_test(after, before).p_value, abs=1e-12)


def test_darwins_maize_and_fishers_signs() -> None:
    """R. A. Fisher, "The Design of Experiments" (1935), section 21: in 863 of 32,768 the sum is at least 314."""
    ours = permutation_test(DARWIN, [0] * 15)
    assert ours.exact
    assert ours.p_value == 2 * 863 / 32_768
    t = paired_test(DARWIN, [0] * 15)
    assert (t.statistic, t.p_value) == (pytest.approx(2.148, abs=5e-4), pytest.approx(0.0497, abs=5e-5))


@settings(deadline=None)
@given(BOOLS)
def test_with_passes_and_failures_flipped_signs_are_the_exact_mcnemar_test(pairs: list[tuple[bool, bool]]) -> None:
    first, second = zip(*pairs, strict=True)
    b, c = flips(first, second)
    ours = permutation_test(first, second)
    assert ours.exact
    assert ours.p_value == pytest.approx(mcnemar(b, c).p_value, abs=1e-12)
    assert ours.difference == pytest.approx((b - c) / len(pairs))


@settings(deadline=None)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=9))
def test_signs_are_enumerated_with_ties_and_zeros(differences: list[int]) -> None:
    """Zeros flipped too change nothing. Tenths, whose sums are rounded, tie like whole numbers."""
    observed = abs(sum(differences))
    ways = list(itertools.product([1, -1], repeat=len(differences)))
    hits = sum(abs(sum(s * d for s, d in zip(way, differences, strict=True))) >= observed for way in ways)
    for scale in (1, 0.1):
        ours = permutation_test([d * scale for d in differences], [0] * len(differences))
        assert ours.exact
        assert ours.p_value == pytest.approx(float(Fraction(hits, len(ways))), abs=1e-12)


def test_flipped_signs_equal_scipy() -> None:
    first, second = [0.61, 0.7, 0.2, 0.93, 0.5, 0.44], [0.5, 0.72, 0.1, 0.6, 0.31, 0.4]
    theirs = scipy.stats.permutation_test(
        (first, second), lambda a, b: np.mean(a) - np.mean(b), permutation_type="samples", n_resamples=np.inf
    )
    assert permutation_test(first, second).p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("steps", [4, 1000])
def test_drawn_signs_come_close_to_all_signs(steps: int) -> None:
    """40 differences are too many to go through all signs; few kinds of sizes are drawn in another way than many."""
    rng = np.random.default_rng(steps)
    differences = np.round(rng.normal(0.4, 1, 40) * steps) / steps
    ours = permutation_test(differences, np.zeros(40))
    assert (ours.exact, ours.resamples) == (False, 9_999)
    # The exact distribution of the sum in units of 1/steps, by convolution.
    units = np.abs(np.round(differences * steps)).astype(int)
    chances = np.ones(1)
    for unit in units:
        wider = np.zeros(len(chances) + 2 * unit)
        wider[: len(chances)] += chances / 2
        wider[2 * unit :] += chances / 2
        chances = wider
    sums = np.arange(len(chances)) - units.sum()
    exact = chances[np.abs(sums) >= abs(round(float(differences.sum()) * steps))].sum()
    assert ours.p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 9_999) + 1e-4)


def test_drawn_signs_never_give_0() -> None:
    values = np.concatenate([np.arange(1.0, 36), -np.arange(20.0, 28)])
    ours = permutation_test(values, np.zeros(43), resamples=199)
    assert (ours.p_value, ours.bounded) == (1 / 200, False)  # no hit, and the bound says less
    largest = permutation_test(np.arange(1.0, 20_001), np.zeros(20_000), resamples=199)
    assert largest.p_value > 0


@settings(deadline=None, max_examples=settings().max_examples)
@given(st.lists(st.integers(1, 30), min_size=21, max_size=40), st.integers(0, 6))
def test_where_no_drawn_sum_is_as_far_the_bound_is_above_the_exact_share(sizes: list[int], turned: int) -> None:
    """The exact distribution of the sum, by convolution in whole numbers."""
    values = [-size if place < turned else size for place, size in enumerate(sizes)]
    ways = {0: 1}
    for size in sizes:
        more: Counter[int] = Counter()
        for total, count in ways.items():
            more[total + size] += count
            more[total - size] += count
        ways = dict(more)
    exact = sum(count for total, count in ways.items() if abs(total) >= abs(sum(values))) / 2 ** len(sizes)
    ours = permutation_test(values, [0] * len(values), resamples=999)
    if ours.bounded:
        assert exact <= ours.p_value * (1 + 1e-12)
        assert ours.p_value < 1 / 1000
        assert ours.p_value == pytest.approx(
            2 * math.exp(-(sum(values) ** 2) / (2 * sum(size * size for size in sizes))), rel=1e-6
        )
    elif not ours.exact and ours.p_value == 1 / 1000:
        assert sum(values) ** 2 <= 2 * math.log(2000) * sum(size * size for size in sizes) * (1 + 1e-9)


def test_the_bound_counts_only_where_nothing_was_hit() -> None:
    """Taken wherever it is smaller, it would be a second chance, and the test would be wrong too often."""
    values = np.arange(1.0, 26)
    values[[0, 1, 2, 3, 4, 5, 10, 14]] *= -1
    bound = 2 * math.exp(-(values.sum() ** 2) / (2 * np.square(values).sum()))
    drawn = [permutation_test(values, np.zeros(25), resamples=100, seed=seed) for seed in range(40)]
    some = [test for test in drawn if test.p_value > 1 / 101]
    assert any(bound < test.p_value for test in some)
    assert not any(test.bounded for test in some)


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_the_bound_has_no_unit(unit: float) -> None:
    values = np.arange(1.0, 61)
    ours, plain = (permutation_test(values * factor, np.zeros(60)) for factor in (unit, 1.0))
    assert ours.bounded
    assert ours.p_value == pytest.approx(plain.p_value)


def test_clusters_flip_together() -> None:
    """Four clusters of the same sign: 2 of 16 sign patterns are as extreme, however many questions there are."""
    first = np.random.default_rng(2).uniform(0.5, 1, 40)
    ours = permutation_test(first, np.zeros(40), [i // 10 for i in range(40)])
    assert ours.exact
    assert ours.p_value == pytest.approx(2 / 16)


@settings(deadline=None)
@given(PAIRS)
def test_the_paired_test_equals_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = map(list, zip(*pairs, strict=True))
    differences = np.subtract(first, second)
    assume(differences.std() > 1e-6 * np.abs(differences).max())
    ours, theirs = paired_test(first, second), scipy.stats.ttest_rel(first, second)
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-9)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9, abs=1e-9)
    interval, expected = ours.difference.interval, theirs.confidence_interval()
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(PAIRS, st.data())
def test_the_clustered_paired_test_is_the_clustered_mean_of_the_differences(
    pairs: list[tuple[float, float]], data: st.DataObject
) -> None:
    first, second = map(list, zip(*pairs, strict=True))
    clusters = data.draw(st.lists(st.integers(0, 5), min_size=len(pairs), max_size=len(pairs)))
    ours = paired_test(first, second, clusters)
    expected = cluster_mean(np.subtract(first, second), clusters)
    assert ours.difference == expected
    if ours.p_value is not None and ours.statistic is not None:
        df = len(set(clusters)) - 1
        assert ours.p_value == pytest.approx(2 * scipy.stats.t.sf(abs(ours.statistic), df), abs=1e-9)


@settings(max_examples=settings().max_examples // 3, deadline=None)
@given(PAIRS, st.sampled_from([0.8, 0.95]))
def test_the_paired_bootstrap_draws_differences(pairs: list[tuple[float, float]], level: float) -> None:
    first, second = map(list, zip(*pairs, strict=True))
    ours = paired_bootstrap(first, second, level=level, resamples=200)
    assert ours == bootstrap_mean(np.subtract(first, second), level=level, resamples=200)


@settings(deadline=None)
@given(BOOLS, st.sampled_from([0.9, 0.95]))
def test_the_adjusted_interval_is_wald_with_a_half_more_in_each_cell(
    pairs: list[tuple[bool, bool]], level: float
) -> None:
    """Adding 1 to both cells that differ, and 2 to the questions, and Wald's interval of the mean difference."""
    b, c = flips(*zip(*pairs, strict=True))
    n = len(pairs)
    differences = np.array([1] * (b + 1) + [-1] * (c + 1) + [0] * (n - b - c))
    half = scipy.stats.norm.ppf((1 + level) / 2) * differences.std() / np.sqrt(n + 2)
    ours = paired_rate_difference(b, c, n, level)
    assert ours.interval is not None
    expected = np.clip([differences.mean() - half, differences.mean() + half], -1, 1)
    assert (ours.interval.low, ours.interval.high) == pytest.approx(tuple(expected), abs=1e-9)
    assert ours.value == pytest.approx((b - c) / n)


def test_equal_sides_differ_by_nothing_and_the_test_says_so() -> None:
    ours = paired_test([1, 0, 1], [1, 0, 1])
    assert (ours.difference.value, ours.difference.interval, ours.p_value, ours.statistic) == (0.0, None, 1.0, None)
    assert permutation_test([1, 0, 1], [1, 0, 1]).p_value == 1.0
    interval = paired_rate_difference(0, 0, 100).interval
    assert interval is not None
    assert interval.low == pytest.approx(-interval.high)
    assert 0.01 < interval.high < 0.05


def test_rounding_is_no_difference() -> None:
    """0.1 + 0.2 - 0.3 is not 0 for the machine; fifty such questions are still fifty equal ones."""
    first, second = [0.1 + 0.2, 1.1 + 2.2] * 25, [0.3, 3.3] * 25
    assert paired_test(first, second).p_value == permutation_test(first, second).p_value == 1.0
    assert paired_bootstrap(first, second).standard_error == 0.0


def test_a_constant_difference_has_no_t_test() -> None:
    ours = paired_test([1, 1, 1, 1], [0, 0, 0, 0])
    assert (ours.difference.value, ours.p_value) == (1.0, None)
    assert "nothing varies" in ours.difference.note
    assert permutation_test([1, 1, 1, 1], [0, 0, 0, 0]).p_value == 2 / 16


def test_no_questions_and_one_question() -> None:
    assert (paired_test([], []).p_value, paired_test([], []).difference.value) == (None, None)
    assert permutation_test([], []).difference is None
    assert permutation_test([], []).p_value == 1.0
    assert paired_rate_difference(0, 0, 0).value is None
    assert paired_test([1], [0]).p_value is None
    assert permutation_test([1], [0]).p_value == 1.0


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(StatisticsError, match="same questions"):
        permutation_test([1, 0], [1])
    with pytest.raises(StatisticsError, match="not all 0 or 1"):
        flips([0.5], [1])
    with pytest.raises(StatisticsError, match="of 2 questions differ"):
        paired_rate_difference(2, 1, 2)
    with pytest.raises(StatisticsError):
        mcnemar(-1, 2)
