"""The table of whole results: one row for every item, each trait of the benchmark a column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import asdict
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits

from karenina_core import VerificationResult

from .shared import (
    ADDED,
    CAVEATS,
    CHECKS,
    ENDING,
    IDENTITY,
    MODELS,
    PARSING_AGENT,
    RECURSION,
    RESPONSE,
    RUN,
    extension_columns,
)
from .table import Column, Found, Row, Table, at

OF_QUESTIONS = ("question_specific", "dynamic")
"""Where traits come from that not every question has: they share one column."""


def _more(result: VerificationResult) -> Iterator[Found]:
    for trait in read_traits(result.rubric):
        if trait.provenance not in OF_QUESTIONS:
            read = partial(_score, trait.name)
            yield ("trait", trait.name), Column(f"rubric_{trait.name}", "value", read, "None: no score.", False)
    yield from extension_columns(result)


def _score(name: str, row: Row) -> Any:
    found = (trait for trait in row.item if trait.name == name and trait.provenance not in OF_QUESTIONS)
    return next((trait.value for trait in found), None)


def _about_traits(read: Callable[[Sequence[TraitOutcome]], dict[str, Any]]) -> Callable[[Row], Any]:
    return lambda row: read(row.item) if row.result.rubric is not None else None


def _tokens_unknown(row: Row) -> bool | None:
    total = row.result.generation.usage_metadata.get("total")
    return total.get("usage_unavailable") is True if isinstance(total, Mapping) and total else None


SHARED = (*ENDING, CAVEATS, RECURSION, *IDENTITY, *MODELS, RESPONSE, *CHECKS, *RUN, *ADDED)
KNOWN = {column.name: column for column in SHARED}
DEEP = (
    Column("deep_judgment_mode", "text", at("deep_judgment.deep_judgment_mode")),
    Column("deep_judgment_performed", "boolean", at("deep_judgment.deep_judgment_performed")),
    Column("extracted_excerpts", "json", at("deep_judgment.extracted_excerpts")),
    Column("attribute_reasoning", "json", at("deep_judgment.attribute_reasoning")),
    Column("deep_judgment_stages_completed", "json", at("deep_judgment.deep_judgment_stages_completed")),
    Column("deep_judgment_model_calls", "whole", at("deep_judgment.deep_judgment_model_calls")),
    Column("deep_judgment_excerpt_retry_count", "whole", at("deep_judgment.deep_judgment_excerpt_retry_count")),
    Column("attributes_without_excerpts", "json", at("deep_judgment.attributes_without_excerpts")),
    Column("deep_judgment_search_enabled", "boolean", at("deep_judgment.deep_judgment_search_enabled")),
    Column("hallucination_risk_assessment", "json", at("deep_judgment.hallucination_risk_assessment")),
)
DEEP_RUBRIC = (
    Column("deep_judgment_rubric_performed", "boolean", at("deep_judgment_rubric.deep_judgment_rubric_performed")),
    *(
        Column(name, "json", at(f"deep_judgment_rubric.{name}"))
        for name in (
            "extracted_rubric_excerpts",
            "rubric_trait_reasoning",
            "deep_judgment_rubric_scores",
            "standard_rubric_scores",
            "trait_metadata",
            "traits_without_valid_excerpts",
            "rubric_hallucination_risk_assessment",
        )
    ),
    *(
        Column(name, "whole", at(f"deep_judgment_rubric.{name}"))
        for name in ("total_deep_judgment_model_calls", "total_traits_evaluated", "total_excerpt_retries")
    ),
)
FIRST = (
    KNOWN["question_id"],
    KNOWN["success"],
    KNOWN["error"],
    KNOWN["question_text"],
    KNOWN["raw_llm_response"],
    Column("parsed_gt_response", "json", at("template.parsed_gt_response"), "All expected fields."),
    Column("parsed_llm_response", "json", at("template.parsed_llm_response"), "All extracted fields."),
    Column("template_verification_performed", "boolean", at("template.template_verification_performed")),
    Column("verify_result", "boolean", at("template.verify_result"), "None where nothing decided."),
    Column("verify_granular_result", "number", at("template.verify_granular_result")),
    Column("rubric_evaluation_performed", "boolean", at("rubric.rubric_evaluation_performed")),
    KNOWN["keywords"],
    Column(
        "question_specific_rubrics",
        "json",
        _about_traits(lambda traits: {t.name: t.value for t in traits if t.provenance in OF_QUESTIONS}),
        "`{trait: score}` of those that not every question has; `{}` where there is none.",
        False,
    ),
    KNOWN["answering_model"],
    KNOWN["parsing_model"],
    KNOWN["replicate"],
    KNOWN["execution_time"],
    KNOWN["timestamp"],
    KNOWN["answering_system_prompt"],
    KNOWN["parsing_system_prompt"],
    KNOWN["run_name"],
    *(column for column in CHECKS if column.name.startswith("embedding_")),
    KNOWN["answering_mcp_servers"],
    *DEEP,
    *DEEP_RUBRIC,
    Column("metric_trait_confusion_lists", "json", at("rubric.metric_trait_confusion_lists")),
    Column(
        "metric_trait_metrics",
        "json",
        _about_traits(
            lambda traits: {t.name: {**t.counts, **t.metrics} for t in traits if t.kind == "metric" and t.state == "ok"}
        ),
        "`{trait: {count or metric: number}}`.",
        False,
    ),
    Column("usage_metadata", "json", at("generation.usage_metadata")),
    Column("agent_metrics", "json", at("generation.agent_metrics")),
)
COURSE = (
    Column("evaluation_input", "text", at("evaluation_input"), "What the judge read of the answer."),
    Column("used_full_trace", "boolean", at("used_full_trace"), "Whether that is the whole trace."),
    Column("rubric_used_full_trace", "boolean", at("rubric.rubric_used_full_trace")),
    Column("trace_extraction_error", "text", at("trace_extraction_error"), "Why the trace has no final message."),
    Column("trace_validation_failed", "boolean", at("checks.trace_validation_failed")),
    Column("trace_validation_error", "text", at("checks.trace_validation_error")),
    Column("mcp_enabled", "boolean", at("checks.mcp_enabled")),
    Column("agentic_rubric_evaluation_performed", "boolean", at("rubric.agentic_rubric_evaluation_performed")),
    Column("template_validation_error", "text", at("template.template_validation_error")),
    Column("template_isolation", "text", at("metadata.template_isolation"), "How its code was kept apart."),
    Column("few_shot_enabled", "boolean", at("metadata.few_shot_enabled")),
    Column("few_shot_example_count", "whole", at("metadata.few_shot_example_count")),
    Column("retry_counts", "json", at("metadata.retry_counts"), "`{kind of error: how often it was tried again}`."),
    Column("text_flags", "json", at("generation.text_flags"), "What was odd about the answer's text."),
    Column(
        "replayed_from", "json", at("generation.replayed_from"), "Where the answer was captured, if it was replayed."
    ),
    Column(
        "ledger",
        "json",
        lambda row: [{"stage": e.stage, "effect": dict(e.effect), "reason": e.reason} for e in row.result.ledger],
        "`[{stage, effect, reason}]`: every effect on the verdict.",
    ),
    Column(
        "trail",
        "json",
        lambda row: [asdict(entry) for entry in row.result.trail],
        "`[{stage, status, reason, seconds}]`: what became of every stage.",
    ),
)
SEEN = {column.name for column in FIRST}
RESULT = Table(
    "result",
    (
        *FIRST,
        *(column for column in KNOWN.values() if column.name not in SEEN),
        Column("raw_answer", "text", at("metadata.raw_answer"), "The reference answer."),
        *PARSING_AGENT,
        Column(
            "usage_unavailable",
            "boolean",
            _tokens_unknown,
            "True: the tokens of some call are unknown. The tokens given are then a lower bound.",
        ),
        Column("field_results", "json", at("template.field_results"), "`{field: true, false or null}`."),
        Column("field_scores", "json", at("template.field_scores"), "`{field: number or null}`."),
        Column(
            "trait_states",
            "json",
            _about_traits(
                lambda traits: {t.name: {"state": t.state, "reason": t.reason} for t in traits if t.state != "ok"}
            ),
            "`{trait: {state, reason}}` of traits without a score.",
            False,
        ),
        *COURSE,
    ),
    lambda result: [read_traits(result.rubric)],
    _more,
    more_after="keywords",
)
