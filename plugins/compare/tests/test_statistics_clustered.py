"""A rate over items that come in clusters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import StatisticsError, cluster_mean, cluster_rate, wilson

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=40)
LAW = settings(deadline=None, derandomize=True)


@LAW
@given(ROWS)
def test_limits_are_shares_hold_the_rate_and_do_not_depend_on_the_order(rows: list[tuple[int, int]]) -> None:
    found = cluster_rate([value for _, value in rows], [name for name, _ in rows])
    mixed = sorted(rows)
    assert cluster_rate([value for _, value in mixed], [name for name, _ in mixed]) == found
    assert found.value == pytest.approx(np.mean([value for _, value in rows]))
    assert (found.interval is None) == (found.clusters == 1)
    if found.interval and found.value is not None:
        assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1


def test_the_formula_is_that_of_wilson_for_the_items_that_they_are_worth() -> None:
    values, names = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    found, robust = cluster_rate(values, names), cluster_mean(values, names)
    assert robust.standard_error
    z, p = scipy.stats.norm.ppf(0.975), 0.6
    worth = min(10, p * (1 - p) / robust.standard_error**2) * (z / scipy.stats.t.ppf(0.975, 4)) ** 2
    half = z * np.sqrt(p * (1 - p) / worth + z**2 / (4 * worth**2)) / (1 + z**2 / worth)
    centre = (p + z**2 / (2 * worth)) / (1 + z**2 / worth)
    assert found.interval
    assert (found.interval.low, found.interval.high) == pytest.approx((centre - half, centre + half), abs=1e-9)
    assert found.standard_error == robust.standard_error


def test_where_all_pass_every_cluster_counts_as_one_item() -> None:
    found, few = cluster_rate([1] * 60, [i // 3 for i in range(60)]), wilson(20, 20)
    assert found.interval
    assert few
    assert found.interval.low == pytest.approx(few.low)
    assert found.interval.high == 1
    assert found.note == ""


def test_one_cluster_has_no_interval_and_scores_are_refused() -> None:
    alone = cluster_rate([1, 0, 1], ["same"] * 3)
    assert (alone.interval, alone.note) == (None, "one cluster says nothing about the error")
    with pytest.raises(StatisticsError, match="use cluster_mean"):
        cluster_rate([0.5, 1], [1, 2])


def test_the_rate_is_covered_where_answers_to_a_question_are_alike() -> None:
    rng = np.random.default_rng(11)
    questions = np.repeat(np.arange(30), 4)
    robust, naive = 0, 0
    for _ in range(600):
        values = rng.random(120) < rng.beta(0.9, 0.3, 30)[questions]
        inside, plain = cluster_rate(values, questions).interval, wilson(int(values.sum()), 120)
        assert inside
        assert plain
        robust += inside.low <= 0.75 <= inside.high
        naive += plain.low <= 0.75 <= plain.high
    assert robust / 600 == pytest.approx(0.95, abs=0.03)
    assert naive / 600 < 0.85
