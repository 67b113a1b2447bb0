"""The mean that people would have given to all items, from labels of some of them and a judge's word on all.

Each estimator is people's mean of the labelled items plus a correction: a share L of how much higher the judge rates
the items without a label than those with one. L = 0 ignores the judge, L = 1 is prediction-powered inference (PPI), and
PPI++ takes the share with the smallest variance. In strata this is done in each, and the means are weighted with the
strata's shares of all items.

A. N. Angelopoulos and others, "Prediction-powered inference", Science 382 (2023) 669-674; A. N. Angelopoulos, J. C.
Duchi, T. Zrnic, "PPI++: efficient prediction-powered inference", arXiv:2311.01453 (2023).
"""

from __future__ import annotations

import math

from attrs import evolve, frozen
from karenina_compare.statistics.arrays import Floats, Integers, np
from karenina_compare.statistics.inputs import fraction
from karenina_compare.statistics.quantiles import normal_quantile
from karenina_runs.summaries.intervals import NO_SPREAD, Estimate, Interval, t_quantile, wilson

from .samples import Sample

__all__ = ["FEW_ERRORS", "influence", "judge_alone", "people_alone", "power_tuning", "ppi", "ppi_plus"]

FEW_ERRORS = 5
"""Labels against which a judge must be wrong at least before its errors say how often it errs. With fewer, half an
error of each kind is added to their variance. Chosen by simulation (`tests/test_coverage.py`): without it, 60 labels
and a judge that errs in 2 % of 2,000 items cover the truth in 90 % of draws where 95 % of answers are right; with a
whole error of each kind in over 99 %."""


def people_alone(sample: Sample, level: float = 0.95, *, small_sample: bool = True) -> Estimate:
    """The mean of people's labels, which does without the judge; strata count with their shares of all items."""
    return _estimate(sample, 0.0, "people", level, small_sample)


def judge_alone(sample: Sample, level: float = 0.95) -> Estimate:
    """The mean of what the judge says of all items, with the interval that it would have if the judge were always
    right.

    It is shown for what it is: on sets with labels of people, such intervals rarely hold what people say.
    """
    said = evolve(sample, people=sample.judge, strata=np.zeros_like(sample.strata))
    return _estimate(said, 0.0, "judge", level, True)


def ppi(sample: Sample, level: float = 0.95, *, small_sample: bool = True) -> Estimate:
    """Prediction-powered inference: L = 1. Wider than `people_alone` where the judge is weak."""
    return _estimate(sample, 1.0, "ppi", level, small_sample)


def ppi_plus(sample: Sample, level: float = 0.95, *, small_sample: bool = True) -> Estimate:
    """PPI++: the share L of `power_tuning`.

    The error is cluster-robust over questions (see `cluster_mean` in `karenina_compare.statistics`). With
    `small_sample`, the interval has Student's t with one less than the questions with labels as degrees of freedom; for
    passes and failures it is Wilson's, for as many items as the error is worth, and a judge that is wrong against fewer
    than `FEW_ERRORS` labels is not taken for one that never is. Without it, variances have the divisor n and the
    interval is the normal one, as in the publications.
    """
    return _estimate(sample, power_tuning(sample), "ppi++", level, small_sample)


def power_tuning(sample: Sample) -> float:
    """The share L of the judge's correction with the smallest variance, from 0 to 1, the same in all strata.

    With W the share of a stratum, n its labelled and N its other items: the sum of W² cov(Y, f)/n over the strata, by
    the sum of W² var(f) (1/n + 1/N). In one stratum this is cov(Y, f) / ((1 + n/N) var(f)), the formula of PPI++.
    """
    common = spread = 0.0
    for part in _parts(sample, 0.0):
        n, others = len(part.people), len(part.others)
        if others:
            said = part.judge - part.judge.mean()
            common += part.share**2 * float(np.mean((part.people - part.people.mean()) * said)) / n
            variance = float(np.var(np.concatenate([part.judge, part.others]), ddof=1))
            spread += part.share**2 * variance * (1 / n + 1 / others)
    return min(max(common / spread, 0.0), 1.0) if spread > 0 else 0.0


@frozen(eq=False)
class _Part:
    """A stratum: the labelled items with both values, and what the judge says of the others."""

    share: float
    power: float
    at: Integers
    people: Floats
    judge: Floats
    others_at: Integers
    others: Floats

    @property
    def rest(self) -> Floats:
        """What the judge leaves open of each label."""
        return self.people - self.power * self.judge

    @property
    def mean(self) -> float:
        correction = self.others.mean() - self.judge.mean() if len(self.others) else 0.0
        return float(self.people.mean() + self.power * correction)


