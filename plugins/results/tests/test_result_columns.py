"""Columns: documented names in the documented order, one type each, and nothing that one odd item could spoil."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from karenina_results.columns import (
    JUDGMENT,
    REGEX,
    RESULT,
    RUBRIC,
    RUBRIC_JUDGMENT,
    RUBRIC_WITH_EVIDENCE,
    TABLES,
    TEMPLATE,
    USAGE,
    USAGE_TOTALS,
    Row,
    Table,
    as_json,
    cell,
    written,
)
from karenina_results.frames import LISTS, arrow_schema, backend_package, frame, to_frame
from karenina_template.language.searches import run_patterns
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import PluginError
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

LAW = settings(
    max_examples=settings().max_examples // 3,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # results are large: making a failing one smaller takes minutes
    suppress_health_check=list(HealthCheck),
)
RESULTS = st.lists(strategies.results(), min_size=1, max_size=2)
BACKENDS = ("pandas", "polars", "pyarrow")
ME = ModelIdentity("x", "m")


def result(outcome: Any = "passed", detail: str | None = None, error: str | None = None, **parts: Any) -> Any:
    metadata = MetadataPart(
        question_id="q",
        template_id="t",
        result_id="r",
        question_text="?",
        answering=ME,
        parsing=ME,
        outcome=outcome,
        outcome_detail=detail,
        error=error,
        completed_without_errors=outcome != "error",
    )
    return VerificationResult(metadata=evolve(metadata, **parts.pop("metadata", {})), **parts)


def records(table: Table, *results: VerificationResult) -> list[dict[str, Any]]:
    columns = table.columns_for(results)
    return [dict(zip([c.name for c in columns], row, strict=True)) for row in table.rows(results, columns)]


# Documented names and order

STATUS = "success failure_category failure_group failure_stage failure_reason caveats"
IDENTITY = (
    "question_id template_id question_text keywords replicate answering_mcp_servers scenario_id scenario_node "
    "scenario_turn scenario_path"
)
MODELS = "answering_model parsing_model answering_system_prompt parsing_system_prompt"
EXCERPT = (
    "excerpt_index excerpt_text excerpt_confidence excerpt_similarity_score excerpt_search_results "
    "excerpt_hallucination_risk excerpt_hallucination_justification"
)
CHECKS = (
    "embedding_check_performed embedding_similarity_score embedding_override_applied embedding_model_used "
    "abstention_check_performed abstention_detected abstention_override_applied abstention_reasoning "
    "sufficiency_check_performed sufficiency_detected sufficiency_override_applied sufficiency_reasoning "
    "regex_validations_performed regex_overall_success"
)
DOCUMENTED = {
    "template": f"{STATUS} recursion_limit_reached {IDENTITY} {MODELS} raw_llm_response field_name gt_value llm_value "
    f"field_match field_score field_type verify_result verify_granular_result {CHECKS} execution_time timestamp "
    "run_name result_index",
    "regex": f"{IDENTITY} pattern_name pattern_regex matched extracted_value match_start match_end full_match "
    "raw_llm_response",
    "usage": f"{IDENTITY} usage_stage input_tokens output_tokens total_tokens model_used input_audio_tokens "
    "input_cache_read_tokens output_audio_tokens output_reasoning_tokens agent_iterations agent_tool_calls "
    "agent_tools_used agent_suspected_failures",
    "rubric_with_evidence": f"{STATUS} {IDENTITY} {MODELS} rubric_evaluation_performed rubric_evaluation_strategy "
    "trait_name trait_score trait_label trait_type evaluation_method metric_name confusion_tp confusion_fp "
    "confusion_fn confusion_tn investigation_trace execution_time timestamp run_name trait_provenance trait_reasoning "
    "trait_excerpts trait_hallucination_risk",
    "judgment": f"{STATUS} {IDENTITY} {MODELS} deep_judgment_mode deep_judgment_performed deep_judgment_search_enabled "
    f"attribute_name gt_attribute_value llm_attribute_value attribute_match {EXCERPT} attribute_reasoning "
    "attribute_overall_risk attribute_has_excerpts deep_judgment_model_calls deep_judgment_excerpt_retries "
    "stages_completed parsed_gt_response parsed_llm_response",
    "result": "question_id success error question_text raw_llm_response parsed_gt_response parsed_llm_response "
    "template_verification_performed verify_result verify_granular_result rubric_evaluation_performed keywords "
    "question_specific_rubrics answering_model parsing_model replicate execution_time timestamp "
    "answering_system_prompt parsing_system_prompt run_name embedding_check_performed embedding_similarity_score "
    "embedding_override_applied embedding_model_used answering_mcp_servers deep_judgment_mode "
    "deep_judgment_performed extracted_excerpts attribute_reasoning deep_judgment_stages_completed "
    "deep_judgment_model_calls deep_judgment_excerpt_retry_count attributes_without_excerpts "
    "deep_judgment_search_enabled hallucination_risk_assessment deep_judgment_rubric_performed "
    "extracted_rubric_excerpts rubric_trait_reasoning deep_judgment_rubric_scores standard_rubric_scores "
    "trait_metadata traits_without_valid_excerpts rubric_hallucination_risk_assessment "
    "total_deep_judgment_model_calls total_traits_evaluated total_excerpt_retries metric_trait_confusion_lists "
    "metric_trait_metrics usage_metadata agent_metrics",
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_columns_come_first_and_in_their_order(name: str) -> None:
    documented = DOCUMENTED[name].split()
    assert [column.name for column in TABLES[name].columns][: len(documented)] == documented


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_names_are_unique(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)


def test_traits_of_the_benchmark_have_columns_after_the_keywords() -> None:
    part = RubricPart(
        llm_trait_scores={"Safe": True, "Own": 2},
        agentic_trait_scores={"Looked": True},
        trait_provenance={"Safe": "global", "Own": "question_specific", "Looked": "global"},
    )
    names = [column.name for column in RESULT.columns_for([result(rubric=part)])]
    after = names.index("keywords") + 1
    assert names[after : after + 3] == ["rubric_Looked", "rubric_Safe", "question_specific_rubrics"]
    (row,) = records(RESULT, result(rubric=part))
    assert (row["rubric_Safe"], row["rubric_Looked"]) == (True, True)
    assert json.loads(row["question_specific_rubrics"]) == {"Own": 2}
    assert "rubric_Own" not in row


# Cells


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("text", "a", "a"),
        ("text", "a\ud800b", "a?b"),
        ("text", {"a": 1}, '{"a": 1}'),
        ("text", 3, "3"),
        ("whole", 3, 3),
        ("whole", True, None),
        ("whole", 3.0, None),
        ("whole", 2**63, None),
        ("whole", -(2**63), -(2**63)),
        ("number", 3, 3.0),
        ("number", 10**400, None),
        ("number", math.nan, None),
        ("number", math.inf, None),
        ("number", "3", None),
        ("number", False, None),
        ("boolean", False, False),
        ("boolean", 1, None),
        ("json", ("a", None), '["a", null]'),
        ("json", {"a": math.nan}, '{"a": null}'),
        ("json", {1: {2, 1}}, '{"1": [1, 2]}'),
        ("json", ["\ud800"], '["\\ud800"]'),
        ("json", "é", '"é"'),
        ("value", True, True),
        ("value", math.nan, None),
    ],
)
def test_a_cell_holds_what_its_column_holds_or_nothing(type_: Any, value: Any, expected: Any) -> None:
    found = cell(type_, value)
    assert (found, type(found)) == (expected, type(expected))


@given(strategies.json_values())
@example(True)
@example(1)
@example(1.0)
@example("\ud800")
@example({"\ud800": ["x"]})
def test_a_value_is_written_so_that_it_can_be_read_exactly(value: Any) -> None:
    text = written("value", value)
    assert value is None if text is None else repr(json.loads(text)) == repr(value)
    assert json.loads(as_json(value).encode("utf-8")) == value


# Every table takes every result, everywhere


@LAW
@given(RESULTS, st.sampled_from(sorted(TABLES)))
def test_every_result_becomes_rows_of_one_type_per_column(results: Any, name: str) -> None:
    import pandas
    import polars
    import pyarrow

    table = TABLES[name]
    columns = [evolve(c, type="texts") if c.name in LISTS else c for c in table.columns_for(results)]
    rows = list(table.rows(results, columns))
    written_rows = list(table.written_rows(results, columns))
    frames = {backend: frame(table, results, backend) for backend in BACKENDS}
    kinds = {
        "text": (pandas.StringDtype(), polars.String, pyarrow.string()),
        "json": (pandas.StringDtype(), polars.String, pyarrow.string()),
        "value": (object, polars.String, pyarrow.string()),
        "texts": (object, polars.List(polars.String), pyarrow.list_(pyarrow.string())),
        "whole": (pandas.Int64Dtype(), polars.Int64, pyarrow.int64()),
        "number": (pandas.Float64Dtype(), polars.Float64, pyarrow.float64()),
        "boolean": (pandas.BooleanDtype(), polars.Boolean, pyarrow.bool_()),
    }
    for place, column in enumerate(columns):
        known = kinds[column.type]
        assert frames["pandas"].dtypes.iloc[place] == known[0]
        assert frames["polars"].dtypes[place] == known[1]
        assert frames["pyarrow"].schema[place].type == known[2]
        expected = [row[place] for row in rows]
        texts = [row[place] for row in written_rows]
        assert frames["polars"][column.name].to_list() == frames["pyarrow"][column.name].to_pylist() == texts
        found = frames["pandas"][column.name].tolist()
        missing = [value is None or value is pandas.NA for value in found]
        assert missing == [value is None for value in expected]
        assert [v for v, gone in zip(found, missing, strict=True) if not gone] == [v for v in expected if v is not None]


@LAW
@given(RESULTS)
def test_tables_of_items_fields_and_judgments_leave_no_item_out(results: Any) -> None:
    indexes = {
        name: [row["result_index"] for row in records(TABLES[name], *results)]
        for name in ("result", "template", "judgment", "rubric_judgment")
    }
    everything = list(range(len(results)))
    assert indexes["result"] == everything
    assert sorted(set(indexes["template"])) == everything
    assert set(indexes["judgment"]) == {n for n in everything if results[n].deep_judgment is not None}
    assert set(indexes["rubric_judgment"]) == {n for n in everything if results[n].deep_judgment_rubric is not None}


@LAW
@given(RESULTS, st.integers(0, 5))
def test_rows_come_one_after_the_other_and_cells_are_those_of_their_columns(results: Any, start: int) -> None:
    """A stream that never ends gives its first rows; what all rows of a result have in common is read right."""
    for table in (TEMPLATE, RUBRIC, JUDGMENT):
        columns = table.columns_for(results)
        whole = list(table.written_rows(results, columns, start))
        assert [tuple(c.written(row) for c in columns) for row in table.sources(results, start)] == whole
        stream = table.written_rows(itertools.cycle(results), columns, start)
        assert list(itertools.islice(stream, len(whole))) == whole


def test_cells_that_all_rows_of_a_result_share_need_no_item() -> None:
    about = result(template=TemplatePart(), rubric=RubricPart(), deep_judgment=DeepJudgmentPart())
    for table in TABLES.values():
        shared = [column for column in table.columns if column.per_result]
        assert shared
        for row in table.sources([about], 0):
            assert [column.cell(Row(about)) for column in shared] == [column.cell(row) for column in shared]


# What other packages add


def test_values_of_other_packages_are_columns_by_themselves() -> None:
    first = result(extensions={"audit": {"cost": 3, "note": "x"}})
    second = result(extensions={"audit": {"cost": 4.5}, "other": {"seen": [1]}})
    for table in (RESULT, TEMPLATE):
        rows = records(table, first, second)
        assert [row["audit.cost"] for row in rows] == [3, 4.5]
        assert [row["audit.note"] for row in rows] == ["x", None]
        assert [row["other.seen"] for row in rows] == [None, [1]]


def test_two_columns_of_one_name_are_distinguished() -> None:
    part = RubricPart(llm_trait_scores={"t": True}, trait_details={"t": {"found": 1}})
    about = result(rubric=part, extensions={"details": {"found": 2}, "trait": {"x": 1}})
    (row,) = records(RUBRIC, about)
    assert {row["details.found"], row["details.found_2"]} == {1, 2}
    odd = result(rubric=RubricPart(llm_trait_scores={"evaluation_performed": 5}))
    (row,) = records(RESULT, odd)
    assert (row["rubric_evaluation_performed"], row["rubric_evaluation_performed_2"]) == (False, 5)


def test_names_of_columns_can_be_written() -> None:
    about = result(extensions={"p": {"\ud800": 1}})
    assert frame(TEMPLATE, [about], "polars")["p.?"].to_list() == ["1"]


# How an item ended


@pytest.mark.parametrize(
    ("outcome", "detail", "success", "category", "group"),
    [
        ("passed", None, True, None, None),
        ("scored", None, True, None, None),
        ("skipped", "no stage gave a verdict", None, None, None),
        ("failed", None, False, "content", "content"),
        ("auto_failed", "RecursionLimitAutoFail", False, "recursion_limit", "autofail"),
        ("auto_failed", "TraceValidationAutoFail", False, "trace_validation", "autofail"),
        ("auto_failed", "DeepJudgmentAutoFail", False, "deep_judgment", "autofail"),
        ("auto_failed", "DeepJudgmentRubricAutoFail", False, "deep_judgment_rubric", "autofail"),
        ("auto_failed", "SomebodyElse", False, "SomebodyElse", "autofail"),
        ("abstained", None, False, "abstention", "abstained"),
        ("insufficient", None, False, "sufficiency", "abstained"),
        ("error", "rate_limited", False, "rate_limit", "retry"),
        ("error", "timeout", False, "timeout", "retry"),
        ("error", "connection", False, "connection", "retry"),
        ("error", "server", False, "server_error", "retry"),
        ("error", "template", False, "template_validation", "system"),
        ("error", "judge", False, "parsing", "system"),
        ("error", "budget", False, "unexpected_error", "system"),
        ("error", None, False, "unexpected_error", "system"),
    ],
)
def test_what_kept_an_item_from_passing(outcome: Any, detail: Any, success: Any, category: Any, group: Any) -> None:
    (row,) = records(TEMPLATE, result(outcome, detail))
    assert (row["success"], row["failure_category"], row["failure_group"]) == (success, category, group)
    assert (row["outcome"], row["outcome_detail"]) == (outcome, detail)


def test_the_stage_and_the_reason_of_a_wrong_answer_are_those_that_decided() -> None:
    ledger = (
        LedgerEntry("VerifyTemplate", {"field": False, "verdict": False, "outcome": "failed"}, "wrong: dose"),
        LedgerEntry("EmbeddingCheck", {"field": True, "verdict": True}, "similar"),
        LedgerEntry("DeepJudgmentAutoFail", {"verdict": False, "outcome": "auto_failed"}, "no excerpts"),
    )
    (row,) = records(TEMPLATE, result("auto_failed", "DeepJudgmentAutoFail", ledger=ledger, template=TemplatePart()))
    assert (row["failure_stage"], row["failure_reason"]) == ("DeepJudgmentAutoFail", "no excerpts")


def test_the_stage_and_the_reason_of_an_error_are_those_that_failed() -> None:
    trail = (TrailEntry("GenerateAnswer", "ran"), TrailEntry("ParseTemplate", "failed"), TrailEntry("X", "failed"))
    (row,) = records(TEMPLATE, result("error", "judge", "n" * 900, trail=trail))
    assert row["failure_stage"] == "ParseTemplate"
    assert len(row["failure_reason"]) == 500
    assert len(row["error"]) == 900


def test_caveats_are_joined() -> None:
    about = result(
        generation=GenerationPart(text_flags=["truncated"]),
        template=TemplatePart(embedding_override_applied=True),
        metadata={"retry_counts": {"timeout": 1}},
    )
    assert records(TEMPLATE, about)[0]["caveats"] == "partial_content, embedding_override, retries_used"
    assert records(TEMPLATE, result())[0]["caveats"] is None


def test_caveats_that_stages_reported_follow_and_none_is_repeated() -> None:
    metadata = {"caveats": ("parse_decision_malformed", "retries_used"), "retry_counts": {"timeout": 1}}
    for table in (RESULT, TEMPLATE):
        (row,) = records(table, result(metadata=metadata))
        assert row["caveats"] == "retries_used, parse_decision_malformed"


def test_what_an_agent_did_for_the_fields_is_in_the_tables_of_items_and_of_fields() -> None:
    part = TemplatePart(
        agentic_parsing_performed=True,
        agentic_extraction_recovery="report",
        dynamic_parsing_performed=True,
        dynamic_parse_decision="escalated",
        dynamic_decision_reasoning="the file is not shown",
        investigation_trace="looked",
    )
    for table in (RESULT, TEMPLATE):
        (row,) = records(table, result(template=part))
        assert (row["agentic_parsing_performed"], row["agentic_extraction_recovery"]) == (True, "report")
        assert (row["dynamic_parsing_performed"], row["dynamic_parse_decision"]) == (True, "escalated")
        assert row["dynamic_decision_reasoning"] == "the file is not shown"
        assert row["parsing_investigation_trace"] == "looked"
        (without,) = records(table, result())
        assert without["dynamic_parse_decision"] is None


# Fields


def test_a_row_for_every_field_that_is_compared_expected_or_extracted() -> None:
    template = TemplatePart(
        parsed_gt_response={"drug": "venetoclax", "doses": [100, 200], "extra": None},
        parsed_llm_response={"drug": "venetoclax", "doses": None, "said": True},
        field_results={"drug": True, "doses": None},
        field_scores={"drug": 1.0},
    )
    rows = records(TEMPLATE, result(template=template))
    names = ("field_name", "gt_value", "llm_value", "field_match", "field_score", "field_type")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("drug", "venetoclax", "venetoclax", True, 1.0, "str"),
        ("doses", [100, 200], None, None, None, "list"),
        ("extra", None, None, None, None, None),
        ("said", None, True, None, None, "bool"),
    ]


@pytest.mark.parametrize("template", [None, TemplatePart(), TemplatePart(parsed_llm_response={})])
def test_an_item_without_fields_has_one_row(template: Any) -> None:
    (row,) = records(TEMPLATE, result("error", "timeout", template=template))
    assert (row["field_name"], row["gt_value"], row["field_match"]) == (None, None, None)


def test_checks_are_seen_where_no_template_was_verified() -> None:
    checks = ChecksPart(abstention_check_performed=True, abstention_detected=True, abstention_reasoning="declines")
    (row,) = records(TEMPLATE, result("abstained", checks=checks, template=TemplatePart()))
    assert (row["abstention_detected"], row["abstention_reasoning"]) == (True, "declines")


# Patterns


def test_a_row_for_every_pattern() -> None:
    answer = "Give 7 mg, then 9 mg."
    verdict = run_patterns(
        {
            "dose": {"pattern": r"(\d+) mg", "expected": ["7", "9"], "match_type": "all"},
            "unit": {"pattern": "ml", "expected": "ml"},
            "odd": {"pattern": "(", "expected": "("},
        },
        answer,
    )
    template = TemplatePart(
        regex_validations_performed=True,
        regex_validation_results=verdict.results,
        regex_validation_details=verdict.details,
        regex_extraction_results=verdict.extractions,
    )
    about = result(template=template, generation=GenerationPart(raw_llm_response=answer))
    dose, unit, odd = records(REGEX, about)
    assert (dose["pattern_name"], dose["pattern_regex"], dose["matched"]) == ("dose", r"(\d+) mg", True)
    assert (dose["extracted_value"], dose["match_count"], dose["match_type"]) == (["7", "9"], 2, "all")
    assert answer[dose["match_start"] : dose["match_end"]] == dose["full_match"] == "7 mg"
    assert (unit["matched"], unit["extracted_value"], unit["match_start"], unit["full_match"]) == (
        False,
        [],
        None,
        None,
    )
    assert (odd["matched"], odd["pattern_error"] is None) == (False, False)
    assert records(REGEX, result(), result(template=TemplatePart())) == []


# Usage

CALLS = {"calls": 1, "attempts": 2, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "cost_usd": None}


def test_a_row_for_every_task_or_one_for_all() -> None:
    usage = {
        "generation": {**CALLS, "model": "m", "cache_read_tokens": 4, "output_token_details": {"reasoning": 3}},
        "parsing": {**CALLS, "channel": "tool_call"},
        "total": {**CALLS, "input_tokens": 20, "output_tokens": 10, "total_tokens": 30},
    }
    agent = {"iterations": 3, "tool_calls": 2, "tools_used": ["search"], "suspect_failed_tool_calls": 1}
    about = result(generation=GenerationPart(usage_metadata=usage, agent_metrics=agent))
    generation, parsing = records(USAGE, about)
    (total,) = records(USAGE_TOTALS, about)
    assert generation["total_tokens"] + parsing["total_tokens"] == total["total_tokens"] == 30
    assert (generation["input_cache_read_tokens"], generation["output_reasoning_tokens"]) == (4, 3)
    assert (generation["model_used"], parsing["channel"], generation["cost_usd"]) == ("m", "tool_call", None)
    of_agents = [(row["agent_iterations"], row["agent_tools_used"]) for row in (generation, parsing, total)]
    assert of_agents == [(3, '["search"]'), (None, None), (3, '["search"]')]


def test_unknown_tokens_are_marked_in_every_table_of_usage() -> None:
    unknown = {**CALLS, "usage_unavailable": True}
    usage = {"generation": unknown, "parsing": {**CALLS, "usage_unavailable": False}, "total": unknown}
    agent = {"iterations": 3, "limit": "turns", "limit_reached": True}
    about = result(generation=GenerationPart(usage_metadata=usage, agent_metrics=agent))
    assert [row["usage_unavailable"] for row in records(USAGE, about)] == [True, False]
    assert [row["usage_unavailable"] for row in records(USAGE_TOTALS, about)] == [True]
    assert [row["agent_limit"] for row in records(USAGE, about)] == ["turns", None]
    assert [row["usage_unavailable"] for row in records(RESULT, about, result())] == [True, None]


@LAW
@given(RESULTS)
def test_tasks_that_are_not_shared_add_up_to_the_totals(results: Any) -> None:
    rows = [row for row in records(USAGE, *results) if not row["cached"]]
    for name in ("calls", "input_tokens", "output_tokens", "total_tokens"):
        totals = records(USAGE_TOTALS, *results)
        assert sum(row[name] for row in rows) == sum(row[name] for row in totals)


# Traits


def test_traits_that_only_agents_scored_are_rows_like_all_others() -> None:
    part = RubricPart(agentic_rubric_evaluation_performed=True, agentic_trait_scores={"Looked": True})
    (row,) = records(RUBRIC, result(rubric=part))
    assert (row["trait_name"], row["trait_score"], row["trait_type"]) == ("Looked", True, "agentic")
    assert row["rubric_evaluation_performed"] is False


def test_where_a_trait_comes_from_is_what_the_result_says() -> None:
    """A trait of the benchmark that one item has is none of a question, and the other way round."""
    of_all = RubricPart(llm_trait_scores={"Rare": True}, trait_provenance={"Rare": "global"})
    of_one = RubricPart(llm_trait_scores={"Common": True}, trait_provenance={"Common": "question_specific"})
    rows = records(RUBRIC, result(rubric=of_all), result(rubric=of_one), result(rubric=of_one))
    assert [(row["trait_name"], row["trait_provenance"]) for row in rows] == [
        ("Rare", "global"),
        ("Common", "question_specific"),
        ("Common", "question_specific"),
    ]


def test_dynamic_traits_say_whether_they_were_skipped() -> None:
    skipped = RubricPart(
        trait_states={"Dosing": {"state": "skipped", "reason": "no dose"}},
        dynamic_rubric_skipped_traits={"Dosing": "no dose"},
    )
    due = RubricPart(llm_trait_scores={"Dosing": True}, dynamic_rubric_promoted_traits=["Dosing"])
    other = RubricPart(llm_trait_scores={"Safe": True})
    rows = records(RUBRIC, *(result(rubric=part) for part in (skipped, due, other)))
    assert [(row["Dosing_skipped"], row["state"]) for row in rows] == [(True, "skipped"), (False, "ok"), (None, "ok")]


def test_evidence_of_traits_is_there_when_asked_for() -> None:
    deep = DeepJudgmentRubricPart(
        extracted_rubric_excerpts={"Safe": [{"text": "avoid grapefruit", "confidence": "high"}]},
        rubric_trait_reasoning={"Safe": "warns"},
        rubric_hallucination_risk_assessment={"Safe": {"overall_risk": "low", "per_excerpt_risks": ["low"]}},
        trait_metadata={"Safe": {"model_calls": 3}},
    )
    about = result(rubric=RubricPart(llm_trait_scores={"Safe": True}), deep_judgment_rubric=deep)
    (row,) = records(RUBRIC_WITH_EVIDENCE, about)
    assert (row["trait_reasoning"], row["trait_hallucination_risk"]) == ("warns", "low")
    assert json.loads(row["trait_excerpts"])[0]["text"] == "avoid grapefruit"
    assert row["evaluation_method"] == "deep_judgment"
    assert "trait_reasoning" not in records(RUBRIC, about)[0]


# Evidence


def test_a_row_for_every_quotation_of_a_field_and_one_for_a_field_without() -> None:
    deep = DeepJudgmentPart(
        deep_judgment_performed=True,
        deep_judgment_mode="full",
        extracted_excerpts={
            "drug": [
                {"text": "venetoclax", "confidence": "high", "similarity_score": 1.0, "hallucination_risk": "none"},
                {"text": "Venclexta", "confidence": "low", "similarity_score": 0.9},
            ],
            "dose": [{"text": "", "confidence": "none", "explanation": "no dose is named"}],
        },
        hallucination_risk_assessment={"drug": "low"},
        attributes_without_excerpts=["dose"],
    )
    template = TemplatePart(
        parsed_gt_response={"drug": "v", "year": 2016},
        parsed_llm_response={"drug": "v", "year": 2016},
        field_results={"drug": True},
    )
    rows = records(JUDGMENT, result(deep_judgment=deep, template=template))
    excerpts = [(r["attribute_name"], r["excerpt_index"], r["excerpt_text"], r["attribute_has_excerpts"]) for r in rows]
    assert excerpts == [
        ("drug", 0, "venetoclax", True),
        ("drug", 1, "Venclexta", True),
        ("dose", 0, None, False),
        ("year", None, None, False),
    ]
    assert (rows[0]["attribute_match"], rows[0]["attribute_overall_risk"]) == (True, "low")
    assert (rows[2]["excerpt_explanation"], rows[3]["llm_attribute_value"]) == ("no dose is named", 2016)
    (row,) = records(JUDGMENT, result("error", "judge", deep_judgment=DeepJudgmentPart(deep_judgment_mode="full")))
    assert (row["attribute_name"], row["deep_judgment_performed"]) == (None, False)


def test_risks_of_quotations_for_traits_are_read_from_where_they_are_written() -> None:
    """In the assessment of the trait, which holds one risk per quotation, and at the quotations themselves."""
    deep = DeepJudgmentRubricPart(
        extracted_rubric_excerpts={"Safe": [{"text": "a"}, {"text": "b", "hallucination_risk": "high"}]},
        rubric_hallucination_risk_assessment={"Safe": {"overall_risk": "high", "per_excerpt_risks": ["low", "high"]}},
        trait_metadata={"Safe": {"model_calls": 4, "stages_completed": ["excerpt_extraction"], "had_excerpts": True}},
    )
    rows = records(RUBRIC_JUDGMENT, result(rubric=RubricPart(llm_trait_scores={"Safe": 3}), deep_judgment_rubric=deep))
    assert [(row["excerpt_text"], row["excerpt_hallucination_risk"]) for row in rows] == [("a", "low"), ("b", "high")]
    assert {(row["trait_overall_risk"], row["trait_score"], row["trait_model_calls"]) for row in rows} == {
        ("high", 3, 4)
    }
    assert json.loads(rows[0]["trait_stages_completed"]) == ["excerpt_extraction"]


# Backends


def test_an_unknown_backend_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no backend 'panda' .*pandas.*: pandas, polars, pyarrow"):
        frame(TEMPLATE, [], "panda")


@pytest.mark.parametrize(
    ("name", "install"), [("pandas", r"karenina-results\[pandas\]"), ("polars", r"karenina-results\[polars\]")]
)
def test_a_missing_backend_is_named_with_how_to_install_it(
    name: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karenina_results.frames.is_installed", lambda package: package != name)
    with pytest.raises(PluginError, match=f"the package '{name}' is not installed; .*pip install '{install}'"):
        backend_package(name)


def test_arrow_fields_say_what_their_text_is() -> None:
    schema = arrow_schema([RUBRIC.column("trait_score"), RUBRIC.column("trait_name")])
    assert [field.metadata for field in schema] == [{b"karenina": b"value"}, {b"karenina": b"text"}]
    with pytest.raises(KeyError):
        RUBRIC.column("nothing")


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_results_there_are_columns_and_no_rows(backend: str) -> None:
    found = to_frame(TEMPLATE.columns, [], backend)
    names = found.column_names if backend == "pyarrow" else list(found.columns)
    assert names == [column.name for column in TEMPLATE.columns]
    assert len(found) == 0


def test_making_views_and_rows_imports_no_package_of_data_frames() -> None:
    script = """
import sys
import karenina_results.aggregators, karenina_results.views
assert {name for name in sys.modules if name.startswith("karenina_results")} == {
    "karenina_results", "karenina_results.aggregators", "karenina_results.views"
}
from karenina_core import VerificationResultSet
from karenina_core.testing import application
app = application(karenina_results.views, karenina_results.aggregators)
for name in karenina_results.views.VIEWS:
    VerificationResultSet().view(name, app=app)
from karenina_results.columns import TEMPLATE
assert list(TEMPLATE.rows([], TEMPLATE.columns)) == []
print(sorted({"pandas", "polars", "pyarrow", "numpy", "scipy", "pydantic"} & set(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"
