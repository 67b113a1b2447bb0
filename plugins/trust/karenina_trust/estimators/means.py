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

from .posterior import rates_possible
from .samples import Sample

__all__ = ["influence", "judge_alone", "people_alone", "power_tuning", "ppi", "ppi_plus"]


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
    """Prediction-powered inference: L = 1. Wider than `people_alone` where the judge is weak, and for passes and
    failures never surer than `ppi_plus`, whose share is the best one."""
    return _estimate(sample, 1.0, "ppi", level, small_sample)


def ppi_plus(sample: Sample, level: float = 0.95, *, small_sample: bool = True) -> Estimate:
    """PPI++: the share L of `power_tuning`.

    The error is cluster-robust over questions (see `cluster_mean` in `karenina_compare.statistics`). With
    `small_sample`, the interval of scores has Student's t with one less than the questions with labels as degrees of
    freedom; that of passes and failures has the quantiles of `rates_possible`, items of shared questions counting for
    as many as their error is worth, as in `cluster_rate`. Without it, variances have the divisor n and the interval is
    the normal one, as in the publications.
    """
    return _estimate(sample, power_tuning(sample), "ppi++", level, small_sample)


def power_tuning(sample: Sample) -> float:
    """The share L of the judge's correction with the smallest variance, from 0 to 1, the same in all strata.

    With W the share of a stratum, n its labelled and N its other items: the sum of W² cov(Y, f)/n over the strata, by
    the sum of W² var(f) (1/n + 1/N). In one stratum this is cov(Y, f) / ((1 + n/N) var(f)), the formula of PPI++.
    """
    common = spread = 0.0
    for part in _parts(sample, 0.0):
        n, others, every = len(part.people), len(part.others), np.concatenate([part.judge, part.others])
        if others and np.ptp(every):  # of equal numbers, the computed variance need not be 0
            said = part.judge - part.judge.mean()
            common += part.share**2 * float(np.mean((part.people - part.people.mean()) * said)) / n
            spread += part.share**2 * float(np.var(every, ddof=1)) * (1 / n + 1 / others)
    return min(common / spread, 1.0) if common > 1e-12 * spread else 0.0  # less is what the order of a sum makes


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
    for stratum in sample.strata_used:
        inside = sample.strata == stratum
        at, others_at = np.flatnonzero(inside & given), np.flatnonzero(inside & ~given)
        share = float(inside.sum() / len(inside))
        found = _Part(share, power, at, sample.people[at], sample.judge[at], others_at, sample.judge[others_at])
        parts.append(found if len(others_at) else evolve(found, power=0.0))
    return parts


def _estimate(sample: Sample, power: float, method: str, level: float, small_sample: bool) -> Estimate:
    fraction(level, "level")
    parts = _parts(sample, power)
    groups = sample.labelled_questions
    value = float(sum(part.share * part.mean for part in parts))
    found = Estimate(
        value=value, n=len(sample.labelled), method=method, clusters=None if sample.independent else groups
    )
    if groups < 2:
        return evolve(found, note="labels of one question say nothing about the error; label items of others")
    own = _influence(sample, parts, groups if small_sample else None)
    error = math.sqrt(float(np.square(np.bincount(sample.questions, weights=own)).sum()))
    found = evolve(found, standard_error=error, df=groups - 1 if small_sample else None)
    if sample.binary and small_sample:
        return _of_rate(found, sample, own, level)
    if not error:
        return evolve(found, note=NO_SPREAD)
    quantile = t_quantile((1 + level) / 2, groups - 1) if small_sample else normal_quantile((1 + level) / 2)
    return evolve(found, interval=Interval(value - quantile * error, value + quantile * error, level, method))


def influence(sample: Sample, power: float) -> Floats:
    """What each question, by its number, adds to the estimate with this share of the judge's correction: the root of
    the sum of squares is its error, but for errors of a judge that were never seen. Differences of two estimates over
    the same questions have the differences of these."""
    groups = sample.labelled_questions
    own = _influence(sample, _parts(sample, power), groups if groups > 1 else None)
    return np.asarray(np.bincount(sample.questions, weights=own))


def _influence(sample: Sample, parts: list[_Part], groups: int | None) -> Floats:
    """Of each item; `groups` labelled questions where few of them count more. How many items a stratum has is a matter
    of chance, too, so that each item counts with what its stratum is above the mean of all."""
    found = np.zeros(len(sample.judge))
    more = 1.0 if groups is None else math.sqrt(groups / (groups - 1))
    value = sum(part.share * part.mean for part in parts)
    for part in parts:
        found[part.at] = more * part.share * (part.rest - part.rest.mean()) / len(part.rest)
        if part.power:
            found[part.others_at] = part.share * part.power * (part.others - part.others.mean()) / len(part.others)
        for places in (part.at, part.others_at):
            found[places] += (part.mean - value) / len(found)
    return found


def _of_rate(found: Estimate, sample: Sample, own: Floats, level: float) -> Estimate:
    """With the interval of a rate, in which items of shared questions count for as many as their error is worth.

    The quantiles of what is possible, where items are divided by strata or by the judge's verdict; Wilson's where they
    are not. PPI, whose share of the correction is not the best one, has Wilson's for its own error, or for that of
    PPI++ where it seems surer.
    """
    value, error, questions = found.value or 0.0, found.standard_error or 0.0, int(found.df or 0) + 1
    corrected = found.method.startswith("ppi") and power_tuning(sample) > 0
    groups = 2 * sample.strata + (sample.judge == 1) if corrected else sample.strata
    tails = [(1 - level) / 2, (1 + level) / 2]
    small = (normal_quantile(tails[1]) / t_quantile(tails[1], questions - 1)) ** 2
    if groups.min() < groups.max():
        alike = float(np.square(own).sum()) / error**2 if error else questions / found.n
        possible = rates_possible(sample.people, groups, 1.0 if sample.independent else min(alike, 1.0) * small)
        error = max(error, float(possible.std()))
        found = evolve(found, standard_error=error)
        if found.method != "ppi":
            low, high = (float(limit) for limit in np.quantile(possible, tails))
            return evolve(
                found, interval=Interval(min(low, max(value, 0.0)), max(high, min(value, 1.0)), level, found.method)
            )
    value, worth = min(max(value, 0.0), 1.0), float(questions)
    if sample.independent and not corrected:
        worth = float(found.n)
    elif 0 < value < 1 and error:
        worth = value * (1 - value) / error**2 * small
    return evolve(found, interval=wilson(value, worth, level, found.method))
