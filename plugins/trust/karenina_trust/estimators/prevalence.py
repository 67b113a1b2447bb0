"""The rate that people would have given, from a judge's rate and how often the judge is right on either class."""

from __future__ import annotations

import math

from attrs import frozen
from karenina_compare.statistics.arrays import np
from karenina_compare.statistics.inputs import SEED, StatisticsError, fraction
from karenina_compare.statistics.quantiles import normal_quantile
from karenina_runs.summaries.intervals import Estimate, Interval, wilson

from .samples import Sample

__all__ = ["LEAST_INFORMED", "LEAST_OF_CLASS", "ClassRates", "class_rates", "rogan_gladen", "rogan_gladen_of"]

LEAST_INFORMED = 1.1
"""Sensitivity plus specificity at least: 1 is a judge that guesses, and the correction divides by what is above it."""
LEAST_OF_CLASS = 5
"""Labels of either class at least, below which its rate is a guess. Chosen."""
RESAMPLES = 2000


@frozen
class ClassRates:
    """How often a judge is right on items that people take for right, and on those that they take for wrong."""

    sensitivity: float
    positives: int
    """Labels that say right."""
    specificity: float
    negatives: int
    """Labels that say wrong."""

    @property
    def informed(self) -> float:
        """Sensitivity and specificity together: 1 for a judge that guesses, 2 for one that is never wrong."""
        return self.sensitivity + self.specificity

    def intervals(self, level: float = 0.95) -> tuple[Interval, Interval]:
        """Wilson's of the sensitivity and of the specificity, labels taken as independent."""
        return (
            wilson(self.sensitivity, self.positives, level),
            wilson(self.specificity, self.negatives, level),
        )

    def refusal(self) -> str:
        """Why the judge's rate cannot be corrected by these; empty where it can."""
        least = min(self.positives, self.negatives)
        if least < LEAST_OF_CLASS:
            return f"only {least} labels of one class; label at least {LEAST_OF_CLASS} right and as many wrong items"
        error = math.sqrt(
            self.sensitivity * (1 - self.sensitivity) / self.positives
            + self.specificity * (1 - self.specificity) / self.negatives
        )
        if self.informed <= LEAST_INFORMED or self.informed - normal_quantile(0.975) * error <= 1:
            return (
                f"the judge says little: sensitivity and specificity are {self.informed:.2f} together, guessing has 1"
            )
        return ""


def class_rates(sample: Sample) -> ClassRates:
    """Of the labelled items, without regard to strata. Raises StatisticsError where not all values are 0 or 1, or where
    labels of one class are missing."""
    if not sample.binary:
        raise StatisticsError("sensitivity and specificity are of passes and failures; these are scores")
    people, judge = sample.people[sample.labelled], sample.judge[sample.labelled]
    positives, negatives = int(people.sum()), int(len(people) - people.sum())
    if not positives or not negatives:
        raise StatisticsError("people call all labelled items the same; label items of both kinds")
    return ClassRates(
        sensitivity=float(judge[people == 1].mean()),
        positives=positives,
        specificity=float(1 - judge[people == 0].mean()),
        negatives=negatives,
    )


def rogan_gladen_of(rate: float, items: int, classes: ClassRates, level: float = 0.95) -> Estimate:
    """(p + q0 - 1)/(q0 + q1 - 1) for a judge's rate p of `items` items, specificity q0 and sensitivity q1, with an
    interval that counts the error of all three.

    W. J. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of
    Epidemiology 107 (1978) 71-76; the interval, for which rates are drawn towards a half as Agresti and Coull do: C.
    Lee and others, arXiv:2511.21140 (2025). Where `ClassRates.refusal` says that the judge says little, there is a note
    and no value.
    """
    fraction(level, "level")
    if refusal := classes.refusal():
        return Estimate(value=None, n=classes.positives + classes.negatives, method="rogan-gladen", note=refusal)
    value = min(max((rate + classes.specificity - 1) / (classes.informed - 1), 0.0), 1.0)
    z = normal_quantile((1 + level) / 2)
    p, n = (items * rate + z * z / 2) / (items + z * z), items + z * z
    q0, m0 = (classes.negatives * classes.specificity + 1) / (classes.negatives + 2), classes.negatives + 2
    q1, m1 = (classes.positives * classes.sensitivity + 1) / (classes.positives + 2), classes.positives + 2
    t = (p + q0 - 1) / (q0 + q1 - 1)
    of_negatives, of_positives = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    centre = t + 2 * z * z * (t * of_positives - (1 - t) * of_negatives)
    error = math.sqrt(p * (1 - p) / n + (1 - t) ** 2 * of_negatives + t * t * of_positives) / (q0 + q1 - 1)
    low, high = (min(max(centre + sign * z * error, 0.0), 1.0) for sign in (-1, 1))
    return Estimate(
        value=value,
        n=classes.positives + classes.negatives,
        method="rogan-gladen",
        standard_error=error,
        interval=Interval(low, high, level, "rogan-gladen"),
    )


def rogan_gladen(sample: Sample, level: float = 0.95, *, seed: int = SEED) -> Estimate:
    """`rogan_gladen_of` the judge's rate of all items. Where questions have several items, the interval is that of the
    percentiles of 2,000 draws of whole questions, if it is the wider one. Raises StatisticsError as `class_rates`
    does."""
    found = rogan_gladen_of(float(sample.judge.mean()), len(sample.judge), class_rates(sample), level)
    if sample.independent or found.interval is None:
        return found
    rng, values = np.random.default_rng(seed), []
    for _ in range(RESAMPLES):
        drawn = sample.drawn(rng)
        people, judge = drawn.people[drawn.labelled], drawn.judge[drawn.labelled]
        if 0 < people.sum() < len(people):
            specificity, sensitivity = 1 - judge[people == 0].mean(), judge[people == 1].mean()
            informed = specificity + sensitivity - 1
            if informed > 0:
                values.append(min(max((drawn.judge.mean() + specificity - 1) / informed, 0.0), 1.0))
    low, high = (float(limit) for limit in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    low, high = min(low, found.interval.low), max(high, found.interval.high)
    groups = len(np.unique(sample.questions[sample.labelled]))
    return Estimate(
        value=found.value,
        n=found.n,
        method="rogan-gladen",
        interval=Interval(low, high, level, "rogan-gladen, questions drawn whole"),
        clusters=groups,
        resamples=len(values),
    )
