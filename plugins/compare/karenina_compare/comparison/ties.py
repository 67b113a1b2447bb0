"""Which models of one run cannot be distinguished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..measures import Measure
from ..statistics.multiplicity import rank_ranges, tied_groups
from .sides import Models, Side
from .values import Row, Tie


def ties(sides: Mapping[Models, Side], rows: Sequence[Row], chosen: Iterable[Measure], alpha: float) -> tuple[Tie, ...]:
    """By judge and measure, where there are several models and a direction.

    Which model is ahead follows from their row, of questions that both have a value of: means over different questions
    do not compare. They only order models that are tied.
    """
    found = []
    for judge in sorted({parsing for _, parsing in sides}):
        for measure in chosen:
            own = [row for row in rows if (row.pair.parsing, row.metric) == (judge, measure.name)]
            # the mean of each model that has one, by question, turned so that higher is better
            values = {}
            for (answering, parsing), side in sides.items():
                means = [seen.mean for seen in side.seen.get(measure.name, {}).values() if seen.mean is not None]
                if parsing == judge and means:
                    values[answering] = _sign(measure) * sum(means) / len(means)
            if len(values) > 1 and measure.higher_is_better is not None:
                found.append(_tie(judge, measure, values, own, alpha))
    return tuple(found)


def _tie(judge: str, measure: Measure, values: Mapping[str, float], rows: Iterable[Row], alpha: float) -> Tie:
    p_values: dict[tuple[str, str], float] = {}
    ahead: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.p_adjusted is not None and row.difference is not None:
            names = row.pair.answering, row.pair.answering_b
            p_values[names] = row.p_adjusted
            ahead[names] = _sign(measure) * -row.difference
    ranks = rank_ranges(values, p_values, alpha, ahead)
    order = sorted(ranks, key=lambda name: (ranks[name], -values[name], name))
    groups = [sorted(group, key=order.index) for group in tied_groups(values, p_values, alpha)]
    groups.sort(key=lambda group: [order.index(name) for name in group])
    return Tie(judge, measure.name, tuple(tuple(group) for group in groups), {name: ranks[name] for name in order})


def _sign(measure: Measure) -> float:
    return -1.0 if measure.higher_is_better is False else 1.0
