"""Agentic traits of a dynamic rubric: is what they are about in the answer at all?

Where the stage `RubricEvaluation` runs, it asks about them with the others; where it does not, they are asked about
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen
from karenina_judging.dynamic_traits import ABSENT, presence_of, undecided
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.traces import EvaluationInput, evaluation_input
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import VerificationContext
from karenina_core.errors import ErrorKind

__all__ = ["EMPTY_ANSWER", "Known", "known_of"]

EMPTY_ANSWER = "the answer is empty"


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
        return Known(decided=_as_found(context, dynamic))
    given = _given(context)
    if given.error is not None:
        names = [trait.name for trait in dynamic]
        return Known(decided=_undecided(names, f"there is nothing to look at: {given.error}", "agent"))
    found = await presence_of(TraitCase(context, given, asyncio.Semaphore(1)), dynamic)
    absent = {name: TraitScore(state="skipped", reason=ABSENT) for name in found.absent}
    decided = absent | _undecided(found.open, found.failure, found.kind)
    return Known(decided=decided, promoted=found.promoted, skipped=found.absent)


def _as_found(context: VerificationContext, traits: Sequence[AgenticRubricTrait]) -> dict[str, TraitScore]:
    promoted = context.get_result_field("dynamic_rubric_promoted_traits", ())
    skipped = context.get_result_field("dynamic_rubric_skipped_traits", {})
    absent = {t.name: TraitScore(state="skipped", reason=str(skipped[t.name])) for t in traits if t.name in skipped}
    unknown = [trait.name for trait in traits if trait.name not in promoted and trait.name not in skipped]
    return absent | _undecided(unknown, "see the warnings of the result")


def _undecided(names: Iterable[str], why: str, kind: ErrorKind = "judge") -> dict[str, TraitScore]:
    return {name: TraitScore(state="error", reason=undecided(f"{why:.1000}"), kind=kind) for name in names}


def _given(context: VerificationContext) -> EvaluationInput:
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    return evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_rubric)
