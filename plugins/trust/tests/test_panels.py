"""Panels of judges, and judges in the place of people."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import StatisticsError
from karenina_trust.estimators import alt_test, dawid_skene, effective_votes, error_correlation, majority, votes_of


def votes(rng: np.random.Generator, truth: Any, rates: list[float], missing: float = 0.0) -> list[list[float | None]]:
    """A vote of each judge on each item, right as often as its rate says."""
    return [
        [None if rng.random() < missing else float(item if rng.random() < rate else not item) for rate in rates]
        for item in truth
    ]


@pytest.mark.parametrize(
    ("judges", "correlation", "worth"), [(9, 0.0, 9.0), (9, 1.0, 1.0), (9, 0.4375, 2.0), (5, -0.2, 5.0), (1, 0.3, 1.0)]
)
def test_votes_are_worth_what_the_formula_says(judges: int, correlation: float, worth: float) -> None:
    assert effective_votes(judges, correlation) == pytest.approx(worth)


def test_errors_that_always_come_together_correlate_by_one() -> None:
    truth = [1, 1, 0, 0]
    assert error_correlation(votes_of([[0, 0], [1, 1], [0, 0], [0, 0]]), truth) == pytest.approx(1.0)
    assert error_correlation(votes_of([[0, 1], [1, 0], [0, 0], [1, 1]]), truth) == pytest.approx(0.0)
    assert error_correlation(votes_of([[1, 1], [1, 1], [0, 0], [0, 0]]), truth) is None


def test_a_tie_and_no_vote_have_no_majority() -> None:
    rows = [[1, 1, 0], [1, 0, None], [None, None, None], [0, 0, 1]]
    assert majority(votes_of(rows)) == [True, None, None, False]
    with pytest.raises(StatisticsError, match="scores"):
        votes_of([[0.5]])
    with pytest.raises(StatisticsError, match="one vote"):
        votes_of([[1], [1, 0]])


def plain_dawid_skene(rows: list[list[float | None]], rounds: int) -> list[float]:
    """The same model in plain loops."""
    chance = []
    for row in rows:
        cast = [vote for vote in row if vote is not None]
        chance.append(sum(cast) / len(cast) if cast else 0.5)
    for _ in range(rounds):
        share = (sum(chance) + 1) / (len(chance) + 2)
        tables = []
        for judge in range(len(rows[0])):
            seen = [(p, row[judge]) for p, row in zip(chance, rows, strict=True) if row[judge] is not None]
            hits = (sum(p for p, v in seen if v == 1) + 1) / (sum(p for p, _ in seen) + 2)
            passes = (sum(1 - p for p, v in seen if v == 0) + 1) / (sum(1 - p for p, _ in seen) + 2)
            tables.append((hits, passes))
        updated = []
        for row in rows:
            yes, no = share, 1 - share
            for vote, (hits, passes) in zip(row, tables, strict=True):
                if vote is not None:
                    yes *= hits if vote else 1 - hits
                    no *= 1 - passes if vote else passes
            updated.append(yes / (yes + no))
        chance = updated
    return chance


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_reliability_is_that_of_a_plain_implementation_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = votes(rng, rng.random(25) < 0.6, [0.9, 0.7, 0.8], missing=0.2)
    if all(vote is None for row in rows for vote in row):
        return
    found = dawid_skene(votes_of(rows))
    assert found.probability == pytest.approx(plain_dawid_skene(rows, found.rounds), abs=1e-9)
    items, judges = rng.permutation(25), rng.permutation(3)
    turned = dawid_skene(votes_of([[rows[item][judge] for judge in judges] for item in items]))
    assert turned.probability == pytest.approx(found.probability[items], abs=1e-7)
    assert turned.sensitivity == pytest.approx(found.sensitivity[judges], abs=1e-7)


def test_weighted_votes_beat_the_majority_and_name_the_inverted_judge() -> None:
    rng = np.random.default_rng(5)
    truth = rng.random(600) < 0.6
    cast = votes_of(votes(rng, truth, [0.95, 0.65, 0.65, 0.2]))
    found = dawid_skene(cast)
    assert found.inverted == [3]
    assert found.sensitivity[0] == pytest.approx(0.95, abs=0.05)
    assert found.prevalence == pytest.approx(0.6, abs=0.06)
    by_weight = np.mean([a == b for a, b in zip(found.verdicts, truth, strict=True)])
    by_count = np.mean([a == b for a, b in zip(majority(cast), truth, strict=True)])
    assert by_weight > by_count + 0.1
    with pytest.raises(StatisticsError, match="no judge"):
        dawid_skene(votes_of([[None]]))


def people(rng: np.random.Generator, truth: Any, rates: list[float]) -> tuple[list[float], list[list[float | None]]]:
    rows = votes(rng, truth, rates)
    return [row[0] for row in rows], [row[1:] for row in rows]  # type: ignore[misc] # none is missing


@pytest.mark.parametrize(("right", "passed"), [(0.9, True), (0.85, True), (0.5, False)])
def test_a_judge_as_good_as_people_may_take_their_place(right: float, passed: bool) -> None:
    rng = np.random.default_rng(8)
    found = alt_test(*people(rng, rng.random(300) < 0.5, [right, 0.85, 0.85, 0.85]))
    assert found.passed is passed
    assert (found.winning_rate == 1.0) is passed
    assert found.advantage == pytest.approx(sum(one.judge for one in found.annotators) / 3)


def test_an_annotator_is_compared_by_a_paired_test_against_the_margin() -> None:
    rng = np.random.default_rng(9)
    judge, labels = people(rng, rng.random(80) < 0.5, [0.8, 0.9, 0.8, 0.7])
    found = alt_test(judge, labels, margin=0.15)
    p_values = []
    for place in range(3):
        closer, person = [], []
        for said, row in zip(judge, labels, strict=True):
            others = row[:place] + row[place + 1 :]
            machine, own = (sum(value == other for other in others) for value in (said, row[place]))
            closer.append(float(machine >= own))
            person.append(float(own >= machine))
        assert (found.annotators[place].judge, found.annotators[place].person) == (np.mean(closer), np.mean(person))
        p_values.append(float(scipy.stats.ttest_rel(np.asarray(person) - 0.15, closer, alternative="less").pvalue))
    factor = 3 * sum(1 / k for k in (1, 2, 3))
    assert min(one.p_value for one in found.annotators) <= min(1.0, min(p_values) * factor) + 1e-12
    assert max(one.p_value for one in found.annotators) == pytest.approx(min(1.0, max(p_values) * factor / 3), rel=1e-9)


def test_scores_are_compared_by_their_distance_and_few_items_are_refused() -> None:
    rng = np.random.default_rng(10)
    truth = rng.normal(size=60)
    labels = [[float(value + rng.normal()) for _ in range(3)] for value in truth]
    assert alt_test([float(value) for value in truth], labels, scale="interval").passed
    assert not alt_test([100.0] * 60, labels, scale="interval").passed
    with pytest.raises(StatisticsError, match="three annotators"):
        alt_test([1.0], [[1.0, 0.0]])
    with pytest.raises(StatisticsError, match="annotator 1 has 20 items"):
        alt_test([1.0] * 20, [[1.0, 0.0, 1.0]] * 20)
    assert math.isclose(alt_test([1.0] * 40, [[1.0, 1.0, 1.0]] * 40).advantage, 1.0)
