"""Many comparisons at once: adjusted p-values, in the order of the given ones, each to be compared with alpha itself.

Holm bounds the probability of a single false claim; Benjamini-Hochberg and Benjamini-Yekutieli bound the expected share
of false claims among all claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .inputs import Numbers, StatisticsError, numbers

if TYPE_CHECKING:
    from .inputs import Floats, Integers


def holm(p_values: Numbers) -> tuple[float, ...]:
    """Holm's step-down procedure: the largest of (m - j + 1) p_(j) over j <= i, at most 1.

    Valid whatever the dependence. S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6 (1979) 65-70.
    """
    import numpy as np

    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    return _restored(np.maximum.accumulate(p[order] * factors), order)


def benjamini_hochberg(p_values: Numbers) -> tuple[float, ...]:
    """The step-up procedure: the smallest of m p_(j) / j over j >= i, at most 1.

    Valid for tests that are independent or positively dependent. Y. Benjamini, Y. Hochberg, "Controlling the false
    discovery rate", Journal of the Royal Statistical Society B 57 (1995) 289-300.
    """
    return _step_up(_checked(p_values), 1.0)


def benjamini_yekutieli(p_values: Numbers) -> tuple[float, ...]:
    """Benjamini-Hochberg times 1 + 1/2 + ... + 1/m, valid whatever the dependence.

    Y. Benjamini, D. Yekutieli, "The control of the false discovery rate in multiple testing under dependency", Annals
    of Statistics 29 (2001) 1165-1188.
    """
    import numpy as np

    p = _checked(p_values)
    return _step_up(p, float((1 / np.arange(1, len(p) + 1)).sum()))


def _step_up(p: Floats, factor: float) -> tuple[float, ...]:
    import numpy as np

    order = np.argsort(p, kind="stable")
    scaled = p[order] * (factor * len(p)) / np.arange(1, len(p) + 1)
    return _restored(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _restored(adjusted: Floats, order: Integers) -> tuple[float, ...]:
    import numpy as np

    result = np.empty(len(adjusted))
    result[order] = np.minimum(adjusted, 1.0)
    return tuple(result.tolist())


def _checked(p_values: Numbers) -> Floats:
    p = numbers(p_values, "p_values")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise StatisticsError("p_values lie between 0 and 1; leave out comparisons that were not made")
    return p
