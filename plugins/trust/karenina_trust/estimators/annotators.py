"""Whether a judge may take the place of people who annotate: the alternative annotator test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from attrs import frozen
from karenina_compare.statistics.arrays import Floats, np
from karenina_compare.statistics.inputs import StatisticsError, fraction, positive
from karenina_compare.statistics.multiplicity import benjamini_yekutieli
from karenina_compare.statistics.quantiles import t_two_sided

__all__ = ["MARGINS", "AltTest", "Annotator", "alt_test"]

MARGINS: Mapping[str, float] = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
"""By how much a judge may fall behind an annotator, for what people cost: section 3 of the publication."""
LEAST_ITEMS = 30
"""Items of an annotator at least, so that the mean of differences is near enough to normal; as the publication has
it."""


@frozen
class Annotator:
    """The judge beside one annotator, both held against the others."""

    place: int
    """Which column of the labels."""
    items: int
    judge: float
    """The share of items on which the judge is at least as close to the others as the annotator is."""
    person: float
    """The share on which the annotator is at least as close to the others as the judge is."""
    p_value: float
    """Of the judge falling behind by the margin or more; adjusted for the number of annotators."""

    def beaten(self, alpha: float = 0.05) -> bool:
        """Whether the judge is shown to fall behind by less than the margin."""
        return self.p_value < alpha


@frozen
class AltTest:
    """The outcome over all annotators."""

    annotators: tuple[Annotator, ...]
    margin: float
    alpha: float

    @property
    def winning_rate(self) -> float:
        """The share of annotators beside whom the judge holds."""
        return sum(one.beaten(self.alpha) for one in self.annotators) / len(self.annotators)

    @property
    def advantage(self) -> float:
        """The mean share of items on which the judge is at least as close to the others as the person is."""
        return sum(one.judge for one in self.annotators) / len(self.annotators)

    @property
    def passed(self) -> bool:
        """Whether the judge may take a person's place: it holds beside at least half of them."""
        return self.winning_rate >= 0.5


def alt_test(
    judge: Sequence[float],
    people: Iterable[Sequence[float | None]],
    *,
    scale: Literal["nominal", "interval"] = "nominal",
    margin: float = MARGINS["experts"],
    alpha: float = 0.05,
) -> AltTest:
    """`people` has a row for each item with a label of each annotator, or None.

    Each annotator is left out in turn. On each of their items, the judge and the person are compared with the others:
    by the share of others that say the same (nominal), or by the root mean square of the distances (interval). A paired
    t-test of the differences against the margin, Benjamini and Yekutieli's correction over annotators: N. Calderon, R.
    Reichart, R. Dror, "The alternative annotator test", arXiv:2501.10970 (2025).

    Raises StatisticsError for fewer than three annotators, and where one has fewer than 30 items with a label of
    another.
    """
    fraction(alpha, "alpha")
    positive(margin, "margin")
    rows = [list(row) for row in people]
    raters = len(rows[0]) if rows else 0
    if raters < 3 or any(len(row) != raters for row in rows):
        raise StatisticsError("the test needs three annotators or more, with a label or None of each for every item")
    if len(judge) != len(rows):
        raise StatisticsError(f"judge has {len(judge)} values and people {len(rows)}; give both for the same items")
    labels = np.asarray([[np.nan if value is None else float(value) for value in row] for row in rows])
    said = np.asarray(judge, dtype=np.float64)
    compared = [_beside(said, labels, place, scale) for place in range(raters)]
    p_values = [_p_value(person - machine, margin) for machine, person in compared]
    return AltTest(
        tuple(
            Annotator(place, len(machine), float(machine.mean()), float(person.mean()), p)
            for place, ((machine, person), p) in enumerate(zip(compared, benjamini_yekutieli(p_values), strict=True))
        ),
        margin,
        alpha,
    )


def _beside(judge: Floats, labels: Floats, place: int, scale: str) -> tuple[Floats, Floats]:
    """For each item of an annotator: whether the judge, and whether the person, is at least as close to the others."""
    others = np.delete(labels, place, axis=1)
    usable = ~np.isnan(labels[:, place]) & ~np.isnan(others).all(axis=1)
    if usable.sum() < LEAST_ITEMS:
        raise StatisticsError(
            f"annotator {place + 1} has {usable.sum()} items that another one has labelled; {LEAST_ITEMS} are needed"
        )
    others = others[usable]
    machine, person = (_closeness(values[usable], others, scale) for values in (judge, labels[:, place]))
    return (machine >= person).astype(np.float64), (person >= machine).astype(np.float64)


def _closeness(values: Floats, others: Floats, scale: str) -> Floats:
    if scale == "nominal":
        same = np.where(np.isnan(others), np.nan, others == values[:, None])
        return np.asarray(np.nanmean(same, axis=1))
    return np.asarray(-np.sqrt(np.nanmean(np.square(others - values[:, None]), axis=1)))


def _p_value(differences: Floats, margin: float) -> float:
    """One-sided, of a mean difference of the margin or more."""
    mean, spread = float(differences.mean()) - margin, float(differences.std(ddof=1))
    if not spread:
        return 0.0 if mean < 0 else 1.0
    statistic = mean / (spread / math.sqrt(len(differences)))
    half = t_two_sided(statistic, len(differences) - 1) / 2
    return half if statistic < 0 else 1 - half
