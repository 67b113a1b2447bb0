"""Means of scores with their error: independent values, and values that come in clusters.

A cluster is a group of questions that succeed or fail together, such as those about one document, or the replicates of
one question. Taken as independent, they would make the error too small.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from karenina_runs.summaries.intervals import NO_SPREAD, NO_VALUES, Estimate, Interval, t_quantile

from .arrays import Floats, np
from .inputs import ROUNDING, Numbers, cluster_codes, fraction, numbers


def mean_interval(values: Numbers, level: float = 0.95) -> Estimate:
    """The mean of independent values with Student's t interval: x̄ ± t(n-1) s/sqrt(n), s² with the divisor n-1.

    "Student", "The probable error of a mean", Biometrika 6 (1908) 1-25. One value has no error, and equal values no
    interval: `note` says so.
    """
    fraction(level, "level")
    array = np.sort(numbers(values))
    n = len(array)
    if n < 2:
        return _short(array, "student-t", None)
    mean = float(array.mean())
    squares = float(np.square(array - mean).sum())
    return _student(array, mean, math.sqrt(squares / (n - 1) / n), n - 1, level, None)


def cluster_mean(
    values: Numbers, clusters: Iterable[Hashable], level: float = 0.95, *, small_sample: bool = True
) -> Estimate:
    """The mean of all values with the cluster-robust standard error and Student's t interval (G-1 degrees of freedom).

    With e = x - x̄ and G clusters c: SE = sqrt(G/(G-1)) · sqrt(sum_c (sum_{i in c} e_i)²) / n. The factor
    sqrt(G/(G-1)) is the usual correction for few clusters; `small_sample=False` leaves it out, which gives the
    formula as E. Miller prints it. Few clusters (fewer than about 20) still make intervals too narrow.

    K.-Y. Liang, S. L. Zeger, "Longitudinal data analysis using generalized linear models", Biometrika 73 (1986) 13-22;
    A. C. Cameron, D. L. Miller, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 50
    (2015) 317-372; E. Miller, "Adding error bars to evals", arXiv:2411.00640 (2024).

    One cluster has no error: `note` says so.
    """
    fraction(level, "level")
    array = numbers(values)
    totals, sizes = cluster_totals(array, clusters)
    groups, n = len(totals), len(array)
    if groups < 2:
        return _short(np.sort(array), "cluster-robust", groups)
    mean = float(totals.sum() / n)
    residuals = totals - sizes * mean
    correction = groups / (groups - 1) if small_sample else 1.0
    error = math.sqrt(correction * float(np.square(residuals).sum())) / n
    return _student(array, mean, error, groups - 1, level, groups)


def cluster_totals(array: Floats, clusters: Iterable[Hashable]) -> tuple[Floats, Floats]:
    """Sum and number of the values of each cluster, ordered by both, so that neither names nor order matter."""
    codes = cluster_codes(clusters, len(array))
    order = np.lexsort((array, codes))
    totals = np.bincount(codes[order], weights=array[order]).astype(np.float64)
    sizes = np.bincount(codes).astype(np.float64)
    order = np.lexsort((sizes, totals))
    return totals[order], sizes[order]


def rounding(array: Floats) -> float:
    """Differences of means up to this size are rounding, not spread."""
    return ROUNDING * float(np.abs(array).max(initial=0.0))


def _short(array: Floats, method: str, clusters: int | None) -> Estimate:
    """The estimate where there is nothing to learn an error from."""
    n = len(array)
    note = NO_VALUES if n == 0 else f"one {'value' if clusters is None else 'cluster'} says nothing about the error"
    return Estimate(value=float(array.mean()) if n else None, n=n, method=method, clusters=clusters, note=note)


def _student(array: Floats, mean: float, error: float, df: int, level: float, clusters: int | None) -> Estimate:
    method = "student-t" if clusters is None else "cluster-robust"
    if error <= rounding(array):
        return Estimate(
            value=mean, n=len(array), method=method, standard_error=0.0, df=df, clusters=clusters, note=NO_SPREAD
        )
    half = t_quantile((1 + level) / 2, df) * error
    return Estimate(
        value=mean,
        n=len(array),
        method=method,
        interval=Interval(mean - half, mean + half, level, method),
        standard_error=error,
        df=df,
        clusters=clusters,
    )
