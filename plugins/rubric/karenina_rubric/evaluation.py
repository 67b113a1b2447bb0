"""RubricEvaluation: every trait of the item's rubric gets a score, or a state that says why it has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, fields_dict
from karenina_judging.asking import text_to_judge
from karenina_judging.dynamic_traits import ABSENT, Presence, undecided
from karenina_judging.dynamic_traits import presence_of as found_in
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluation_parts import DeepJudgmentRubricPart
from karenina_vocabulary.evaluators import TraitCase, TraitScore, evaluator_problems, failure
from karenina_vocabulary.planned_calls import PlannedCall, size, spanned
from karenina_vocabulary.rubric_config import DeepJudgmentRubricSettings
from karenina_vocabulary.rubric_part import RubricPart
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    hookimpl,
)
from karenina_core.errors import Problem
from karenina_core.pipeline.stage import with_other_traits
from karenina_core.values.fields import changed
from karenina_core.values.rubric import RubricTrait

from .reporting import artifacts, evidence_fields, evidence_warnings, plain_text, score_fields, sound

AGENTIC = "agentic"
"""Traits of this type are investigated by a stage of their own."""
ROOT_FIELDS = ("evaluation_input", "used_full_trace", "trace_extraction_error")
PREFIX = "deep_judgment_rubric_"
DEEP = tuple(name for name in fields_dict(DeepJudgmentRubricSettings))
WITHOUT_EFFECT = {
    "disabled": (
        *("global_excerpts", "config", "search_tool", "max_excerpts_default"),
        *("fuzzy_match_threshold_default", "excerpt_retry_attempts_default", "standard_scores"),
    ),
    "enable_all": ("config", "search_tool"),
    "use_checkpoint": ("global_excerpts", "config"),
    "custom": ("global_excerpts",),
}
"""By mode: the settings that it does not read."""


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
        *(name for name in fields_dict(RubricPart) if not name.startswith(f"{AGENTIC}_")),
        *fields_dict(DeepJudgmentRubricPart),
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

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """One about all dynamic traits that a judge would score, and those of the evaluators: of dynamic traits at
        least none."""
        asked = [trait for trait in rubric or () if asks_model(app, trait.type_name)]
        dynamic = [trait for trait in asked if rubric is not None and trait.name in rubric.dynamic]
        if dynamic:
            own = (model.system_prompt for model in config.parsing_models)
            yield PlannedCall(task=PromptTask.RUBRIC_DYNAMIC_PRESENCE_CHECK, sends=size(question.question, *own))
        judged = [trait for trait in asked if trait.type_name != AGENTIC]
        possible = _planned(judged, question, config, app)
        certain = _planned([trait for trait in judged if trait not in dynamic], question, config, app)
        yield from spanned(certain, possible) if dynamic else possible

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
        full = context.config.use_full_trace_for_rubric
        given = text_to_judge(context, full_trace=full, keep=not context.evaluates_template)
        context.set_result_field("rubric_used_full_trace", given.used_full_trace)
        traits = own_traits(context)
        case = TraitCase(context, given, asyncio.Semaphore(context.config.rubric_concurrency))
        presence = await presence_of(case)
        nothing = TraitScore(state="error", reason=f"there is nothing to score: {given.error}", kind="agent")
        absent = TraitScore(state="skipped", reason=ABSENT)
        unknown = TraitScore(state="error", reason=undecided(presence.failure), kind=presence.kind)
        known = {**dict.fromkeys(presence.absent, absent), **dict.fromkeys(presence.open, unknown)}
        names = [trait.name for trait in traits]
        decided = {name: known[name] for name in names if name in known}
        if given.error is not None:
            decided = dict.fromkeys(names, nothing)
        if not context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).strip():
            judged = (trait.name for trait in traits if asks_model(context.app, trait.type_name))
            decided = {name: TraitScore(state="skipped", reason="the answer is empty") for name in judged}
        open_ = [trait for trait in traits if trait.name not in decided]
        scores = {**decided, **await evaluated(case, open_)}
        _keep(context, traits, {trait.name: scores[trait.name] for trait in traits}, presence)


def own_traits(context: VerificationContext) -> list[RubricTrait]:
    """The traits that this stage is responsible for."""
    return [trait for trait in context.rubric or () if trait.type_name != AGENTIC]


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


async def evaluated(case: TraitCase, traits: Sequence[RubricTrait]) -> dict[str, TraitScore]:
    """The score of every trait by its name. Types are evaluated at the same time, and fail alone."""
    groups: dict[str, list[RubricTrait]] = {}
    for trait in traits:
        groups.setdefault(trait.type_name, []).append(trait)
    found = await asyncio.gather(*(_group(case, type_name, group) for type_name, group in groups.items()))
    return {name: score for scores in found for name, score in scores.items()}


async def _group(case: TraitCase, type_name: str, traits: Sequence[RubricTrait]) -> dict[str, TraitScore]:
    module = ""
    try:
        evaluator = case.context.app.trait_evaluator(type_name)
        module = type(evaluator).__module__
        given_back = await evaluator.evaluate(traits, case)
        if not isinstance(given_back, Mapping):
            what = f"the evaluator of {type_name!r} returned {type(given_back).__name__} instead of scores by name"
            return {trait.name: TraitScore(state="error", reason=what) for trait in traits}
        found = dict(given_back)
        nothing = TraitScore(state="missing", reason=f"the evaluator of {type_name!r} gave no score for it")
        scores = {t.name: sound(t, found[t.name]) if t.name in found else nothing for t in traits}
        if strange := [name for name in found if name not in scores]:
            names = ", ".join(repr(name) if type(name) is str else type(name).__name__ for name in strange)
            case.context.warn(f"the evaluator of {type_name!r} scored traits that it was not given: {names:.200}")
        return scores
    except BaseException as error:  # an evaluator is third-party code, and its failure is that of its traits
        failed = failure(error, "an evaluator of traits failed", module=module, type=type_name)
        return {trait.name: sound(trait, failed) for trait in traits}


async def presence_of(case: TraitCase) -> Presence:
    """Ask about the dynamic traits that a model would have to score, those of agents too, in one call.

    Traits that code alone decides are not asked about: they are always evaluated.
    """
    rubric = case.context.rubric
    dynamic = rubric.dynamic if rubric is not None else frozenset()
    traits = [
        trait for trait in rubric or () if trait.name in dynamic and asks_model(case.context.app, trait.type_name)
    ]
    presence = await found_in(case, traits)
    if not presence.open:
        return presence
    presence = evolve(presence, failure=plain_text(presence.failure))
    if agents := [trait.name for trait in traits if trait.type_name == "agentic"]:
        case.context.warn(f"{', '.join(agents)}: {undecided(presence.failure)}")
    return presence


def _planned(
    traits: Iterable[RubricTrait], question: Question, config: VerificationConfig, app: Karenina
) -> list[PlannedCall]:
    groups: dict[str, list[RubricTrait]] = {}
    for trait in traits:
        groups.setdefault(trait.type_name, []).append(trait)
    return [c for name, own in groups.items() for c in app.trait_evaluator(name).calls(own, question, config, app)]


def asks_model(app: Karenina, type_name: str) -> bool:
    """Whether a model is asked about traits of this type."""
    if type_name == "agentic":
        return True
    try:
        return bool(app.trait_evaluator(type_name).asks_judge)
    except Exception:  # an evaluator that cannot be made: each of its traits fails with that reason
        return False


def notes(config: VerificationConfig, rubrics: Sequence[Rubric]) -> Iterator[Problem]:
    """What was configured and has no effect, and what a benchmark asks for that users should know of."""
    for text in (*_unread(config), *_unreached(config, rubrics)):
        yield Problem("", text, fatal=False)


def _unread(config: VerificationConfig) -> Iterator[str]:
    mode = config.deep_judgment_rubric_mode
    for name in changed(config, (f"{PREFIX}{name}" for name in WITHOUT_EFFECT[mode])):
        yield f"{name} has no effect with {PREFIX}mode {mode}"
    custom = config.deep_judgment_rubric_config
    if mode == "custom" and custom is not None:
        tables = [custom.global_traits, *custom.question_specific.values()]
        if not any(entry.enabled for table in tables for entry in table.values()):
            yield f"{PREFIX}config enables deep judgment for no trait"


def _unreached(config: VerificationConfig, rubrics: Sequence[Rubric]) -> Iterator[str]:
    traits = {trait.name: trait for rubric in rubrics for trait in rubric if isinstance(trait, LLMRubricTrait)}
    marked = {name: trait for name, trait in traits.items() if trait.deep_judgment_enabled}
    able = [name for name, trait in marked.items() if trait.kind in ("boolean", "score")]
    mode = config.deep_judgment_rubric_mode
    if mode == "disabled" and able:
        yield f"{PREFIX}mode disabled: these traits request deep judgment but are judged without it: {', '.join(able)}"
    if mode != "use_checkpoint":
        return
    searching = [name for name in able if marked[name].deep_judgment_search_enabled]
    if searched := [name for name in searching if marked[name].deep_judgment_excerpt_enabled]:
        yield f"quotations for these traits go to the search tool, as the benchmark requests: {', '.join(searched)}"
    if other := [name for name in marked if name not in able]:
        yield f"deep judgment is for boolean and score traits; these are judged without it: {', '.join(other)}"
    if traits and not able:
        unread = {f"{PREFIX}{name}" for name in WITHOUT_EFFECT[mode]}
        for name in changed(config, (name for name in DEEP if name not in unread)):
            yield f"{name} has no effect: no trait has deep_judgment_enabled"


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(RubricEvaluation)
