"""Who investigates what: an agent for every trait, or one for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeVar

from attrs import define
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import VerificationContext
from karenina_core.errors import one_line

from .agents import EMPTY_ANSWER, WITH_TRACE, WITH_WORKSPACE, Material
from .evaluator import Finding, failed
from .investigators import Investigator

__all__ = ["Case", "individual", "shared"]

T = TypeVar("T")
Findings = dict[str, Finding]


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
        case.context.warn("agentic traits name different models, so that each is investigated on its own")
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
