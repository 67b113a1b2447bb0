"""Rates: intervals of `successes` out of `trials`, of items that come in clusters, and bounds where items are missing.

Without trials there is no interval (None). The choice follows L. D. Brown, T. T. Cai, A. DasGupta, "Interval estimation
for a binomial proportion", Statistical Science 16 (2001) 101-133. Missing items are not taken to be like the others:
they have their worst and their best value, C. F. Manski, "Partial Identification of Probability Distributions" (2003),
chapter 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from attrs import frozen
from karenina_runs.summaries import intervals
from karenina_runs.summaries.intervals import Interval

from .inputs import Numbers, StatisticsError, counts, fraction, numbers, whole
from .means import cluster_totals
from .quantiles import beta_quantile


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval without continuity correction: see `karenina_runs.summaries.intervals.wilson`."""
    k, n = counts(successes, trials)
    fraction(level, "level")
    return intervals.wilson(k / n, n, level) if n else None


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """The exact interval: it covers with at least the nominal level whatever the rate is, and is wide for that.

    With a = 1 - level: the a/2 quantile of Beta(k, n-k+1), and the 1-a/2 quantile of Beta(k+1, n-k).
    C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934) 404-413.
    """
    k, n = counts(successes, trials)
    tail = (1 - fraction(level, "level")) / 2
    if n == 0:
        return None
    low = 0.0 if k == 0 else beta_quantile(tail, k, n - k + 1)
    high = 1.0 if k == n else beta_quantile(1 - tail, k + 1, n - k)
    return Interval(low, high, level, "clopper-pearson")


def jeffreys(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """The equal-tailed interval of the posterior under Jeffreys' prior: quantiles of Beta(k + 1/2, n - k + 1/2).

    The lower limit is 0 without successes and the upper one 1 without failures, as Brown, Cai and DasGupta (2001)
    advise: without that, coverage falls to nothing where the rate comes close to 0 or 1.
    """
    k, n = counts(successes, trials)
    tail = (1 - fraction(level, "level")) / 2
    if n == 0:
        return None
    low = 0.0 if k == 0 else beta_quantile(tail, k + 0.5, n - k + 0.5)
    high = 1.0 if k == n else beta_quantile(1 - tail, k + 0.5, n - k + 0.5)
    return Interval(low, high, level, "jeffreys")


def cluster_rate(values: Numbers, clusters: Iterable[Hashable], level: float = 0.95) -> intervals.Estimate:
    """The rate of all values, passes (1) and failures (0), with Wilson's interval for as many items as they are worth.

    The formula and its sources: `karenina_runs.summaries.intervals.cluster_rate`. One cluster has no interval: `note`
    says so.
    """
    array = numbers(values)
    if not ((array == 0) | (array == 1)).all():
        raise StatisticsError("the values are not all 0 or 1; for scores use cluster_mean")
    totals, sizes = cluster_totals(array, clusters)
    counts = zip(map(int, totals), map(int, sizes), strict=True)
    return intervals.cluster_rate(intervals.Clusters.of(counts), level=fraction(level, "level"))


@frozen
class RateBounds:
    """A rate over all items, of which some are missing."""

    worst: float | None
    """The rate if every missing item had failed; None without items."""
    best: float | None
    """The rate if every missing item had passed."""
    coverage: float | None
    """The share of the items that were observed."""
    missing: int
    interval: Interval | None
    """From the lower limit of the worst case to the upper limit of the best case."""


@frozen
class DifferenceBounds:
    """A mean difference over all items, of which some are missing on one side or on both."""

    worst: float | None
    best: float | None
    coverage: float | None
    """The share of the items that were observed on both sides."""
    missing: int


def rate_bounds(successes: int, observed: int, total: int, level: float = 0.95) -> RateBounds:
    """Bounds of the rate of `total` items, of which `observed` have an outcome and `successes` of these passed.

    worst = k/N, best = (k + N - n)/N. The interval takes Wilson's lower limit of the worst and upper limit of the best
    case, after J. L. Horowitz, C. F. Manski, "Nonparametric analysis of randomized experiments with missing covariate
    and outcome data", JASA 95 (2000) 77-84: it holds both bounds with about the nominal level or more.
    """
    k, n = counts(successes, observed)
    fraction(level, "level")
    items = whole(total, "total")
    if n > items:
        raise StatisticsError(f"{n} of {items} items were observed; total counts the missing ones too")
    missing = items - n
    lowest, highest = wilson(k, items, level), wilson(k + missing, items, level)
    if lowest is None or highest is None:
        return RateBounds(None, None, None, 0, None)
    interval = Interval(lowest.low, highest.high, level, "wilson of the bounds")
    return RateBounds(k / items, (k + missing) / items, n / items, missing, interval)


def difference_bounds(
    first: Iterable[float | None], second: Iterable[float | None], lowest: float = 0.0, highest: float = 1.0
) -> DifferenceBounds:
    """Bounds of the mean difference `first - second`; None is a missing value, which lies in `lowest` to `highest`."""
    a, b = list(first), list(second)
    if len(a) != len(b):
        raise StatisticsError(f"first has {len(a)} items and second {len(b)}; give both for the same items")
    known = numbers([value for value in [*a, *b] if value is not None], "values")
    if not lowest < highest or (known.size and (known.min() < lowest or known.max() > highest)):
        raise StatisticsError(f"values lie outside of {lowest:g} to {highest:g}; give the range that values can have")
    if not a:
        return DifferenceBounds(None, None, None, 0)
    missing = sum(x is None or y is None for x, y in zip(a, b, strict=True))
    worst = _mean(a, lowest) - _mean(b, highest)
    best = _mean(a, highest) - _mean(b, lowest)
    return DifferenceBounds(worst, best, (len(a) - missing) / len(a), missing)


def _mean(values: list[float | None], instead: float) -> float:
    return sum(instead if value is None else float(value) for value in values) / len(values)
