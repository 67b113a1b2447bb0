"""Before a run: how many questions are needed, and which difference can be found with those that there are.

All tests are two-sided. The formulas use the normal distribution; below some 30 questions they promise too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import field, frozen
from karenina_runs.summaries.intervals import t_quantile

from .arrays import np
from .inputs import StatisticsError, fraction, numbers, positive, whole
from .quantiles import normal_quantile


@frozen(kw_only=True)
class PairedVariance:
    """Where the variance of a difference by question comes from."""

    between: float
    """omega²: the variance between questions of the difference of the true rates (or scores)."""
    within_first: float = field(default=0.0)
    """sigma_A²: the mean variance of the first side's answers to one question."""
    within_second: float = field(default=0.0)
    replicates_first: int = field(default=1)
    """K_A: answers to each question; their mean is compared."""
    replicates_second: int = field(default=1)

    def __attrs_post_init__(self) -> None:
        for name in ("between", "within_first", "within_second"):
            value = getattr(self, name)
            if not (value >= 0 and math.isfinite(value)):
                raise StatisticsError(f"{name} is {value!r}; give a variance, 0 or more")
        whole(self.replicates_first, "replicates_first", 1)
        whole(self.replicates_second, "replicates_second", 1)

    @property
    def total(self) -> float:
        """omega² + sigma_A²/K_A + sigma_B²/K_B: the variance of the observed difference at one question."""
        first = self.within_first / self.replicates_first
        return self.between + first + self.within_second / self.replicates_second


def sample_size(variance: PairedVariance, effect: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """The questions needed to find a true difference `effect` with probability `power` at level `alpha`.

    n = (z_{1-alpha/2} + z_power)² (omega² + sigma_A²/K_A + sigma_B²/K_B) / effect², rounded up.
    E. Miller, "Adding error bars to evals", arXiv:2411.00640 (2024), equation 9.
    """
    needed = variance.total * (_both(alpha, power) / positive(abs(effect), "effect")) ** 2
    return max(1, math.ceil(needed))


def minimal_detectable_effect(
    variance: PairedVariance, questions: int, alpha: float = 0.05, power: float = 0.8
) -> float:
    """The smallest true difference that `questions` questions find with probability `power`: `sample_size`, inverted.

    (z_{1-alpha/2} + z_power) sqrt((omega² + sigma_A²/K_A + sigma_B²/K_B) / n); E. Miller (2024), equation 10.
    """
    return _both(alpha, power) * math.sqrt(variance.total / whole(questions, "questions", 1))


def detectable_difference(
    standard_error: float, df: float | None = None, alpha: float = 0.05, power: float = 0.8
) -> float:
    """The smallest true difference that a test with this standard error finds with probability `power`.

    (t_{1-alpha/2} + t_power) SE with `df` degrees of freedom, or normal quantiles without: H. S. Bloom, "Minimum
    detectable effects", Evaluation Review 19 (1995) 547-556. Clusters are in it, if they are in the standard error. It
    speaks of a repetition of the same run, not of the difference that this run happened to show.
    """
    if not (standard_error >= 0 and math.isfinite(standard_error)):
        raise StatisticsError(f"standard_error is {standard_error!r}; give a number, 0 or more")
    if df is None:
        return _both(alpha, power) * standard_error
    fraction(alpha, "alpha")
    degrees = positive(df, "df")
    return (t_quantile(1 - alpha / 2, degrees) + t_quantile(fraction(power, "power"), degrees)) * standard_error


def mcnemar_sample_size(only_first: float, only_second: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """The questions needed to find that one side passes more, from the rates at which only one side passes.

    With psi = p10 + p01 and delta = p10 - p01: n = (z_{1-alpha/2} sqrt(psi) + z_power sqrt(psi - delta²))² / delta²,
    rounded up. R. J. Connor, "Sample size for testing differences in proportions for the paired-sample design",
    Biometrics 43 (1987) 207-211. It holds for McNemar's test without continuity correction; the exact test needs a few
    questions more.
    """
    if not (only_first >= 0 and only_second >= 0 and 0 < only_first + only_second <= 1):
        raise StatisticsError(
            f"only_first is {only_first!r} and only_second {only_second!r}; give two rates with a sum of at most 1"
        )
    psi, delta = only_first + only_second, positive(abs(only_first - only_second), "the difference of the two rates")
    z_alpha, z_power = normal_quantile(1 - fraction(alpha, "alpha") / 2), normal_quantile(fraction(power, "power"))
    return math.ceil(((z_alpha * math.sqrt(psi) + z_power * math.sqrt(max(0.0, psi - delta**2))) / delta) ** 2)


def paired_variance(first: Sequence[Sequence[float]], second: Sequence[Sequence[float]]) -> PairedVariance:
    """The parts of the variance, estimated from replicates: `first[i]` are the scores of the first side at question i.

    sigma² is the mean over questions of s² (divisor K-1); omega² is the variance of the differences of the means, less
    what sigma² puts into it, and at least 0. Every question needs the same number of replicates on a side. With one
    replicate the parts cannot be separated: then `between` holds that side's noise as well.
    """
    if len(first) != len(second) or len(first) < 2:
        raise StatisticsError(f"{len(first)} and {len(second)} questions; give the same questions, at least two")
    sides = [[numbers(scores, f"{name}[{i}]") for i, scores in enumerate(side)]
             for name, side in (("first", first), ("second", second))]  # fmt: skip
    replicates = [len(side[0]) for side in sides]
    for side, k in zip(sides, replicates, strict=True):
        if k == 0 or any(len(scores) != k for scores in side):
            raise StatisticsError("the questions have different numbers of replicates; give as many for each")
    a, b = (np.stack(side) for side in sides)
    within = [float(s.var(axis=1, ddof=1).mean()) if k > 1 else 0.0 for s, k in zip((a, b), replicates, strict=True)]
    noise = within[0] / replicates[0] + within[1] / replicates[1]
    between = float((a.mean(axis=1) - b.mean(axis=1)).var(ddof=1)) - noise
    return PairedVariance(
        between=max(0.0, between),
        within_first=within[0],
        within_second=within[1],
        replicates_first=replicates[0],
        replicates_second=replicates[1],
    )


def _both(alpha: float, power: float) -> float:
    return normal_quantile(1 - fraction(alpha, "alpha") / 2) + normal_quantile(fraction(power, "power"))
