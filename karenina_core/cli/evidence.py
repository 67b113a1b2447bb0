"""What `karenina show` says beside fields and traits: checks, the embedding check, the evidence of deep judgment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..model.result import ChecksPart, DeepJudgmentPart, TemplatePart
from .output import Part, Table, inline

__all__ = ["checks", "embedding", "excerpts"]

SUFFICIENT = {True: "sufficient", False: "insufficient"}
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
    rows = [row for name, found in part.extracted_excerpts.items() for row in _rows(name, found, part)]
    shown = {row[0] for row in rows}
    rows += [(name, "(none)", "", "", "") for name in part.attributes_without_excerpts if name not in shown]
    columns = ("field", "excerpt", "confidence", "similarity", "risk")
    parts: list[Part] = [Table(columns, rows, f"Evidence (deep judgment, {part.deep_judgment_mode})")] if rows else []
    reasons = [(name, inline(text)) for name, text in part.attribute_reasoning.items()]
    return [*parts, *([Table(("field", "reasoning"), reasons, "Reasoning")] if reasons else [])]


def _rows(name: str, found: Sequence[Mapping[str, Any]], part: DeepJudgmentPart) -> Iterator[tuple[str, ...]]:
    risks = part.hallucination_risk_assessment or {}
    for excerpt in found:
        similarity = excerpt.get("similarity_score")
        yield (
            name,
            inline(excerpt.get("text") or f"({excerpt.get('explanation', 'none')})"),
            str(excerpt.get("confidence", "")),
            "" if similarity is None else f"{similarity:.2f}",
            str(excerpt.get("hallucination_risk") or risks.get(name, "")),
        )
