"""The paired permutation test: if both sides were alike, each difference could as well have the other sign."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from attrs import frozen

from .bootstrap import CELLS, default_resamples
from .inputs import SEED, Numbers, differences, whole
from .means import cluster_totals
from .quantiles import even_binomial_two_sided

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .inputs import Floats

ENUMERATED = 20
"""Up to so many differences that are not 0, all 2^20 signs are tried."""

SLACK = 1e-12
"""Sums that differ by less than this share of the sum of all sizes are the same sum."""


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
    import numpy as np

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
        return PermutationTest(mean, float((_every_sum(sizes) >= observed).mean()), True, None)
    repeats = default_resamples(len(sizes)) if given is None else given
    hits = _hits(sizes, observed, repeats, np.random.default_rng(seed))
    drawn, bound = (1 + hits) / (1 + repeats), _hoeffding(sizes, observed)
    if hits == 0 and bound < drawn:
        return PermutationTest(mean, bound, False, repeats, bounded=True)
    return PermutationTest(mean, drawn, False, repeats)


def _hoeffding(sizes: Floats, observed: float) -> float:
    """At least the share of all signs whose sum is as far from 0 as the observed one; never 0."""
    import numpy as np

    largest = float(sizes[-1])
    share = observed / largest
    return max(sys.float_info.min, 2 * math.exp(-share * share / (2 * float(np.square(sizes / largest).sum()))))


def _every_sum(sizes: Floats) -> Floats:
    """The absolute sums under all signs of all but the last, whose sign only mirrors them."""
    import numpy as np

    sums = sizes[-1:]
    for size in sizes[:-1]:
        sums = np.concatenate([sums + size, sums - size])
    return np.abs(sums)


def _hits(sizes: Floats, observed: float, resamples: int, rng: np.random.Generator) -> int:
    """How many of the drawn sums are as far from 0 as the observed one; sizes that repeat are drawn together."""
    import numpy as np

    kinds, often = np.unique(sizes, return_counts=True)
    repeated = len(kinds) * 8 <= len(sizes)
    batch, hits = max(1, CELLS // len(kinds if repeated else sizes)), 0
    for done in range(0, resamples, batch):
        rows = min(batch, resamples - done)
        if repeated:
            plus = (rng.binomial(often, 0.5, size=(rows, len(kinds))) * kinds).sum(axis=1)
        else:
            plus = (_bits(rows, len(sizes), rng) * sizes).sum(axis=1)
        hits += int((np.abs(2 * plus - sizes.sum()) >= observed).sum())
    return hits


def _bits(rows: int, columns: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Fair coin flips, eight from a byte."""
    import numpy as np

    width = (columns + 7) // 8
    flips = np.frombuffer(rng.bytes(rows * width), np.uint8).reshape(rows, width)
    return np.unpackbits(flips, axis=1, count=columns)
