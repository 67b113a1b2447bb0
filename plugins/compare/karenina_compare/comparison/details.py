"""What a comparison says beside its rows: which questions changed, and which models cannot be distinguished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from karenina_cli.output import inline
from karenina_vocabulary.explanations import why

from karenina_core.values.result import VerificationResult

from ..measures import Item, Measure
from ..statistics.multiplicity import rank_ranges, tied_groups
from .rows import Facing, direction
from .sides import Models, Side
from .values import Answers, Flip, Row, Tie

EXCERPT = 300
"""Characters of an answer."""


def flipped(facing: Facing) -> Iterator[Flip]:
    """The questions whose mean is not the same on both sides, in the order of their ids: those that the row counts as
    better and worse. Their items have their results."""
    for question, (one, other) in facing.compared().items():
        a, b = one.mean or 0.0, other.mean or 0.0
        if not direction(a, b):
            continue
        change: Literal["worse", "better", "different"] = "different"
        if facing.measure.higher_is_better is not None:
            change = "better" if (b > a) == facing.measure.higher_is_better else "worse"
        yield Flip(
            pair=facing.pair,
            metric=facing.measure.name,
            question_id=question,
            question=results_of(facing.b.items[question])[0].metadata.question_text,
            a=a,
            b=b,
            change=change,
            of_a=_answers(results_of(facing.a.items[question]), a > b),
            of_b=_answers(results_of(facing.b.items[question]), b > a),
        )


def results_of(items: Iterable[Item]) -> list[VerificationResult]:
    """Of items that have them."""
    return [item.result for item in items if item.result is not None]


def _answers(results: Sequence[VerificationResult], good: bool) -> Answers:
    """Of several answers one is shown that passes on the side that passes more, and one that does not on the other."""
    completed = [result for result in results if result.metadata.outcome != "error"] or list(results)
    wanted = [result for result in completed if (result.metadata.outcome == "passed") == good] or completed
    return Answers(
        outcomes=dict(sorted(Counter(result.metadata.outcome for result in results).items())),
        excerpt=inline(wanted[0].generation.raw_llm_response, EXCERPT),
        why=inline(why(wanted[0]), EXCERPT),
    )


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
