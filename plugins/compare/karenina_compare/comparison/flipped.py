"""Which questions changed, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from karenina_cli.output import inline
from karenina_vocabulary.explanations import why

from karenina_core.values.result import VerificationResult

from .rows import Facing, direction
from .values import Answers, Flip

EXCERPT = 300
"""Characters of an answer."""


def flipped(facing: Facing) -> Iterator[Flip]:
    """The questions whose mean is not the same on both sides, in the order of their ids: those that the row counts as
    better and worse."""
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
            question=facing.b.items[question][0].metadata.question_text,
            a=a,
            b=b,
            change=change,
            of_a=_answers(facing.a.items[question], a > b),
            of_b=_answers(facing.b.items[question], b > a),
        )


def _answers(results: Sequence[VerificationResult], good: bool) -> Answers:
    """Of several answers one is shown that passes on the side that passes more, and one that does not on the other."""
    completed = [result for result in results if result.metadata.outcome != "error"] or list(results)
    wanted = [result for result in completed if (result.metadata.outcome == "passed") == good] or completed
    return Answers(
        outcomes=dict(sorted(Counter(result.metadata.outcome for result in results).items())),
        excerpt=inline(wanted[0].generation.raw_llm_response, EXCERPT),
        why=inline(why(wanted[0]), EXCERPT),
    )
