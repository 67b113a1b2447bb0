"""Several judges as one: how many independent votes they are worth, majority, and votes weighted by reliability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen
from karenina_compare.statistics.arrays import Floats, np
from karenina_compare.statistics.inputs import StatisticsError

__all__ = ["DawidSkene", "dawid_skene", "effective_votes", "error_correlation", "majority", "votes_of"]

MOST_ROUNDS = 1000
CLOSE = 1e-10
"""Rounds end where no probability moves by more."""


def votes_of(rows: Iterable[Sequence[float | bool | None]]) -> Floats:
    """An array of shape (items, judges) of 0 and 1, NaN where a judge says nothing. Raises StatisticsError for
    others."""
    table = [[np.nan if vote is None else float(vote) for vote in row] for row in rows]
    if not table or len({len(row) for row in table}) != 1 or not table[0]:
        raise StatisticsError("give every item one vote, or None, of each judge")
    votes = np.asarray(table, dtype=np.float64)
    if not (np.isnan(votes) | (votes == 0) | (votes == 1)).all():
        raise StatisticsError("votes are passes (1) and failures (0); these are scores")
    return votes


def majority(votes: Floats) -> list[bool | None]:
    """What more than half of the votes on an item say; None on a tie and without votes."""
    passes, cast = np.nansum(votes, axis=1), (~np.isnan(votes)).sum(axis=1)
    return [None if 2 * p == n else bool(2 * p > n) for p, n in zip(passes.tolist(), cast.tolist(), strict=True)]


def error_correlation(votes: Floats, truth: Sequence[bool | float]) -> float | None:
    """The mean over pairs of judges of the correlation of their errors, on items that both have voted on.

    None where no pair has errors that vary: judges that are never wrong say nothing of how they would be.
    """
    wrong = np.where(np.isnan(votes), np.nan, votes != np.asarray(truth, dtype=np.float64)[:, None])
    found = []
    for one in range(wrong.shape[1]):
        for other in range(one):
            both = ~np.isnan(wrong[:, one]) & ~np.isnan(wrong[:, other])
            first, second = wrong[both, one], wrong[both, other]
            if both.any() and first.std() and second.std():
                found.append(float(np.corrcoef(first, second)[0, 1]))
    return sum(found) / len(found) if found else None


def effective_votes(judges: int, correlation: float) -> float:
    """k / (1 + (k - 1) phi): how many independent votes k judges are worth whose errors correlate by phi.

    L. Kish, "Survey Sampling" (1965), 5.4, for the formula. A negative phi counts as 0: no panel is worth more than its
    votes.
    """
    return judges / (1 + (judges - 1) * max(correlation, 0.0))


@frozen(eq=False)
class DawidSkene:
    """What votes alone say about items and judges, without labels."""

    probability: Floats
    """That an item passes, shape (items,)."""
    sensitivity: Floats
    """Of each judge, shape (judges,)."""
    specificity: Floats
    prevalence: float
    rounds: int

    @property
    def verdicts(self) -> list[bool]:
        return [bool(p > 0.5) for p in self.probability.tolist()]

    @property
    def inverted(self) -> list[int]:
        """Judges whose sensitivity and specificity are below 1 together: they are right more often when turned
        round."""
        return np.flatnonzero(self.sensitivity + self.specificity < 1).tolist()


def dawid_skene(votes: Floats) -> DawidSkene:
    """Truth, rates of judges and prevalence together, by expectation maximisation from the shares of votes.

    A. P. Dawid, A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm", Applied
    Statistics 28 (1979) 20-28. Each rate has one right and one wrong vote added, so that few votes make no judge
    perfect. The result does not depend on the order of items or judges. It rests on two assumptions: judges err
    independently of each other, given the truth, and most are better than chance. Raises StatisticsError where no item
    has a vote.
    """
    cast = ~np.isnan(votes)
    if not cast.any():
        raise StatisticsError("no judge has voted on any item")
    yes, no = np.where(cast, votes, 0.0), np.where(cast, 1 - votes, 0.0)
    said = np.maximum(cast.sum(axis=1), 1)
    probability = np.where(cast.any(axis=1), yes.sum(axis=1) / said, 0.5)
    change, rounds = 1.0, 0
    while change >= CLOSE and rounds < MOST_ROUNDS:
        rounds += 1
        prevalence = float((probability.sum() + 1) / (len(probability) + 2))
        sensitivity = (probability @ yes + 1) / (probability @ cast + 2)
        specificity = ((1 - probability) @ no + 1) / ((1 - probability) @ cast + 2)
        passes = np.log(prevalence) + yes @ np.log(sensitivity) + no @ np.log(1 - sensitivity)
        fails = np.log(1 - prevalence) + yes @ np.log(1 - specificity) + no @ np.log(specificity)
        before, probability = probability, 1 / (1 + np.exp(np.clip(fails - passes, -700, 700)))
        change = float(np.abs(probability - before).max())
    return DawidSkene(probability, sensitivity, specificity, prevalence, rounds)
