"""The calls that agentic traits take, as they are known before a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from karenina_calls.models.model_ports import why_no_investigator
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import Karenina, ModelConfig, Question, Rubric, VerificationConfig


def trait_calls(
    question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
) -> Iterator[PlannedCall]:
    """An investigation and the reading of its record for every trait; with the strategy `shared`, one investigation for
    all of them or for each of their context modes. Those whose model cannot use tools are skipped. At least none for a
    dynamic trait, and for one that sees a workspace alone, for there may be none."""
    traits = [trait for trait in rubric or () if isinstance(trait, AgenticRubricTrait)]
    (judge,) = config.parsing_models
    models = {trait.name: _model(trait, judge) for trait in traits}
    able = [trait for trait in traits if not why_no_investigator(app, models[trait.name])]
    dynamic = rubric.dynamic if rubric is not None else frozenset()
    sends = size(question.question, judge.system_prompt)
    if dynamic.intersection(models) and all(trait.type_name == AgenticRubricTrait.type_name for trait in rubric or ()):
        yield PlannedCall(task=PromptTask.RUBRIC_DYNAMIC_PRESENCE_CHECK, sends=sends)  # no other stage asks
    groups: dict[str, list[AgenticRubricTrait]] = {}
    shared = config.agentic_rubric_strategy == "shared" and len({_same(models[trait.name]) for trait in able}) == 1
    for trait in able:
        together = trait.context_mode if config.agentic_rubric_by_context else ""
        groups.setdefault(together if shared else trait.name, []).append(trait)
    for group in groups.values():
        certain = [trait for trait in group if trait.name not in dynamic and trait.context_mode != "workspace_only"]
        call = partial(PlannedCall, model=models[group[0].name], least=int(bool(certain)))
        asked, turns = sends + size(*(trait.description for trait in group)), max(trait.max_turns for trait in group)
        yield call(task=PromptTask.RUBRIC_AGENTIC_TRAIT_INVESTIGATION, sends=asked, turns=turns)
        extraction = partial(call, task=PromptTask.RUBRIC_AGENTIC_TRAIT_EXTRACTION, sends=asked)
        yield extraction(least=len(certain), most=len(group))


def _same(model: ModelConfig) -> tuple[str, str | None, str]:
    """What has to be equal for traits to share an agent."""
    return model.interface, model.model_provider, model.name


def _model(trait: AgenticRubricTrait, judge: ModelConfig) -> ModelConfig:
    return trait.model_override if isinstance(trait.model_override, ModelConfig) else judge
