"""AgenticRubricEvaluation: agents investigate the traits that reading an answer cannot decide."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from karenina_judging.dynamic_traits import ABSENT, presence_of, undecided
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.planned_calls import PlannedCall
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traces import evaluation_input
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import (
    Category,
    Karenina,
    Question,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    hookimpl,
)
from karenina_core.errors import ErrorKind, Problem
from karenina_core.pipeline.stage import with_traits
from karenina_core.values.rubric import Rubric

from .agents import EMPTY_ANSWER, WITH_TRACE, material_of
from .evaluator import Finding, exported
from .planned import trait_calls
from .strategies import Case, individual, investigators, misnamed, notes, shared, unable_investigators

STRATEGIES = {"individual": individual, "shared": shared}
EXTENDED = ("trait_details", "trait_scales", "trait_states", "trait_provenance")
DYNAMIC = ("dynamic_rubric_promoted_traits", "dynamic_rubric_skipped_traits")


class AgenticRubricEvaluation(Stage):
    """Has every agentic trait investigated by an agent and scored from what it found.

    A trait that fails costs no other trait its score, and never changes the outcome.
    """

    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (
        ArtifactKeys.AGENTIC_RUBRIC_EVALUATION_PERFORMED,
        ArtifactKeys.AGENTIC_TRAIT_SCORES,
        ArtifactKeys.AGENTIC_TRAIT_INVESTIGATION_TRACES,
    )
    result_fields = (
        "agentic_rubric_evaluation_performed",
        "agentic_trait_scores",
        "agentic_trait_investigation_traces",
    )
    extends = (*EXTENDED, *DYNAMIC)
    included_when = with_traits(AgenticRubricTrait.type_name)
    after = ("VerifyTemplate", "EmbeddingCheck", "DeepJudgmentAutoFail", "RubricEvaluation")
    before = ("DeepJudgmentRubricAutoFail",)

    settings = ("agentic_rubric_strategy", "agentic_rubric_parallel", "agentic_rubric_by_context", "rubric_concurrency")

    def scores(self, type_name: str) -> bool:
        return type_name == AgenticRubricTrait.type_name

    def check_rubrics(self, rubrics: Sequence[Rubric], config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        traits = {id(trait): trait for rubric in rubrics for trait in rubric if isinstance(trait, AgenticRubricTrait)}
        yield from misnamed(traits.values())
        yield from notes(config, rubrics)
        yield from unable_investigators(app, config, rubrics)

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        return trait_calls(question, rubric, config, app)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        if not (allowed := super().should_run(context)):
            return allowed
        if not own_traits(context):
            return Skip("the rubric has no agentic traits")
        return True if context.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE) else Skip("there is no answer")

    async def execute(self, context: VerificationContext) -> None:
        traits = own_traits(context)
        presence = await known_of(context, traits)
        open_ = [trait for trait in traits if trait.name not in presence.decided]
        decided = {name: Finding(score=score) for name, score in presence.decided.items()}
        findings = {**decided, **(await _evaluated(context, open_) if open_ else {})}
        _keep(context, traits, {trait.name: findings[trait.name] for trait in traits}, presence)


def own_traits(context: VerificationContext) -> list[AgenticRubricTrait]:
    """The traits that this stage is responsible for."""
    return [trait for trait in context.rubric or () if isinstance(trait, AgenticRubricTrait)]


async def _evaluated(context: VerificationContext, traits: Sequence[AgenticRubricTrait]) -> dict[str, Finding]:
    """Every trait by the configured strategy. Where a trait asks for it, the trace is a file meanwhile."""
    config = context.config
    places = asyncio.Semaphore(config.rubric_concurrency if config.agentic_rubric_parallel else 1)
    seeing = [trait for trait in traits if trait.context_mode in WITH_TRACE]
    as_file = any(trait.materialize_trace for trait in seeing)
    strategy, able = STRATEGIES[config.agentic_rubric_strategy], await investigators(context, traits)
    keep = "persist_trace" if any(trait.persist_trace for trait in traits) else ""
    with material_of(context, as_file=as_file, keep=keep) as (material, kept):
        findings = await strategy(Case(context, material, able, places), traits)
    for trait in seeing:
        if kept is not None and trait.persist_trace:  # its details say where the trace stays
            score = findings[trait.name].score
            details = {**score.details, "trace_file": kept}
            findings[trait.name] = evolve(findings[trait.name], score=evolve(score, details=details))
    return findings


def _keep(
    context: VerificationContext, traits: Sequence[AgenticRubricTrait], findings: Mapping[str, Finding], presence: Known
) -> None:
    wanted = [t for t in traits if t.name not in presence.decided or presence.decided[t.name].state != "skipped"]
    scores: dict[str, Any] = {}
    for trait in wanted:
        score = findings[trait.name].score
        if score.state == "ok" and isinstance(trait.kind, TemplateKind):
            scores |= {f"{trait.name}.{name}": value for name, value in score.value.items()}
        else:
            scores[trait.name] = exported(trait, score)
    traces = {trait.name: findings[trait.name].trace for trait in wanted}
    context.set_artifact_and_result(ArtifactKeys.AGENTIC_RUBRIC_EVALUATION_PERFORMED, True)
    context.set_artifact_and_result(ArtifactKeys.AGENTIC_TRAIT_SCORES, scores)
    context.set_artifact_and_result(ArtifactKeys.AGENTIC_TRAIT_INVESTIGATION_TRACES, traces)
    states = {trait.name: findings[trait.name].score for trait in traits}
    labels = {name: {} if score.label is None else {"label": score.label} for name, score in states.items()}
    details = {name: {**score.details, **labels[name]} for name, score in states.items()}
    provenance = context.rubric.provenance if context.rubric is not None else {}
    context.extend_result_field("trait_details", {name: known for name, known in details.items() if known})
    context.extend_result_field("trait_scales", {trait.name: trait.scale() for trait in traits})
    context.extend_result_field("trait_states", {name: score.state_row() for name, score in states.items()})
    context.extend_result_field("trait_provenance", {name: provenance[name] for name in states if name in provenance})
    if presence.promoted or presence.skipped:
        context.extend_result_field("dynamic_rubric_promoted_traits", presence.promoted)
        skipped = {name: presence.decided[name].reason for name in presence.skipped}
        context.extend_result_field("dynamic_rubric_skipped_traits", skipped)
    failed = {t.name: findings[t.name].score.reason for t in wanted if findings[t.name].score.state != "ok"}
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        context.warn(f"{len(failed)} of {len(wanted)} agentic traits have no score ({reasons:.1000})")
    context.note(f"{len(wanted) - len(failed)} of {len(traits)} agentic traits have a score")


@frozen(kw_only=True)
class Known:
    """What is known about dynamic traits before they are investigated."""

    decided: Mapping[str, TraitScore]
    """The traits that are not to be investigated, with why."""
    promoted: tuple[str, ...] = ()
    """Those that were found present here."""
    skipped: tuple[str, ...] = ()
    """Those that were found absent here."""


async def known_of(context: VerificationContext, traits: Sequence[AgenticRubricTrait]) -> Known:
    """Which traits are not to be investigated, as another stage has found out or a judge is asked now."""
    rubric = context.rubric
    dynamic = [trait for trait in traits if rubric is not None and trait.name in rubric.dynamic]
    if not dynamic:
        return Known(decided={})
    if not context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).strip():
        return Known(decided={trait.name: TraitScore(state="skipped", reason=EMPTY_ANSWER) for trait in dynamic})
    if context.get_result_field("rubric_evaluation_performed", False):
        promoted = context.get_result_field("dynamic_rubric_promoted_traits", ())
        skipped = context.get_result_field("dynamic_rubric_skipped_traits", {})
        left_out = {
            t.name: TraitScore(state="skipped", reason=str(skipped[t.name])) for t in dynamic if t.name in skipped
        }
        unknown = [trait.name for trait in dynamic if trait.name not in promoted and trait.name not in skipped]
        return Known(decided=left_out | _undecided(unknown, "see the warnings of the result"))
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    given = evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_rubric)
    if given.error is not None:
        names = [trait.name for trait in dynamic]
        return Known(decided=_undecided(names, f"there is nothing to look at: {given.error}", "agent"))
    found = await presence_of(TraitCase(context, given, asyncio.Semaphore(1)), dynamic)
    absent = {name: TraitScore(state="skipped", reason=ABSENT) for name in found.absent}
    decided = absent | _undecided(found.open, found.failure, found.kind)
    return Known(decided=decided, promoted=found.promoted, skipped=found.absent)


def _undecided(names: Iterable[str], why: str, kind: ErrorKind = "judge") -> dict[str, TraitScore]:
    return {name: TraitScore(state="error", reason=undecided(f"{why:.1000}"), kind=kind) for name in names}


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(AgenticRubricEvaluation)
