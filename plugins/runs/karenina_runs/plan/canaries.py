"""The canaries of a run: how many there are, and what each of them is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve
from karenina_calls.models.model_ports import why_no_investigator
from karenina_calls.models.overrides import overrides
from karenina_judging.canaries import (
    ABSTENTION,
    AGENTIC,
    DIFFERENT,
    METRIC,
    PATHS,
    RUBRIC,
    SUFFICIENCY,
    TEMPLATE,
    TRAIT,
    Canary,
    canary,
)
from karenina_vocabulary.traits import AgenticRubricTrait, LLMRubricTrait, MetricRubricTrait

from karenina_core.errors import ConfigError, Problem, TemplateError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import EvaluationMode, VerificationConfig
from karenina_core.values.message import Message, TextBlock, trace_dicts
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric, RubricTrait

from .items import Item, Prepared
from .templates import TemplateLoader

LEAST = 10
"""Canaries of a judge on a path in a run, however small it is."""
ITEMS_AND_TRAITS = 99
"""So many of them come with one canary: one of a hundred calls at least."""
CHECKS = (ABSTENTION, SUFFICIENCY)
"""Paths that are features of the same name."""
TRAITS = {RUBRIC: LLMRubricTrait, METRIC: MetricRubricTrait, AGENTIC: AgenticRubricTrait}
"""Paths that are traits of these types."""
ALONE: Mapping[str, Any] = {
    "agentic_judge_context": "trace_only",
    "agentic_parsing_materialize_trace": False,
    "agentic_parsing_persist_trace": False,
}
"""What an agent that fills in a template sees of a canary: there is no workspace."""
ON_ONE_PATH = 1 << 20
"""Positions of the items of one path: more than a run has canaries."""


def canary_config(config: VerificationConfig, path: str = TEMPLATE) -> VerificationConfig:
    """The settings that canaries of a path are judged with: those of the run, for templates with all else that is done
    to them, for a check alone, or for a rubric alone."""
    features = config.features if path == TEMPLATE else frozenset({path}) & frozenset(CHECKS)
    return evolve(config, evaluation_mode=canary_mode(path), features=features, **ALONE)


def canary_mode(path: str) -> EvaluationMode:
    return "rubric_only" if path in TRAITS else "template_only"


def check_canaries(app: Karenina, config: VerificationConfig, templates: TemplateLoader) -> None:
    """Raises ConfigError and PlanError where canaries cannot be judged."""
    source = _question(canary(0)).template
    try:
        if source is not None:
            templates.runtime_for(source)
    except TemplateError as error:
        raise ConfigError([Problem("canaries", f"their templates cannot be used: {error}")]) from None
    for path in _paths(config, ()):
        _plan(app, config, path, None)


def canary_at(position: int) -> Canary:
    """The canary of the item at a position."""
    return canary(position % ON_ONE_PATH, PATHS[position // ON_ONE_PATH])


def canary_items(prepared: Prepared) -> list[Item]:
    """Of every judge the same ones; `canary_at` says which one an item is."""
    config = prepared.config
    rubrics = [rubric for rubric in prepared.rubrics.values() if rubric is not None]
    if prepared.mode == "template_only":
        rubrics = []
    asked = len(prepared.questions) if prepared.mode != "rubric_only" else 0
    of_judge = (asked + sum(map(len, rubrics))) * len(config.answering_models) * config.replicate_count
    most = min(max(LEAST, math.ceil(of_judge / ITEMS_AND_TRAITS)), ON_ONE_PATH)
    answering, items = config.answering_models[0], []
    for path in _paths(config, rubrics):
        deeply = any(getattr(trait, "deep_judgment_enabled", False) for rubric in rubrics for trait in rubric)
        plan = _plan(prepared.app, config, path, _rubric(canary(0, path), deeply))
        judges = [
            judge for judge in config.parsing_models if path != AGENTIC or not why_no_investigator(prepared.app, judge)
        ]
        for number in range(most):
            found, position = canary(number, path), PATHS.index(path) * ON_ONE_PATH + number
            about = (number // DIFFERENT + 1, _rubric(found, deeply), plan, position)
            items += [Item(_question(found), answering, judge, *about) for judge in judges]
    return items


def untried(prepared: Prepared) -> list[str]:
    """The models that traits of a run name of their own, and that are no judges of it: they have no canaries."""
    judges = {str(judge.identity) for judge in prepared.config.parsing_models}
    return sorted({str(model.identity) for _, model in overrides(prepared.rubrics.values())} - judges)


def canary_answer(item: Item) -> CachedAnswer:
    """The answer that the judge of a canary reads."""
    text = canary_at(item.position).answer
    trace = tuple(trace_dicts([Message("assistant", (TextBlock(text),))]))
    return CachedAnswer(raw_llm_response=text, trace_messages=trace)


def _paths(config: VerificationConfig, rubrics: Iterable[Rubric]) -> Sequence[str]:
    """What the run asks its judges for: templates always, as a run that has none says too whether a judge obeys."""
    traits = [trait for rubric in rubrics for trait in rubric]
    judged = [path for path, kind in TRAITS.items() if any(isinstance(trait, kind) for trait in traits)]
    return (TEMPLATE, *(path for path in CHECKS if path in config.features), *judged)


def _rubric(found: Canary, deeply: bool) -> Rubric | None:
    """The one trait that a judge is asked about on such a path; the path `rubric` is judged deeply where a trait of the
    run is. What an agent investigates is the answer alone."""
    made: RubricTrait
    if found.path == RUBRIC:
        made = LLMRubricTrait(name=TRAIT, description=found.quality, kind="boolean", deep_judgment_enabled=deeply)
    elif found.path == METRIC:
        made = MetricRubricTrait(name=TRAIT, metrics=["recall"], tp_instructions=[found.quality])
    elif found.path == AGENTIC:
        made = AgenticRubricTrait(name=TRAIT, description=found.quality, kind="boolean", context_mode="trace_only")
    else:
        return None
    return Rubric.from_traits([made])


def _question(found: Canary) -> Question:
    return Question(
        id=found.id,
        question=found.question,
        raw_answer=found.wanted,
        answer_template=found.template,
        template_language="karenina-template",
    )


def _plan(app: Karenina, config: VerificationConfig, path: str, rubric: Rubric | None) -> StageOrchestrator:
    request = PlanRequest(mode=canary_mode(path), features=canary_config(config, path).features, rubric=rubric)
    plan = StageOrchestrator.for_request(request, app=app)
    plan.ready()
    return plan
