"""Who investigates what: the model of each trait, an agent for every trait or one for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from attrs import define, frozen
from karenina_calls.models.model_ports import why_no_investigator
from karenina_judging.services import OTHER_MODEL
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import Karenina, ModelConfig, Rubric, VerificationConfig, VerificationContext
from karenina_core.errors import KareninaError, Problem, one_line
from karenina_core.pipeline.engine import stops_item

from .agents import EMPTY_ANSWER, WITH_TRACE, WITH_WORKSPACE, Material
from .evaluator import AgenticTraitEvaluator, Finding, failed

CANNOT = "the parsing model cannot use tools"
T = TypeVar("T")
Findings = dict[str, Finding]


@frozen
class Investigator:
    """The evaluator of a trait; where there is none, why."""

    evaluator: AgenticTraitEvaluator | None
    why_not: str = ""
    skipped: bool = False
    """Whether the model cannot act as an agent at all, so that nothing has failed."""

    @property
    def identity(self) -> tuple[str, str | None, str] | None:
        """What has to be equal for traits to share an agent: interface, provider and name of the model."""
        if self.evaluator is None:
            return None
        config = self.evaluator.model.config
        return config.interface, config.model_provider, config.name


def misnamed(traits: Iterable[AgenticRubricTrait]) -> Iterator[Problem]:
    """A problem for every trait that names something else than a model."""
    for trait in traits:
        if trait.model_override is not None and not isinstance(trait.model_override, ModelConfig):
            what = f"must be a ModelConfig, not {type(trait.model_override).__name__}"
            yield Problem("rubric", f"trait {trait.name!r}: model_override {what}")


async def investigators(
    context: VerificationContext, traits: Sequence[AgenticRubricTrait]
) -> Mapping[str, Investigator]:
    """Who evaluates each trait, by its name: its own model, which is open for the whole run, or the parsing model.

    Traits with equal models share one. A model that cannot be used costs its own traits only.
    """
    known: list[tuple[ModelConfig | None, Investigator]] = []
    found = {}
    for trait in traits:
        there = [investigator for model, investigator in known if model == trait.model_override]
        if not there:
            there = [await _investigator(context, trait.model_override)]
            known.append((trait.model_override, there[0]))
        found[trait.name] = there[0]
    return found


async def _investigator(context: VerificationContext, override: ModelConfig | None) -> Investigator:
    if override is None:
        client = context.parsing
        if not client.can_use_tools:
            return Investigator(None, why_no_investigator(context.app, client.config) or CANNOT, skipped=True)
        return Investigator(AgenticTraitEvaluator(client))
    try:
        if reason := why_no_investigator(context.app, override):
            return Investigator(None, reason, skipped=True)
        return Investigator(AgenticTraitEvaluator(await context.service(OTHER_MODEL)(override)))
    except BaseException as error:  # adapters and their middleware are third-party code
        if stops_item(error):
            raise
        reason = str(error) if isinstance(error, KareninaError) else one_line(error)
        return Investigator(None, f"its model cannot be opened: {reason}")


def unable_investigators(app: Karenina, config: VerificationConfig, rubrics: Sequence[Rubric]) -> Iterator[Problem]:
    """Notes on the traits that are skipped because their model cannot act as an agent; a fatal problem for each of them
    where nothing would be left to score for what some judge judges."""
    traits = list({id(trait): trait for rubric in rubrics for trait in rubric}.values())
    for number, judge in enumerate(config.parsing_models):
        unable: dict[str, list[str]] = {}
        for trait in traits:
            model = (trait.model_override or judge) if isinstance(trait, AgenticRubricTrait) else None
            if isinstance(model, ModelConfig) and (reason := why_no_investigator(app, model)):
                unable.setdefault(reason, []).append(repr(trait.name))
        nothing_left = config.evaluation_mode == "rubric_only" and sum(map(len, unable.values())) == len(traits)
        for reason, names in unable.items():
            line = f"agentic traits that are skipped: {', '.join(names)}: {reason}"
            if not nothing_left:
                yield Problem("", line, fatal=False)
                continue
            remedy = "nothing else is scored; use a model that can call tools, give the traits a model_override, or"
            remedy = f"{remedy} leave them out (rubric_trait_names)"
            yield Problem(f"parsing_models[{number}]", f"{line}; {remedy}")


def notes(config: VerificationConfig, rubrics: Iterable[Rubric]) -> Iterator[Problem]:
    """Settings and traits that ask for something which another setting takes the effect of."""
    if config.agentic_rubric_by_context and config.agentic_rubric_strategy == "individual":
        what = "agentic_rubric_by_context has no effect with agentic_rubric_strategy individual"
        yield Problem("", what, fatal=False)
    kept: dict[str, bool] = {}
    for rubric in rubrics:
        traits = [trait for trait in rubric if isinstance(trait, AgenticRubricTrait)]
        filed = any(trait.materialize_trace for trait in traits)
        kept |= {trait.name: filed or kept.get(trait.name, False) for trait in traits if trait.persist_trace}
    why = "no agentic trait of its rubric has materialize_trace"
    for name in (name for name, filed in kept.items() if not filed):
        yield Problem("", f"persist_trace of the trait {name!r} has no effect: {why}", fatal=False)


@define(eq=False)
class Case:
    """One answer whose agentic traits are evaluated."""

    context: VerificationContext
    material: Material
    investigators: Mapping[str, Investigator]
    """By trait."""
    places: asyncio.Semaphore
    """One place where traits are evaluated one after another."""

    async def in_turn(self, work: Callable[[], Awaitable[T]]) -> T:
        async with self.places:
            return await work()


async def individual(case: Case, traits: Sequence[AgenticRubricTrait]) -> Findings:
    """Every trait with an agent of its own."""

    async def one(trait: AgenticRubricTrait) -> Finding:
        if (unable := _unable(case, trait)) is not None:
            return Finding(score=unable)
        evaluator = case.investigators[trait.name].evaluator
        assert evaluator is not None  # or there is a reason
        return await case.in_turn(lambda: evaluator.find(trait, case.material))

    found = await asyncio.gather(*map(one, traits))
    return {trait.name: finding for trait, finding in zip(traits, found, strict=True)}


async def shared(case: Case, traits: Sequence[AgenticRubricTrait]) -> Findings:
    """One investigation for all traits that can be evaluated, or one for each context mode; then a score for each.

    Traits that are to be investigated by different models are evaluated one by one, and so are those whose shared
    investigation failed.
    """
    able = [trait for trait in traits if _unable(case, trait) is None]
    findings = await individual(case, [trait for trait in traits if trait not in able])
    if len({case.investigators[trait.name].identity for trait in able}) > 1:
        case.context.warn("agentic traits name different models, so each is investigated on its own")
        return findings | await individual(case, able)
    groups: dict[str, list[AgenticRubricTrait]] = {}
    for trait in able:
        groups.setdefault(trait.context_mode if case.context.config.agentic_rubric_by_context else "", []).append(trait)
    for found in await asyncio.gather(*(_group(case, group) for group in groups.values())):
        findings |= found
    return findings


async def _group(case: Case, traits: Sequence[AgenticRubricTrait]) -> Findings:
    evaluator = case.investigators[traits[0].name].evaluator
    assert evaluator is not None  # only those that can be evaluated are in a group
    try:
        investigation = await case.in_turn(lambda: evaluator.investigate(traits, case.material))
    except BaseException as error:  # adapters, agents and their tools are third-party code
        failed(error, traits[0], "shared investigation", question=case.context.question_id)
        warning = f"the shared investigation failed ({one_line(error)}); each trait was investigated on its own"
        case.context.warn(warning)
        return await individual(case, traits)
    shown = {"trace": bool(case.material.response), "workspace": case.material.workspace is not None}
    for what, modes in (("trace", WITH_TRACE), ("workspace", WITH_WORKSPACE)):
        without = [trait.name for trait in traits if trait.context_mode not in modes]
        if shown[what] and without and len(without) < len(traits):
            about = f"{', '.join(without)}: the agent of the shared investigation was shown the {what} for other traits"
            case.context.warn(f"{about}; agentic_rubric_by_context keeps them apart")

    async def read(trait: AgenticRubricTrait) -> Finding:
        own = case.investigators[trait.name].evaluator
        assert own is not None
        return await case.in_turn(lambda: own.read(trait, investigation, shared=True))

    found = await asyncio.gather(*map(read, traits))
    return {trait.name: finding for trait, finding in zip(traits, found, strict=True)}


def _unable(case: Case, trait: AgenticRubricTrait) -> TraitScore | None:
    """What becomes of a trait that cannot be investigated at all; None for any other."""
    investigator = case.investigators[trait.name]
    if investigator.evaluator is None:
        state: Literal["skipped", "error"] = "skipped" if investigator.skipped else "error"
        return TraitScore(state=state, reason=investigator.why_not, kind="agent")
    if trait.context_mode == "workspace_only" and case.material.workspace is None:
        return TraitScore(state="error", reason="there is no workspace to investigate", kind="agent")
    if trait.context_mode == "trace_only" and not case.material.response.strip():
        return TraitScore(state="skipped", reason=EMPTY_ANSWER)
    return None
