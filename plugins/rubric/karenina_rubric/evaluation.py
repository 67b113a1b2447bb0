"""RubricEvaluation: every trait of the item's rubric gets a score, or a state that says why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import fields
from karenina_judging.dynamic_traits import ABSENT, Presence, undecided
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluation_parts import DeepJudgmentRubricPart
from karenina_vocabulary.evaluators import TraitCase, TraitScore, evaluator_problems
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core import Category, Karenina, Skip, Stage, VerificationConfig, VerificationContext, hookimpl
from karenina_core.errors import Problem
from karenina_core.pipeline.stage import with_other_traits
from karenina_core.values.rubric import Rubric, RubricTrait

from .deep_settings import DEEP, notes
from .evidence import evidence_fields, evidence_warnings
from .groups import evaluated
from .presence import asks_model, presence_of
from .reporting import artifacts, score_fields

AGENTIC = "agentic"
"""Traits of this type are investigated by a stage of their own."""
ROOT_FIELDS = ("evaluation_input", "used_full_trace", "trace_extraction_error")


class RubricEvaluation(Stage):
    """Has the traits of the rubric scored by the evaluators of their types, all of them at the same time.

    Dynamic traits that a judge would have to score are first asked about in one call: those whose concept the answer
    does not take up are skipped. A trait that fails costs no other trait its score, and never changes the outcome.
    """

    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    reads = (ArtifactKeys.TRACE_VALIDATION_FAILED,)
    produces = (
        ArtifactKeys.RUBRIC_RESULT,
        ArtifactKeys.LLM_TRAIT_LABELS,
        ArtifactKeys.METRIC_CONFUSION_LISTS,
        ArtifactKeys.METRIC_RESULTS,
    )
    result_fields = (
        "rubric_evaluation_performed",
        "rubric_evaluation_strategy",
        "rubric_used_full_trace",
        "llm_trait_scores",
        "llm_trait_labels",
        "regex_trait_scores",
        "callable_trait_scores",
        "metric_trait_scores",
        "metric_trait_confusion_lists",
        "extra_trait_scores",
        "trait_details",
        "trait_scales",
        "trait_states",
        "trait_provenance",
        "dynamic_rubric_promoted_traits",
        "dynamic_rubric_skipped_traits",
        *(attribute.name for attribute in fields(DeepJudgmentRubricPart)),
        *ROOT_FIELDS,
    )
    extends = ("caveats",)
    included_when = with_other_traits(AGENTIC)
    settings = ("rubric_evaluation_strategy", "rubric_concurrency", "use_full_trace_for_rubric", *DEEP)

    def scores(self, type_name: str) -> bool:
        return type_name != AGENTIC

    def check_rubrics(self, rubrics: Sequence[Rubric], config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        traits = {id(trait): trait for rubric in rubrics for trait in rubric if trait.type_name != AGENTIC}
        yield from evaluator_problems(traits.values(), config, app)
        yield from notes(config, rubrics)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        if not allowed:
            return allowed
        if not own_traits(context):
            return Skip("the rubric has no traits for this stage")
        invalid = context.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED, False)
        if invalid and not context.config.use_full_trace_for_rubric:
            return Skip("the trace is not valid")
        return True if context.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE) else Skip("there is no answer")

    async def execute(self, context: VerificationContext) -> None:
        given = _given(context)
        traits = own_traits(context)
        case = TraitCase(context, given, asyncio.Semaphore(context.config.rubric_concurrency))
        presence = await presence_of(case)
        decided = _decided(traits, given, presence)
        if not context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).strip():
            decided = _of_nothing(context, traits)
        open_ = [trait for trait in traits if trait.name not in decided]
        scores = {**decided, **await evaluated(case, open_)}
        _keep(context, traits, {trait.name: scores[trait.name] for trait in traits}, presence)


def own_traits(context: VerificationContext) -> list[RubricTrait]:
    """The traits that this stage is responsible for."""
    return [trait for trait in context.rubric or () if trait.type_name != AGENTIC]


def _given(context: VerificationContext) -> EvaluationInput:
    """The text that is scored. Where no template is evaluated, it is the one that the result shows."""
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    given = evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_rubric)
    context.set_result_field("rubric_used_full_trace", given.used_full_trace)
    if not context.evaluates_template:
        context.set_result_field("evaluation_input", given.text)
        context.set_result_field("used_full_trace", given.used_full_trace)
        if given.error is not None:
            context.set_result_field("trace_extraction_error", given.error)
    return given


def _decided(traits: Sequence[RubricTrait], given: EvaluationInput, presence: Presence) -> dict[str, TraitScore]:
    """What is known about traits before any of them is evaluated."""
    if given.error is not None:
        nothing = TraitScore(state="error", reason=f"there is nothing to score: {given.error}", kind="agent")
        return {trait.name: nothing for trait in traits}
    names = {trait.name for trait in traits}
    absent = {name: TraitScore(state="skipped", reason=ABSENT) for name in presence.absent if name in names}
    unknown = TraitScore(state="error", reason=undecided(presence.failure), kind=presence.kind)
    return {**absent, **{name: unknown for name in presence.open if name in names}}


def _of_nothing(context: VerificationContext, traits: Sequence[RubricTrait]) -> dict[str, TraitScore]:
    """What is known about the traits of an empty answer: code decides about it as about any other, and for a judge
    there is nothing to read."""
    judged = (trait.name for trait in traits if asks_model(context, trait.type_name))
    return {name: TraitScore(state="skipped", reason="the answer is empty") for name in judged}


def _keep(
    context: VerificationContext,
    traits: Sequence[RubricTrait],
    scores: Mapping[str, TraitScore],
    presence: Presence,
) -> None:
    rubric = context.rubric
    assert rubric is not None  # there are traits
    has_llm_traits = any(trait.type_name == "llm" for trait in traits)
    kept: dict[str, Any] = {
        "rubric_evaluation_performed": True,
        "rubric_evaluation_strategy": context.config.rubric_evaluation_strategy if has_llm_traits else None,
        **score_fields(traits, scores),
        "trait_provenance": {t.name: rubric.provenance[t.name] for t in traits if t.name in rubric.provenance},
        "dynamic_rubric_promoted_traits": list(presence.promoted),
        "dynamic_rubric_skipped_traits": dict.fromkeys(presence.absent, ABSENT),
        **evidence_fields(context, traits, scores),
    }
    for name, value in kept.items():
        context.set_result_field(name, value)
    for key, value in artifacts(kept):
        context.set_artifact(key, value)
    if caveats := list(dict.fromkeys(name for score in scores.values() for name in score.caveats)):
        context.extend_result_field("caveats", caveats)
    for warning in evidence_warnings(scores):
        context.warn(warning)
    failed = {name: score.reason for name, score in scores.items() if score.state not in ("ok", "skipped")}
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        context.warn(f"{len(failed)} of {len(scores)} traits have no score ({reasons:.1000})")
    context.note(f"{sum(score.state == 'ok' for score in scores.values())} of {len(scores)} traits have a score")


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(RubricEvaluation)
