"""Traits by type, each group with its evaluator; what evaluators give back is looked at before anybody relies on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from karenina_vocabulary.evaluators import TraitCase, TraitScore

from karenina_core.errors import KareninaError, one_line
from karenina_core.log import get_logger
from karenina_core.pipeline.engine import stops_item
from karenina_core.values.rubric import RubricTrait

from .soundness import sound

__all__ = ["evaluated"]

log = get_logger("karenina.rubric")


async def evaluated(case: TraitCase, traits: Sequence[RubricTrait]) -> dict[str, TraitScore]:
    """The score of every trait by its name. Types are evaluated at the same time, and fail alone."""
    groups: dict[str, list[RubricTrait]] = {}
    for trait in traits:
        groups.setdefault(trait.type_name, []).append(trait)
    found = await asyncio.gather(*(_group(case, type_name, group) for type_name, group in groups.items()))
    return {name: score for scores in found for name, score in scores.items()}


async def _group(case: TraitCase, type_name: str, traits: Sequence[RubricTrait]) -> dict[str, TraitScore]:
    try:
        given_back = await case.context.app.trait_evaluator(type_name).evaluate(traits, case)
        return _by_trait(case, type_name, traits, given_back)
    except BaseException as error:  # an evaluator is anybody's code, and its failure is that of its traits
        if stops_item(error):
            raise
        if not isinstance(error, KareninaError):
            log.warning("an evaluator of traits failed", type=type_name, error=one_line(error))
        return {trait.name: sound(trait, TraitScore.failed(error)) for trait in traits}


def _by_trait(case: TraitCase, type_name: str, traits: Sequence[RubricTrait], given_back: Any) -> dict[str, TraitScore]:
    """One score for every trait; scores of traits that were not asked about are dropped with a warning."""
    if not isinstance(given_back, Mapping):
        what = f"the evaluator of {type_name!r} gave back {type(given_back).__name__} instead of scores by name"
        return {trait.name: TraitScore(state="error", reason=what) for trait in traits}
    found = dict(given_back)
    scores = {trait.name: _of(trait, found) for trait in traits}
    if strange := [name for name in found if name not in scores]:
        names = ", ".join(repr(name) if type(name) is str else type(name).__name__ for name in strange)
        case.context.warn(f"the evaluator of {type_name!r} scored traits that it was not given: {names:.200}")
    return scores


def _of(trait: RubricTrait, found: Mapping[Any, Any]) -> TraitScore:
    if trait.name not in found:
        return TraitScore(state="missing", reason=f"the evaluator of {trait.type_name!r} gave no score for it")
    return sound(trait, found[trait.name])
