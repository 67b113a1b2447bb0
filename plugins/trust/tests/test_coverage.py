"""Simulated worlds of which the truth is known: 95 % intervals of what is recommended hold it in 93 to 97 % of draws.

Every simulation has a fixed seed. A share of 95 % of 360 draws is known to 1.1 points, so that the margins here are
wider; `--long` draws 200 times in every world, and prints each (with `-s`).

The rate and the judge's errors of a world are drawn from a narrow band anew each time: with 30 labels, an interval of
counts can only cover a single rate in so many ways, whoever makes it. How often Wilson's interval of the judge's errors
alone, of as many labels, covers their rate is printed beside it: where a judge errs in 2 % of cases, that is 98 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from attrs import frozen
from karenina_runs.summaries.intervals import Estimate, Interval, wilson
from karenina_trust.certificates.rows import ESTIMATORS, recommended
from karenina_trust.estimators import Sample, class_rates, judge_alone, people_alone, ppi_plus, rogan_gladen

LABELS = (30, 60, 100, 300, 2000)
WORLDS = list(
    itertools.product(
        (0.5, 0.7, 0.85, 0.95),
        ((0.98, 0.98), (0.95, 0.9), (0.9, 0.85), (0.8, 0.7), (0.6, 0.6)),
        (170, 600, 2000),
    )
)
"""The share of right answers, sensitivity and specificity of the judge, and items without a label."""
BAND = 0.03


@frozen
class World:
    """Items of which the truth is known."""

    rate: float
    errors: float
    """How often the judge is wrong."""
    truth: np.ndarray
    says: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, rate: float, judge: Sequence[float], items: int) -> World:
        rate, right, wrong = (min(value + rng.uniform(-BAND, BAND), 0.995) for value in (rate, *judge))
        truth = rng.random(items) < rate
        says = np.where(truth, rng.random(items) < right, rng.random(items) > wrong)
        return cls(rate, rate * (1 - right) + (1 - rate) * (1 - wrong), truth, says)

    def sample(self, labels: int, questions: np.ndarray | None = None) -> Sample:
        people, places = self.truth.astype(float), np.arange(len(self.truth))
        people[labels:] = np.nan
        return Sample(self.says.astype(float), people, places if questions is None else questions, 0 * places)

    def stratified(self, labels: int, strata: Sequence[object]) -> Sample:
        """As many labels of each stratum."""
        names, found = sorted(set(strata), key=str), [None] * len(strata)
        for name in names:
            for place in [at for at, own in enumerate(strata) if own == name][: labels // len(names)]:
                found[place] = float(self.truth[place])
        return Sample.of(self.says, found, strata=strata)


def certified(sample: Sample) -> Interval:
    """Of what a certificate recommends."""
    both = len(set(sample.people[sample.labelled])) > 1
    name, _ = recommended(sample, class_rates(sample) if both else None)
    found = ESTIMATORS[name](sample).interval
    assert found is not None
    return found


def covers(interval: Interval | None, truth: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high


def margin(draws: int) -> float:
    """Beside the two points that are promised: three standard errors of the simulation."""
    return 0.02 + 3 * (0.95 * 0.05 / draws) ** 0.5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "labels" in metafunc.fixturenames:
        every = metafunc.config.getoption("--long", default=False)
        metafunc.parametrize("labels", LABELS if every else LABELS[::2])


def test_what_is_recommended_covers_what_people_would_say(labels: int, long: bool) -> None:
    rng, often, every = np.random.default_rng(labels), 200 if long else 6, []
    for rate, judge, others in WORLDS:
        rows = []
        for _ in range(often):
            world = World.drawn(rng, rate, judge, labels + others)
            sample = world.sample(labels)
            found, seen = certified(sample), float(np.mean(world.says[:labels] != world.truth[:labels]))
            rows.append((
                covers(found, world.rate),
                covers(judge_alone(sample).interval, world.rate),
                covers(people_alone(sample).interval, world.rate),
                covers(wilson(seen, labels), world.errors),
                found.high - found.low,
            ))  # fmt: skip
        means = np.mean(rows, axis=0)
        every.append(means)
        if long:
            shares = "{:.1%}, judge alone {:.1%}, people alone {:.1%}, its errors alone {:.1%}, width {:.3f}".format(
                *means
            )
            print(f"{labels} labels of {labels + others}, {rate:.0%} right, judge {judge}: {shares}")
            assert means[0] > 0.95 - margin(often)
    mine, naive, people, errors, width = np.mean(every, axis=0)
    print(f"{labels} labels: {mine:.1%}, {naive:.1%}, {people:.1%}, {errors:.1%}, width {width:.3f}")
    assert mine == pytest.approx(0.95, abs=margin(often * len(WORLDS)))
    assert naive < 0.6  # what every tool prints


@pytest.fixture
def often(long: bool) -> int:
    return 4_000 if long else 400


@pytest.mark.parametrize("strata", ["outcome", "model and outcome"])
def test_labels_drawn_by_verdict_cover_the_rate_and_not_only_that_of_these_answers(strata: str, often: int) -> None:
    """Half of the labels are of answers that the judge fails; how many it fails is a matter of chance, too."""
    rng, hits, unweighted, draws = np.random.default_rng(6), [], [], often // 2
    for _, labels, rate in itertools.product(range(draws // 4), (40, 100), (0.7, 0.9)):
        world = World.drawn(rng, rate, (0.92, 0.85), 800)
        names = [f"{place % (4 if ' ' in strata else 1)} {said}" for place, said in enumerate(world.says)]
        sample = world.stratified(labels, names)
        hits.append(covers(certified(sample), world.rate))
        unweighted.append(
            covers(
                people_alone(Sample(sample.judge, sample.people, sample.questions, 0 * sample.strata)).interval,
                world.rate,
            )
        )
    assert np.mean(hits) == pytest.approx(0.95, abs=margin(draws))
    assert np.mean(unweighted) < 0.8


def test_a_judge_who_was_never_seen_to_err_is_not_taken_for_perfect(often: int) -> None:
    """60 labels and an error rate of 2 %: one sample in three has no error at all."""
    rng, hits = np.random.default_rng(3), []
    for _ in range(often):
        truth = rng.random(660) < 0.95
        says = np.where(rng.random(660) < 0.98, truth, ~truth)
        hits.append(covers(ppi_plus(World(0.95, 0.02, truth, says).sample(60)).interval, 0.95))
    assert np.mean(hits) > 0.93


@pytest.mark.parametrize("estimator", [people_alone, rogan_gladen])
def test_the_other_estimators_cover_at_least_as_often(estimator: Callable[[Sample], Estimate], often: int) -> None:
    rng, hits = np.random.default_rng(4), []
    for _ in range(often):
        world = World.drawn(rng, 0.7, (0.9, 0.85), 720)
        hits.append(covers(estimator(world.sample(120)).interval, world.rate))
    assert np.mean(hits) > 0.95 - margin(often)


@pytest.mark.parametrize("questions", [20, 60])
def test_five_replicates_of_a_question_are_not_five_questions(questions: int, often: int) -> None:
    """Half of the variance is between questions: independent intervals hold the truth in too few draws."""
    rng, honest, naive = np.random.default_rng(5), [], []
    for _ in range(often // 2):
        chance = np.repeat(rng.beta(0.7, 0.3, 200), 5)
        truth = rng.random(1000) < chance
        says = np.where(truth, rng.random(1000) < 0.9, rng.random(1000) > 0.85)
        world = World(0.7, 0.0, truth, says)
        honest.append(covers(certified(world.sample(5 * questions, np.repeat(range(200), 5))), 0.7))
        naive.append(covers(certified(world.sample(5 * questions)), 0.7))
    assert np.mean(honest) == pytest.approx(0.95, abs=margin(often // 2))
    assert np.mean(naive) < 0.9
