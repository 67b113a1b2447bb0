"""Bootstrap intervals of a mean, over values, whole clusters and differences of pairs, and the paired permutation test:
if both sides were alike, each difference could as well have the other sign.

The same numbers give the same interval, in whatever order they come, as long as the seed is the same (and numpy's
generator is: its streams may differ between versions of numpy).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable
from typing import Literal

from attrs import frozen
from karenina_runs.summaries.intervals import NO_SPREAD, NO_VALUES, Estimate, Interval

from .arrays import Floats, Integers, np
from .inputs import SEED, Numbers, StatisticsError, differences, fraction, numbers, whole
from .means import cluster_totals, rounding
from .quantiles import even_binomial_two_sided, normal_quantile, normal_share

CELLS = 1_000_000
"""So many random numbers are held at once."""

BLOCK = 65_536
"""Places that 16 bits can name."""
ENUMERATED = 20
"""Up to so many differences that are not 0, all 2^20 signs are tried."""

SLACK = 1e-12
"""Sums that differ by less than this share of the sum of all sizes are the same sum."""


def bootstrap_mean(
    values: Numbers,
    clusters: Iterable[Hashable] | None = None,
    *,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    resamples: int | None = None,
    seed: int = SEED,
) -> Estimate:
    """The mean with a bootstrap interval; `clusters` are drawn whole, and the mean stays that of all values.

    `percentile`: the quantiles of the resampled means. `bca`: the quantiles at Φ(z0 + (z0 + z)/(1 - a(z0 + z))), with
    z0 from the share of resampled means below the mean (ties count half) and a from the jackknife.
    B. Efron, "Better bootstrap confidence intervals", JASA 82 (1987) 171-185; B. Efron, R. J. Tibshirani, "An
    Introduction to the Bootstrap" (1993), chapter 14; clusters: A. C. Davison, D. V. Hinkley, "Bootstrap Methods and
    their Application" (1997), section 3.8.

    `resamples` is 9,999 by default; beyond 10,000 units it falls with their number, down to 999. The `standard_error`
    is the standard deviation of the resampled means. One unit, or units that do not differ, have no interval.
    """
    fraction(level, "level")
    array = numbers(values)
    # what is drawn: (sum, number of values) of each value or cluster
    totals, sizes = (np.sort(array), np.ones(len(array))) if clusters is None else cluster_totals(array, clusters)
    units, n = len(totals), len(array)
    repeats = default_resamples(units) if resamples is None else whole(resamples, "resamples", 100)
    if method not in ("bca", "percentile"):
        raise StatisticsError(f"there is no bootstrap method {method!r}; use bca or percentile")
    name = f"{method} bootstrap"
    mean = float(totals.sum() / n) if n else None
    groups = None if clusters is None else units
    if mean is None or units < 2:
        note = NO_VALUES if mean is None else "one unit cannot be resampled"
        return Estimate(value=mean, n=n, method=name, clusters=groups, note=note)
    if float((totals / sizes).max() - (totals / sizes).min()) <= rounding(array):
        return Estimate(value=mean, n=n, method=name, clusters=groups, standard_error=0.0, note=NO_SPREAD)
    spread = resampled_means(totals, sizes, repeats, seed)
    tails = (1 - level) / 2, (1 + level) / 2
    if method == "bca":
        tails = bca_tails(spread, mean, acceleration(totals, sizes), level, 50 * rounding(array))
    low, high = (float(limit) for limit in np.quantile(spread, tails))
    if not (math.isfinite(low) and low <= high):
        raise StatisticsError(f"the {name} has no interval at level {level}; use a lower level or mean_interval")
    return Estimate(
        value=mean,
        n=n,
        method=name,
        interval=Interval(low, high, level, name),
        standard_error=float(spread.std(ddof=1)),
        clusters=groups,
        resamples=repeats,
    )


def paired_bootstrap(
    first: Numbers,
    second: Numbers,
    clusters: Iterable[Hashable] | None = None,
    *,
    level: float = 0.95,
    method: Literal["bca", "percentile"] = "bca",
    resamples: int | None = None,
    seed: int = SEED,
) -> Estimate:
    """The mean difference `first - second` by question with a bootstrap interval; questions are drawn with both values.

    `first` and `second` hold one value a question, in the same order; see `bootstrap_mean` for the rest.
    """
    by_question = differences(first, second)
    return bootstrap_mean(by_question, clusters, level=level, method=method, resamples=resamples, seed=seed)


def default_resamples(units: int) -> int:
    """9,999, and less for more than 10,000 units, so that a call takes seconds; 999 at least."""
    return min(9_999, max(999, 100_000_000 // max(units, 1)))


def resampled_means(totals: Floats, sizes: Floats, resamples: int, seed: int) -> Floats:
    """`resamples` means of as many units, (total, size) in a fixed order, as there are, drawn with replacement."""
    rng = np.random.default_rng(seed)
    new = np.concatenate([[True], (np.diff(totals) != 0) | (np.diff(sizes) != 0)])
    starts = np.flatnonzero(new)
    if len(starts) * 8 <= len(totals):
        often = np.diff(np.append(starts, len(totals)))
        return _drawn_by_kind(totals[starts], sizes[starts], often, resamples, rng)
    return _drawn_one_by_one(totals, sizes, resamples, rng)


def _drawn_by_kind(totals: Floats, sizes: Floats, often: Integers, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw how often each distinct unit comes: for passes and failures, two numbers do the work of a million."""
    n, batch, means = int(often.sum()), max(1, CELLS // len(often)), []
    for done in range(0, resamples, batch):
        drawn = rng.multinomial(n, often / n, size=min(batch, resamples - done))
        means.append((drawn * totals).sum(axis=1) / (drawn * sizes).sum(axis=1))
    return np.concatenate(means)


def _drawn_one_by_one(totals: Floats, sizes: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw places, block by block, so that what is looked up at once stays in the processor's cache."""
    n = len(totals)
    alike = bool((sizes == sizes[0]).all())
    edges = [*range(0, n, BLOCK), n]
    widths = np.diff(edges)
    batch = max(1, CELLS // n) if len(widths) == 1 else 1
    means = []
    for done in range(0, resamples, batch):
        rows = min(batch, resamples - done)
        total, size = np.zeros(rows), np.full(rows, n * sizes[0] if alike else 0.0)
        for start, width, drawn in zip(edges, widths, rng.multinomial(n, widths / n), strict=False):
            places = rng.integers(0, width, size=(rows, drawn), dtype=np.uint16)
            total += totals[start : start + width].take(places).sum(axis=1)
            if not alike:
                size += sizes[start : start + width].take(places).sum(axis=1)
        means.append(total / size)
    return np.concatenate(means)


def acceleration(totals: Floats, sizes: Floats) -> float:
    """Efron's a: sum d³ / (6 (sum d²)^1.5), d being how far the means that leave out one unit are below their mean."""
    left = (totals.sum() - totals) / (sizes.sum() - sizes)
    distance = left.mean() - left
    farthest = float(np.abs(distance).max())
    if farthest == 0:
        return 0.0
    distance /= farthest  # a has no unit, and powers of tiny numbers are 0
    return float((distance**3).sum() / (6 * np.square(distance).sum() ** 1.5))


def bca_tails(spread: Floats, mean: float, skew: float, level: float, tolerance: float = 0.0) -> tuple[float, float]:
    """Which quantiles of the resampled means are the limits; means within `tolerance` of the mean count as ties."""
    below, ties = float((spread < mean - tolerance).mean()), float((abs(spread - mean) <= tolerance).mean())
    edge = 0.5 / len(spread)
    bias = normal_quantile(min(1 - edge, max(edge, below + ties / 2)))

    def tail(probability: float) -> float:
        z = bias + normal_quantile(probability)
        return normal_share(bias + z / (1 - skew * z))

    return tail((1 - level) / 2), tail((1 + level) / 2)


@frozen
class PermutationTest:
    """How often random signs give a mean difference at least as far from 0 as the observed one."""

    difference: float | None
    """The mean difference; None without questions."""
    p_value: float
    exact: bool
    """Whether all signs were counted; otherwise `resamples` were drawn."""
    resamples: int | None
    bounded: bool = False
    """Whether no drawn sum was as far from 0, and the p-value is Hoeffding's bound: at least the exact one."""


def permutation_test(
    first: Numbers,
    second: Numbers,
    clusters: Iterable[Hashable] | None = None,
    *,
    resamples: int | None = None,
    seed: int = SEED,
) -> PermutationTest:
    """Fisher's sign-flip test of the mean difference `first - second` by question, two-sided.

    With `clusters`, the questions of a cluster flip together. Exact with up to 20 differences that are not 0, and for
    any number of them if they are all of the same size (then it is the exact McNemar test). Otherwise signs are drawn,
    and p = (1 + hits)/(1 + resamples), which is never 0. Without any hit, p is at most Hoeffding's bound of the exact
    one, 2 exp(-(sum d)²/(2 sum d²)): however many comparisons there are, a difference that is large enough is found.
    As the bound only counts where p would be 1/(1 + resamples), the test keeps its level.

    R. A. Fisher, "The Design of Experiments" (1935), section 21; B. Phipson, G. K. Smyth, "Permutation p-values should
    never be zero", Statistical Applications in Genetics and Molecular Biology 9 (2010), article 39; W. Hoeffding,
    "Probability inequalities for sums of bounded random variables", JASA 58 (1963) 13-30. `resamples` is as in
    `bootstrap_mean`. Questions (or clusters) are taken as independent, and differences as symmetric about 0 if both
    sides are alike.
    """
    gaps = differences(first, second)
    units = np.sort(gaps) if clusters is None else cluster_totals(gaps, clusters)[0]
    given = None if resamples is None else whole(resamples, "resamples", 100)
    mean = float(np.sort(gaps).mean()) if len(gaps) else None
    sizes = np.sort(np.abs(units[units != 0]))
    observed = abs(float(units.sum())) - SLACK * float(sizes.sum())
    if len(sizes) == 0 or observed <= 0:
        return PermutationTest(mean, 1.0, True, None)
    if sizes[-1] - sizes[0] <= SLACK * sizes[-1]:
        return PermutationTest(mean, even_binomial_two_sided(int((units > 0).sum()), len(sizes)), True, None)
    if len(sizes) <= ENUMERATED:
        sums = sizes[-1:]  # under all signs of all but the last, whose sign only mirrors them
        for size in sizes[:-1]:
            sums = np.concatenate([sums + size, sums - size])
        return PermutationTest(mean, float((np.abs(sums) >= observed).mean()), True, None)
    repeats = default_resamples(len(sizes)) if given is None else given
    hits = _hits(sizes, observed, repeats, np.random.default_rng(seed))
    drawn, bound = (1 + hits) / (1 + repeats), _hoeffding(sizes, observed)
    if hits == 0 and bound < drawn:
        return PermutationTest(mean, bound, False, repeats, bounded=True)
    return PermutationTest(mean, drawn, False, repeats)


def _hoeffding(sizes: Floats, observed: float) -> float:
    """At least the share of all signs whose sum is as far from 0 as the observed one; never 0."""
    largest = float(sizes[-1])
    share = observed / largest
    return max(sys.float_info.min, 2 * math.exp(-share * share / (2 * float(np.square(sizes / largest).sum()))))


def _hits(sizes: Floats, observed: float, resamples: int, rng: np.random.Generator) -> int:
    """How many of the drawn sums are as far from 0 as the observed one; sizes that repeat are drawn together."""
    kinds, often = np.unique(sizes, return_counts=True)
    repeated = len(kinds) * 8 <= len(sizes)
    batch, hits = max(1, CELLS // len(kinds if repeated else sizes)), 0
    width = (len(sizes) + 7) // 8  # bytes for as many fair coin flips
    for done in range(0, resamples, batch):
        rows = min(batch, resamples - done)
        if repeated:
            plus = (rng.binomial(often, 0.5, size=(rows, len(kinds))) * kinds).sum(axis=1)
        else:
            drawn = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
            plus = (np.unpackbits(drawn, axis=1, count=len(sizes)) * sizes).sum(axis=1)
        hits += int((np.abs(2 * plus - sizes.sum()) >= observed).sum())
    return hits
