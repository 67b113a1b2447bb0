"""Two models (or runs) on the same questions. What counts is the difference at each question.

A positive difference means that `first` is better where higher is better. `first` and `second` hold one value for each
question, in the same order; replicates are averaged by question before, or marked as `clusters`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from attrs import frozen
from karenina_runs.summaries.intervals import Estimate, Interval

from .inputs import Numbers, StatisticsError, differences, fraction, pairs, whole
from .means import cluster_mean, mean_interval
from .quantiles import even_binomial_two_sided, normal_quantile, t_two_sided


@frozen
class McNemar:
    """The exact McNemar test: is one side more often the only one that passes?"""

    only_first: int
    only_second: int
    p_value: float


@frozen
class PairedTest:
    """A mean difference with its interval, and Student's t test that it is 0."""

    difference: Estimate
    statistic: float | None
    """The difference divided by its standard error; None where there is none (`difference.note` says why)."""
    p_value: float | None


def flips(first: Numbers, second: Numbers) -> tuple[int, int]:
    """How many questions only `first` passes, and how many only `second` does; the values are 0 and 1, or booleans."""
    a, b = pairs(first, second)
    if not (((a == 0) | (a == 1)).all() and ((b == 0) | (b == 1)).all()):
        raise StatisticsError("the values are not all 0 or 1; for scores use paired_test or permutation_test")
    return int(((a == 1) & (b == 0)).sum()), int(((a == 0) & (b == 1)).sum())


def mcnemar(only_first: int, only_second: int) -> McNemar:
    """McNemar's test in its exact form: min(1, 2 P(X <= min(b, c))) with X binomial(b + c, 1/2).

    b questions are passed by the first side alone, c by the second alone; where both pass or both fail says nothing.
    Q. McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947)
    153-157; A. Agresti, "Categorical Data Analysis" (3rd ed. 2013), section 11.1. Valid for independent questions, with
    one answer each. Without any such question p is 1.
    """
    b, c = whole(only_first, "only_first"), whole(only_second, "only_second")
    return McNemar(b, c, even_binomial_two_sided(b, b + c))


def paired_rate_difference(only_first: int, only_second: int, questions: int, level: float = 0.95) -> Estimate:
    """The difference of two rates on the same `questions`, (b - c)/n, with the adjusted Wald interval.

    With b' = (b+1)/(n+2) and c' = (c+1)/(n+2): (b' - c') ± z sqrt((b' + c' - (b' - c')²)/(n+2)), cut at -1 and 1.
    D. G. Bonett, R. M. Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on
    paired data", Journal of Educational and Behavioral Statistics 37 (2012) 479-488. Unlike Student's t it also says
    something where few questions differ, or none. The standard error is that of the adjusted difference.
    """
    b, c = whole(only_first, "only_first"), whole(only_second, "only_second")
    n = whole(questions, "questions")
    z = normal_quantile((1 + fraction(level, "level")) / 2)
    if b + c > n:
        raise StatisticsError(f"{b} + {c} of {n} questions differ; questions counts those that do not differ too")
    name = "bonett-price"
    if n == 0:
        return Estimate(value=None, n=0, method=name, note="there are no questions")
    one, two = (b + 1) / (n + 2), (c + 1) / (n + 2)
    error = math.sqrt((one + two - (one - two) ** 2) / (n + 2))
    centre = one - two
    interval = Interval(max(-1.0, centre - z * error), min(1.0, centre + z * error), level, name)
    return Estimate(value=(b - c) / n, n=n, method=name, interval=interval, standard_error=error)


def paired_test(
    first: Numbers, second: Numbers, clusters: Iterable[Hashable] | None = None, level: float = 0.95
) -> PairedTest:
    """The mean difference by question with its interval and test; with `clusters`, the cluster-robust error.

    t = d̄ / SE(d̄) with n-1 degrees of freedom, or G-1 for G clusters; see `mean_interval` and `cluster_mean`. E. Miller,
    "Adding error bars to evals", arXiv:2411.00640 (2024), section 4.2. Where all differences are the same there is no
    error to compare with: p is 1 if they are 0, and None otherwise.
    """
    gaps = differences(first, second)
    difference = mean_interval(gaps, level) if clusters is None else cluster_mean(gaps, clusters, level)
    if difference.value is None or difference.interval is None or not difference.standard_error:
        same = difference.value == 0 and not gaps.any()
        return PairedTest(difference, None, 1.0 if same else None)
    statistic = difference.value / difference.standard_error
    return PairedTest(difference, statistic, t_two_sided(statistic, difference.df or 1))
