"""Rates and means over questions with their intervals, computed with the standard library alone.

Items of one question are never taken as independent: its replicates, and what several models or judges make of it,
succeed or fail together. A cluster is such a group of items; where every cluster has one item, they are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from statistics import NormalDist

from attrs import define, evolve, field, frozen

NO_VALUES = "there are no values"
NO_SPREAD = "nothing varies, so nothing can be said about the error; for passes and failures use an interval of a rate"


@frozen
class Interval:
    """A two-sided interval of confidence; both limits belong to it."""

    low: float
    high: float
    level: float
    """The nominal coverage, such as 0.95."""
    method: str
    """How it was made, such as `wilson` or `student-t`."""


@frozen(kw_only=True)
class Estimate:
    """A mean (or a difference of means) with what is known about its error.

    What could not be computed is None, and `note` says why.
    """

    value: float | None
    """The estimate, in the units of the values; None without values."""
    n: int
    """How many values it rests on."""
    method: str
    interval: Interval | None = None
    standard_error: float | None = None
    df: float | None = None
    """Degrees of freedom of the t distribution behind the interval."""
    clusters: int | None = None
    """How many clusters the values fall into; None where the values are taken as independent."""
    resamples: int | None = None
    """How many times was resampled; None where nothing was."""
    note: str = field(default="")


@define
class Clusters:
    """What is needed of clusters for a mean and its error, added up: the same little memory for any number of them.

    All sums are of whole numbers, so that no order of adding makes a difference.
    """

    count: int = 0
    """Of clusters with items."""
    items: int = 0
    total: int = 0
    """Of all values."""
    squares: int = 0
    """Of the clusters' totals."""
    products: int = 0
    """Of each cluster's total and its items."""
    sizes: int = 0
    """Squares of the clusters' items."""

    @classmethod
    def of(cls, clusters: Iterable[tuple[int, int]]) -> Clusters:
        """Of `(total, items)` of each cluster."""
        found = cls()
        for total, items in clusters:
            found.add(total, items)
        return found

    def add(self, total: int, items: int) -> None:
        """Add a cluster. One without items does not count."""
        self.count += items > 0
        self.items += items
        self.total += total
        self.squares += total * total
        self.products += total * items
        self.sizes += items * items

    @property
    def several(self) -> bool:
        """Whether some cluster has more than one item."""
        return self.sizes > self.items


def rate_of(clusters: Clusters, unit: int = 1, level: float = 0.95) -> Estimate:
    """The rate of all items, `clusters` counting the passed ones in 1/`unit`: Wilson's interval where every cluster has
    one item, `cluster_rate` else."""
    if clusters.several:
        return cluster_rate(clusters, unit, level)
    passed, n = clusters.total // unit, clusters.items
    if not n:
        return Estimate(value=None, n=0, method="wilson", note=NO_VALUES)
    return Estimate(value=passed / n, n=n, method="wilson", interval=wilson(passed / n, n, level))


def cluster_rate(clusters: Clusters, unit: int = 1, level: float = 0.95) -> Estimate:
    """The rate of all items with Wilson's interval for as many items as they are worth.

    With p the rate, SE its cluster-robust error (see `mean_of`) and G clusters, n items are worth
    n* = min(n, p(1-p)/SE²) · (z / t_{G-1})² independent ones, and Wilson's formula is taken with n* instead of n.
    Unlike p ± t SE the limits stay within 0 and 1, and they say something where all pass: then every cluster counts as
    one item. E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data", Survey Methodology 24 (1998) 193-201, for n*; N. Dean, M. Pagano, "Evaluating
    confidence interval methods for binomial proportions in clustered surveys", Journal of Survey Statistics and
    Methodology 3 (2015) 484-503, for Wilson's formula with it.

    One cluster has no interval: `note` says so.
    """
    found = _clustered(clusters, unit, "cluster wilson")
    groups, error = found.clusters or 0, found.standard_error
    if found.value is None or error is None:
        return found
    worth = float(groups)
    if 0 < found.value < 1:
        spread = found.value * (1 - found.value)
        alike = min(found.n, spread / error**2) if error else found.n
        worth = alike * (_normal_quantile(level) / t_quantile((1 + level) / 2, groups - 1)) ** 2
    return evolve(found, interval=wilson(found.value, worth, level, found.method), note="")


