"""Which dynamic traits a judge is asked about before they are evaluated."""

from __future__ import annotations

from attrs import evolve
from karenina_judging.dynamic_traits import Presence, undecided
from karenina_judging.dynamic_traits import presence_of as found_in
from karenina_vocabulary.evaluators import TraitCase

from karenina_core import VerificationContext
from karenina_core.values.rubric import RubricTrait

from .plain_data import plain_text

__all__ = ["asks_model", "presence_of"]


async def presence_of(case: TraitCase) -> Presence:
    """Ask about the dynamic traits that a model would have to score, those of agents too, in one call.

    Traits that code alone decides are not asked about: they are always evaluated.
    """
    traits = _to_ask_about(case.context)
    presence = await found_in(case, traits)
    if not presence.open:
        return presence
    presence = evolve(presence, failure=plain_text(presence.failure))
    if agents := [trait.name for trait in traits if trait.type_name == "agentic"]:
        case.context.warn(f"{', '.join(agents)}: {undecided(presence.failure)}")
    return presence


def _to_ask_about(context: VerificationContext) -> list[RubricTrait]:
    rubric = context.rubric
    dynamic = rubric.dynamic if rubric is not None else frozenset()
    return [trait for trait in rubric or () if trait.name in dynamic and asks_model(context, trait.type_name)]


def asks_model(context: VerificationContext, type_name: str) -> bool:
    """Whether a model is asked about traits of this type."""
    if type_name == "agentic":
        return True
    try:
        return bool(context.app.trait_evaluator(type_name).asks_judge)
    except Exception:  # an evaluator that cannot be made: its traits fail one by one, with that reason
        return False
