"""The answers of a run, each with what every judge made of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import frozen
from karenina_runs.summaries.rates import DECIDED, is_due
from karenina_vocabulary.rubric_part import read_traits

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number
from karenina_core.values.identity import canonical_json

__all__ = [
    "FIELD",
    "TRAIT",
    "VERDICT",
    "Answer",
    "answer_id",
    "answers_of",
    "expected_of",
    "judged_value",
    "targets_of",
]

VERDICT, FIELD, TRAIT = "verdict", "field:", "trait:"
"""What a label is about: whether the answer is right, what it says of a field, or the score of a trait."""
LENGTH = 16
"""Hexadecimal digits of a digest."""


@frozen(kw_only=True)
class Answer:
    """One answer of one model, and what the judges of the run made of it."""

    id: str
    """See `answer_id`: a label of another answer never fits."""
    question_id: str
    question: str
    reference: str
    model: str
    replicate: int
    text: str
    judged: Mapping[str, VerificationResult]
    """`{judge: result}`, without those that ended in an error."""

    @property
    def passes(self) -> float | None:
        """The share of judges whose verdict is that it passes; None without a verdict."""
        found = [value for result in self.judged.values() if (value := judged_value(result, VERDICT)) is not None]
        return sum(value == 1.0 for value in found) / len(found) if found else None


def answer_id(result: VerificationResult) -> str:
    """A digest of the question's id, the model, the replicate and the text: what labels name an answer by."""
    about = result.metadata
    key = [about.question_id, about.answering_model, about.replicate, result.generation.raw_llm_response]
    return hashlib.sha256(canonical_json(key).encode("ascii")).hexdigest()[:LENGTH]


def answers_of(results: Iterable[VerificationResult]) -> list[Answer]:
    """Every answer that some judge has a verdict, fields or traits of, sorted by id; errors are left out."""
    found: dict[str, tuple[VerificationResult, dict[str, VerificationResult]]] = {}
    for result in results:
        about = result.metadata
        if about.outcome in ("error", "skipped") or not result.generation.has_answer:
            continue
        found.setdefault(answer_id(result), (result, {}))[1][about.parsing_model] = result
    return [_answer(name, *found[name]) for name in sorted(found)]


def _answer(name: str, result: VerificationResult, judged: Mapping[str, VerificationResult]) -> Answer:
    about = result.metadata
    return Answer(
        id=name,
        question_id=about.question_id,
        question=about.question_text,
        reference=about.raw_answer or "",
        model=about.answering_model,
        replicate=about.replicate,
        text=result.evaluation_input or result.generation.raw_llm_response,
        judged=judged,
    )


def judged_value(result: VerificationResult, target: str) -> float | str | None:
    """What the judge says: 1 or 0 of a verdict and a field (one that it did not find is not right), the score of a
    trait, or its class; None where it says nothing."""
    if target == VERDICT:
        about = result.metadata
        decided = is_due(about) and about.outcome in DECIDED
        return float(about.outcome == "passed") if decided else None
    name = target.partition(":")[2]
    if target.startswith(FIELD):
        fields = (result.template.field_results or {}) if result.template is not None else {}
        return float(fields[name] is True) if name in fields else None
    return next((_score(trait) for trait in read_traits(result.rubric) if trait.name == name), None)


def _score(trait: Any) -> float | str | None:
    if trait.state != "ok":
        return None
    if trait.kind == "literal":
        return str(trait.label or trait.value)
    return float(trait.value) if isinstance(trait.value, bool) or is_number(trait.value) else None


def targets_of(answer: Answer) -> list[str]:
    """What can be said of the answer: the verdict, then fields, then traits, as some judge has them."""
    found: dict[str, None] = {}
    for result in answer.judged.values():
        if judged_value(result, VERDICT) is not None:
            found[VERDICT] = None
    for result in answer.judged.values():
        fields = (result.template.field_results or {}) if result.template is not None else {}
        found |= dict.fromkeys(f"{FIELD}{name}" for name in fields)
    for result in answer.judged.values():
        named = [trait.name for trait in read_traits(result.rubric) if _score(trait) is not None]
        found |= dict.fromkeys(f"{TRAIT}{name}" for name in named)
    return list(found)


def expected_of(answer: Answer, field: str) -> Any:
    """The value that the template expects of a field; None where no result has it. It says of what kind a reading is,
    and is not shown to people."""
    for result in answer.judged.values():
        if result.template is not None and field in (expected := result.template.parsed_gt_response or {}):
            return expected[field]
    return None