def mean_of(clusters: Clusters, unit: int = 1, level: float = 0.95) -> Estimate:
    """The mean of all values, which `clusters` has in whole numbers of 1/`unit`, with Student's t interval of G-1
    degrees of freedom.

    With e = x - x̄ and G clusters c: SE = sqrt(G/(G-1)) · sqrt(sum_c (sum_{i in c} e_i)²) / n, which is s/sqrt(n) where
    every cluster has one value. K.-Y. Liang, S. L. Zeger, "Longitudinal data analysis using generalized linear models",
    Biometrika 73 (1986) 13-22; A. C. Cameron, D. L. Miller, "A practitioner's guide to cluster-robust inference",
    Journal of Human Resources 50 (2015) 317-372.

    One cluster has no error, and values that do not vary have no interval: `note` says so.
    """
    found = _clustered(clusters, unit, "cluster-robust" if clusters.several else "student-t")
    if not clusters.several:
        found = evolve(found, clusters=None)
    if found.value is None or not found.standard_error or found.df is None:
        return found
    half = t_quantile((1 + level) / 2, found.df) * found.standard_error
    return evolve(found, interval=Interval(found.value - half, found.value + half, level, found.method))


def wilson(rate: float, n: float, level: float = 0.95, method: str = "wilson") -> Interval:
    """Wilson's score interval of a rate of `n` items, without continuity correction.

    All rates p with |p̂ - p| <= z sqrt(p(1-p)/n), z being the normal quantile of (1+level)/2:
    (p̂ + z²/2n ± z sqrt(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n).
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927) 209-212.
    """
    z = _normal_quantile(level)
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if rate == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if rate == 1 else min(1.0, (centre + spread) / scale)
    return Interval(low, high, level, method)


@lru_cache(maxsize=1024)
def t_quantile(probability: float, df: float) -> float:
    """The quantile of Student's t, to ten digits or more. `probability` lies between 0 and 1, `df` above 0.

    Newton's method on the upper tail, which is convex: from the normal quantile, which lies below, it only ascends.
    """
    if probability <= 0.5:
        return -t_quantile(1 - probability, df) if probability < 0.5 else 0.0
    wanted, t = 1 - probability, NormalDist().inv_cdf(probability)
    scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    for _ in range(200):  # the heaviest tail, df = 1, doubles t in every step
        density = math.exp(scale - (df + 1) / 2 * math.log1p(t * t / df))
        step = (_t_tail(t, df) - wanted) / density
        t += step
        if step <= 1e-13 * t:
            break
    return t


def _normal_quantile(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _t_tail(t: float, df: float) -> float:
    """The share of Student's t above `t` > 0: half the incomplete beta function of df/(df+t²) with df/2 and 1/2."""
    x, y, a, b = df / (df + t * t), t * t / (df + t * t), df / 2, 0.5
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(scale - a * math.log1p(t * t / df) + b * math.log(y))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(x, a, b) / a / 2
    return (1 - front * _continued_fraction(y, b, a) / b) / 2


def _continued_fraction(x: float, a: float, b: float) -> float:
    """That of the incomplete beta function, by Lentz's method: W. H. Press and others, "Numerical Recipes" (2007), 6.4.

    It ends after about sqrt(max(a, b)) rounds.
    """
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + even * d)
        c = 1 + even / c
        found *= c * d
        d = 1 / (1 + odd * d)
        c = 1 + odd / c
        found *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return found


def _clustered(clusters: Clusters, unit: int, method: str) -> Estimate:
    """The mean with its cluster-robust error, in whole numbers up to the last division."""
    groups, total, n = clusters.count, clusters.total, clusters.items
    if groups < 2:
        of_what = "cluster" if method.startswith("cluster") else "value"
        note = f"one {of_what} says nothing about the error" if n else NO_VALUES
        return Estimate(value=total / (n * unit) if n else None, n=n, method=method, clusters=groups, note=note)
    squares = n * n * clusters.squares - 2 * n * total * clusters.products + total * total * clusters.sizes
    error = math.sqrt(groups / (groups - 1)) * math.sqrt(squares) / n / n / unit
    return Estimate(
        value=total / (n * unit),
        n=n,
        method=method,
        standard_error=error,
        df=groups - 1,
        clusters=groups,
        note="" if squares else NO_SPREAD,
    )
