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
    EMBEDDING,
    ENDING,
    IDENTITY,
    MODELS,
    PARSING_AGENT,
    RECURSION,
    RESPONSE,
    RUN,
    extension_columns,
)
from .table import Column, Found, Row, Table, at, own, stored

OF_QUESTIONS = ("question_specific", "dynamic")
"""Where traits come from that not every question has: they share one column."""


def _more_traits(result: VerificationResult) -> Iterator[Found]:
    """The columns of traits that every question has."""
    for trait in read_traits(result.rubric):
        if trait.provenance not in OF_QUESTIONS:
            read = partial(_score, trait.name)
            yield ("trait", trait.name), own(f"rubric_{trait.name}", "value", read, "None: no score.")


def more_columns(result: VerificationResult) -> Iterator[Found]:
    """Those, and the columns of what other packages add."""
    yield from _more_traits(result)
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
    *stored("deep_judgment", "text", "deep_judgment_mode"),
    *stored("deep_judgment", "boolean", "deep_judgment_performed"),
    *stored("deep_judgment", "json", "extracted_excerpts", "attribute_reasoning", "deep_judgment_stages_completed"),
    *stored("deep_judgment", "whole", "deep_judgment_model_calls", "deep_judgment_excerpt_retry_count"),
    *stored("deep_judgment", "json", "attributes_without_excerpts"),
    *stored("deep_judgment", "boolean", "deep_judgment_search_enabled"),
    *stored("deep_judgment", "json", "hallucination_risk_assessment"),
)
RUBRIC_JSON = (
    *("extracted_rubric_excerpts", "rubric_trait_reasoning", "deep_judgment_rubric_scores", "standard_rubric_scores"),
    *("trait_metadata", "traits_without_valid_excerpts", "rubric_hallucination_risk_assessment"),
)
RUBRIC_COUNTS = ("total_deep_judgment_model_calls", "total_traits_evaluated", "total_excerpt_retries")
DEEP_RUBRIC = (
    *stored("deep_judgment_rubric", "boolean", "deep_judgment_rubric_performed"),
    *stored("deep_judgment_rubric", "json", *RUBRIC_JSON),
    *stored("deep_judgment_rubric", "whole", *RUBRIC_COUNTS),
)
MODELS_AND_RUN = (
    *("answering_model", "parsing_model", "replicate", "execution_time", "timestamp"),
    *("answering_system_prompt", "parsing_system_prompt", "run_name"),
)
FIRST = (
    *(KNOWN[name] for name in ("question_id", "success", "error", "question_text", "raw_llm_response")),
    *stored("template", "json", "parsed_gt_response", about="All expected fields."),
    *stored("template", "json", "parsed_llm_response", about="All extracted fields."),
    *stored("template", "boolean", "template_verification_performed"),
    *stored("template", "boolean", "verify_result", about="None where nothing decided."),
    *stored("template", "number", "verify_granular_result"),
    *stored("rubric", "boolean", "rubric_evaluation_performed"),
    KNOWN["keywords"],
    own(
        "question_specific_rubrics",
        "json",
        _about_traits(lambda traits: {t.name: t.value for t in traits if t.provenance in OF_QUESTIONS}),
        "`{trait: score}` of those that not every question has; `{}` where there is none.",
    ),
    *(KNOWN[name] for name in MODELS_AND_RUN),
    *EMBEDDING,
    KNOWN["answering_mcp_servers"],
    *DEEP,
    *DEEP_RUBRIC,
    *stored("rubric", "json", "metric_trait_confusion_lists"),
    own(
        "metric_trait_metrics",
        "json",
        _about_traits(
            lambda traits: {t.name: {**t.counts, **t.metrics} for t in traits if t.kind == "metric" and t.state == "ok"}
        ),
        "`{trait: {count or metric: number}}`.",
    ),
    *stored("generation", "json", "usage_metadata", "agent_metrics"),
)
COURSE = (
    Column("evaluation_input", "text", at("evaluation_input"), "What the judge read of the answer."),
    Column("used_full_trace", "boolean", at("used_full_trace"), "Whether that is the whole trace."),
    Column("rubric_used_full_trace", "boolean", at("rubric.rubric_used_full_trace")),
    Column("trace_extraction_error", "text", at("trace_extraction_error"), "Why the trace has no final message."),
    *stored("checks", "boolean", "trace_validation_failed"),
    *stored("checks", "text", "trace_validation_error"),
    *stored("checks", "boolean", "mcp_enabled"),
    *stored("rubric", "boolean", "agentic_rubric_evaluation_performed"),
    *stored("template", "text", "template_validation_error"),
    *stored("metadata", "text", "item_digest", about="The digest of the question at that time."),
    *stored("metadata", "text", "template_isolation", about="How its code was isolated."),
    *stored("metadata", "boolean", "few_shot_enabled"),
    *stored("metadata", "whole", "few_shot_example_count"),
    *stored("metadata", "json", "retry_counts", about="`{kind of error: how often it was tried again}`."),
    *stored("generation", "json", "text_flags", about="Anomalies of the answer's text."),
    *stored("generation", "json", "replayed_from", about="Where the answer was captured, if it was replayed."),
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
        "`[{stage, status, reason, seconds}]`: what happened to every stage.",
    ),
)
SEEN = {column.name for column in FIRST}
RESULT = Table(
    "result",
    (
        *FIRST,
        *(column for column in KNOWN.values() if column.name not in SEEN),
        *stored("metadata", "text", "raw_answer", about="The reference answer."),
        *PARSING_AGENT,
        Column(
            "usage_unavailable",
            "boolean",
            _tokens_unknown,
            "True: the tokens of some call are unknown. The tokens given are then a lower bound.",
        ),
        *stored("template", "json", "field_results", about="`{field: true, false or null}`."),
        *stored("template", "json", "field_scores", about="`{field: number or null}`."),
        own(
            "trait_states",
            "json",
            _about_traits(
                lambda traits: {t.name: {"state": t.state, "reason": t.reason} for t in traits if t.state != "ok"}
            ),
            "`{trait: {state, reason}}` of traits without a score.",
        ),
        *COURSE,
    ),
    lambda result: [read_traits(result.rubric)],
    more_columns,
    more_after="keywords",
)
