"""A rate over items that are not independent: replicates of one question, or questions that belong together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from karenina_runs.summaries import estimates

from .inputs import Numbers, StatisticsError, fraction, numbers
from .means import cluster_totals


def cluster_rate(values: Numbers, clusters: Iterable[Hashable], level: float = 0.95) -> estimates.Estimate:
    """The rate of all values, passes (1) and failures (0), with Wilson's interval for as many items as they are worth.

    The formula and its sources: `karenina_runs.summaries.estimates.cluster_rate`. One cluster has no interval: `note`
    says
    so.
    """
    array = numbers(values)
    if not ((array == 0) | (array == 1)).all():
        raise StatisticsError("the values are not all 0 or 1; for scores use cluster_mean")
    totals, sizes = cluster_totals(array, clusters)
    counts = zip(map(int, totals), map(int, sizes), strict=True)
    return estimates.cluster_rate(estimates.Clusters.of(counts), level=fraction(level, "level"))
