"""The rate that people would have given, from a judge's rate and how often the judge is right on either class."""

from __future__ import annotations

import math

from attrs import evolve, frozen
from karenina_compare.statistics.arrays import Integers, np
from karenina_compare.statistics.inputs import SEED, StatisticsError, fraction
from karenina_compare.statistics.quantiles import normal_quantile
from karenina_runs.summaries.intervals import Estimate, Interval, t_quantile

from .draws import drawn_interval
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
    informed_low: float | None = None
    """The lower limit of 95 % of `informed`, where questions have several of the items; None where each has one."""

    @property
    def informed(self) -> float:
        """Sensitivity and specificity together: 1 for a judge that guesses, 2 for one that is never wrong."""
        return self.sensitivity + self.specificity

    def refusal(self) -> str:
        """Why the judge's rate cannot be corrected by these; empty where it can."""
        least = min(self.positives, self.negatives)
        if least < LEAST_OF_CLASS:
            return f"only {least} labels of one class; label at least {LEAST_OF_CLASS} right and as many wrong items"
        if self.informed <= LEAST_INFORMED or self._low <= 1:
            return f"the judge says little: sensitivity plus specificity is {self.informed:.2f}, and guessing has 1"
        return ""

    @property
    def _low(self) -> float:
        if self.informed_low is not None:
            return self.informed_low
        rates = ((self.sensitivity, self.positives), (self.specificity, self.negatives))
        error = math.sqrt(sum(rate * (1 - rate) / labels for rate, labels in rates))
        return self.informed - normal_quantile(0.975) * error


def class_rates(sample: Sample) -> ClassRates:
    """Of the labelled items, without regard to strata; the error is cluster-robust over questions.

    Raises StatisticsError where not all values are 0 or 1, or where labels of one class are missing.
    """
    if not sample.binary:
        raise StatisticsError("sensitivity and specificity are of passes and failures; these are scores")
    labelled = sample.labelled
    found = _rates(sample, labelled)
    if found is None:
        raise StatisticsError("people call all labelled items the same; label items of both kinds")
    if sample.independent:
        return found
    passed = sample.people[labelled] == 1
    right = (sample.judge[labelled] == sample.people[labelled]).astype(np.float64)
    own = np.where(passed, (right - found.sensitivity) / found.positives, (right - found.specificity) / found.negatives)
    questions = np.unique(sample.questions[labelled], return_inverse=True)[1]
    groups = int(questions.max()) + 1
    if groups < 2:
        return evolve(found, informed_low=1.0)
    error = math.sqrt(groups / (groups - 1) * float(np.square(np.bincount(questions, weights=own)).sum()))
    return evolve(found, informed_low=found.informed - t_quantile(0.975, groups - 1) * error)


def _rates(sample: Sample, places: Integers) -> ClassRates | None:
    """Of the labelled items among these; None where labels of one class are missing."""
    people, judge = sample.people[places], sample.judge[places]
    passed, failed = judge[people == 1], judge[people == 0]
    if not len(passed) or not len(failed):
        return None
    return ClassRates(float(passed.mean()), len(passed), float(1 - failed.mean()), len(failed))


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
    value = _corrected(rate, classes)
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

    def again(places: Integers, _: Integers) -> float | None:
        rates = _rates(sample, places)
        informed = rates is not None and rates.informed > 1
        return _corrected(float(sample.judge[places].mean()), rates) if rates and informed else None

    drawn = drawn_interval(
        again, sample.questions, found.method, apart=sample.labelled, level=level, resamples=RESAMPLES, seed=seed
    )
    if drawn is None:
        return evolve(found, value=None, interval=None, note="in half of the draws of questions the judge says nothing")
    limits = evolve(drawn, low=min(drawn.low, found.interval.low), high=max(drawn.high, found.interval.high))
    groups = sample.labelled_questions
    return evolve(found, standard_error=None, interval=limits, clusters=groups, resamples=RESAMPLES)


def _corrected(rate: float, classes: ClassRates) -> float:
    return min(max((rate + classes.specificity - 1) / (classes.informed - 1), 0.0), 1.0)
