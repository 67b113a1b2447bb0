"""Strategies for results: everything that sinks, exports and reports must be able to take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart
from karenina_vocabulary.trait_scale import MISSING_LABEL

from karenina_core.errors import RETRYABLE
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.message import trace_dicts
from karenina_core.values.outcome import OutcomeName
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry, VerificationResult

from .models import MODE, messages
from .values import JSON, MAYBE, MAYBE_NAME, MAYBE_TEXT, NAME, NAMES, OBJECT, SHARE, SWITCH, TEXT, by_name

TYPES = ("llm", "regex", "callable", "metric", "agentic")
CLASSES = ["poor", "fair", "good"]
COUNT = st.integers(0, 9)
SKIPPED = "the answer does not speak of it"
SECONDS = st.floats(0, 1000)
TOKENS = st.integers(0, 10**6)
DETAILS = {"error": "judge", "auto_failed": "RecursionLimitAutoFail", "skipped": "no stage gave a verdict"}
USAGE_ROW = st.fixed_dictionaries(
    {
        "calls": st.just(1),
        "attempts": st.integers(1, 3),
        "seconds": SECONDS,
        "input_tokens": TOKENS,
        "output_tokens": TOKENS,
        "total_tokens": TOKENS,
        "cost_usd": SHARE,
    }
)
USAGE: SearchStrategy[dict[str, Any]] = st.just({}) | USAGE_ROW.map(lambda row: {"generation": row, "total": row})
CHECKS = st.builds(
    ChecksPart,
    abstention_check_performed=SWITCH,
    abstention_detected=MAYBE,
    abstention_reasoning=MAYBE_TEXT,
    sufficiency_detected=MAYBE,
    trace_validation_failed=SWITCH,
    trace_validation_error=MAYBE_TEXT,
)
TEMPLATE = st.builds(
    TemplatePart,
    template_validation_error=MAYBE_TEXT,
    template_verification_performed=SWITCH,
    parsed_gt_response=st.none() | OBJECT,
    parsed_llm_response=st.none() | OBJECT,
    verify_result=MAYBE,
    verify_granular_result=SHARE,
    field_verification_result=MAYBE,
    field_results=st.none() | by_name(MAYBE),
    field_scores=st.none() | by_name(SHARE),
    regex_validations_performed=SWITCH,
    regex_validation_results=st.none() | by_name(SWITCH),
    judge_channel=st.sampled_from([None, "json_schema", "tool_call", "json_object", "text"]),
    judge_repairs=st.integers(0, 2),
    ungrounded_values=st.lists(st.sampled_from(["target", "dose"]), max_size=2, unique=True),
)
RUBRIC = st.builds(
    RubricPart,
    rubric_evaluation_performed=SWITCH,
    llm_trait_scores=by_name(MAYBE | st.integers(-1, 5)),
    llm_trait_labels=by_name(TEXT),
    regex_trait_scores=by_name(MAYBE),
    metric_trait_scores=by_name(by_name(SHARE)),
    trait_states=by_name(
        st.fixed_dictionaries(
            {"state": st.sampled_from(["ok", "invalid", "missing", "error", "skipped"]), "reason": TEXT}
        )
    ),
)
DEEP_JUDGMENT = st.builds(
    DeepJudgmentPart,
    deep_judgment_performed=SWITCH,
    extracted_excerpts=OBJECT,
    attribute_reasoning=by_name(TEXT),
    deep_judgment_model_calls=st.integers(0, 9),
    attributes_without_excerpts=NAMES,
    hallucination_risk_assessment=st.none() | by_name(st.sampled_from(["none", "low", "high"])),
)
LEDGER_ENTRY = st.builds(
    LedgerEntry, NAME, st.fixed_dictionaries({}, optional={"field": SWITCH, "verdict": SWITCH}), TEXT
)
TRAIL_ENTRY = st.builds(TrailEntry, NAME, st.sampled_from(["ran", "skipped", "failed"]), TEXT, SECONDS)


@frozen
class _Trait:
    """One trait of one item. `score` is what it would be if the state were `ok`."""

    type: str
    scale: Mapping[str, Any]
    score: Any
    state: str
    origin: str

    @property
    def kind(self) -> Any:
        return self.scale.get("kind")

    def entries(self, name: str) -> dict[str, Any]:
        """What it adds to the table of its type."""
        if self.state == "skipped":
            return {}
        if self.state != "ok":
            return {name: -1 if self.kind == "literal" and self.type == "llm" else None}
        if self.kind == "template":
            return {f"{name}.{key}": value for key, value in self.score.items()}
        return {name: self.score}

    @property
    def label(self) -> str | None:
        if self.kind != "literal" or self.state == "skipped":
            return None
        return CLASSES[self.score] if self.state == "ok" else MISSING_LABEL


def _trait(types: str, scale: Mapping[str, Any], scores: SearchStrategy[Any]) -> SearchStrategy[_Trait]:
    states = st.sampled_from(["ok", "ok", "ok", "invalid", "missing", "error", "skipped"])
    origins = st.sampled_from(["global", "question_specific"])
    return st.builds(_Trait, st.sampled_from(types.split()), st.just(scale), scores, states, origins)


TRAIT = st.one_of(
    _trait("llm callable agentic", {"kind": "boolean"}, SWITCH),
    _trait("regex", {}, SWITCH),
    _trait("llm agentic", {"kind": "score", "min": -1, "max": 5}, st.integers(-1, 5)),
    _trait("callable", {"kind": "score", "min": 0, "max": 1}, st.floats(0, 1) | st.integers(0, 1)),
    _trait("llm callable agentic", {"kind": "literal", "classes": CLASSES}, st.integers(0, 2)),
    _trait("llm agentic", {"kind": "template"}, st.dictionaries(NAME, JSON, min_size=1, max_size=3)),
    _trait("metric", {}, st.fixed_dictionaries({"tp": COUNT, "fn": COUNT, "fp": COUNT, "f1": SHARE, "recall": SHARE})),
    _trait("citations", {}, JSON.filter(lambda value: value is not None)),
)
"""Of every type and kind; `citations` is a type of another package."""


def _part(traits: Mapping[str, _Trait]) -> RubricPart:
    """As the stages of rubrics leave it."""
    tables: dict[str, dict[str, Any]] = {type_name: {} for type_name in TYPES}
    for name, trait in traits.items():
        tables.setdefault(trait.type, {}).update(trait.entries(name))
    labels = {name: (trait.type, trait.label) for name, trait in traits.items() if trait.label is not None}
    published: dict[str, Any] = {f"{type_name}_trait_scores": tables.pop(type_name) for type_name in TYPES}
    return RubricPart(
        rubric_evaluation_performed=True,
        **published,
        extra_trait_scores=tables,
        llm_trait_labels={name: label for name, (type_name, label) in labels.items() if type_name == "llm"},
        trait_details={name: {"label": label} for name, (type_name, label) in labels.items() if type_name != "llm"},
        trait_scales={name: {"type": t.type, "higher_is_better": True, **t.scale} for name, t in traits.items()},
        trait_states={n: {"state": t.state, "reason": "" if t.state == "ok" else "why"} for n, t in traits.items()},
        trait_provenance={name: trait.origin for name, trait in traits.items()},
        dynamic_rubric_skipped_traits={name: SKIPPED for name, trait in traits.items() if trait.state == "skipped"},
    )


@cache
def rubric_parts() -> SearchStrategy[RubricPart]:
    """What became of up to five traits of any type and kind: scored, failed or skipped, and in one consistent story."""
    return st.dictionaries(NAME, TRAIT, max_size=5).map(_part)


@cache
def identities() -> SearchStrategy[ModelIdentity]:
    """Which model, reached how."""
    return st.builds(ModelIdentity, NAME, NAME, MAYBE_NAME, NAMES, MAYBE_NAME)


@cache
def traces() -> SearchStrategy[list[dict[str, Any]]]:
    """The messages of an answer in the flat form that results store."""
    return st.lists(messages(), max_size=3).map(trace_dicts)


@cache
def cached_answers() -> SearchStrategy[CachedAnswer]:
    """An answer that was generated for another judge."""
    return st.builds(
        CachedAnswer,
        raw_llm_response=TEXT,
        trace_messages=traces().map(tuple),
        recursion_limit_reached=SWITCH,
        answering_mcp_servers=NAMES.map(tuple),
        usage_metadata=USAGE,
        agent_metrics=st.none() | OBJECT,
    )


def _metadata(outcome: OutcomeName, error: str, **facts: Any) -> MetadataPart:
    failed = outcome == "error"
    return MetadataPart(
        outcome=outcome,
        outcome_detail=DETAILS.get(outcome),
        completed_without_errors=not failed,
        error=error if failed else None,
        timestamp="2026-01-31T12:00:00+01:00",
        **facts,
    )


METADATA = st.builds(
    _metadata,
    st.sampled_from(get_args(OutcomeName)),
    TEXT,
    question_id=NAME,
    template_id=st.sampled_from(["no_template", "0" * 32]),
    result_id=st.text("0123456789abcdef", min_size=16, max_size=16),
    question_text=TEXT,
    raw_answer=MAYBE_TEXT,
    keywords=st.lists(TEXT, max_size=2),
    answering=identities(),
    parsing=identities(),
    answering_system_prompt=MAYBE_TEXT,
    warnings=st.lists(TEXT, max_size=2),
    execution_time=SECONDS,
    run_name=MAYBE_NAME,
    replicate=st.integers(1, 9),
    evaluation_mode=MODE,
    retry_counts=st.dictionaries(st.sampled_from(sorted(RETRYABLE)), st.integers(1, 5), max_size=2),
    template_isolation=st.sampled_from([None, "no-code", "in-process"]),
)
GENERATION = st.builds(
    GenerationPart,
    raw_llm_response=TEXT,
    trace_messages=traces(),
    answering_mcp_servers=NAMES,
    recursion_limit_reached=SWITCH,
    usage_metadata=USAGE,
    usage_unavailable=SWITCH,
    agent_metrics=st.none() | OBJECT,
    text_flags=st.lists(st.sampled_from(["lone_surrogate", "nul", "bidi_control"]), unique=True),
    replayed_from=st.none() | OBJECT,
)


@cache
def results() -> SearchStrategy[VerificationResult]:
    """The result of one item. Its parts are each valid; they need not tell one story."""
    return st.builds(
        VerificationResult,
        metadata=METADATA,
        generation=GENERATION,
        checks=CHECKS,
        template=st.none() | TEMPLATE,
        rubric=st.none() | RUBRIC | rubric_parts(),
        deep_judgment=st.none() | DEEP_JUDGMENT,
        deep_judgment_rubric=st.none() | st.builds(DeepJudgmentRubricPart, rubric_trait_reasoning=by_name(TEXT)),
        evaluation_input=MAYBE_TEXT,
        used_full_trace=SWITCH,
        trace_extraction_error=MAYBE_TEXT,
        ledger=st.lists(LEDGER_ENTRY, max_size=2).map(tuple),
        trail=st.lists(TRAIL_ENTRY, max_size=2).map(tuple),
        extensions=by_name(by_name(JSON)),
    )
