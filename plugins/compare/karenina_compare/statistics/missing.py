"""What can be concluded when items are missing, without assuming that they are like the others.

C. F. Manski, "Partial Identification of Probability Distributions" (2003), chapter 1: the missing items take their
worst and their best value.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen
from karenina_runs.summaries.estimates import Interval

from .inputs import StatisticsError, counts, fraction, numbers, whole
from .proportions import wilson


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
