"""Columns that every table of results has: how an item ended, which one it is, who answered and judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from karenina_runs.summaries.trait_summary import RUBRIC_STAGES
from karenina_vocabulary.explanations import caveats_of, failure_kind, why

from karenina_core import VerificationResult
from karenina_core.errors import shortened

from .table import Column, Found, Row, at, stored

LONGEST_REASON = 500
"""Characters of a reason in a cell; chosen."""
NO_SCENARIO = "None: the item belongs to no scenario."

# How documented categories are derived from outcomes

GUARDS: Mapping[str, str] = {
    "RecursionLimitAutoFail": "recursion_limit",
    "TraceValidationAutoFail": "trace_validation",
    "DeepJudgmentAutoFail": "deep_judgment",
    "DeepJudgmentRubricAutoFail": "deep_judgment_rubric",
}
ERRORS: Mapping[str, tuple[str, str]] = {
    "timeout": ("timeout", "retry"),
    "connection": ("connection", "retry"),
    "rate_limited": ("rate_limit", "retry"),
    "server": ("server_error", "retry"),
    "template": ("template_validation", "system"),
    "judge": ("parsing", "system"),
}
UNEXPECTED = ("unexpected_error", "system")


def failure_of(result: VerificationResult) -> tuple[str | None, str | None]:
    """`(category, group)` of what kept an item from passing; None for items that passed, were scored or skipped.

    Groups: `content` (something wrong was found), `not_found` (something is missing, nothing is wrong), `autofail` (a
    guard), `abstained` (nothing to judge), `retry` (the model could not be reached) and `system` (everything else that
    broke).
    """
    outcome, detail = result.metadata.outcome, result.metadata.outcome_detail or ""
    if outcome == "failed":
        kind = "not_found" if failure_kind(result) == "not_found" else "content"
        return kind, kind
    if outcome == "auto_failed":
        return GUARDS.get(detail, detail or None), "autofail"
    if outcome in ("abstained", "insufficient"):
        return ("abstention" if outcome == "abstained" else "sufficiency"), "abstained"
    return ERRORS.get(detail, UNEXPECTED) if outcome == "error" else (None, None)


def _success(row: Row) -> bool | None:
    outcome = row.result.metadata.outcome
    return None if outcome == "skipped" else outcome in ("passed", "scored")


def _stage(row: Row) -> str | None:
    """The stage that failed, or whose effect last changed the verdict."""
    outcome = row.result.metadata.outcome
    if outcome == "error":
        failed = (entry.stage for entry in row.result.trail if entry.status == "failed")
        scoring = (entry.stage for entry in row.result.trail if entry.stage in RUBRIC_STAGES and entry.status == "ran")
        return next(failed, None) or next(scoring, None)
    if outcome in ("passed", "scored", "skipped"):
        return None
    verdict, stage = None, None
    for entry in row.result.ledger:
        stated = entry.effect.get("verdict")
        if stated is not None and stated != verdict:
            verdict, stage = stated, entry.stage
    return stage


ENDING = (
    Column(
        "success",
        "boolean",
        _success,
        "True: passed, or scored where no verdict was due. False: everything else, wrong answers and errors alike; "
        "`failure_group` and `outcome` distinguish them. None: no stage gave a verdict.",
    ),
    Column("failure_category", "text", lambda row: failure_of(row.result)[0], "What kept the item from passing."),
    Column(
        "failure_group",
        "text",
        lambda row: failure_of(row.result)[1],
        "`content`: something wrong was found. `not_found`: something is missing, and nothing is wrong. `autofail`: a "
        "guard decided. `abstained`: refused or insufficient. `retry`: the model could not be reached. `system`: "
        "anything else that broke.",
    ),
    Column("failure_stage", "text", _stage, "The stage that failed, or whose effect last changed the verdict."),
    Column(
        "failure_reason",
        "text",
        lambda row: shortened(why(row.result), LONGEST_REASON) or None,
        f"The error, or what decided; at most {LONGEST_REASON} characters.",
    ),
)
KNOWN_ENDING = {column.name: column for column in ENDING}
CAVEATS = Column(
    "caveats",
    "text",
    lambda row: ", ".join(caveats_of(row.result)) or None,
    "What to keep in mind, joined by commas: `partial_content` (the answer was cut off), `embedding_override` (a wrong "
    "field was accepted for its similarity), `retries_used`, `parse_decision_malformed` (the judge gave no "
    "readable decision on whether an agent is needed), `ungrounded_values` (extracted values do not occur in the "
    "answer), "
    "`unquoted_abstention`, `contradictory_abstention` and `contradictory_sufficiency` (the judge of a check could not "
    "be believed, nothing was decided), `abstention_beside_values` (it claims an abstention beside a template with all "
    "values), `invisible_characters` (the answer has some), and what stages of other packages report.",
)
RECURSION = Column("recursion_limit_reached", "boolean", at("generation.recursion_limit_reached"))
IDENTITY = (
    *stored("metadata", "text", "question_id", "template_id", "question_text"),
    *stored("metadata", "json", "keywords", about="A list of texts."),
    *stored("metadata", "whole", "replicate", about="From 1."),
    *stored("generation", "json", "answering_mcp_servers", about="A list of names."),
    Column("scenario_id", "text", lambda row: None, NO_SCENARIO),
    Column("scenario_node", "text", lambda row: None, NO_SCENARIO),
    Column("scenario_turn", "whole", lambda row: None, NO_SCENARIO),
    Column("scenario_path", "json", lambda row: None, NO_SCENARIO),
)
MODELS = stored(
    "metadata", "text", "answering_model", "parsing_model", "answering_system_prompt", "parsing_system_prompt"
)
HEAD = (*ENDING, CAVEATS, *IDENTITY, *MODELS)
"""What tables begin with that are not about the answer's text."""
RESPONSE = Column("raw_llm_response", "text", at("generation.raw_llm_response"))
EMBEDDING = (
    *stored("template", "boolean", "embedding_check_performed"),
    *stored("template", "number", "embedding_similarity_score", about="From 0 to 1."),
    *stored("template", "boolean", "embedding_override_applied"),
    *stored("template", "text", "embedding_model_used"),
)
CHECKS = (
    *EMBEDDING,
    *stored("checks", "boolean", "abstention_check_performed", "abstention_detected", "abstention_override_applied"),
    *stored("checks", "text", "abstention_reasoning"),
    *stored("checks", "boolean", "sufficiency_check_performed"),
    *stored("checks", "boolean", "sufficiency_detected", about="True: the answer is sufficient."),
    *stored("checks", "boolean", "sufficiency_override_applied"),
    *stored("checks", "text", "sufficiency_reasoning"),
    *stored("template", "boolean", "regex_validations_performed", "regex_overall_success"),
)
PARSING_AGENT = (
    *stored("template", "boolean", "agentic_parsing_performed", about="Whether an agent filled in the fields."),
    *stored("template", "text", "agentic_extraction_recovery", "agentic_extraction_error"),
    Column(
        "dynamic_parsing_performed",
        "boolean",
        at("template.dynamic_parsing_performed"),
        "Whether the judge was to decide if an agent is needed.",
    ),
    Column(
        "dynamic_parse_decision",
        "text",
        at("template.dynamic_parse_decision"),
        "`direct`, `escalated` (an agent was sent) or `answer_error_null`.",
    ),
    *stored("template", "text", "dynamic_decision_reasoning"),
    Column(
        "parsing_investigation_trace",
        "text",
        at("template.investigation_trace"),
        "What the agent did that filled in the fields.",
    ),
)
RUN = (
    *stored("metadata", "number", "execution_time", about="Seconds."),
    *stored("metadata", "text", "timestamp", about="ISO 8601 with offset: when the item began."),
    *stored("metadata", "text", "run_name"),
)
ADDED = (
    Column("result_index", "whole", lambda row: row.index, "The place of the result in the set, from 0."),
    *stored("metadata", "text", "result_id"),
    *stored("metadata", "text", "outcome", about="One of the outcomes; exactly one for every item."),
    *stored("metadata", "text", "outcome_detail", about="The guard, the kind of error, or why skipped."),
    *stored("metadata", "boolean", "completed_without_errors"),
    *stored("metadata", "text", "error"),
    *stored("metadata", "json", "warnings", about="A list of texts."),
    *stored("metadata", "text", "evaluation_mode"),
)
"""What every table has at its end."""


def extension_columns(result: VerificationResult) -> Iterator[Found]:
    """One for every value that a stage of another package added: `plugin.key`."""
    for plugin, values in result.added.items():
        for key in values:
            read = partial(lambda plugin, key, row: row.result.added.get(plugin, {}).get(key), plugin, key)
            about = "Added by a stage of another package."
            yield ("extension", plugin, key), Column(f"{plugin}.{key}", "value", read, about)
