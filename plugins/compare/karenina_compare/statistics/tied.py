"""Which models cannot be distinguished, from the adjusted p-values of their pairwise comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .inputs import StatisticsError, fraction, numbers

PairValues = Mapping[tuple[str, str], float]
"""The adjusted p-value of each compared pair of names, in either order."""


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
