"""What one result holds, as rows that `karenina show` and the report print."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import COUNTS, TraitOutcome

WORDS = {"abstention": ("abstained", "answered"), "sufficiency": ("sufficient", "insufficient")}


class FieldRow(NamedTuple):
    """One field of the template."""

    name: str
    expected: str
    extracted: str
    compared: bool
    right: bool | None
    """None where it was not found, or not compared."""
    score: float | None


def as_json(value: Any) -> str:
    """Nothing for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def field_rows(template: TemplatePart) -> list[FieldRow]:
    """Expected against extracted, the compared fields first."""
    expected, extracted = template.parsed_gt_response or {}, template.parsed_llm_response or {}
    results, scores = template.field_results or {}, template.field_scores or {}
    return [
        FieldRow(
            name=name,
            expected=as_json(expected.get(name)),
            extracted=as_json(extracted.get(name)),
            compared=name in results,
            right=results.get(name),
            score=scores.get(name),
        )
        for name in dict.fromkeys((*results, *expected, *extracted))
    ]


def pattern_rows(template: TemplatePart) -> list[tuple[str, bool, str, str, str]]:
    """Name, whether it is met, pattern, expected, found."""
    rows = []
    for name, passed in (template.regex_validation_results or {}).items():
        about = (template.regex_validation_details or {}).get(name) or {}
        expected, found = as_json(about.get("expected")), as_json(about.get("matches_found"))
        rows.append((name, passed, str(about.get("pattern", "")), expected, found))
    return rows


def check_rows(part: ChecksPart) -> list[tuple[str, str, str]]:
    """The checks that were performed: name, what was found, why."""
    rows = []
    for name, (yes, no) in WORDS.items():
        performed, detected, reason = (
            getattr(part, f"{name}_{what}") for what in ("check_performed", "detected", "reasoning")
        )
        if performed:
            rows.append((name, "no verdict" if detected is None else yes if detected else no, reason or ""))
    return rows


def embedding_text(template: TemplatePart, by: str = "") -> str:
    """What the embedding check found; empty where there was none. `by` follows the number."""
    score = template.embedding_similarity_score
    if not template.embedding_check_performed or score is None:
        return ""
    then = "the verdict was overridden" if template.embedding_override_applied else "the verdict is unchanged"
    return f"similarity {score:.3f}{by}; {then}"


def reasoning_rows(part: DeepJudgmentPart | DeepJudgmentRubricPart) -> list[tuple[str, str, str]]:
    """What deep judgment thought about every field or every trait: name, risk, reasoning."""
    if isinstance(part, DeepJudgmentPart):
        texts = part.attribute_reasoning
        risks: Mapping[str, Any] = part.hallucination_risk_assessment or {}
    else:
        assessed = part.rubric_hallucination_risk_assessment
        texts = part.rubric_trait_reasoning
        risks = {name: about.get("overall_risk") for name, about in assessed.items() if isinstance(about, Mapping)}
    return [(name, str(risks.get(name) or ""), str(texts.get(name) or "")) for name in dict.fromkeys((*texts, *risks))]


def trait_reason(trait: TraitOutcome) -> str:
    """With what was replied instead of a score, where the reason does not say it."""
    if trait.state != "invalid" or trait.label is None or trait.label in trait.reason:
        return trait.reason
    return f"{trait.reason}; replied: {trait.label}" if trait.reason else f"replied: {trait.label}"


def metric_text(trait: TraitOutcome, numbers: Mapping[str, str]) -> str:
    """The counts and the metrics of a metric trait; `numbers` are the latter as texts."""
    counts = [f"{name} {trait.counts[name]}" for name in COUNTS if name in trait.counts]
    return ", ".join([*counts, *(f"{name} {number}" for name, number in numbers.items())])


def is_records(value: Any) -> bool:
    """Whether a detail of a trait is a list of records: a table of its own."""
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def record_columns(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(key) for entry in records for key in entry))
