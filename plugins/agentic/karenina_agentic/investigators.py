"""Which model investigates a trait, and whether it can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen
from karenina_calls.models.model_ports import why_no_investigator
from karenina_judging.services import OTHER_MODEL
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import Karenina, ModelConfig, Rubric, VerificationConfig, VerificationContext
from karenina_core.errors import KareninaError, Problem, one_line
from karenina_core.pipeline.engine import stops_item

from .evaluator import AgenticTraitEvaluator

__all__ = ["Investigator", "investigators", "misnamed", "notes", "unable_investigators"]

CANNOT = "the parsing model cannot work with tools"


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
