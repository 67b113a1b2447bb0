"""What deep judgment found for fields and traits: quotations, reasoning, risks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_runs.summaries.details import reasoning_rows
from karenina_vocabulary.quotations import Quotation

from karenina_core import VerificationResult

from .texts import value


@frozen(kw_only=True)
class Quoted:
    """One quotation, or why there is none."""

    kind: str
    name: str
    text: str
    found: bool
    """Whether it is marked in the text."""
    in_trace: bool = False
    """Whether it occurs elsewhere in the trace."""
    explanation: str = ""
    confidence: str = ""
    similarity: str = ""
    risk: str = ""
    justification: str = ""
    search: str = ""


@frozen(kw_only=True)
class Reasoning:
    """What the judge thought about one field or trait."""

    kind: str
    name: str
    text: str
    risk: str


@frozen(kw_only=True)
class Evidence:
    """Everything that deep judgment stored for an item."""

    quoted: Sequence[Quoted] = ()
    reasoning: Sequence[Reasoning] = ()
    without: Sequence[str] = ()
    """Fields and traits for which a quotation was wanted and none occurs in the text."""
    invented: Sequence[str] = ()
    """Those of them for which the judge gave quotations."""


def evidence_of(result: VerificationResult, found: Iterable[Quotation]) -> Evidence:
    """Quotations as `karenina_vocabulary.quotations` gives them, with what is stored beside them."""
    fields, traits = result.deep_judgment, result.deep_judgment_rubric
    return Evidence(
        quoted=[_quoted(quotation) for quotation in found],
        reasoning=[
            Reasoning(kind=kind, name=name, text=text, risk=risk)
            for kind, part in (("field", fields), ("trait", traits))
            if part is not None
            for name, risk, text in reasoning_rows(part)
        ],
        invented=[
            *(f"field {name}" for name in (fields.attributes_with_invented_excerpts if fields else ())),
            *(f"trait {name}" for name in (traits.traits_with_invented_excerpts if traits else ())),
        ],
        without=[
            *(f"field {name}" for name in (fields.attributes_without_excerpts if fields else ())),
            *(f"trait {name}" for name in (traits.traits_without_valid_excerpts if traits else ())),
        ],
    )


def _quoted(quotation: Quotation) -> Quoted:
    facts = quotation.facts
    similarity, left_out = facts.get("similarity_score"), _text(facts, "left_out")
    return Quoted(
        kind=quotation.kind,
        name=quotation.name,
        text=_text(facts, "text"),
        found=quotation.span is not None,
        in_trace=quotation.in_trace,
        explanation=_text(facts, "explanation") or (f"leaves out: {left_out}" if left_out else ""),
        confidence=_text(facts, "confidence"),
        similarity=f"{similarity:.2f}" if isinstance(similarity, int | float) else "",
        risk=_text(facts, "hallucination_risk"),
        justification=_text(facts, "hallucination_justification"),
        search=_text(facts, "search_results") or _text(facts, "search_error"),
    )


def _text(facts: Mapping[str, Any], name: str) -> str:
    found = facts.get(name)
    return found if isinstance(found, str) else value(found)
