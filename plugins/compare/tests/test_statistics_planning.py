"""How many questions are needed, and which difference can be found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import (
    PairedVariance,
    StatisticsError,
    detectable_difference,
    mcnemar_sample_size,
    minimal_detectable_effect,
    paired_variance,
    sample_size,
)

VARIANCES = st.builds(
    lambda b, w1, w2, k1, k2: PairedVariance(
        between=b, within_first=w1, within_second=w2, replicates_first=k1, replicates_second=k2
    ),
    st.floats(0.001, 1),
    st.floats(0, 0.25),
    st.floats(0, 0.25),
    st.integers(1, 20),
    st.integers(1, 20),
)
RATES = st.floats(0.01, 0.5)


def test_the_questions_of_miller() -> None:
    """arXiv:2411.00640, section 5: omega² = 1/9 and no variance within questions; 3 points need about 969 questions."""
    assert sample_size(PairedVariance(between=1 / 9), 0.03) == 969


def test_the_replicates_of_miller() -> None:
    """Same section: with 198 questions and sigma² = 1/6, ten answers instead of one lower the effect that can be found
    from 13.2 to 7.5 points. The paper computes with z rounded to 1.96 and 0.84."""
    parts = {"between": 1 / 9, "within_first": 1 / 6, "within_second": 1 / 6}
    one = minimal_detectable_effect(PairedVariance(**parts), 198)
    ten = minimal_detectable_effect(PairedVariance(**parts, replicates_first=10, replicates_second=10), 198)
    assert (one, ten) == (pytest.approx(0.132, abs=1e-3), pytest.approx(0.075, abs=1e-3))


@pytest.mark.parametrize(("replicates", "saved"), [(1, 0), (2, 1 / 3), (4, 1 / 2), (6, 5 / 9)])
def test_what_replicates_save_in_the_example_of_miller(replicates: int, saved: float) -> None:
    """Section 3.1: rates uniform between 0 and 1 have Var(x) = 1/12 and E(sigma²) = 1/6."""
    variance = PairedVariance(between=1 / 12, within_first=1 / 6, replicates_first=replicates)
    assert variance.total / 0.25 == pytest.approx(1 - saved)


@settings(deadline=None)
@given(VARIANCES, st.floats(0.01, 0.3), st.sampled_from([0.01, 0.05]), st.sampled_from([0.8, 0.9]))
def test_size_and_effect_are_inverse(variance: PairedVariance, effect: float, alpha: float, power: float) -> None:
    n = sample_size(variance, effect, alpha, power)
    assert minimal_detectable_effect(variance, n, alpha, power) <= effect * (1 + 1e-12)
    if n > 1:
        assert minimal_detectable_effect(variance, n - 1, alpha, power) > effect * (1 - 1e-12)


@settings(deadline=None)
@given(VARIANCES, st.floats(0.01, 0.3))
def test_the_size_equals_statsmodels(variance: PairedVariance, effect: float) -> None:
    from statsmodels.stats.power import normal_sample_size_one_tail

    theirs = normal_sample_size_one_tail(effect, 0.8, 0.05 / 2, std_null=math.sqrt(variance.total))
    assert sample_size(variance, effect) == max(1, math.ceil(theirs - 1e-9))


@settings(deadline=None)
@given(RATES, RATES)
def test_the_size_for_mcnemar_equals_statsmodels(first: float, second: float) -> None:
    from statsmodels.stats.power import normal_sample_size_one_tail

    psi, delta = first + second, abs(first - second)
    if delta < 0.005:
        return
    theirs = normal_sample_size_one_tail(
        delta, 0.8, 0.05 / 2, std_null=math.sqrt(psi), std_alternative=math.sqrt(psi - delta**2)
    )
    assert mcnemar_sample_size(first, second) == math.ceil(theirs - 1e-9) == mcnemar_sample_size(second, first)


def test_published_sizes_for_mcnemar() -> None:
    """powerandsamplesize.com, "McNemar's Z-test, 2-Sided Equality", after R. J. Connor (1987): 23 pairs."""
    assert mcnemar_sample_size(0.45, 0.05) == 23


def test_the_detectable_difference_has_the_power_it_promises() -> None:
    """Bloom's approximation against the noncentral t distribution of statsmodels."""
    from statsmodels.stats.power import TTestPower

    error = 0.02
    for questions in (10, 30, 200):
        effect = detectable_difference(error, questions - 1)
        standardized = effect / (error * math.sqrt(questions))
        assert TTestPower().power(standardized, questions, 0.05) == pytest.approx(0.8, abs=0.01)
    assert detectable_difference(error) == pytest.approx(0.02 * (1.959964 + 0.841621), abs=1e-7)
    assert detectable_difference(0.0) == 0.0


def test_the_parts_of_the_variance_come_back() -> None:
    rng = np.random.default_rng(11)
    x = rng.uniform(0, 1, (4_000, 2))
    first, second = (rng.random((4_000, k)) < x[:, [side]] for side, k in ((0, 3), (1, 5)))
    ours = paired_variance(first.tolist(), second.tolist())
    assert ours.between == pytest.approx(2 / 12, abs=0.01)
    assert ours.within_first == pytest.approx(1 / 6, abs=0.01)
    assert ours.within_second == pytest.approx(1 / 6, abs=0.01)
    assert (ours.replicates_first, ours.replicates_second) == (3, 5)
    observed = (first.mean(axis=1) - second.mean(axis=1)).var(ddof=1)
    assert ours.total == pytest.approx(observed, abs=1e-12)


def test_with_one_replicate_the_noise_is_in_the_variance_between() -> None:
    ours = paired_variance([[1], [0], [1]], [[0], [0], [1]])
    assert (ours.within_first, ours.within_second) == (0, 0)
    assert ours.total == pytest.approx(np.var([1, 0, 0], ddof=1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_size(PairedVariance(between=0.1), 0.0),
        lambda: sample_size(PairedVariance(between=0.1), math.nan),
        lambda: sample_size(PairedVariance(between=0.1), 0.1, power=1.0),
        lambda: PairedVariance(between=-0.1),
        lambda: PairedVariance(between=math.nan),
        lambda: PairedVariance(between=0.1, replicates_first=0),
        lambda: minimal_detectable_effect(PairedVariance(between=0.1), 0),
        lambda: detectable_difference(math.inf),
        lambda: detectable_difference(0.1, 0),
        lambda: mcnemar_sample_size(0.2, 0.2),
        lambda: mcnemar_sample_size(0.7, 0.4),
        lambda: paired_variance([[1, 0]], [[1, 0]]),
        lambda: paired_variance([[1, 0], [1]], [[1, 0], [1, 1]]),
        lambda: paired_variance([[], []], [[1], [1]]),
    ],
)
def test_what_cannot_be_planned_is_refused(call: object) -> None:
    with pytest.raises(StatisticsError, match="give"):
        call()  # type: ignore[operator]  # a lambda


@pytest.mark.parametrize(("first", "second"), [(0, 0), (-0.1, 0.3), (0.3, -0.1), (0.6, 0.5)])
def test_shares_of_questions_that_cannot_be_are_refused(first: float, second: float) -> None:
    with pytest.raises(StatisticsError, match="give two rates with a sum of at most 1"):
        mcnemar_sample_size(first, second)
