"""What is wrong with a configuration as far as its plans alone show it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from attrs import evolve

from ..errors import ConfigError, Problem
from ..model.config import EvaluationMode, VerificationConfig
from ..pipeline.orchestrator import StageOrchestrator
from ..plugin.application import Karenina
from .agentic_settings import check_agentic_parsing

__all__ = ["settings_problems"]


def settings_problems(
    orchestrators: Iterable[StageOrchestrator], config: VerificationConfig, app: Karenina, mode: EvaluationMode
) -> list[Problem]:
    """What a run would be refused for whatever its models, keys and files are.

    Stages are asked with a configuration without models, embedding check and search: those may need keys or files that
    whoever looks at a plan does not have. What a stage cannot check without them is left to the run.
    """
    bare = evolve(
        config,
        answering_models=(),
        parsing_models=(),
        features=config.features - {"embedding_check"},
        deep_judgment_search_enabled=False,
    )
    problems: list[Problem] = []
    try:
        check_agentic_parsing(config, mode)
    except ConfigError as error:
        problems += error.problems
    for stage in {stage.name: stage for orchestrator in orchestrators for stage in orchestrator.stages}.values():
        if check_config := getattr(stage, "check_config", None):
            with suppress(Exception):  # anybody's code
                problems += check_config(bare, app)
    return list(dict.fromkeys(problems))
