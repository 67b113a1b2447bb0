"""A comparison as one JSON document: the keys that `karenina compare --json` promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import asdict

from .gates import Gate
from .values import Answers, Comparison, Flip, Row

__all__ = ["document"]


def document(comparison: Comparison, gates: Sequence[Gate] = ()) -> dict[str, Any]:
    """Rates and their differences are fractions; a difference is B - A; None is what could not be computed."""
    return {
        "a": comparison.name_a,
        "b": comparison.name_b,
        "within": comparison.within,
        "pairs": comparison.pairs,
        "rows": [_row(row) for row in comparison.rows],
        "flipped": [_flip(flip) for flip in comparison.flipped],
        "ties": [asdict(tie) for tie in comparison.ties],
        "gates": [asdict(gate) for gate in gates],
        "passed": all(gate.passed for gate in gates) if gates else None,
        "unpaired_a": list(comparison.unpaired_a),
        "unpaired_b": list(comparison.unpaired_b),
        "unasked_b": comparison.unasked_b,
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
        "changed_text": list(comparison.changed_text),
        "changed_template": list(comparison.changed_template),
        "correction": comparison.correction,
        "alpha": comparison.alpha,
        "level": comparison.level,
        "numbers_a": comparison.numbers_a.to_dict(),
        "numbers_b": comparison.numbers_b.to_dict(),
        "notes": list(comparison.notes),
        "nothing": comparison.nothing or None,
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        **asdict(row.pair),
        "metric": row.metric,
        "a": row.a,
        "b": row.b,
        "difference": row.difference,
        "low": row.interval.low if row.interval else None,
        "high": row.interval.high if row.interval else None,
        "interval_method": row.interval.method if row.interval else None,
        "p_value": row.p_value,
        "p_adjusted": row.p_adjusted,
        "test": row.test or None,
        "verdict": row.verdict,
        "compared": row.compared,
        "questions": row.questions,
        "coverage": row.coverage,
        "missing_a": dict(row.missing_a),
        "missing_b": dict(row.missing_b),
        "better": row.better,
        "worse": row.worse,
        "lost_a": row.lost_a,
        "lost_b": row.lost_b,
        "lost": row.lost,
        "lost_p": row.lost_p,
        "worst": row.worst,
        "best": row.best,
        "worst_p": row.worst_p,
        "detectable": row.detectable,
        "smallest_p": row.smallest_p,
        "clusters": row.clusters,
        "replicates_a": row.replicates[0],
        "replicates_b": row.replicates[1],
        "higher_is_better": row.higher_is_better,
        "tests": [
            {
                "name": test.name,
                "p_value": test.p_value,
                "low": test.interval.low if test.interval else None,
                "high": test.interval.high if test.interval else None,
            }
            for test in row.tests
        ],
    }


def _flip(flip: Flip) -> dict[str, Any]:
    return {
        "question_id": flip.question_id,
        "question": flip.question,
        **asdict(flip.pair),
        "metric": flip.metric,
        "a": flip.a,
        "b": flip.b,
        "change": flip.change,
        **_answers("a", flip.of_a),
        **_answers("b", flip.of_b),
    }


def _answers(side: str, answers: Answers) -> dict[str, Any]:
    columns = {"outcomes": dict(answers.outcomes), "answer": answers.excerpt, "why": answers.why}
    return {f"{name}_{side}": value for name, value in columns.items()}
