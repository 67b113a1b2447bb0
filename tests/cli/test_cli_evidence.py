"""`karenina show` tells what the checks said, what an embedding found, and on which words a field rests."""

from __future__ import annotations

from karenina_core.cli.evidence import checks, embedding, excerpts
from karenina_core.cli.output import Table
from karenina_core.model.result import ChecksPart, DeepJudgmentPart, TemplatePart


def rows(part: object) -> list[tuple[str, ...]]:
    assert isinstance(part, Table)
    return [tuple(row) for row in part.rows]


def test_only_checks_that_were_performed_are_shown() -> None:
    assert checks(ChecksPart()) == []
    (table,) = checks(
        ChecksPart(
            abstention_check_performed=True,
            abstention_detected=False,
            abstention_reasoning="It\nanswers.",
            sufficiency_check_performed=True,
            sufficiency_detected=False,
            sufficiency_reasoning="No dose.",
        )
    )
    assert rows(table) == [("abstention", "answered", "It answers."), ("sufficiency", "insufficient", "No dose.")]


def test_the_embedding_check_is_one_line() -> None:
    assert embedding(TemplatePart()) == []
    assert embedding(TemplatePart(embedding_check_performed=True)) == []
    part = TemplatePart(
        embedding_check_performed=True,
        embedding_similarity_score=0.9134,
        embedding_model_used="all-MiniLM-L6-v2",
        embedding_override_applied=True,
    )
    assert embedding(part) == [
        "Embedding check (all-MiniLM-L6-v2): similarity 0.913; the verdict was overridden",
        "",
    ]


def test_evidence_is_shown_field_by_field_and_so_is_its_absence() -> None:
    assert excerpts(DeepJudgmentPart(deep_judgment_mode="full")) == []
    part = DeepJudgmentPart(
        deep_judgment_mode="full",
        deep_judgment_performed=True,
        extracted_excerpts={
            "target": [{"text": "binds BCL2", "confidence": "high", "similarity_score": 1.0}],
            "dose": [{"text": "", "confidence": "none", "similarity_score": 0.0, "explanation": "no dose is given"}],
        },
        attribute_reasoning={"target": "It says so."},
        attributes_without_excerpts=["dose", "year"],
        hallucination_risk_assessment={"target": "low"},
    )
    evidence, reasoning = excerpts(part)
    assert rows(evidence) == [
        ("target", "binds BCL2", "high", "1.00", "low"),
        ("dose", "(no dose is given)", "none", "0.00", ""),
        ("year", "(none)", "", "", ""),
    ]
    assert rows(reasoning) == [("target", "It says so.")]
