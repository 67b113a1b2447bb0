"""The distributions behind intervals and tests. scipy is imported here and nowhere else, on first use."""

from __future__ import annotations

from statistics import NormalDist


def normal_quantile(probability: float) -> float:
    """The standard normal quantile."""
    return NormalDist().inv_cdf(probability)


def normal_share(z: float) -> float:
    """The share of the standard normal distribution below `z`."""
    return NormalDist().cdf(z)


def t_two_sided(statistic: float, df: float) -> float:
    """How likely a t at least as far from 0 as this one is."""
    from scipy.special import stdtr

    return min(1.0, 2 * float(stdtr(df, -abs(statistic))))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def even_binomial_two_sided(successes: int, trials: int) -> float:
    """How likely a split of fair coin flips at least as uneven as this one is (exact, two-sided)."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(successes, trials - successes), trials, 0.5)))
