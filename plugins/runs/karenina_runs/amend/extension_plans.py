"""Stages that score traits of an answer which is there already, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from karenina_core.errors import ConfigError
from karenina_core.pipeline.declaration import Category
from karenina_core.pipeline.orchestrator import StageOrchestrator
from karenina_core.pipeline.stage import PlanRequest, Stage
from karenina_core.plugin.application import Karenina
from karenina_core.values.rubric import Rubric

__all__ = ["Scoring", "scoring_of"]

KEPT = (Category.GUARD, Category.RUBRIC, Category.FINALIZATION)


@frozen(kw_only=True)
class Scoring:
    """The traits that rows of before are to get."""

    rubrics: Mapping[str, Rubric] = field(factory=dict, repr=False)
    """By question; those of the other questions get none."""
    plans: Mapping[frozenset[str], StageOrchestrator] = field(factory=dict, repr=False)
    """By types of traits."""
    stages: frozenset[str] = frozenset()
    """Names of the stages of rubrics in them."""

    @property
    def traits(self) -> list[str]:
        """Names of all of them, each once."""
        return list(dict.fromkeys(name for rubric in self.rubrics.values() for name in rubric.names()))

    def plan(self, rubric: Rubric) -> StageOrchestrator:
        return self.plans[PlanRequest(rubric=rubric).traits]


def scoring_of(app: Karenina, rubrics: Mapping[str, Rubric]) -> Scoring:
    """Raises PlanError where stages that score such traits need what only the stages of templates make."""
    kinds = {PlanRequest(rubric=rubric).traits: rubric for rubric in rubrics.values()}
    plans = {kind: _plan(app, rubric) for kind, rubric in kinds.items()}
    stages = frozenset(s.name for plan in plans.values() for s in plan.stages if s.category is Category.RUBRIC)
    return Scoring(rubrics=rubrics, plans=plans, stages=stages)


def _plan(app: Karenina, rubric: Rubric) -> StageOrchestrator:
    request = PlanRequest(mode="rubric_only", rubric=rubric)
    if not request.evaluates_rubric:
        raise ConfigError("there is no trait to score")
    whole = StageOrchestrator.for_request(request, app=app)
    chosen = _needed(whole.stages)
    aliases = {str(entry.replaces): name for name, entry in app.stages.items() if entry.replaces}
    owners = {stage.name: whole.owner(stage.name) for stage in chosen}
    plan = StageOrchestrator(chosen, request=request, owners=owners, aliases=aliases, app=app)
    plan.ready()
    return plan


def _needed(stages: Iterable[Stage]) -> list[Stage]:
    """Guards, the stages of rubrics and the last one, with those that make what one of them requires."""
    stages = list(stages)
    chosen = {stage.name for stage in stages if stage.category in KEPT or stage.final}
    while True:
        wanted = {str(key) for stage in stages if stage.name in chosen for key in stage.requires}
        more = {stage.name for stage in stages if stage.name not in chosen and wanted & set(map(str, stage.produces))}
        if not more:
            return [stage for stage in stages if stage.name in chosen]
        chosen |= more
