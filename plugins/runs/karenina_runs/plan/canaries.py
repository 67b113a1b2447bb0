"""The canaries of a run: how many there are, and what each of them is."""

from __future__ import annotations

import math

from attrs import evolve
from karenina_judging.canaries import DIFFERENT, canary

from karenina_core.errors import ConfigError, Problem, TemplateError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.message import Message, TextBlock, trace_dicts
from karenina_core.values.question import Question

from .items import Item, Prepared
from .templates import TemplateLoader

LEAST = 10
"""Canaries of a judge in a run, however small it is."""
ITEMS_AND_TRAITS = 99
"""So many of them come with one canary: one of a hundred calls at least."""
WITH_WORKSPACE = frozenset({"agentic_parsing"})
"""Features that need a workspace: canaries have none, and are judged without."""


def canary_config(config: VerificationConfig) -> VerificationConfig:
    """The settings that canaries are judged with: those of the run, for templates alone."""
    return evolve(config, evaluation_mode="template_only", features=config.features - WITH_WORKSPACE)


def check_canaries(app: Karenina, config: VerificationConfig, templates: TemplateLoader) -> None:
    """Raises ConfigError and PlanError where canaries cannot be judged."""
    source = _question(0).template
    try:
        if source is not None:
            templates.runtime_for(source)
    except TemplateError as error:
        raise ConfigError([Problem("canaries", f"their templates cannot be used: {error}")]) from None
    _plan(app, config)


def canary_items(prepared: Prepared) -> list[Item]:
    """Of every judge the same ones; the position of an item is the number of its canary."""
    config, rubrics = prepared.config, prepared.rubrics.values()
    asked = len(prepared.questions) if prepared.mode != "rubric_only" else 0
    if prepared.mode != "template_only":
        asked += sum(len(rubric) for rubric in rubrics if rubric is not None)
    of_judge = asked * len(config.answering_models) * config.replicate_count
    plan, answering = _plan(prepared.app, config), config.answering_models[0]
    return [
        Item(_question(number), answering, judge, number // DIFFERENT + 1, None, plan, number)
        for number in range(max(LEAST, math.ceil(of_judge / ITEMS_AND_TRAITS)))
        for judge in config.parsing_models
    ]


def canary_answer(item: Item) -> CachedAnswer:
    """The answer that the judge of a canary reads."""
    text = canary(item.position).answer
    trace = tuple(trace_dicts([Message("assistant", (TextBlock(text),))]))
    return CachedAnswer(raw_llm_response=text, trace_messages=trace)


def _question(number: int) -> Question:
    found = canary(number)
    return Question(
        id=found.id,
        question=found.question,
        raw_answer=found.wanted,
        answer_template=found.template,
        template_language="karenina-template",
    )


def _plan(app: Karenina, config: VerificationConfig) -> StageOrchestrator:
    plan = StageOrchestrator.for_request(PlanRequest(features=canary_config(config).features), app=app)
    plan.ready()
    return plan
