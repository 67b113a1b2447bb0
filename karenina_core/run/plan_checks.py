"""What the installed stages say about a configuration before a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attrs import evolve, fields_dict

from ..errors import ConfigError, Problem, one_line
from ..model.config import EvaluationMode, VerificationConfig, sections
from ..model.fields import changed
from ..model.rubric import Rubric
from ..pipeline.orchestrator import StageOrchestrator
from ..plugin.application import Karenina

__all__ = ["check_stages", "settings_problems"]

UNABLE = "could not check the configuration"


def check_stages(
    plans: Sequence[StageOrchestrator],
    config: VerificationConfig,
    app: Karenina,
    mode: EvaluationMode,
    rubrics: Iterable[Rubric | None] = (),
) -> list[str]:
    """Ask the stages of these plans whether they can work with the configuration and the rubrics of a run, and all
    other installed ones whether something is configured for nothing. Returns notes.

    Raises ConfigError with all problems that are fatal.
    """
    known = list({id(rubric): rubric for rubric in rubrics if rubric is not None}.values())
    found = dict.fromkeys(_problems(plans, evolve(config, evaluation_mode=mode), app, known))
    if fatal := [problem for problem in found if problem.fatal]:
        raise ConfigError(fatal)
    return list(map(str, found))


def settings_problems(
    plans: Sequence[StageOrchestrator], config: VerificationConfig, app: Karenina, mode: EvaluationMode
) -> list[Problem]:
    """What a run would be refused for whatever its models, keys and files are.

    Stages are asked with a configuration without models. What they cannot check without them is left to the run.
    """
    bare = evolve(config, answering_models=(), parsing_models=(), evaluation_mode=mode)
    found = dict.fromkeys(_problems(plans, bare, app, ()))
    return [problem for problem in found if problem.fatal and UNABLE not in problem.message]


def _problems(
    plans: Sequence[StageOrchestrator], config: VerificationConfig, app: Karenina, rubrics: Sequence[Rubric]
) -> Iterator[Problem]:
    used = {stage.name: stage for plan in plans for stage in plan.stages}
    others = {why.name: (stage, why.reason) for plan in plans for stage, why in plan.left_out.items()}
    left_out = [found for name, found in others.items() if name not in used]
    for stage in used.values():
        yield from _asked(stage, "check_config", config, app)
        if rubrics:
            yield from _asked(stage, "check_rubrics", rubrics, config, app)
    for stage, _ in left_out:
        yield from _asked(stage, "check_left_out", config, app)
    read = {name for stage in used.values() for name in getattr(type(stage), "settings", ())}
    idle = {name: why for stage, why in left_out for name in getattr(type(stage), "settings", ()) if name not in read}
    idle |= {name: why for name, why in _of_inactive(app).items() if name not in read}
    for name in changed(config, idle):
        yield Problem("", f"{name} has no effect: {idle[name]}", fatal=False)


def _of_inactive(app: Karenina) -> dict[str, str]:
    """The settings that distributions declare of which no plugin is active, and why they have no effect."""
    active = {info.distribution for info in app.plugins if info.state == "active"}
    owners = {info.distribution for info in app.plugins} - active
    return {
        name: f"no plugin of {section.info.distribution} is active"
        for section in sections()
        if section.cls is not None and section.info.distribution in owners
        for name in fields_dict(section.cls)
    }


def _asked(stage: Any, method: str, *arguments: Any) -> Sequence[Problem]:
    check = getattr(stage, method, None)
    try:
        return () if check is None else tuple(check(*arguments))
    except Exception as error:  # anybody's code
        return (Problem("", f"{stage.name} {UNABLE}: {one_line(error)}"),)
