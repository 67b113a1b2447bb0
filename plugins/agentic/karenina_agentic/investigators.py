"""Which model investigates a trait, and whether it can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from karenina_core import Karenina, ModelConfig, VerificationConfig, VerificationContext
from karenina_core.errors import KareninaError, Problem, one_line
from karenina_core.model.traits import AgenticRubricTrait
from karenina_core.pipeline.engine import stops_item
from karenina_core.prompts import PromptTask

from .evaluator import AgenticTraitEvaluator

__all__ = ["Investigator", "investigators", "unsupported", "why_not"]


@frozen
class Investigator:
    """Who evaluates a trait; where nobody can, why."""

    evaluator: AgenticTraitEvaluator | None
    why_not: str = ""

    @property
    def identity(self) -> tuple[str, str | None, str] | None:
        """What has to be equal for traits to share an agent: interface, provider and name of the model."""
        if self.evaluator is None:
            return None
        config = self.evaluator.model.config
        return config.interface, config.model_provider, config.name


def why_not(app: Karenina, model: ModelConfig, task: str = PromptTask.RUBRIC_AGENTIC_TRAIT_INVESTIGATION) -> str:
    """Why a model, behind its middleware, cannot investigate; empty where it can. Nothing is opened or asked."""
    try:
        tasks = app.adapters.resolve_interface(model.interface).spec.judge_tasks
        if tasks is not None and task not in tasks:
            return f"the interface {model.interface!r} cannot investigate"
        if app.can_use_tools(model):
            return ""
    except KareninaError as error:
        return str(error)
    if model.batch:
        return (
            "a model that is asked in batches cannot work with tools, so that it cannot investigate; set batch = false"
        )
    return f"the interface {model.interface!r} cannot work with tools, so that it cannot investigate"


def unsupported(traits: Iterable[AgenticRubricTrait], config: VerificationConfig, app: Karenina) -> Iterator[Problem]:
    """A problem for every model that is to investigate and cannot."""
    remedy = "use a model that can call tools, or leave the trait out (rubric_trait_names)"
    by_judge: list[AgenticRubricTrait] = []
    for trait in traits:
        if trait.model_override is None:
            by_judge.append(trait)
        elif not isinstance(trait.model_override, ModelConfig):
            what = f"must be a ModelConfig, not {type(trait.model_override).__name__}"
            yield Problem("rubric", f"trait {trait.name!r}: model_override {what}")
        elif reason := why_not(app, trait.model_override):
            yield Problem("rubric", f"trait {trait.name!r}: model_override: {reason}; {remedy}")
    for number, model in enumerate(config.parsing_models if by_judge else ()):
        if reason := why_not(app, model):
            names = ", ".join(repr(trait.name) for trait in by_judge)
            told = f"{reason}, as the agentic traits {names} need it; {remedy}, or give them a model_override"
            yield Problem(f"parsing_models[{number}]", told)


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
            return Investigator(None, why_not(context.app, client.config) or "the parsing model cannot work with tools")
        return Investigator(AgenticTraitEvaluator(client))
    try:
        if reason := why_not(context.app, override):
            return Investigator(None, reason)
        return Investigator(AgenticTraitEvaluator(await context.client_of(override)))
    except BaseException as error:  # adapters and their middleware are anybody's code
        if stops_item(error):
            raise
        said = str(error) if isinstance(error, KareninaError) else one_line(error)
        return Investigator(None, f"its model cannot be opened: {said}")
