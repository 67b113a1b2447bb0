"""Tables of templates: one row for every extracted field, for every pattern, for every task that models were called
for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from .table import Row, Table, named, of_item, own, stored

# Fields


def _fields(result: VerificationResult) -> tuple[str | None, ...]:
    """The fields of the template, the compared ones first; one None where there is none, so that no item is lost."""
    template = result.template
    if template is None:
        return (None,)
    found = (template.field_results, template.parsed_gt_response, template.parsed_llm_response)
    return tuple(dict.fromkeys(name for part in found for name in part or ())) or (None,)


EXPECTED = named("template.parsed_gt_response", key="")
EXTRACTED = named("template.parsed_llm_response", key="")


TEMPLATE = Table(
    "template",
    (
        *ENDING,
        CAVEATS,
        RECURSION,
        *IDENTITY,
        *MODELS,
        RESPONSE,
        own("field_name", "text", lambda row: row.item, "None where the item has no fields."),
        own("gt_value", "value", EXPECTED, "What the template expects."),
        own("llm_value", "value", EXTRACTED, "What the judge extracted."),
        own(
            "field_match",
            "boolean",
            named("template.field_results", key=""),
            "The result of the template's comparison. None: the judge found nothing, or the field is not compared.",
        ),
        own(
            "field_score",
            "number",
            named("template.field_scores", key=""),
            "Partial credit, from 0 to 1.",
        ),
        own(
            "field_type",
            "text",
            lambda row: next((type(v).__name__ for v in (EXPECTED(row), EXTRACTED(row)) if v is not None), None),
            "Type of the expected value, else of the extracted one: `str`, ...",
        ),
        *stored("template", "boolean", "verify_result", about="None where nothing decided."),
        *stored("template", "number", "verify_granular_result"),
        *CHECKS,
        *RUN,
        *ADDED,
        *stored("metadata", "text", "raw_answer", about="The reference answer."),
        *stored("template", "boolean", "field_verification_result"),
        *stored("template", "text", "field_verification_error", "composition_strategy", "judge_channel"),
        *stored("template", "whole", "judge_repairs"),
        *stored("template", "json", "ungrounded_values", about="Fields; see `caveats`."),
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


REGEX = Table(
    "regex",
    (
        *IDENTITY,
        own("pattern_name", "text", lambda row: row.item.name),
        own("pattern_regex", "text", of_item("details.pattern")),
        own("matched", "boolean", of_item("passed"), "Whether the check passed."),
        own("extracted_value", "value", of_item("extracted"), "All that matched."),
        own("match_start", "whole", of_item("details.match_start"), "Of the first match, in characters."),
        own("match_end", "whole", of_item("details.match_end"), "Of the first match, in characters."),
        own("full_match", "text", of_item("details.full_match"), "The text of the first match."),
        RESPONSE,
        own("match_type", "text", of_item("details.match_type")),
        own("expected", "value", of_item("details.expected"), "What the check wants to match."),
        own("match_count", "whole", of_item("details.match_count")),
        own("pattern_error", "text", of_item("details.error"), "Why the check could not be run."),
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


def _cache_read(row: Row) -> Any:
    found = of_item("numbers.cache_read_tokens")(row)
    return of_item("numbers.input_token_details.cache_read")(row) if found is None else found


USAGE_COLUMNS = (
    *IDENTITY,
    own("usage_stage", "text", of_item("stage"), "The task that models were called for."),
    own("input_tokens", "whole", of_item("numbers.input_tokens")),
    own("output_tokens", "whole", of_item("numbers.output_tokens")),
    own("total_tokens", "whole", of_item("numbers.total_tokens")),
    own("model_used", "text", of_item("numbers.model")),
    own("input_audio_tokens", "whole", of_item("numbers.input_token_details.audio")),
    own("input_cache_read_tokens", "whole", _cache_read),
    own("output_audio_tokens", "whole", of_item("numbers.output_token_details.audio")),
    own("output_reasoning_tokens", "whole", of_item("numbers.output_token_details.reasoning")),
    own("agent_iterations", "whole", of_item("agent.iterations"), "Of the answering agent."),
    own("agent_tool_calls", "whole", of_item("agent.tool_calls"), "Of the answering agent."),
    own("agent_tools_used", "json", of_item("agent.tools_used"), "A list of names."),
    own("agent_suspected_failures", "whole", of_item("agent.suspect_failed_tool_calls")),
    own("agent_limit", "text", of_item("agent.limit"), "Which limit ended the work of the answering agent."),
    own("calls", "whole", of_item("numbers.calls")),
    own("attempts", "whole", of_item("numbers.attempts"), "Calls with their retries."),
    own("repairs", "whole", of_item("numbers.repairs"), "How often a reply had to be corrected."),
    own("seconds", "number", of_item("numbers.seconds")),
    own("cost_usd", "number", of_item("numbers.cost_usd"), "None: unknown."),
    own(
        "usage_unavailable",
        "boolean",
        lambda row: row.item.numbers.get("usage_unavailable") is True,
        "True: the tokens of some call are unknown. The tokens given are then a lower bound.",
    ),
    own("input_cache_creation_tokens", "whole", of_item("numbers.cache_creation_tokens")),
    own("channel", "text", of_item("numbers.channel"), "How structured output was requested from a judge."),
    own(
        "cached",
        "boolean",
        lambda row: row.item.numbers.get("cached") is True,
        "True: the answer was made for another judge, whose item counts it. Leave these rows out of sums.",
    ),
    *MODELS,
    *RUN,
    *ADDED,
)
USAGE = Table("usage", USAGE_COLUMNS, _usage)
"""One row per task. The tasks that are not `cached` add up to the total."""
USAGE_TOTALS = Table("usage_totals", USAGE_COLUMNS, partial(_usage, totals=True))
"""One row per item."""
