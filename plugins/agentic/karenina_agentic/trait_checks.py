"""What is known about agentic traits before a run: those that no model investigates, and what has no effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from karenina_calls.models.model_ports import why_no_investigator
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core import Karenina, ModelConfig, Rubric, VerificationConfig
from karenina_core.errors import Problem

__all__ = ["notes", "unable_investigators"]


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
