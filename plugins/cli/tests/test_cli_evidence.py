"""`karenina show` prints what the checks found, what the embedding check found, and the quotations behind a field."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from karenina_cli.output import Passage, Table, print_parts
from karenina_cli.show.conversation import answer_parts
from karenina_cli.show.traits import checks, embedding, excerpts, trait_excerpts
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import quotations
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import GenerationPart, MetadataPart

ANSWER = "It binds BCL2, which is safe."


def result_of(answer: str = ANSWER, **parts: Any) -> VerificationResult:
    about: dict[str, Any] = {"question_id": "q", "template_id": "t", "result_id": "r", "question_text": "?"}
    model = ModelIdentity("x", "m")
    metadata = MetadataPart(**about, answering=model, parsing=model)
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=answer), **parts)


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
    assert excerpts(DeepJudgmentPart(deep_judgment_mode="full"), []) == []
    part = DeepJudgmentPart(
        deep_judgment_mode="full",
        deep_judgment_performed=True,
        extracted_excerpts={
            "target": [
                {"text": "binds BCL2", "confidence": "high", "similarity_score": 1.0},
                {"text": "binds BRAF", "confidence": "low", "search_error": "no network"},
            ],
            "dose": [{"text": "", "confidence": "none", "similarity_score": 0.0, "explanation": "no dose is given"}],
        },
        attribute_reasoning={"target": "It says so."},
        attributes_without_excerpts=["dose", "year"],
        hallucination_risk_assessment={"target": "low"},
    )
    evidence, search, reasoning = excerpts(part, quotations(result_of(deep_judgment=part), ANSWER))
    assert rows(evidence) == [
        ("target", "binds BCL2", "yes", "high", "1.00", "low"),
        ("target", "binds BRAF", "no", "low", "", "low"),
        ("dose", "(no dose is given)", "", "none", "0.00", ""),
        ("year", "(none)", "", "", "", ""),
    ]
    assert rows(search) == [("target", "binds BRAF", "failed: no network", "")]
    assert rows(reasoning) == [("target", "low", "It says so.")]


def test_what_a_quotation_leaves_out_and_fields_with_invented_ones_only_are_shown() -> None:
    quoted = {"text": "It is safe", "confidence": "high", "similarity_score": 0.6, "left_out": ["(as is said)"]}
    part = DeepJudgmentPart(
        deep_judgment_mode="full",
        extracted_excerpts={"risk": [quoted]},
        attributes_without_excerpts=["dose", "year"],
        attributes_with_invented_excerpts=["year"],
    )
    (evidence,) = excerpts(part, quotations(result_of(deep_judgment=part), ANSWER))
    assert [row[:2] for row in rows(evidence)] == [
        ("risk", "It is safe (leaves out: (as is said))"),
        ("dose", "(none)"),
        ("year", "(only invented ones)"),
    ]


def marked(answer: str = ANSWER) -> list[Any]:
    """The answer with a quotation for a field, one for a trait, and one that does not stand in it."""
    result = result_of(
        answer,
        deep_judgment=DeepJudgmentPart(extracted_excerpts={"target": [{"text": "binds BCL2"}, {"text": "binds it"}]}),
        deep_judgment_rubric=DeepJudgmentRubricPart(extracted_rubric_excerpts={"safe": [{"text": "BCL2, which"}]}),
    )
    return answer_parts(result, quotations(result, answer))


def test_quotations_that_stand_in_the_answer_are_marked_and_nothing_is_lost() -> None:
    title, passage, legend, _ = marked()
    assert title == "Answer of x:m, replicate 1"
    assert passage == Passage([("It ", False), ("binds BCL2, which", True), (" is safe.", False)])
    assert legend == "  (marked: quotations that were found in it, for field target, trait safe)"


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("", "  It [[binds BCL2, which]] is safe.\n"),
        ("[[No.]] ", "  [[No.]] It {{binds BCL2, which}} is safe.\n"),
        ("[[ {{ << \u27e6 ", "  [[ {{ << \u27e6 It binds BCL2, which is safe.\n"),
    ],
)
def test_where_there_are_no_styles_brackets_mark_that_the_answer_does_not_hold(
    before: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_parts(marked(before + ANSWER)[1:2], sys.stdout)
    assert capsys.readouterr().out == shown


def test_quotations_of_the_whole_trace_are_found_in_the_answer_at_its_end() -> None:
    trace = f"It binds BCL2? Let me see.\n{ANSWER}"
    later = trace.index("binds BCL2", 20)
    entries = [
        {"text": "Binds  BCL2", "start": later, "end": later + 10},
        {"text": "let me see", "start": 15, "end": 25},
        {"text": "made up"},
    ]
    evidence = DeepJudgmentRubricPart(extracted_rubric_excerpts={"safe": entries})
    rubric = RubricPart(rubric_used_full_trace=True)
    result = result_of(trace, evaluation_input=ANSWER, rubric=rubric, deep_judgment_rubric=evidence)
    found = quotations(result, ANSWER)
    assert [quotation.span for quotation in found] == [(3, 13), None, None]
    (table,) = trait_excerpts(evidence, found)
    assert [row[2] for row in rows(table)] == ["yes", "in the trace", "no"]
