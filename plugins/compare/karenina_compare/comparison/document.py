"""A comparison as one JSON document: the keys that `karenina compare --json` promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import asdict
from karenina_runs.summaries.estimates import Interval

from .gates import Gate
from .values import Answers, Comparison, Row

FACTS = ("within", "pairs", "unasked_b", "correction", "alpha", "level")
LISTS = ("unpaired_a", "unpaired_b", "only_a", "only_b", "changed_text", "changed_template", "notes")
OF_ROW = (
    *("metric", "a", "b", "difference", "p_value", "p_adjusted", "verdict", "compared", "questions", "coverage"),
    *("better", "worse", "lost_a", "lost_b", "lost", "lost_p", "worst", "best", "worst_p", "detectable", "smallest_p"),
    *("clusters", "higher_is_better"),
)
"""What the document has under the names of the attributes."""


def document(comparison: Comparison, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Rates and their differences are fractions; a difference is B - A; None is what could not be computed."""
    return {
        "a": comparison.name_a,
        "b": comparison.name_b,
        "rows": [_row(row) for row in comparison.rows],
        "flipped": [
            {
                **asdict(flip.pair),
                **{name: getattr(flip, name) for name in ("question_id", "question", "metric", "a", "b", "change")},
                **_answers("a", flip.of_a),
                **_answers("b", flip.of_b),
            }
            for flip in comparison.flipped
        ],
        "ties": [asdict(tie) for tie in comparison.ties],
        "gates": [asdict(gate) for gate in gates],
        "passed": all(gate.passed for gate in gates) if gates else None,
        **{name: getattr(comparison, name) for name in FACTS},
        **{name: list(getattr(comparison, name)) for name in LISTS},
        "numbers_a": comparison.numbers_a.to_dict(),
        "numbers_b": comparison.numbers_b.to_dict(),
        "nothing": comparison.nothing or None,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.pair),
        **{name: getattr(row, name) for name in OF_ROW},
        **_limits(row.interval),
        "interval_method": row.interval.method if row.interval else None,
        "test": row.test or None,
        "missing_a": dict(row.missing_a),
        "missing_b": dict(row.missing_b),
        "replicates_a": row.replicates[0],
        "replicates_b": row.replicates[1],
        "tests": [{"name": test.name, "p_value": test.p_value, **_limits(test.interval)} for test in row.tests],
    }


def _limits(interval: Interval | None) -> dict[str, float | None]:
    return {"low": interval.low, "high": interval.high} if interval else {"low": None, "high": None}


def _answers(side: str, answers: Answers) -> dict[str, Any]:
    columns = {"outcomes": dict(answers.outcomes), "answer": answers.excerpt, "why": answers.why}
    return {f"{name}_{side}": value for name, value in columns.items()}
