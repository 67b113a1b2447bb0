"""Tables of templates: one row for every extracted field, for every pattern, for every task that models were called
for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import frozen
from karenina_vocabulary.tasks import PromptTask

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
from .table import Column, Row, Table, at

# Fields


def _fields(result: VerificationResult) -> tuple[str | None, ...]:
    """The fields of the template, the compared ones first; one None where there is none, so that no item is lost."""
    template = result.template
    if template is None:
        return (None,)
    found = (template.field_results, template.parsed_gt_response, template.parsed_llm_response)
    return tuple(dict.fromkeys(name for part in found for name in part or ())) or (None,)


def _field(name: str) -> Callable[[Row], Any]:
    """Reads the value of the row's field in one of the template's mappings."""

    def read(row: Row) -> Any:
        template = row.result.template
        values = getattr(template, name) if template is not None and row.item is not None else None
        return (values or {}).get(row.item)

    return read


def _field_type(row: Row) -> str | None:
    values = (_field("parsed_gt_response")(row), _field("parsed_llm_response")(row))
    return next((type(value).__name__ for value in values if value is not None), None)


TEMPLATE = Table(
    "template",
    (
        *ENDING,
        CAVEATS,
        RECURSION,
        *IDENTITY,
        *MODELS,
        RESPONSE,
        Column("field_name", "text", lambda row: row.item, "None where the item has no fields.", per_result=False),
        Column("gt_value", "value", _field("parsed_gt_response"), "What the template expects.", per_result=False),
        Column("llm_value", "value", _field("parsed_llm_response"), "What the judge extracted.", per_result=False),
        Column(
            "field_match",
            "boolean",
            _field("field_results"),
            "The result of the template's comparison. None: the judge found nothing, or the field is not compared.",
            per_result=False,
        ),
        Column("field_score", "number", _field("field_scores"), "Partial credit, from 0 to 1.", per_result=False),
        Column(
            "field_type",
            "text",
            _field_type,
            "Type of the expected value, else of the extracted one: `str`, ...",
            per_result=False,
        ),
        Column("verify_result", "boolean", at("template.verify_result"), "None where nothing decided."),
        Column("verify_granular_result", "number", at("template.verify_granular_result")),
        *CHECKS,
        *RUN,
        *ADDED,
        Column("raw_answer", "text", at("metadata.raw_answer"), "The reference answer."),
        Column("field_verification_result", "boolean", at("template.field_verification_result")),
        Column("field_verification_error", "text", at("template.field_verification_error")),
        Column("composition_strategy", "text", at("template.composition_strategy")),
        Column("judge_channel", "text", at("template.judge_channel")),
        Column("judge_repairs", "whole", at("template.judge_repairs")),
        Column("ungrounded_values", "json", at("template.ungrounded_values"), "Fields; see `caveats`."),
        *PARSING_AGENT,
    ),
    _fields,
    extension_columns,
)

# Patterns


@frozen
class Pattern:
    """One pattern of a template: its name and what became of it."""

    name: str
    passed: Any
    details: Mapping[str, Any]
    extracted: Any


def _patterns(result: VerificationResult) -> Iterator[Pattern]:
    template = result.template
    if template is None:
        return
    details = template.regex_validation_details or {}
    extracted = template.regex_extraction_results or {}
    results = template.regex_validation_results or {}
    for name in dict.fromkeys((*results, *details, *extracted)):
        found = details.get(name)
        about = found if isinstance(found, Mapping) else {}
        yield Pattern(name, results.get(name), about, extracted.get(name, about.get("matches_found")))


def _detail(name: str) -> Callable[[Row], Any]:
    return lambda row: row.item.details.get(name)


REGEX = Table(
    "regex",
    (
        *IDENTITY,
        Column("pattern_name", "text", lambda row: row.item.name, per_result=False),
        Column("pattern_regex", "text", _detail("pattern"), per_result=False),
        Column("matched", "boolean", lambda row: row.item.passed, "Whether the check passed.", per_result=False),
        Column("extracted_value", "value", lambda row: row.item.extracted, "All that matched.", per_result=False),
        Column("match_start", "whole", _detail("match_start"), "Of the first match, in characters.", per_result=False),
        Column("match_end", "whole", _detail("match_end"), "Of the first match, in characters.", per_result=False),
        Column("full_match", "text", _detail("full_match"), "The text of the first match.", per_result=False),
        RESPONSE,
        Column("match_type", "text", _detail("match_type"), per_result=False),
        Column("expected", "value", _detail("expected"), "What the check wants to match.", per_result=False),
        Column("match_count", "whole", _detail("match_count"), per_result=False),
        Column("pattern_error", "text", _detail("error"), "Why the check could not be run.", per_result=False),
        *MODELS,
        *RUN,
        *ADDED,
    ),
    _patterns,
)

# Usage


@frozen
class Usage:
    """What one task took in one item; `agent` is what the answering agent did, where the task is its own."""

    stage: str
    numbers: Mapping[str, Any]
    agent: Mapping[str, Any]


def _usage(result: VerificationResult, *, totals: bool = False) -> Iterator[Usage]:
    for stage, row in result.generation.usage_metadata.items():
        if isinstance(row, Mapping) and (stage == "total") == totals and (row or not totals):
            answered = stage in (PromptTask.GENERATION, "total")
            yield Usage(stage, row, (result.generation.agent_metrics if answered else None) or {})


def _number(*names: str) -> Callable[[Row], Any]:
    """The first of these numbers that the row has; a dot leads into a mapping."""

    def read(row: Row) -> Any:
        for name in names:
            outer, _, inner = name.rpartition(".")
            values = row.item.numbers.get(outer) if outer else row.item.numbers
            if isinstance(values, Mapping) and values.get(inner) is not None:
                return values[inner]
        return None

    return read


def _agent(name: str) -> Callable[[Row], Any]:
    return lambda row: row.item.agent.get(name)


USAGE_COLUMNS = (
    *IDENTITY,
    Column("usage_stage", "text", lambda row: row.item.stage, "The task that models were called for.", False),
    Column("input_tokens", "whole", _number("input_tokens"), per_result=False),
    Column("output_tokens", "whole", _number("output_tokens"), per_result=False),
    Column("total_tokens", "whole", _number("total_tokens"), per_result=False),
    Column("model_used", "text", _number("model"), per_result=False),
    Column("input_audio_tokens", "whole", _number("input_token_details.audio"), per_result=False),
    Column(
        "input_cache_read_tokens",
        "whole",
        _number("cache_read_tokens", "input_token_details.cache_read"),
        per_result=False,
    ),
    Column("output_audio_tokens", "whole", _number("output_token_details.audio"), per_result=False),
    Column("output_reasoning_tokens", "whole", _number("output_token_details.reasoning"), per_result=False),
    Column("agent_iterations", "whole", _agent("iterations"), "Of the answering agent.", False),
    Column("agent_tool_calls", "whole", _agent("tool_calls"), "Of the answering agent.", False),
    Column("agent_tools_used", "json", _agent("tools_used"), "A list of names.", False),
    Column("agent_suspected_failures", "whole", _agent("suspect_failed_tool_calls"), per_result=False),
    Column("agent_limit", "text", _agent("limit"), "Which limit ended the work of the answering agent.", False),
    Column("calls", "whole", _number("calls"), per_result=False),
    Column("attempts", "whole", _number("attempts"), "Calls with their retries.", False),
    Column("repairs", "whole", _number("repairs"), "How often a reply had to be corrected.", False),
    Column("seconds", "number", _number("seconds"), per_result=False),
    Column("cost_usd", "number", _number("cost_usd"), "None: unknown.", False),
    Column(
        "usage_unavailable",
        "boolean",
        lambda row: row.item.numbers.get("usage_unavailable") is True,
        "True: the tokens of some call are unknown. The tokens given are then a lower bound.",
        False,
    ),
    Column("input_cache_creation_tokens", "whole", _number("cache_creation_tokens"), per_result=False),
    Column("channel", "text", _number("channel"), "How a judge was asked for structure.", False),
    Column(
        "cached",
        "boolean",
        lambda row: row.item.numbers.get("cached") is True,
        "True: the answer was made for another judge, whose item counts it. Leave these rows out of sums.",
        False,
    ),
    *MODELS,
    *RUN,
    *ADDED,
)
USAGE = Table("usage", USAGE_COLUMNS, _usage)
"""One row per task. The tasks that are not `cached` add up to the total."""
USAGE_TOTALS = Table("usage_totals", USAGE_COLUMNS, partial(_usage, totals=True))
"""One row per item."""
