"""Settings of agents that judge: combinations that cannot work are refused before a model is called, others told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import fields_dict

from ..errors import ConfigError, Problem
from ..model.config import EvaluationMode, ModelConfig, VerificationConfig
from ..model.question import Question
from ..model.rubric import AgenticRubricTrait, Rubric
from ..plugin.application import Karenina
from ..plugin.model_ports import can_use_tools, why_no_investigator
from .workspace_sources import investigated_modes

__all__ = [
    "UNTOUCHED",
    "check_agentic_parsing",
    "check_blind_judging",
    "check_investigators",
    "judged_by_folder",
    "notes_on_agents",
]

UNTOUCHED = (
    "agents judge the workspace, and {} cannot work in it: what they find there is the question's folder as it was, "
    "and no part of the answer"
)
"""What is told before a run and in the warnings of its items, of a model."""

OF_PARSING = (
    *("agentic_parsing_trigger", "agentic_judge_context", "agentic_parsing_max_turns", "agentic_parsing_timeout"),
    *("agentic_parsing_materialize_trace", "agentic_parsing_persist_trace"),
)
OF_TRAITS = ("agentic_rubric_strategy", "agentic_rubric_parallel", "agentic_rubric_by_context")


def check_agentic_parsing(config: VerificationConfig, mode: EvaluationMode) -> None:
    """Raises ConfigError with all that contradicts itself."""
    problems = []
    if config.agentic_parsing and mode == "rubric_only":
        what = "in the mode rubric_only no template is filled in; switch agentic_parsing off, or change evaluation_mode"
        problems.append(Problem("agentic_parsing", what))
    if config.agentic_parsing_trigger != "always" and not config.agentic_parsing:
        what = "dynamic decides whether an agent is needed, and agentic_parsing is off; switch it on, or set always"
        problems.append(Problem("agentic_parsing_trigger", what))
    if problems:
        raise ConfigError(problems)


def check_investigators(
    app: Karenina, config: VerificationConfig, mode: EvaluationMode, rubrics: Iterable[Rubric | None]
) -> list[str]:
    """Notes on the agentic traits that are skipped because their model cannot act as an agent.

    Raises ConfigError where nothing would be left to score for what some judge judges.
    """
    traits = list({id(trait): trait for rubric in rubrics for trait in rubric or ()}.values())
    notes, problems = [], []
    for number, judge in enumerate(config.parsing_models if mode != "template_only" else ()):
        unable: dict[str, list[str]] = {}
        for trait in traits:
            model = (trait.model_override or judge) if isinstance(trait, AgenticRubricTrait) else None
            if isinstance(model, ModelConfig) and (reason := why_no_investigator(app, model)):
                unable.setdefault(reason, []).append(repr(trait.name))
        lines = [f"agentic traits that are skipped: {', '.join(names)}: {reason}" for reason, names in unable.items()]
        if mode == "rubric_only" and sum(map(len, unable.values())) == len(traits) > 0:
            remedy = "nothing else is scored; use a model that can call tools, give the traits a model_override, or"
            remedy = f"{remedy} leave them out (rubric_trait_names)"
            problems += [Problem(f"parsing_models[{number}]", f"{line}; {remedy}") for line in lines]
        notes += lines
    if problems:
        raise ConfigError(problems)
    return list(dict.fromkeys(notes))


def check_blind_judging(
    app: Karenina, config: VerificationConfig, questions: Sequence[Question], rubrics: Mapping[str, Rubric | None]
) -> list[str]:
    """Refuse to judge by an empty folder: the question has none, and the answering model can write nothing.

    Returns notes on questions that are judged by their folders as they were before. Raises ConfigError.
    """
    blind = [
        question.id
        for question in questions
        if not question.workspace_path and "workspace_only" in investigated_modes(config, rubrics.get(question.id))
    ]
    unable = [model for model in config.answering_models if blind and not can_use_tools(app, model)]
    if unable:
        more = f" (and {len(blind) - 1} more)" if len(blind) > 1 else ""
        what = (
            f"question {blind[0]}{more} would be judged by an empty folder: it has no workspace_path, and the model "
            f"{unable[0].identity} cannot write files; give the question its folder, or show the trace"
        )
        raise ConfigError([Problem("workspace_path", what)])
    looked_at = [question.id for question in questions if judged_by_folder(question, config, rubrics.get(question.id))]
    unable = [model for model in config.answering_models if looked_at and not can_use_tools(app, model)]
    if not unable:
        return []
    more = f" (and {len(looked_at) - 1} more)" if len(looked_at) > 1 else ""
    models = ", ".join(str(model.identity) for model in unable)
    return [f"question {looked_at[0]}{more}: {UNTOUCHED.format(models)}"]


def judged_by_folder(question: Question, config: VerificationConfig, rubric: Rubric | None) -> bool:
    """Whether agents look into a question's own folder."""
    return bool(question.workspace_path) and investigated_modes(config, rubric) != set()


def notes_on_agents(config: VerificationConfig, mode: EvaluationMode, rubrics: Iterable[Rubric | None]) -> list[str]:
    """Settings without an effect, and those that pay for an agent where the judge itself would do."""
    usual = fields_dict(VerificationConfig)
    changed = [name for name in (*OF_PARSING, *OF_TRAITS) if getattr(config, name) != usual[name].default]
    if not config.agentic_parsing:
        notes = [f"{name} has no effect: agentic_parsing is off" for name in changed if name in OF_PARSING]
    else:
        notes = _notes_on_parsing(config)
    if mode == "template_only":
        return notes  # told with the other settings of rubrics
    agentic = [[trait for trait in rubric or () if isinstance(trait, AgenticRubricTrait)] for rubric in rubrics]
    if not any(agentic):
        of_traits = [name for name in changed if name in OF_TRAITS]
        return notes + [f"{name} has no effect: no rubric of this run has agentic traits" for name in of_traits]
    if config.agentic_rubric_by_context and config.agentic_rubric_strategy == "individual":
        notes.append("agentic_rubric_by_context has no effect with agentic_rubric_strategy individual")
    return notes + _notes_on_kept_traces(agentic)


def _notes_on_kept_traces(rubrics: Iterable[Sequence[AgenticRubricTrait]]) -> list[str]:
    """Traits that ask for a trace to be kept that nobody has as a file, in whichever rubric they are."""
    kept: dict[str, bool] = {}
    for traits in rubrics:
        filed = any(trait.materialize_trace for trait in traits)
        kept |= {trait.name: filed or kept.get(trait.name, False) for trait in traits if trait.persist_trace}
    why = "no agentic trait of its rubric has materialize_trace"
    return [f"persist_trace of the trait {name!r} has no effect: {why}" for name, filed in kept.items() if not filed]


def _notes_on_parsing(config: VerificationConfig) -> list[str]:
    notes = []
    if config.agentic_judge_context == "trace_only":
        what = "with trace_only the agent of agentic_parsing reads what the judge reads without it, for more calls"
        notes.append(f"agentic_judge_context: {what}")
    if config.agentic_parsing_persist_trace and not config.agentic_parsing_materialize_trace:
        notes.append("agentic_parsing_persist_trace has no effect: agentic_parsing_materialize_trace is off")
    return notes
