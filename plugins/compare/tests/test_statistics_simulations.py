"""Simulated data of which the truth is known: intervals cover it, tests are wrong as rarely as they say.

Every simulation has a fixed seed. The margins are those of the simulation itself (about four standard errors), on top
of what a method is known to miss.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from karenina_compare.statistics import (
    Interval,
    PairedVariance,
    benjamini_hochberg,
    bootstrap_mean,
    cluster_mean,
    holm,
    mcnemar,
    mcnemar_sample_size,
    mean_interval,
    minimal_detectable_effect,
    paired_rate_difference,
    paired_test,
    pass_at_k,
    permutation_test,
    rate_bounds,
)


def covers(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high


def test_student_covers_the_mean_of_normal_values() -> None:
    rng = np.random.default_rng(1)
    hits = [covers(mean_interval(rng.normal(3, 2, 8)).interval, 3) for _ in range(2_000)]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.02)


def test_clusters_are_covered_where_independence_is_an_illusion() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(40), 5)
    robust, naive = [], []
    for _ in range(800):
        values = rng.normal(size=40)[clusters] + 0.5 * rng.normal(size=200)
        robust.append(covers(cluster_mean(values, clusters).interval, 0))
        naive.append(covers(mean_interval(values).interval, 0))
    assert np.mean(robust) == pytest.approx(0.945, abs=0.03)
    assert np.mean(naive) < 0.75


@pytest.mark.parametrize("method", ["bca", "percentile"])
def test_the_bootstrap_covers_the_mean_of_skewed_values(method: str) -> None:
    rng = np.random.default_rng(3)
    drawn = [rng.exponential(size=60) for _ in range(250)]
    hits = [covers(bootstrap_mean(v, resamples=500, method=method).interval, 1) for v in drawn]  # type: ignore[arg-type]  # one of two
    assert np.mean(hits) == pytest.approx(0.94, abs=0.05)


def test_the_cluster_bootstrap_covers() -> None:
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(40), rng.integers(1, 6, 40))
    hits = []
    for _ in range(250):
        values = rng.normal(size=40)[clusters] + rng.normal(size=len(clusters))
        hits.append(covers(bootstrap_mean(values, clusters, resamples=500).interval, 0))
    assert np.mean(hits) == pytest.approx(0.94, abs=0.05)


def test_pass_at_k_is_covered() -> None:
    rng = np.random.default_rng(5)
    hits = []
    for _ in range(1_000):
        rates = rng.beta(0.6, 0.6, 60)
        hits.append(covers(pass_at_k(rng.binomial(8, rates), np.full(60, 8), 3).interval, 0.7159090909090909))
    assert np.mean(hits) == pytest.approx(0.945, abs=0.03)


def test_bounds_cover_the_rate_even_if_failures_hide() -> None:
    """Failing items are three times as likely to be missing: the rest is misleading, the bounds are not."""
    rng = np.random.default_rng(6)
    bounded, naive = [], []
    for _ in range(1_000):
        passed = rng.random(200) < 0.6
        seen = rng.random(200) > np.where(passed, 0.1, 0.3)
        k, n = int((passed & seen).sum()), int(seen.sum())
        bounded.append(covers(rate_bounds(k, n, 200).interval, 0.6))
        naive.append(covers(rate_bounds(k, n, n).interval, 0.6))
    assert np.mean(bounded) >= 0.95
    assert np.mean(naive) < 0.75


def test_the_adjusted_interval_of_two_rates_covers() -> None:
    rng = np.random.default_rng(7)
    cells = rng.multinomial(40, [0.1, 0.05, 0.85], size=3_000)
    hits = [covers(paired_rate_difference(b, c, 40).interval, 0.05) for b, c, _ in cells.tolist()]
    assert np.mean(hits) == pytest.approx(0.96, abs=0.02)


def test_permutation_p_values_are_uniform_where_nothing_differs() -> None:
    rng = np.random.default_rng(8)
    exact = np.array([permutation_test(rng.normal(size=11), np.zeros(11)).p_value for _ in range(2_000)])
    more = [permutation_test(rng.normal(size=25), np.zeros(25), resamples=199, seed=seed) for seed in range(2_000)]
    drawn = np.array([test.p_value for test in more])
    for p_values in (exact, drawn):
        for alpha in (0.05, 0.2, 0.5):
            assert (p_values <= alpha).mean() == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 2_000))


def test_exact_mcnemar_is_never_wrong_more_often_than_it_says() -> None:
    rng = np.random.default_rng(9)
    cells = rng.multinomial(100, [0.15, 0.15, 0.7], size=3_000)
    wrong = np.mean([mcnemar(b, c).p_value <= 0.05 for b, c, _ in cells.tolist()])
    assert 0.01 < wrong <= 0.05


def test_the_paired_test_with_clusters_holds_its_level_and_without_does_not() -> None:
    rng = np.random.default_rng(10)
    clusters = np.repeat(np.arange(40), 5)
    differences = [rng.normal(size=40)[clusters] + 0.5 * rng.normal(size=200) for _ in range(800)]
    zeros = np.zeros(200)
    robust = np.mean([(paired_test(d, zeros, clusters).p_value or 1) <= 0.05 for d in differences])
    naive = np.mean([(paired_test(d, zeros).p_value or 1) <= 0.05 for d in differences])
    assert robust == pytest.approx(0.055, abs=0.03)
    assert naive > 0.25


def test_holm_bounds_false_claims_over_all_comparisons() -> None:
    """Twenty comparisons, twelve of which are of equals, all correlated."""
    rng = np.random.default_rng(11)
    shift = np.r_[np.zeros(12), np.full(8, 3.0)]
    z = shift + 0.5 * rng.normal(size=(3_000, 1)) + np.sqrt(0.75) * rng.normal(size=(3_000, 20))
    p = 2 * scipy.stats.norm.sf(np.abs(z))
    claimed = np.array([holm(row) for row in p]) <= 0.05
    assert claimed[:, :12].any(axis=1).mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 3_000)
    assert claimed[:, 12:].mean() > 0.4
    assert (p[:, :12] <= 0.05).any(axis=1).mean() > 0.3


def test_benjamini_hochberg_bounds_the_share_of_false_claims() -> None:
    rng = np.random.default_rng(12)
    shift = np.r_[np.zeros(12), np.full(8, 3.0)]
    p = 2 * scipy.stats.norm.sf(np.abs(shift + rng.normal(size=(3_000, 20))))
    claimed = np.array([benjamini_hochberg(row) for row in p]) <= 0.05
    false = claimed[:, :12].sum(axis=1) / np.maximum(1, claimed.sum(axis=1))
    assert false.mean() == pytest.approx(0.05 * 12 / 20, abs=0.01)


def test_the_minimal_detectable_effect_is_found_as_often_as_it_says() -> None:
    """Two models, three and two answers to each of 150 questions."""
    rng = np.random.default_rng(13)
    variance = PairedVariance(
        between=0.02, within_first=0.16, within_second=0.16, replicates_first=3, replicates_second=2
    )
    effect = minimal_detectable_effect(variance, 150)
    found = []
    for _ in range(1_200):
        true = effect + rng.normal(0, np.sqrt(0.02), 150)
        first = true + rng.normal(0, 0.4, (3, 150)).mean(axis=0)
        p_value = paired_test(first, rng.normal(0, 0.4, (2, 150)).mean(axis=0)).p_value
        found.append(p_value is not None and p_value <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.05)


def test_the_size_for_mcnemar_has_the_power_it_promises() -> None:
    rng = np.random.default_rng(14)
    n = mcnemar_sample_size(0.12, 0.06)
    cells = rng.multinomial(n, [0.12, 0.06, 0.82], size=20_000)
    b, c = cells[:, 0], cells[:, 1]
    found = np.abs(b - c) / np.sqrt(np.maximum(b + c, 1)) >= scipy.stats.norm.ppf(0.975)
    assert found.mean() == pytest.approx(0.8, abs=0.02)
