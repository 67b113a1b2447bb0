"""What `karenina show` says beside fields and traits: checks, the embedding check, the evidence of deep judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model.result import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from .output import Part, Table, inline
from .traits import trait_name

__all__ = ["checks", "embedding", "excerpts", "trait_excerpts"]

SUFFICIENT = {True: "sufficient", False: "insufficient"}
EXCERPT = ("excerpt", "confidence", "similarity", "risk")
ABSTAINED = {True: "abstained", False: "answered"}


def checks(part: ChecksPart) -> list[Part]:
    """The checks that were performed, with their reasons."""
    rows = [
        (name, words.get(detected, "no verdict"), inline(reasoning or ""))
        for name, performed, detected, words, reasoning in (
            (
                "abstention",
                part.abstention_check_performed,
                part.abstention_detected,
                ABSTAINED,
                part.abstention_reasoning,
            ),
            (
                "sufficiency",
                part.sufficiency_check_performed,
                part.sufficiency_detected,
                SUFFICIENT,
                part.sufficiency_reasoning,
            ),
        )
        if performed and detected is not None
    ]
    return [Table(("check", "result", "reason"), rows, "Checks")] if rows else []


def embedding(part: TemplatePart) -> list[Part]:
    """What the embedding check found, in one line."""
    if not part.embedding_check_performed or part.embedding_similarity_score is None:
        return []
    then = "the verdict was overridden" if part.embedding_override_applied else "the verdict stands"
    found = f"similarity {part.embedding_similarity_score:.3f}; {then}"
    return [f"Embedding check ({part.embedding_model_used}): {found}", ""]


def excerpts(part: DeepJudgmentPart) -> list[Part]:
    """The evidence for every field."""
    risks = part.hallucination_risk_assessment or {}
    title = f"Evidence (deep judgment, {part.deep_judgment_mode})"
    rows = _rows(part.extracted_excerpts, part.attributes_without_excerpts, risks)
    reasons = [(name, inline(text)) for name, text in part.attribute_reasoning.items()]
    return _filled(Table(("field", *EXCERPT), rows, title), Table(("field", "reasoning"), reasons, "Reasoning"))


def trait_excerpts(part: DeepJudgmentRubricPart) -> list[Part]:
    """The evidence for every trait that was judged deeply; the risk of a trait stands beside its reasoning."""
    found = _rows(part.extracted_rubric_excerpts, part.traits_without_valid_excerpts, {})
    rows = [(trait_name(name), *cells) for name, *cells in found]
    assessed = part.rubric_hallucination_risk_assessment
    reasoning = part.rubric_trait_reasoning
    reasons = [
        (trait_name(name), str((assessed.get(name) or {}).get("overall_risk") or ""), inline(reasoning.get(name, "")))
        for name in dict.fromkeys((*reasoning, *assessed))
    ]
    return _filled(
        Table(("trait", *EXCERPT), rows, "Evidence for traits (deep judgment)"),
        Table(("trait", "risk", "reasoning"), reasons, "Reasoning about traits"),
    )


def _filled(*tables: Table) -> list[Part]:
    return [table for table in tables if table.rows]


def _rows(found: Mapping[str, Any], without: Sequence[str], risks: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row for each excerpt, and for each name that has none."""
    rows = [_row(name, excerpt, risks) for name, excerpts in found.items() for excerpt in excerpts]
    shown = {row[0] for row in rows}
    return rows + [(name, "(none)", "", "", "") for name in without if name not in shown]


def _row(name: str, excerpt: Mapping[str, Any], risks: Mapping[str, Any]) -> tuple[str, ...]:
    similarity = excerpt.get("similarity_score")
    return (
        name,
        inline(excerpt.get("text") or f"({excerpt.get('explanation', 'none')})"),
        str(excerpt.get("confidence", "")),
        "" if similarity is None else f"{similarity:.2f}",
        str(excerpt.get("hallucination_risk") or risks.get(name, "")),
    )