def _parts(sample: Sample, power: float) -> list[_Part]:
    given = ~np.isnan(sample.people)
    parts = []
    for stratum in np.unique(sample.strata):
        inside = sample.strata == stratum
        at, others_at = np.flatnonzero(inside & given), np.flatnonzero(inside & ~given)
        share = float(inside.sum() / len(inside))
        found = _Part(share, power, at, sample.people[at], sample.judge[at], others_at, sample.judge[others_at])
        parts.append(found if len(others_at) else evolve(found, power=0.0))
    return parts


def _estimate(sample: Sample, power: float, method: str, level: float, small_sample: bool) -> Estimate:
    fraction(level, "level")
    parts = _parts(sample, power)
    labels = int(sum(len(part.people) for part in parts))
    groups = len(np.unique(sample.questions[sample.labelled]))
    value = float(sum(part.share * part.mean for part in parts))
    found = Estimate(value=value, n=labels, method=method, clusters=None if sample.independent else groups)
    if groups < 2:
        return evolve(found, note="labels of one question say nothing about the error; label items of others")
    error = math.sqrt(_variance(sample, parts, groups if small_sample else None))
    found = evolve(found, standard_error=error, df=groups - 1 if small_sample else None)
    if sample.binary and small_sample:
        return evolve(found, interval=_of_rate(found, level, groups, sample.independent and len(parts) == 1))
    if not error:
        return evolve(found, note=NO_SPREAD)
    quantile = t_quantile((1 + level) / 2, groups - 1) if small_sample else normal_quantile((1 + level) / 2)
    return evolve(found, interval=Interval(value - quantile * error, value + quantile * error, level, method))


def _variance(sample: Sample, parts: list[_Part], groups: int | None) -> float:
    """Of the estimate: the squares of what each question adds to it."""
    found = float(np.square(_influence(sample, parts, groups)).sum())
    if groups is None or not sample.binary or not any(part.power for part in parts):
        return found
    wrong = sum(int((part.people != part.judge).sum()) for part in parts if part.power)
    return found if wrong >= FEW_ERRORS else found + sum(_of_unseen_errors(part) for part in parts if part.power)


def influence(sample: Sample, power: float) -> Floats:
    """What each question, by its number, adds to the estimate with this share of the judge's correction: the root of
    the sum of squares is its error, but for errors of a judge that were never seen. Differences of two estimates over
    the same questions have the differences of these."""
    groups = len(np.unique(sample.questions[sample.labelled]))
    return _influence(sample, _parts(sample, power), groups if groups > 1 else None)


def _influence(sample: Sample, parts: list[_Part], groups: int | None) -> Floats:
    """`groups` labelled questions where few of them count more."""
    found = np.zeros(len(sample.judge))
    more = 1.0 if groups is None else math.sqrt(groups / (groups - 1))
    for part in parts:
        found[part.at] = more * part.share * (part.rest - part.rest.mean()) / len(part.rest)
        if part.power:
            found[part.others_at] = part.share * part.power * (part.others - part.others.mean()) / len(part.others)
    return np.asarray(np.bincount(sample.questions, weights=found))


def _of_unseen_errors(part: _Part) -> float:
    """What half a miss and half a false alarm of the judge would add to the variance of a stratum's mean."""
    n = len(part.rest)
    values, weights = np.append(part.rest, [1.0, -part.power]), np.append(np.ones(n), [0.5, 0.5])
    mean = np.average(values, weights=weights)
    more = float(np.average(np.square(values - mean), weights=weights)) - float(np.var(part.rest))
    return part.share**2 * max(more, 0.0) / n


def _of_rate(found: Estimate, level: float, groups: int, independent: bool) -> Interval:
    """Wilson's interval for as many independent items as the error is worth; without an error, as many as questions."""
    value, error = min(max(found.value or 0.0, 0.0), 1.0), found.standard_error or 0.0
    if found.method in ("people", "judge") and independent:
        worth, correction = float(found.n), 1.0
    elif 0 < value < 1 and error:
        worth = value * (1 - value) / error**2
        correction = (normal_quantile((1 + level) / 2) / t_quantile((1 + level) / 2, groups - 1)) ** 2
    else:
        worth, correction = float(groups), 1.0
    return wilson(value, worth * correction, level, found.method)
