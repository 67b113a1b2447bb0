"""Intervals of one rate: `successes` out of `trials` independent items.

All give None where there are no trials. The choice follows L. D. Brown, T. T. Cai, A. DasGupta, "Interval
estimation for a binomial proportion", Statistical Science 16 (2001) 101-133.
"""

from __future__ import annotations

from karenina_runs.summaries import estimates
from karenina_runs.summaries.estimates import Interval

from .inputs import counts, fraction
from .quantiles import beta_quantile


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Wilson's score interval without continuity correction: see `karenina_runs.summaries.estimates.wilson`."""
    k, n = counts(successes, trials)
    fraction(level, "level")
    return estimates.wilson(k / n, n, level) if n else None


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """The exact interval: it covers with at least the nominal level whatever the rate is, and is wide for that.

    With a = 1 - level: the a/2 quantile of Beta(k, n-k+1), and the 1-a/2 quantile of Beta(k+1, n-k).
    C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits", Biometrika 26 (1934) 404-413.
    """
    k, n = counts(successes, trials)
    tail = (1 - fraction(level, "level")) / 2
    if n == 0:
        return None
    low = 0.0 if k == 0 else beta_quantile(tail, k, n - k + 1)
    high = 1.0 if k == n else beta_quantile(1 - tail, k + 1, n - k)
    return Interval(low, high, level, "clopper-pearson")


def jeffreys(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """The equal-tailed interval of the posterior under Jeffreys' prior: quantiles of Beta(k + 1/2, n - k + 1/2).

    The lower limit is 0 without successes and the upper one 1 without failures, as Brown, Cai and DasGupta (2001)
    advise: without that, coverage falls to nothing where the rate comes close to 0 or 1.
    """
    k, n = counts(successes, trials)
    tail = (1 - fraction(level, "level")) / 2
    if n == 0:
        return None
    low = 0.0 if k == 0 else beta_quantile(tail, k + 0.5, n - k + 0.5)
    high = 1.0 if k == n else beta_quantile(1 - tail, k + 0.5, n - k + 0.5)
    return Interval(low, high, level, "jeffreys")
