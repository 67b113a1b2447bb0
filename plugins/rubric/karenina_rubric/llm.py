"""`llm` traits: qualities that the judge assesses by reading."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve
from karenina_calls.services.shared import search_tool_of
from karenina_judging.asking import unable_judges
from karenina_judging.judgment import TraitStrategy
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.kinds import StrategyRegistry
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.rubric_config import TraitEvidenceRules, evidence_rules
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import Karenina, Question, VerificationConfig, hookimpl
from karenina_core.errors import KareninaError, Problem

from .llm_calls import TASKS, grouped, judged, recorded

Scores = Mapping[str, TraitScore]
STRATEGY = "deep_judgment"
LEAVE_OUT = "leave the llm traits out (rubric_trait_names)"
SHALLOW = "use deep_judgment_rubric_mode disabled"


class LLMEvaluator(TraitEvaluator[LLMRubricTrait]):
    """Asks the judge about a quality of the answer.

    In the strategy `batch` there is one call for the boolean and score traits of a rubric and one for its literal
    traits; each becomes two where only some of the traits are to be compared with the reference answer, which is never
    shown beside a trait that did not ask for it. In `sequential` every trait has a call of its own, and template kinds
    always have. Calls are made at the same time. Traits that are to be judged deeply go to the judgment strategy
    `deep_judgment`; with `deep_judgment_rubric_standard_scores` they are scored in the standard way too.

    The value is True or False, a whole number, the index of a class (`label` is its name), or for template kinds a
    record of the fields. A text given instead of a class is the label too, cut at 1,000 characters, as reasons are.
    """

    name = "llm"
    trait_class = LLMRubricTrait
    asks_judge = True

    def check_config(
        self, traits: Sequence[LLMRubricTrait], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        yield from (Problem("rubric", text) for trait in traits if (text := trait.ambiguity()))
        rules = list(_rules(traits, config))
        both = config.deep_judgment_rubric_standard_scores
        usual = [trait for trait, how in rules if how is None or both]
        tasks = dict.fromkeys(task for trait in usual for task in _tasks(trait, config))
        unable = [p for task in tasks for p in unable_judges(app, config.parsing_models, task, LEAVE_OUT)]
        yield from {problem.path: problem for problem in reversed(unable)}.values()
        deep = [how for _, how in rules if how is not None]
        if deep:
            yield from _strategy_problems(deep, config, app)

    def calls(
        self, traits: Sequence[LLMRubricTrait], question: Question, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        rules = {trait.name: evidence_rules(config, trait, question.id) for trait in traits}
        for how in (how for how in rules.values() if how is not None):
            yield from app.registry(StrategyRegistry).make(STRATEGY).trait_calls(question, how, config)
        both = config.deep_judgment_rubric_standard_scores
        usual = [trait for trait in traits if rules[trait.name] is None or both]
        records = [trait for trait in usual if isinstance(trait.kind, TemplateKind)]
        others = [trait for trait in usual if not isinstance(trait.kind, TemplateKind)]
        alone = config.rubric_evaluation_strategy == "sequential"
        asked = [(PromptTask.RUBRIC_LLM_TRAIT_TEMPLATE, [trait]) for trait in records]
        groups = grouped(others, question.raw_answer.strip(), alone=alone)
        asked += [(group.task, list(group.traits)) for group in groups]
        own = (model.system_prompt for model in config.parsing_models)
        sends = size(question.question, *own)
        for task, about in asked:
            yield PlannedCall(task=task, sends=sends + size(*(trait.description for trait in about)))

    async def evaluate(self, traits: Sequence[LLMRubricTrait], case: TraitCase) -> Scores:
        context = case.context
        rules = {trait.name: evidence_rules(context.config, trait, context.question_id) for trait in traits}
        deep = [trait for trait in traits if rules[trait.name] is not None]
        both = context.config.deep_judgment_rubric_standard_scores
        usual = [trait for trait in traits if rules[trait.name] is None or both]

        async def deeply(trait: LLMRubricTrait) -> TraitScore:
            strategy: TraitStrategy = context.app.registry(StrategyRegistry).make(STRATEGY)
            how = rules[trait.name]
            assert how is not None
            return await strategy.score(trait, case, how)

        deeply_judged, standard = await asyncio.gather(case.each(deep, deeply), _usually(usual, case))
        found = {**standard, **{n: evolve(score, standard=standard.get(n)) for n, score in deeply_judged.items()}}
        return {trait.name: found[trait.name] for trait in traits}


async def _usually(traits: Sequence[LLMRubricTrait], case: TraitCase) -> Scores:
    """The scores of traits that are judged from the text itself."""
    reference = case.context.question.raw_answer.strip()
    records = [trait for trait in traits if isinstance(trait.kind, TemplateKind)]
    others = [trait for trait in traits if not isinstance(trait.kind, TemplateKind)]
    alone = case.context.config.rubric_evaluation_strategy == "sequential"

    async def record(trait: LLMRubricTrait) -> TraitScore:
        assert isinstance(trait.kind, TemplateKind)
        return await recorded(trait, trait.kind, case, reference if trait.include_ground_truth else "")

    parts = await asyncio.gather(
        case.each(records, record),
        *(judged(group, case) for group in grouped(others, reference, alone=alone)),
    )
    return {name: score for part in parts for name, score in part.items()}


def _rules(
    traits: Iterable[LLMRubricTrait], config: VerificationConfig
) -> Iterator[tuple[LLMRubricTrait, TraitEvidenceRules | None]]:
    """Every trait with the ways in which it would be judged, whatever the question."""
    custom = config.deep_judgment_rubric_config
    places: dict[str, list[str]] = {}
    for question, entries in custom.question_specific.items() if custom else ():
        for name in entries:
            places.setdefault(name, []).append(question)
    for trait in traits:
        for question in ("", *places.get(trait.name, ())):
            yield trait, evidence_rules(config, trait, question)


def _tasks(trait: LLMRubricTrait, config: VerificationConfig) -> Sequence[str]:
    """What the judge may be asked to do for the trait."""
    if isinstance(trait.kind, TemplateKind):
        return (PromptTask.RUBRIC_LLM_TRAIT_TEMPLATE,)
    single, several = TASKS[trait.kind == "literal"]
    return (single,) if config.rubric_evaluation_strategy == "sequential" else (several, single)


def _strategy_problems(
    rules: Sequence[TraitEvidenceRules], config: VerificationConfig, app: Karenina
) -> Iterator[Problem]:
    """What is missing for traits that are to be judged deeply."""
    if STRATEGY not in app.registry(StrategyRegistry):
        what = f"no plugin provides the strategy {STRATEGY!r}"
        remedy = f"install karenina-deep-judgment, do not block its plugin deep-judgment, or {SHALLOW}"
        yield Problem("deep_judgment_rubric_mode", f"{what}; {remedy}.{app.inactive()}")
        return
    tasks = {True: PromptTask.DJ_RUBRIC_EXCERPT_EXTRACTION, False: PromptTask.DJ_RUBRIC_REASONING}
    for quoting in sorted({how.excerpts for how in rules}):
        yield from unable_judges(app, config.parsing_models, tasks[quoting], SHALLOW)
    if any(how.search for how in rules):
        try:
            problem = search_tool_of(app, config.deep_judgment_rubric_search_tool).problem()
        except (KareninaError, TypeError) as error:
            problem = str(error)
        if problem:
            yield Problem("deep_judgment_rubric_search_tool", problem)


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(LLMEvaluator)
