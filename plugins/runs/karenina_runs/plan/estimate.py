"""What a run will take, before it begins: see `karenina_calls.records.estimates`. No call is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from karenina_calls.limits.budget import FIRST_OUTPUT
from karenina_calls.records.earlier_calls import EarlierCalls
from karenina_calls.records.estimates import CallsEstimate
from karenina_vocabulary.planned_calls import PlannedCall

from karenina_core.errors import BenchmarkError, one_line
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.values.config import ModelConfig, VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

from ..results.stored import stored_results
from .canaries import canary_at, canary_config, canary_items
from .items import Prepared, replayed, trait_types

ASSUMED = "where no call fails: repairs of replies, attempts that fail and answers that come back empty are not counted"


def earlier_calls(directory: Path) -> EarlierCalls:
    """What the calls of a run took. Raises BenchmarkError where there are no results."""
    earlier = EarlierCalls()
    for result in stored_results(directory):
        earlier.add(result.generation.usage_metadata, result.metadata.question_id)
    if not earlier.items:
        raise BenchmarkError(f"{directory} has no results to go by; name a run directory, or a file of its results")
    return earlier


def estimated(prepared: Prepared, earlier: EarlierCalls | None = None) -> dict[str, Any]:
    """The document of `karenina verify --estimate`: that of `CallsEstimate`, with the number of `items` and `answers`,
    answers that are not asked for because they are given (`given_answers`), and `unknown_stages`, which do not say how
    often they ask."""
    return _Estimating(prepared, CallsEstimate(prepared.app, earlier)).document()


@define(eq=False)
class _Estimating:
    prepared: Prepared
    found: CallsEstimate
    unknown: dict[str, None] = field(factory=dict)
    """Stages."""
    given: int = 0
    """Answers that are not asked for."""

    def document(self) -> dict[str, Any]:
        config = self.prepared.config
        replicates = config.replicate_count
        for answering, judge in product(config.answering_models, config.parsing_models):
            pair = evolve(config, answering_models=(answering,), parsing_models=(judge,))
            first = judge is config.parsing_models[0]
            for number, question in enumerate(self.prepared.questions):
                rubric = self.prepared.rubrics[question.id]
                plan = self.prepared.plans[trait_types(rubric)]
                calls = self._calls(plan, question, rubric, pair)
                if self.prepared.answers is None:
                    self._count(calls, question, pair, asks=replicates * first, judges=replicates)
                    continue
                place = config.answering_models.index(answering)
                for replicate in range(1, replicates + 1):
                    known = replayed(self.prepared, self.prepared.generation(place, number, replicate))
                    self.given += first and known is not None
                    captured = known is not None and str(judge.identity) in known.fields
                    self._count(calls, question, pair, asks=int(first and known is None), captured=captured)
        if config.canaries:
            self._count_canaries()
        self._notes()
        return {
            "items": len(self.prepared),
            "answers": len(self.prepared.questions) * len(config.answering_models) * replicates,
            "given_answers": self.given,
            "assumed": ASSUMED,
            "unknown_stages": list(self.unknown),
            **self.found.document(),
        }

    def _calls(
        self, plan: StageOrchestrator, question: Question, rubric: Rubric | None, config: VerificationConfig
    ) -> list[PlannedCall]:
        """Those of all stages, in their order; at least none where an earlier one may have decided."""
        found: list[PlannedCall] = []
        decided = False
        for stage in plan.stages:
            calls = self._of_stage(stage, question, rubric, config)
            found += [evolve(c, least=0) if decided and c.unless_decided else c for c in calls]
            decided = decided or any(call.decides for call in calls)
        return found

    def _of_stage(
        self, stage: Any, question: Question, rubric: Rubric | None, config: VerificationConfig
    ) -> Sequence[PlannedCall]:
        calls: Any = getattr(stage, "calls", None)
        if calls == ():
            return ()
        if calls is None:
            self.unknown[stage.name] = None
            return ()
        try:
            return tuple(calls(question, rubric, config, self.prepared.app) if callable(calls) else calls)
        except Exception as error:  # code of a plugin
            self.unknown[stage.name] = None
            self.found.notes[f"{stage.name} could not say how often it asks: {one_line(error)}"] = None
            return ()

    def _count(
        self,
        calls: Iterable[PlannedCall],
        question: Question,
        config: VerificationConfig,
        *,
        asks: int,
        judges: int = 1,
        captured: bool = False,
        canaries: bool = False,
    ) -> None:
        """`asks`: how often the answering model is asked; `captured`: the judge's fields are given."""
        (answering,), (judge,) = config.answering_models, config.parsing_models
        asked: list[tuple[PlannedCall, ModelConfig | str, int]] = []
        for call in calls:
            times = asks if call.role == "answering" else judges * (not (captured and call.unless_captured))
            if times:
                asked.append((call, call.model or (answering if call.role == "answering" else judge), times))
        longest = answering.max_tokens or FIRST_OUTPUT
        self.found.add(asked, question=question.id, answer_tokens=longest, canaries=canaries)

    def _count_canaries(self) -> None:
        for item in canary_items(self.prepared):
            config = canary_config(self.prepared.config, canary_at(item.position).path)
            own = evolve(config, answering_models=(item.answering,), parsing_models=(item.parsing,))
            calls = self._calls(item.orchestrator, item.question, item.rubric, own)
            self._count(calls, item.question, own, asks=0, canaries=True)

    def _notes(self) -> None:
        for name in self.unknown:
            owner = next(plan.owner(name) for plan in self.prepared.plans.values() if name in _names(plan))
            what = f"{name} (plugin {owner}) does not say how often it asks a model; its calls are not counted"
            self.found.notes[what] = None


def _names(plan: StageOrchestrator) -> list[str]:
    return [stage.name for stage in plan.stages]
