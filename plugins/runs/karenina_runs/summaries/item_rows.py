"""What one result holds, as rows that `karenina show` and the report print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import Quotation
from karenina_vocabulary.rubric_part import COUNTS, LABEL, TraitOutcome

from karenina_core.values.fields import is_number

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
    if type(value) is int:  # as most are; an encoder takes ten times as long for it
        return str(value)
    return "" if value is None else _encode(value)


_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


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


class QuotedRow(NamedTuple):
    """A quotation for a field or a trait, or why there is none. Everything is text."""

    kind: str
    """`field` or `trait`."""
    name: str
    text: str
    place: str
    """Whether it occurs in what the judge read: `yes`, `in the trace`, `no`; empty without a text."""
    confidence: str
    similarity: str
    risk: str
    explanation: str
    left_out: str
    justification: str
    """Why this risk."""
    search: str


def quoted_rows(found: Iterable[Quotation]) -> list[QuotedRow]:
    """What is stored about the quotations of a result."""
    rows = []
    for quotation in found:
        facts = {name: _text(value) for name, value in quotation.facts.items()}
        text, error, left_out = facts.get("text", ""), facts.get("search_error"), quotation.facts.get("left_out")
        similarity = quotation.facts.get("similarity_score")
        place = "yes" if quotation.span is not None else "in the trace" if quotation.in_trace else "no"
        rows.append(
            QuotedRow(
                kind=quotation.kind,
                name=quotation.name,
                text=text,
                place=place if text else "",
                confidence=facts.get("confidence", ""),
                similarity=f"{similarity:.2f}" if is_number(similarity) else "",
                risk=facts.get("hallucination_risk", ""),
                explanation=facts.get("explanation", ""),
                left_out="; ".join(map(str, left_out)) if isinstance(left_out, list | tuple) else _text(left_out),
                justification=facts.get("hallucination_justification", ""),
                search=f"failed: {error}" if error else facts.get("search_results", ""),
            )
        )
    return rows


class DetailTable(NamedTuple):
    """A detail of a trait that is a list of records."""

    name: str
    columns: list[str]
    rows: list[list[str]]


def trait_details(trait: TraitOutcome) -> tuple[list[tuple[str, str]], list[DetailTable]]:
    """What an evaluator says beside the score: `(name, text)`, and lists of records."""
    texts, tables = [], []
    for name, value in trait.details.items():
        if isinstance(value, list | tuple) and value and all(isinstance(entry, Mapping) for entry in value):
            columns = list(dict.fromkeys(str(key) for entry in value for key in entry))
            tables.append(DetailTable(name, columns, [[_cell(entry.get(c)) for c in columns] for entry in value]))
        elif not (name == LABEL and value == trait.label):  # which is shown as the score
            texts.append((name, _text(value)))
    return texts, tables


def passages(quotations: Any) -> str:
    """Quotations, marked where the answer does not hold them."""
    return "; ".join(
        f"{as_json(quoted.get('text')) or 'null'}{'' if quoted.get('found', True) else ' (not in the answer)'}"
        for quoted in quotations or ()
        if isinstance(quoted, Mapping)
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(value)


def _cell(value: Any) -> str:
    """A value of a record; a list of quotations as such."""
    quoted = isinstance(value, list | tuple) and all(
        isinstance(e, Mapping) and {*e} <= {"text", "found"} for e in value
    )
    return passages(value) if quoted else _text(value)


def trait_reason(trait: TraitOutcome) -> str:
    """With what was replied instead of a score, where the reason does not say it."""
    if trait.state != "invalid" or trait.label is None or trait.label in trait.reason:
        return trait.reason
    return f"{trait.reason}; replied: {trait.label}" if trait.reason else f"replied: {trait.label}"


def metric_text(trait: TraitOutcome, numbers: Mapping[str, str]) -> str:
    """The counts and the metrics of a metric trait; `numbers` are the latter as texts."""
    counts = [f"{name} {trait.counts[name]}" for name in COUNTS if name in trait.counts]
    return ", ".join([*counts, *(f"{name} {number}" for name, number in numbers.items())])
