"""Many comparisons at once: adjusted p-values, in the order of the given ones, each to be compared with alpha itself;
and which models cannot be distinguished by them.

Holm bounds the probability of a single false claim; Benjamini-Hochberg and Benjamini-Yekutieli bound the expected share
of false claims among all claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .arrays import Floats, Integers, np
from .inputs import Numbers, StatisticsError, fraction, numbers

PairValues = Mapping[tuple[str, str], float]
"""The adjusted p-value of each compared pair of names, in either order."""


def holm(p_values: Numbers) -> tuple[float, ...]:
    """Holm's step-down procedure: the largest of (m - j + 1) p_(j) over j <= i, at most 1.

    Valid whatever the dependence. S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6 (1979) 65-70.
    """
    p = _probabilities(p_values)
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    return _restored(np.maximum.accumulate(p[order] * factors), order)


def benjamini_hochberg(p_values: Numbers) -> tuple[float, ...]:
    """The step-up procedure: the smallest of m p_(j) / j over j >= i, at most 1.

    Valid for tests that are independent or positively dependent. Y. Benjamini, Y. Hochberg, "Controlling the false
    discovery rate", Journal of the Royal Statistical Society B 57 (1995) 289-300.
    """
    return _step_up(_probabilities(p_values), 1.0)


def benjamini_yekutieli(p_values: Numbers) -> tuple[float, ...]:
    """Benjamini-Hochberg times 1 + 1/2 + ... + 1/m, valid whatever the dependence.

    Y. Benjamini, D. Yekutieli, "The control of the false discovery rate in multiple testing under dependency", Annals
    of Statistics 29 (2001) 1165-1188.
    """
    p = _probabilities(p_values)
    return _step_up(p, float((1 / np.arange(1, len(p) + 1)).sum()))


def _step_up(p: Floats, factor: float) -> tuple[float, ...]:
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (factor * len(p)) / np.arange(1, len(p) + 1)
    return _restored(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _restored(adjusted: Floats, order: Integers) -> tuple[float, ...]:
    result = np.empty(len(adjusted))
    result[order] = np.minimum(adjusted, 1.0)
    return tuple(result.tolist())


def _probabilities(p_values: Numbers) -> Floats:
    p = numbers(p_values, "p_values")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise StatisticsError("p_values lie between 0 and 1; leave out comparisons that were not made")
    return p


def tied_groups(values: Mapping[str, float], p_values: PairValues, alpha: float = 0.05) -> tuple[tuple[str, ...], ...]:
    """The largest groups of models in which no two are distinguishable.

    Two models are distinguishable if their adjusted p-value is at most `alpha`; a pair without p-value is not. A group
    is a set of models that are pairwise not distinguishable and to which none can be added (a maximal clique). Being
    tied is not transitive, so a model may be in several groups: that is what letters in tables of means show,
    H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", Journal of Computational
    and Graphical Statistics 13 (2004) 456-466. Every model is in at least one group.

    Names in a group are ordered by value, the highest first, then by name; groups by the places of their names.
    """
    order, apart = _compared(values, p_values, alpha)
    ties = {name: {other for other in order if other != name and other not in apart[name]} for name in order}
    place = {name: i for i, name in enumerate(order)}
    groups = (sorted(place[name] for name in group) for group in _cliques(set(), set(order), set(), ties))
    return tuple(tuple(order[i] for i in group) for group in sorted(groups))


def rank_ranges(
    values: Mapping[str, float],
    p_values: PairValues,
    alpha: float = 0.05,
    differences: Mapping[tuple[str, str], float] | None = None,
) -> dict[str, tuple[int, int]]:
    """For each model the best and the worst rank that the comparisons leave open, the best first.

    Best = 1 + the models that are distinguishable and better; worst = all models less those that are distinguishable
    and worse. Which one is better is decided by `differences`, of the first name less the second as they were compared;
    where a pair is not there, by the values. These may disagree: models that answered different questions have values
    that do not compare.
    """
    order, apart = _compared(values, p_values, alpha)
    given = dict(differences or {})

    def ahead(one: str, other: str) -> float:
        if (one, other) in given:
            return given[one, other]
        return -given[other, one] if (other, one) in given else values[one] - values[other]

    return {
        name: (
            1 + sum(ahead(other, name) > 0 for other in apart[name]),
            len(order) - sum(ahead(other, name) < 0 for other in apart[name]),
        )
        for name in order
    }


def _compared(values: Mapping[str, float], p_values: PairValues, alpha: float) -> tuple[list[str], dict[str, set[str]]]:
    """The names in order, and for each those that it is distinguishable from."""
    fraction(alpha, "alpha")
    numbers(list(values.values()), "values")
    order = sorted(values, key=lambda name: (-values[name], name))
    apart: dict[str, set[str]] = {name: set() for name in order}
    for (one, other), p in p_values.items():
        if one not in apart or other not in apart or one == other:
            raise StatisticsError(f"{one!r} and {other!r} are not two of the models; give a value for each model")
        if not 0 <= p <= 1:
            raise StatisticsError(f"the p-value of {one!r} and {other!r} is {p!r}; leave out pairs without one")
        if p_values.get((other, one), p) != p:
            raise StatisticsError(f"{one!r} and {other!r} have two p-values; give each pair once")
        if p <= alpha:
            apart[one].add(other)
            apart[other].add(one)
    return order, apart


def _cliques(chosen: set[str], open_: set[str], done: set[str], ties: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Maximal cliques, after C. Bron and J. Kerbosch, Communications of the ACM 16 (1973) 575-577, with a pivot."""
    if not open_ and not done:
        if chosen:
            yield chosen
        return
    pivot = max(open_ | done, key=lambda name: (len(ties[name] & open_), name))
    for name in sorted(open_ - ties[pivot]):
        yield from _cliques(chosen | {name}, open_ & ties[name], done & ties[name], ties)
        open_ = open_ - {name}
        done = done | {name}
