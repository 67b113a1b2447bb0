"""A rate over items that are not independent: replicates of one question, or questions that belong together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from attrs import evolve

from .inputs import Numbers, StatisticsError, fraction, numbers
from .means import NO_SPREAD, cluster_mean
from .quantiles import normal_quantile, t_quantile
from .values import Estimate, Interval

__all__ = ["cluster_rate"]


def cluster_rate(values: Numbers, clusters: Iterable[Hashable], level: float = 0.95) -> Estimate:
    """The rate of all values, passes (1) and failures (0), with Wilson's interval for as many items as they are worth.

    With p the rate, SE its cluster-robust error (see `cluster_mean`) and G clusters, n items are worth
    n* = min(n, p(1-p)/SE²) · (z / t_{G-1})² independent ones, and Wilson's formula is taken with n* instead of n.
    Unlike p ± t SE the limits stay within 0 and 1, and they say something where all pass: then every cluster counts as
    one item. E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24 (1998) 193-201, for n*; N. Dean, M. Pagano, "Evaluating
    confidence interval methods for binomial proportions in clustered surveys", Journal of Survey Statistics and
    Methodology 3 (2015) 484-503, for Wilson's formula with it.

    One cluster has no interval: `note` says so.
    """
    array = numbers(values)
    if not ((array == 0) | (array == 1)).all():
        raise StatisticsError("the values are not all 0 or 1; for scores use cluster_mean")
    found = cluster_mean(array, clusters, fraction(level, "level"))
    groups = found.clusters or 0
    if found.value is None or groups < 2:
        return evolve(found, method="cluster wilson")
    worth = float(groups)
    if 0 < found.value < 1:
        spread = found.value * (1 - found.value)
        error = found.standard_error or 0.0
        alike = min(len(array), spread / error**2) if error else len(array)
        worth = alike * (normal_quantile((1 + level) / 2) / t_quantile((1 + level) / 2, groups - 1)) ** 2
    low, high = _wilson(found.value, worth, level)
    note = "" if found.note == NO_SPREAD else found.note
    return evolve(found, method="cluster wilson", interval=Interval(low, high, level, "cluster wilson"), note=note)


def _wilson(rate: float, worth: float, level: float) -> tuple[float, float]:
    z = normal_quantile((1 + level) / 2)
    centre = rate + z * z / (2 * worth)
    spread = z * math.sqrt(rate * (1 - rate) / worth + z * z / (4 * worth * worth))
    scale = 1 + z * z / worth
    low = 0.0 if rate == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if rate == 1 else min(1.0, (centre + spread) / scale)
    return low, high
