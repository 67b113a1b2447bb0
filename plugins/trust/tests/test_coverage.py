"""Simulated worlds of which the truth is known: 95 % intervals of what is recommended hold it in 93 to 97 % of draws.

Every simulation has a fixed seed. With 400 draws a share of 95 % is known to 1.1 points, so that the margins here are
wider; `--long` draws 4,000.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from karenina_runs.summaries.intervals import Estimate
from karenina_trust.estimators import Sample, judge_alone, people_alone, ppi_plus, rogan_gladen

WORLDS = list(itertools.product((60, 300), (0.5, 0.85), ((0.95, 0.9), (0.8, 0.7))))
"""Labels, the share of right answers, sensitivity and specificity of the judge."""
OTHERS = 600
"""Items without a label."""


def drawn(
    rng: np.random.Generator, labels: int, rate: float, judge: tuple[float, float], often: int, others: int = OTHERS
) -> Iterator[Sample]:
    for _ in range(often):
        truth = rng.random(labels + others) < rate
        says = np.where(truth, rng.random(len(truth)) < judge[0], rng.random(len(truth)) > judge[1])
        yield Sample.of(says, [*truth[:labels].astype(float), *[None] * others])


def covered(estimator: Callable[[Sample], Estimate], samples: Iterator[Sample], truth: float) -> float:
    intervals = [estimator(sample).interval for sample in samples]
    return float(np.mean([interval is not None and interval.low <= truth <= interval.high for interval in intervals]))


@pytest.fixture
def long(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--long", default=False))


@pytest.fixture
def often(long: bool) -> int:
    return 4_000 if long else 400


@pytest.fixture
def margin(long: bool) -> float:
    """Beside the two points that are promised: three standard errors of the simulation."""
    return 0.02 + (0.01 if long else 0.033)


@pytest.mark.parametrize(("labels", "rate", "judge"), WORLDS)
def test_ppi_plus_covers_what_people_would_say(
    labels: int, rate: float, judge: tuple[float, float], often: int, margin: float
) -> None:
    seed = [labels, int(100 * rate), int(100 * judge[0])]
    found = covered(ppi_plus, drawn(np.random.default_rng(seed), labels, rate, judge, often), rate)
    assert found == pytest.approx(0.95, abs=margin)
    naive = covered(judge_alone, drawn(np.random.default_rng(seed), labels, rate, judge, 200), rate)
    assert naive < 0.9  # what every tool prints
    print(f"{labels} labels, {rate:.0%} right, judge {judge}: covered {found:.1%}, by the judge alone {naive:.1%}")


@pytest.mark.parametrize(("rate", "judge"), [(0.85, (0.8, 0.7)), (0.95, (0.95, 0.9))])
def test_thirty_labels_of_two_thousand_cover_no_less(
    rate: float, judge: tuple[float, float], often: int, margin: float
) -> None:
    """With few labels the interval is rather too wide: it covers up to 99 % where the judge hardly errs."""
    found = covered(ppi_plus, drawn(np.random.default_rng(2), 30, rate, judge, often, 1970), rate)
    print(f"30 labels of 2,000, {rate:.0%} right, judge {judge}: covered {found:.1%}")
    assert found >= 0.95 - margin


def test_a_judge_who_was_never_seen_to_err_is_not_taken_for_perfect(often: int) -> None:
    """60 labels and an error rate of 2 %: one sample in three has no error at all."""
    found = covered(ppi_plus, drawn(np.random.default_rng(3), 60, 0.95, (0.98, 0.98), often), 0.95)
    assert found > 0.93


@pytest.mark.parametrize("estimator", [people_alone, rogan_gladen])
def test_the_other_estimators_cover_at_least_as_often(estimator: Callable[[Sample], Estimate], often: int) -> None:
    found = covered(estimator, drawn(np.random.default_rng(4), 120, 0.7, (0.9, 0.85), often), 0.7)
    assert found > 0.95 - 0.035


def test_five_replicates_of_a_question_are_not_five_questions(often: int, margin: float) -> None:
    """Half of the variance is between questions: independent intervals hold the truth in too few draws."""
    rng, honest, naive = np.random.default_rng(5), [], []
    for _ in range(often):
        chance = np.repeat(rng.beta(1.4, 0.6, 200), 5)
        truth = rng.random(1000) < chance
        says = np.where(truth, rng.random(1000) < 0.9, rng.random(1000) > 0.85)
        labels: list[float | None] = [*truth[:300].astype(float), *[None] * 700]
        for found, questions in ((honest, np.repeat(range(200), 5)), (naive, None)):
            interval = ppi_plus(Sample.of(says, labels, questions)).interval
            assert interval is not None
            found.append(interval.low <= 0.7 <= interval.high)
    assert np.mean(honest) == pytest.approx(0.95, abs=margin)
    assert np.mean(naive) < 0.9


def test_items_drawn_more_often_where_the_judge_says_no_are_weighted(often: int, margin: float) -> None:
    rng, found, unweighted = np.random.default_rng(6), [], []
    for _ in range(often):
        truth = rng.random(800) < 0.8
        says = np.where(truth, rng.random(800) < 0.92, rng.random(800) > 0.8)
        chosen = np.zeros(800, dtype=bool)
        for verdict in (True, False):
            chosen[rng.choice(np.flatnonzero(says == verdict), 50, replace=False)] = True
        labels = [float(value) if label else None for value, label in zip(truth, chosen, strict=True)]
        for hits, strata in ((found, says.tolist()), (unweighted, None)):
            interval = ppi_plus(Sample.of(says, labels, strata=strata)).interval
            assert interval is not None
            hits.append(interval.low <= 0.8 <= interval.high)
    assert np.mean(found) == pytest.approx(0.95, abs=margin)
    assert np.mean(unweighted) < 0.93
