"""Draws of whole questions, for what no formula has the error of: items of one question stay together."""

from __future__ import annotations

from collections.abc import Callable

from karenina_compare.statistics.arrays import Integers, np
from karenina_compare.statistics.inputs import SEED
from karenina_runs.summaries.intervals import Interval

__all__ = ["drawn_interval"]


def drawn_interval(
    statistic: Callable[[Integers, Integers], float | None],
    questions: Integers,
    method: str,
    *,
    apart: Integers | None = None,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = SEED,
) -> Interval | None:
    """The percentiles of a statistic over draws of as many questions with replacement, each with all of its items.

    `statistic(places, questions)` takes the places of the items that were drawn and the number of the question of each,
    a question that was drawn twice being two; None where it cannot be computed. `questions` has a number for each
    item. Questions with and without one of the items at the places `apart` are drawn apart, so that each draw has as
    many of them. None where there is nothing to compute in half of the draws or more.
    """
    rng, names = np.random.default_rng(seed), np.unique(questions)
    first = names if apart is None else np.unique(questions[apart])
    kinds = [kind for kind in (first, np.setdiff1d(names, first)) if len(kind)]
    order = np.argsort(questions, kind="stable")
    counts = np.bincount(questions)
    begins = np.cumsum(counts) - counts
    values = []
    for _ in range(resamples):
        chosen = np.concatenate([kind[rng.integers(len(kind), size=len(kind))] for kind in kinds])
        sizes = counts[chosen]
        shifts = begins[chosen] - (np.cumsum(sizes) - sizes)
        places = order[np.repeat(shifts, sizes) + np.arange(sizes.sum())]
        if (value := statistic(places, np.repeat(np.arange(len(chosen)), sizes))) is not None:
            values.append(value)
    if len(values) <= resamples / 2:
        return None
    low, high = (float(limit) for limit in np.quantile(values, [(1 - level) / 2, (1 + level) / 2]))
    return Interval(low, high, level, f"{method}, questions drawn whole")
