"""Every field of a result is shown: it is in a table, on the page of the report and in `karenina show`.

A field that is added to a result makes these tests fail, until it has a value in FULL and either is shown or is in
NOT_SHOWN with the reason.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from attrs import evolve, fields
from karenina_cli.output import print_parts
from karenina_cli.show.explanation import explained
from karenina_report.items import item_view
from karenina_report.page import _environment
from karenina_results.columns import TABLES
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry, all_parts

ANSWER = "Rome lies on the Tiber; see [1]."
TASK = {
    "calls": 2,
    "attempts": 3,
    "seconds": 0.25,
    "repairs": 0,
    "channel": "text",
    "input_tokens": 10,
    "output_tokens": 4,
    "total_tokens": 14,
    "cost_usd": 0.5,
    "model": "x:m",
}
METADATA = MetadataPart(
    question_id="q-1",
    template_id="t-1",
    result_id="r-1",
    question_text="Which river?",
    raw_answer="The Tiber.",
    keywords=("geography",),
    answering=ModelIdentity("x", "small"),
    parsing=ModelIdentity("x", "judge"),
    answering_system_prompt="Answer.",
    parsing_system_prompt="Extract.",
    outcome="failed",
    outcome_detail="a detail",
    completed_without_errors=False,
    error="something broke",
    warnings=("a warning",),
    caveats=("a_caveat",),
    execution_time=1.5,
    timestamp="2026-01-01T00:00:00+00:00",
    run_name="evening",
    replicate=2,
    evaluation_mode="template_and_rubric",
    few_shot_enabled=True,
    few_shot_example_count=3,
    retry_counts={"timeout": 1},
    item_digest="0123456789abcdef",
    template_isolation="no-code",
)
GENERATION = GenerationPart(
    raw_llm_response=f"--- AI Message ---\nLet me see.\n\n--- AI Message ---\n{ANSWER}",
    trace_messages=(
        {"role": "assistant", "content": "Let me see.", "block_index": 0},
        {"role": "assistant", "content": ANSWER, "block_index": 1},
    ),
    conversation_context=({"role": "user", "content": [{"type": "text", "text": "Consider: which river?"}]},),
    answering_mcp_servers=("maps",),
    recursion_limit_reached=True,
    usage_metadata={"generation": TASK, "total": TASK},
    usage_unavailable=True,
    agent_metrics={"iterations": 2, "tool_calls": 1, "tool_call_counts": {"find": 1}, "limit": "turns"},
    text_flags=("truncated",),
    replayed_from={"run_name": "morning", "answering_model": "x:small", "replicate": 1, "timestamp": "2026-01-01"},
)
CHECKS = ChecksPart(
    abstention_check_performed=True,
    abstention_detected=True,
    abstention_override_applied=True,
    abstention_reasoning="It declines.",
    sufficiency_check_performed=True,
    sufficiency_detected=True,
    sufficiency_override_applied=True,
    sufficiency_reasoning="It says enough.",
    mcp_enabled=True,
    trace_validation_failed=True,
    trace_validation_error="a trace with a gap",
)
TEMPLATE = TemplatePart(
    template_validation_error="no such class",
    template_verification_performed=True,
    parsed_gt_response={"river": "Tiber"},
    parsed_llm_response={"river": "Arno"},
    verify_result=False,
    verify_granular_result=0.25,
    field_verification_result=False,
    field_verification_error="cannot compare",
    field_results={"river": False},
    field_scores={"river": 0.125},
    composition_strategy="all_of",
    regex_validations_performed=True,
    regex_validation_results={"cites": False},
    regex_validation_details={"cites": {"pattern": r"\[2\]", "matches_found": ["[1]"], "expected": "[2]"}},
    regex_overall_success=False,
    regex_extraction_results={"cites": "[1]"},
    embedding_check_performed=True,
    embedding_similarity_score=0.875,
    embedding_override_applied=True,
    embedding_model_used="minilm",
    judge_channel="json_schema",
    judge_repairs=1,
    ungrounded_values=("river",),
    investigation_trace="The judge opened maps.txt.",
    agentic_parsing_performed=True,
    agentic_extraction_recovery="the_last_report",
    agentic_extraction_error="no JSON",
    dynamic_parsing_performed=True,
    dynamic_parse_decision="escalated",
    dynamic_decision_reasoning="A file is named.",
)
LITERAL = {"type": "llm", "kind": "literal", "higher_is_better": None, "classes": ["dry", "warm"]}
RUBRIC = RubricPart(
    rubric_evaluation_performed=True,
    rubric_evaluation_strategy="batch",
    rubric_used_full_trace=True,
    llm_trait_scores={"tone": 1, "clear": True, "odd": -1, "depth": 3},
    llm_trait_labels={"tone": "warm", "odd": "gruff"},
    regex_trait_scores={"cites": True},
    callable_trait_scores={"short": True},
    metric_trait_scores={"facts": {"tp": 1, "fn": 0, "fp": 0, "recall": 1.0}},
    metric_trait_confusion_lists={"facts": {"tp": ["the Tiber"], "fn": [], "fp": []}},
    agentic_rubric_evaluation_performed=True,
    agentic_trait_scores={"tidy": True},
    agentic_trait_investigation_traces={"tidy": "The judge listed the folder."},
    extra_trait_scores={"colour": {"hue": 0.5}},
    trait_details={"hue": {"measured at": "noon"}},
    trait_scales={"tone": LITERAL, "odd": LITERAL, "depth": {"type": "llm", "kind": "score", "min": 1, "max": 5}},
    trait_states={"odd": {"state": "invalid", "reason": "no such class"}},
    trait_provenance={"tone": "question_specific"},
    dynamic_rubric_promoted_traits=("clear",),
    dynamic_rubric_skipped_traits={"dosing": "not spoken of"},
)
QUOTATION = {"text": "Tiber", "confidence": "high", "similarity_score": 1.0, "start": 17, "end": 22}
DEEP = DeepJudgmentPart(
    deep_judgment_mode="full",
    deep_judgment_performed=True,
    extracted_excerpts={"river": [QUOTATION]},
    attribute_reasoning={"river": "It is named."},
    deep_judgment_stages_completed=("excerpts",),
    deep_judgment_model_calls=3,
    deep_judgment_excerpt_retry_count=1,
    attributes_without_excerpts=("city",),
    attributes_with_invented_excerpts=("city",),
    values_beyond_excerpts=("river",),
    deep_judgment_search_enabled=True,
    hallucination_risk_assessment={"river": "low"},
)
DEEP_RUBRIC = DeepJudgmentRubricPart(
    deep_judgment_rubric_performed=True,
    extracted_rubric_excerpts={"clear": [{"text": "Rome lies", "confidence": "low"}]},
    rubric_trait_reasoning={"clear": "One sentence."},
    deep_judgment_rubric_scores={"clear": True},
    standard_rubric_scores={"tone": 1},
    trait_metadata={"clear": {"stages_completed": ["excerpts"], "model_calls": 2, "warnings": ["cut"]}},
    traits_without_valid_excerpts=("tone",),
    rubric_hallucination_risk_assessment={"clear": {"overall_risk": "medium", "per_excerpt_risks": ["medium"]}},
    total_deep_judgment_model_calls=2,
    total_traits_evaluated=1,
    total_excerpt_retries=1,
)
FULL = VerificationResult(
    metadata=METADATA,
    generation=GENERATION,
    checks=CHECKS,
    template=TEMPLATE,
    rubric=RUBRIC,
    deep_judgment=DEEP,
    deep_judgment_rubric=DEEP_RUBRIC,
    evaluation_input=ANSWER,
    used_full_trace=True,
    trace_extraction_error="no last message",
    ledger=(LedgerEntry("VerifyTemplate", {"verdict": False}, "wrong: river"),),
    trail=(TrailEntry("VerifyTemplate", "ran", "compared", 0.5),),
    extensions={"wordcount": {"words": 7}},
)


def paths() -> Iterator[str]:
    """Every field: `name` of the result itself, `part.name` of its parts."""
    for own in fields(VerificationResult):
        if own.name not in all_parts() and own.name != "metadata":
            yield own.name
    for part, cls in {"metadata": MetadataPart, **all_parts()}.items():
        yield from (f"{part}.{a.name}" for a in fields(cls) if a.init and not a.name.startswith("_"))


def held(path: str) -> Any:
    part, _, name = path.rpartition(".")
    return getattr(getattr(FULL, part) if part else FULL, name)


def without(path: str) -> VerificationResult:
    """FULL with another value in one place, or with nothing there."""
    part, _, name = path.rpartition(".")
    changed = {name: other(held(path))}
    return evolve(FULL, **({part: evolve(getattr(FULL, part), **changed)} if part else changed))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, ModelIdentity):
        return ModelIdentity("x", "another")
    if isinstance(value, str):
        return "passed" if value == "failed" else f"{value} (another)"
    return type(value)()


def tables(result: VerificationResult) -> Any:
    found = {}
    for name, table in TABLES.items():
        columns = table.columns_for([result])
        rows = [tuple(map(repr, row)) for row in table.rows([result], columns)]
        found[name] = [column.name for column in columns], rows
    return found


ITEM = """{{ badge(item.outcome, item.detail) }} {{ item.metadata.question_id }} {{ item.reason }}
{% include "item.html" %}"""
"""An item as `page.html` shows it, without the page around it."""


@cache
def item_template() -> Any:
    return _environment().from_string(ITEM)


def page(result: VerificationResult) -> Any:
    return item_template().render(item=item_view(result, "item-1"))


def shown(result: VerificationResult) -> Any:
    out = io.StringIO()
    print_parts(explained(result), out)
    return out.getvalue()


PLACES = {"tables": tables, "page": page, "show": shown}
FOR_PEOPLE = ("page", "show")
OUTCOME = "the outcome says it"
LEDGER = "the ledger has it, with the stage that stated it"
ROWS = "what was done has rows, what was not has none"
TRAITS = "every trait says it by its state"
SCORES = "the traits say it"
LONG = "the formats that hold whole results have it; it is longer than everything else of a row"
NOT_SHOWN: Mapping[str, tuple[tuple[str, ...], str]] = {
    "metadata.completed_without_errors": (FOR_PEOPLE, OUTCOME),
    "generation.raw_llm_response": (("show",), "the trace says it, message by message"),
    "generation.trace_messages": (("tables",), LONG),
    "generation.conversation_context": (("tables",), LONG),
    "generation.usage_unavailable": (("tables",), "the usage of the task `generation` says it"),
    "checks.abstention_override_applied": (FOR_PEOPLE, LEDGER),
    "checks.sufficiency_override_applied": (FOR_PEOPLE, LEDGER),
    "checks.mcp_enabled": (FOR_PEOPLE, "the names of the tool servers say it"),
    "template.template_verification_performed": (FOR_PEOPLE, LEDGER),
    "template.verify_result": (FOR_PEOPLE, LEDGER),
    "template.field_verification_result": (FOR_PEOPLE, LEDGER),
    "template.regex_validations_performed": (FOR_PEOPLE, ROWS),
    "template.regex_overall_success": (FOR_PEOPLE, LEDGER),
    "template.regex_extraction_results": (FOR_PEOPLE, "every pattern says what it found"),
    "rubric.rubric_evaluation_performed": (FOR_PEOPLE, TRAITS),
    "rubric.agentic_rubric_evaluation_performed": (FOR_PEOPLE, TRAITS),
    "deep_judgment_rubric.deep_judgment_rubric_scores": (FOR_PEOPLE, SCORES),
    "deep_judgment_rubric.standard_rubric_scores": (FOR_PEOPLE, SCORES),
}
"""Field -> the places where a change of it is not seen, and why that is right."""


def test_the_example_holds_something_in_every_field() -> None:
    assert [path for path in paths() if held(path) in (None, "", (), {})] == []


@pytest.mark.parametrize("place", list(PLACES))
def test_a_change_of_any_field_is_seen(place: str) -> None:
    whole = PLACES[place](FULL)
    seen = {path for path in paths() if PLACES[place](without(path)) != whole}
    excepted = {path for path, (places, _) in NOT_SHOWN.items() if place in places}
    assert seen & excepted == set(), "they are shown after all"
    assert set(paths()) - seen - excepted == set(), "they are shown nowhere"


def test_what_is_not_shown_is_a_field() -> None:
    assert set(NOT_SHOWN) <= set(paths())
