"""A test of "the judge agrees with people as often as it did", whose chance of a false alarm is bounded over all looks
together, however many there are and whenever one stops.

Of n labelled answers judged at a look, s agree with their labels. Under the hypothesis that the mean agreement of every
look is m or more, (q/m)^s ((1-q)/(1-m))^(n-s) with q < m is 1 or less on average: for a binomial s by computation, and
for answers that are not equally hard because it is convex in s (W. Hoeffding, "On the distribution of the number of
successes in independent trials", Annals of Mathematical Statistics 27 (1956) 713-721). Bets on several q are mixed, and
so are bets that begin at each look t, with the weight 1/(t(t+1)): a change is found soon after it happens, and not only
one from the beginning. The mixture is a supermartingale that begins at 1, so that it ever reaches 1/alpha with a
probability of alpha at most (J. Ville, "Étude critique de la notion de collectif", 1939). On betting for means: I.
Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal Statistical
Society B 86 (2024) 1-27; on mixing over beginnings: J. Shin, A. Ramdas, A. Rinaldo, "E-detectors: a nonparametric
framework for sequential change detection", New England Journal of Statistics in Data Science 2 (2024) 229-260.

What is assumed: the answers of a look are judged independently of each other, given the looks before.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen
from karenina_compare.statistics.arrays import Floats, np
from karenina_compare.statistics.inputs import StatisticsError, fraction
from karenina_compare.statistics.proportions import clopper_pearson

__all__ = ["Look", "Monitor", "evidence", "floor_of", "monitored"]

BETS = (0.98, 0.95, 0.9, 0.8, 0.6)
"""Shares of m that bets are on: from a slow decline to a broken judge. Chosen; any are valid, and near ones find a
change sooner."""


@frozen
class Look:
    """How often a judge agreed with the labels at one look."""

    agreed: int
    judged: int
    """Labelled answers of which it had a verdict."""
    errors: int = field(default=0)
    """Labelled answers of which it had none."""


@frozen(kw_only=True)
class Monitor:
    """What all looks together say."""

    floor: float
    """The agreement that the looks after the first ones are tested against."""
    baseline: int
    """How many looks made the floor; none where it was given."""
    limit: float
    """Evidence that is an alarm."""
    evidence: Sequence[float]
    """After each look that was tested; by chance alone it ever reaches `limit` in `alpha` of all cases at most."""
    alpha: float

    @property
    def alarm(self) -> int | None:
        """The look, counted from 0 and with the first ones, at which the alarm came; None without one. It stays,
        whatever comes later."""
        found = (place for place, value in enumerate(self.evidence) if value >= self.limit)
        first = next(found, None)
        return None if first is None else first + self.baseline


def evidence(agreed: Floats, judged: Floats, floor: float) -> Floats:
    """The mixture after each look; shape (..., looks), as of `agreed` and `judged`. See the module."""
    looks = np.arange(1, agreed.shape[-1] + 1)
    weights = 1 / (looks * (looks + 1))
    total = np.zeros_like(agreed, dtype=np.float64)
    with np.errstate(over="ignore"):  # evidence without bound is an alarm all the same
        for share in BETS:
            bet = floor * share
            factors = np.exp(agreed * np.log(bet / floor) + (judged - agreed) * np.log((1 - bet) / (1 - floor)))
            held = np.zeros(agreed.shape[:-1])
            for place in range(agreed.shape[-1]):
                held = (held + weights[place]) * factors[..., place]
                total[..., place] += held / len(BETS)
    return total + 1 / (looks + 1)


def floor_of(looks: Sequence[Look], alpha: float) -> float:
    """The lower limit of the agreement of these looks: above the true mean in `alpha` of cases at most.

    One-sided, of C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26 (1934) 404-413; answers that are not equally hard only make it lower than needed. Raises
    StatisticsError where nothing was judged, or nothing agreed.
    """
    agreed, judged = sum(look.agreed for look in looks), sum(look.judged for look in looks)
    if not agreed:
        raise StatisticsError("the judge agrees with no label at the first look, so it cannot become worse")
    limits = clopper_pearson(agreed, judged, 1 - 2 * alpha)
    assert limits is not None  # there are trials
    return limits.low


def monitored(looks: Sequence[Look], *, baseline: int = 1, floor: float | None = None, alpha: float = 0.05) -> Monitor:
    """Test all looks after the first `baseline` ones against the agreement of these, or all against a given `floor`.

    Where the floor comes from looks, half of alpha is spent on it. Raises StatisticsError for less than two looks, or
    one where a floor is given, and for a look at which nothing was judged.
    """
    fraction(alpha, "alpha")
    if any(not look.judged for look in looks):
        raise StatisticsError("a look has no verdict of any labelled answer; leave it out")
    if floor is not None:
        if not 0 < floor < 1:
            raise StatisticsError(f"floor is {floor!r}; give an agreement between 0 and 1")
        return _tested(looks, floor, 0, 1 / alpha, alpha)
    if len(looks) <= baseline or baseline < 1:
        there = "one look is" if len(looks) == 1 else f"{len(looks)} looks are"
        what = "look says" if baseline == 1 else f"{baseline} looks say"
        raise StatisticsError(
            f"{there} too few: the first {what} what the others are tested against; give more runs, or --floor X"
        )
    return _tested(looks[baseline:], floor_of(looks[:baseline], alpha / 2), baseline, 2 / alpha, alpha)


def _tested(looks: Sequence[Look], floor: float, baseline: int, limit: float, alpha: float) -> Monitor:
    if not looks:
        raise StatisticsError("there is no look to be tested")
    agreed = np.asarray([look.agreed for look in looks], dtype=np.float64)
    judged = np.asarray([look.judged for look in looks], dtype=np.float64)
    found = evidence(agreed, judged, floor).tolist()
    return Monitor(floor=floor, baseline=baseline, limit=limit, evidence=found, alpha=alpha)
