"""What labels leave possible for the rate of passes, where people and the judge say 0 or 1.

Items fall into groups, such as those that a judge passes and those that it fails, within which the labelled ones are
like the rest. The rate is the sum over groups of a group's share of all items times the share of it that people pass.
The shares of groups are known from all items, those within from the labels: as a Dirichlet and as beta distributions,
with Jeffreys' prior. Unlike an error that is computed from what a judge was seen to get wrong, this says how often one
may err that never was.

L. D. Brown, T. T. Cai, A. DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16 (2001)
101-133, for Jeffreys' interval of one share.
"""

from __future__ import annotations

from karenina_compare.statistics.arrays import Floats, Integers, np
from karenina_compare.statistics.inputs import SEED

__all__ = ["rates_possible"]

DRAWS = 5_000
"""Limits of 95 % are then known to 1 % of the width."""
PRIOR = 0.5
"""Jeffreys': half a pass and half a failure."""


def rates_possible(people: Floats, groups: Integers, worth: float = 1.0) -> Floats:
    """Draws of the rate, shape (DRAWS,); they depend on counts alone. `people` has 0, 1 or NaN for each item, `groups`
    the number of its group. Every item counts as `worth` independent ones.

    With more than two groups, the priors of all together weigh as much as those of two: each draws the share of its
    group towards a half, and what they add would not cancel.
    """
    rng = np.random.default_rng(SEED)
    _, numbered, items = np.unique(groups, return_inverse=True, return_counts=True)
    prior = PRIOR * min(1.0, 2 / len(items))
    passed, failed = (np.bincount(numbered, weights=people == value, minlength=len(items)) for value in (1, 0))
    order = np.lexsort((failed, passed, items))  # whatever the groups are called
    items, passed, failed = items[order], passed[order], failed[order]
    shares = rng.dirichlet(worth * items + prior, DRAWS)
    return np.asarray((shares * rng.beta(worth * passed + prior, worth * failed + prior, shares.shape)).sum(axis=1))
