"""How well raters agree beyond chance. Each row is an item, each column a rater, such as a judge and people.

The coefficients differ in what they take for chance. Percent agreement alone overstates: two raters that pass nearly
everything agree on nearly everything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Literal

from attrs import evolve, frozen
from karenina_compare.agreement import cohens_kappa
from karenina_compare.statistics.arrays import Floats, Integers, np
from karenina_compare.statistics.inputs import SEED, StatisticsError, cluster_codes, fraction, whole
from karenina_runs.summaries.intervals import Estimate

from .draws import drawn_interval

__all__ = ["COEFFICIENTS", "Ratings", "Scale", "agreement", "alpha", "cohen_kappa", "gwet_ac", "percent", "scott_pi"]

Scale = Literal["nominal", "ordinal", "interval"]
Rating = str | bool | float | None


@frozen(eq=False)
class Ratings:
    """Ratings in numbers: for each item and rater the place of the category, -1 where there is none."""

    codes: Integers
    """Shape (items, raters)."""
    values: Floats
    """What the categories are worth, in rising order: their numbers, or their ranks where they are words."""
    scale: Scale

    @classmethod
    def of(cls, rows: Iterable[Sequence[Rating]], scale: Scale = "nominal") -> Ratings:
        """Categories are sorted. Raises StatisticsError for rows of different length and for mixed kinds of ratings."""
        table = [tuple(row) for row in rows]
        if len({len(row) for row in table}) > 1:
            raise StatisticsError("items have different numbers of raters; give None where a rater says nothing")
        found = {rating for row in table for rating in row if rating is not None}
        try:
            categories = sorted(found)
        except TypeError as error:
            raise StatisticsError("some ratings are words and some numbers; use one kind") from error
        words = any(isinstance(category, str) for category in categories)
        if words and scale == "interval":
            raise StatisticsError("an interval scale needs numbers, not words")
        places = {category: place for place, category in enumerate(categories)}
        codes = np.asarray([[-1 if r is None else places[r] for r in row] for row in table], dtype=np.int64)
        worth = range(len(categories)) if words else [float(category) for category in categories]
        return cls(codes.reshape(len(table), -1), np.asarray(worth, dtype=np.float64), scale)

    @property
    def counts(self) -> Floats:
        """Ratings of each category by item, shape (items, categories)."""
        return np.asarray((self.codes[:, :, None] == np.arange(len(self.values))).sum(axis=1), dtype=np.float64)

    @property
    def weights(self) -> Floats:
        """How much of an agreement two categories are: 1 for the same, 0 for those furthest apart."""
        if self.scale == "nominal" or len(self.values) < 2:
            return np.eye(len(self.values))
        values = self.values if self.scale == "interval" else np.arange(len(self.values), dtype=np.float64)
        return np.asarray(1 - np.square((values[:, None] - values[None, :]) / (values[-1] - values[0])))


def percent(ratings: Ratings) -> float | None:
    """The share of pairs of ratings of one item that agree, averaged over items with two ratings or more."""
    return _observed(ratings.counts, ratings.weights)


def scott_pi(ratings: Ratings) -> float | None:
    """Chance: all raters draw from the same shares of categories. With several raters, Fleiss' kappa.

    W. A. Scott, Public Opinion Quarterly 19 (1955) 321-325; J. L. Fleiss, Psychological Bulletin 76 (1971) 378-382.
    """
    shares = _shares(ratings.counts)
    return _beyond(percent(ratings), float(shares @ ratings.weights @ shares))


def cohen_kappa(ratings: Ratings) -> float | None:
    """Chance: each rater draws from its own shares. Of two raters, over the items that both have rated.

    See `karenina_compare.agreement.cohens_kappa`. Raises StatisticsError where there are not two raters.
    """
    if ratings.codes.shape[1] != 2:
        raise StatisticsError("Cohen's kappa is of two raters; use scott_pi, alpha or gwet_ac")
    size = len(ratings.values)
    counts = np.zeros((size, size), dtype=np.int64)
    both = ratings.codes[(ratings.codes >= 0).all(axis=1)]
    np.add.at(counts, (both[:, 0], both[:, 1]), 1)
    return cohens_kappa(counts.tolist(), ratings.weights.tolist())


def gwet_ac(ratings: Ratings) -> float | None:
    """AC1, or AC2 on scales: chance is how often raters who do not know would pick the same of the categories. Unlike
    kappa, it stays high where nearly all items are of one category.

    K. L. Gwet, British Journal of Mathematical and Statistical Psychology 61 (2008) 29-48; Handbook of Inter-Rater
    Reliability (2014), chapter 4.
    """
    size = len(ratings.values)
    if size < 2:
        return None
    shares = _shares(ratings.counts)
    chance = float(ratings.weights.sum() / (size * (size - 1)) * (shares * (1 - shares)).sum())
    return _beyond(percent(ratings), chance)


def alpha(ratings: Ratings) -> float | None:
    """Krippendorff's alpha: 1 - observed by expected disagreement, over pairs of ratings of items with two or more.

    K. Krippendorff, Content Analysis (2018), chapter 12. On an ordinal scale, the distance of two categories is the
    number of ratings between them, their own counted half.
    """
    counts = ratings.counts[ratings.counts.sum(axis=1) >= 2]
    each = counts.sum(axis=0)
    total = float(each.sum())
    if not total:
        return None
    distance = _distances(ratings, each)
    coincidences = (counts / (counts.sum(axis=1, keepdims=True) - 1)).T @ counts
    coincidences -= np.diag((counts / (counts.sum(axis=1, keepdims=True) - 1)).sum(axis=0))
    expected = float((np.outer(each, each) * distance).sum()) / (total - 1)
    return 1 - float((coincidences * distance).sum()) / expected if expected else None


COEFFICIENTS: Mapping[str, Callable[[Ratings], float | None]] = {
    "percent": percent,
    "cohen kappa": cohen_kappa,
    "scott pi": scott_pi,
    "krippendorff alpha": alpha,
    "gwet ac": gwet_ac,
}


def agreement(
    rows: Iterable[Sequence[Rating]],
    coefficient: Callable[[Ratings], float | None],
    scale: Scale = "nominal",
    questions: Iterable[Hashable] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = SEED,
) -> Estimate:
    """A coefficient with the percentiles of what draws of whole questions give, so that items of one question do not
    count as independent. There is no interval where draws have no variation of ratings, and a note says so."""
    fraction(level, "level")
    ratings = Ratings.of(rows, scale)
    items = len(ratings.codes)
    codes = cluster_codes(range(items) if questions is None else questions, items)
    name = coefficient.__name__
    value = coefficient(ratings)
    groups = len(np.unique(codes))
    found = Estimate(value=value, n=items, method=name, clusters=groups, resamples=whole(resamples, "resamples", 100))
    if value is None or groups < 2:
        return evolve(found, note="ratings do not vary, or are of one question: nothing can be said of chance or error")
    limits = drawn_interval(
        lambda places, _: coefficient(evolve(ratings, codes=ratings.codes[places])),
        codes, name, level=level, resamples=resamples, seed=seed,
    )  # fmt: skip
    if limits is None:
        return evolve(found, note="ratings hardly vary: half of the draws of questions say nothing of chance")
    return evolve(found, interval=limits)


def _observed(counts: Floats, weights: Floats) -> float | None:
    rated = counts[counts.sum(axis=1) >= 2]
    if not len(rated):
        return None
    each = rated.sum(axis=1)
    return float(((rated * (rated @ weights - 1)).sum(axis=1) / (each * (each - 1))).mean())


def _shares(counts: Floats) -> Floats:
    """Of the categories: the mean over items of their shares of an item's ratings."""
    rated = counts[counts.sum(axis=1) >= 1]
    return (
        np.asarray((rated / rated.sum(axis=1, keepdims=True)).mean(axis=0)) if len(rated) else np.zeros(counts.shape[1])
    )


def _beyond(observed: float | None, chance: float) -> float | None:
    return None if observed is None or chance >= 1 else (observed - chance) / (1 - chance)


def _distances(ratings: Ratings, each: Floats) -> Floats:
    """Squares of the distances of categories, on the scale of the ratings."""
    if ratings.scale == "nominal":
        return 1 - np.eye(len(ratings.values))
    if ratings.scale == "interval":
        return np.square(ratings.values[:, None] - ratings.values[None, :])
    upto = np.cumsum(each) - each / 2
    return np.square(upto[:, None] - upto[None, :])
