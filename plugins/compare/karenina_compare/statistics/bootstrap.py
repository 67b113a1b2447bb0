"""Bootstrap intervals of a mean, over values or over whole clusters, and over differences of pairs.

The same numbers give the same interval, in whatever order they come, as long as the seed is the same (and numpy's
generator is: its streams may differ between versions of numpy).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Literal

from karenina_runs.summaries.estimates import NO_SPREAD, NO_VALUES, Estimate, Interval

from .inputs import SEED, Numbers, StatisticsError, differences, fraction, numbers, whole
from .means import cluster_totals, rounding
from .quantiles import normal_quantile, normal_share

if TYPE_CHECKING:
    import numpy as np

    from .inputs import Floats, Integers

CELLS = 1_000_000
"""So many random numbers are held at once."""

BLOCK = 65_536
"""Places that 16 bits can name."""


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
    totals, sizes = _units(array, clusters)
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
    return Estimate(
        value=mean,
        n=n,
        method=name,
        interval=_quantiles(spread, tails, level, name),
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
    import numpy as np

    rng = np.random.default_rng(seed)
    new = np.concatenate([[True], (np.diff(totals) != 0) | (np.diff(sizes) != 0)])
    starts = np.flatnonzero(new)
    if len(starts) * 8 <= len(totals):
        often = np.diff(np.append(starts, len(totals)))
        return _drawn_by_kind(totals[starts], sizes[starts], often, resamples, rng)
    return _drawn_one_by_one(totals, sizes, resamples, rng)


def _drawn_by_kind(totals: Floats, sizes: Floats, often: Integers, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw how often each distinct unit comes: for passes and failures, two numbers do the work of a million."""
    import numpy as np

    n, batch, means = int(often.sum()), max(1, CELLS // len(often)), []
    for done in range(0, resamples, batch):
        drawn = rng.multinomial(n, often / n, size=min(batch, resamples - done))
        means.append((drawn * totals).sum(axis=1) / (drawn * sizes).sum(axis=1))
    return np.concatenate(means)


def _drawn_one_by_one(totals: Floats, sizes: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Draw places, block by block, so that what is looked up at once stays in the processor's cache."""
    import numpy as np

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
    import numpy as np

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


def _quantiles(spread: Floats, tails: tuple[float, float], level: float, name: str) -> Interval:
    import numpy as np

    low, high = (float(limit) for limit in np.quantile(spread, tails))
    if not (math.isfinite(low) and low <= high):
        raise StatisticsError(f"the {name} has no interval at level {level}; use a lower level or mean_interval")
    return Interval(low, high, level, name)


def _units(array: Floats, clusters: Iterable[Hashable] | None) -> tuple[Floats, Floats]:
    """What is drawn: (sum, number of values) of each value or cluster."""
    import numpy as np

    if clusters is not None:
        return cluster_totals(array, clusters)
    return np.sort(array), np.ones(len(array))
