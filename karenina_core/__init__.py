"""karenina: executable evaluations of language models, built from plugins.

Every name here is imported at its first use, so that `from karenina_core import hookimpl` costs pluggy only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model.config import (
        AttemptPolicy,
        FewShotConfig,
        ModelConfig,
        PromptConfig,
        RetryPolicy,
        VerificationConfig,
    )
    from .model.identity import ModelIdentity, TaskIdentity
    from .model.outcome import Outcome
    from .model.question import Question
    from .model.result import VerificationResult
    from .model.rubric import (
        AgenticRubricTrait,
        CallableRubricTrait,
        DynamicRubric,
        LLMRubricTrait,
        MetricRubricTrait,
        RegexRubricTrait,
        Rubric,
        RubricTrait,
    )
    from .pipeline.context import VerificationContext
    from .pipeline.keys import ArtifactKeys, Key
    from .pipeline.orchestrator import StageOrchestrator
    from .pipeline.stage import BaseVerificationStage, Category, Skip, Stage, VerificationStage, feature
    from .pipeline.traits import TraitCase, TraitEvaluator, TraitScore
    from .plugin.adapters import AdapterRegistry, AdapterSpec
    from .plugin.application import Karenina
    from .plugin.markers import hookimpl, hookspec, neutral
    from .run.answers import ReplayEntry, ReplayKey, ReplayStore
    from .run.benchmark import Benchmark
    from .run.control import RunControl
    from .run.extension import aextend_run, extend_run
    from .run.models import open_client
    from .run.repair import arepair_run, repair_run
    from .run.repair_selection import RepairSelection
    from .run.results import VerificationResultSet
    from .run.resume import aresume_run, resume_run
    from .run.single import arun_single_model_verification, run_single_model_verification
    from .run.undoing import undo_repair

__version__ = "0.1.0"

_HOMES = {
    "AdapterRegistry": "plugin.adapters",
    "AdapterSpec": "plugin.adapters",
    "AgenticRubricTrait": "model.rubric",
    "ArtifactKeys": "pipeline.keys",
    "AttemptPolicy": "model.config",
    "BaseVerificationStage": "pipeline.stage",
    "Benchmark": "run.benchmark",
    "CallableRubricTrait": "model.rubric",
    "Category": "pipeline.stage",
    "DynamicRubric": "model.rubric",
    "FewShotConfig": "model.config",
    "Karenina": "plugin.application",
    "Key": "pipeline.keys",
    "LLMRubricTrait": "model.rubric",
    "MetricRubricTrait": "model.rubric",
    "ModelConfig": "model.config",
    "ModelIdentity": "model.identity",
    "Outcome": "model.outcome",
    "PromptConfig": "model.config",
    "Question": "model.question",
    "RegexRubricTrait": "model.rubric",
    "RepairSelection": "run.repair_selection",
    "ReplayEntry": "run.answers",
    "ReplayKey": "run.answers",
    "ReplayStore": "run.answers",
    "RetryPolicy": "model.config",
    "Rubric": "model.rubric",
    "RubricTrait": "model.rubric",
    "RunControl": "run.control",
    "Skip": "pipeline.stage",
    "Stage": "pipeline.stage",
    "StageOrchestrator": "pipeline.orchestrator",
    "TaskIdentity": "model.identity",
    "TraitCase": "pipeline.traits",
    "TraitEvaluator": "pipeline.traits",
    "TraitScore": "pipeline.traits",
    "VerificationConfig": "model.config",
    "VerificationContext": "pipeline.context",
    "VerificationResult": "model.result",
    "VerificationResultSet": "run.results",
    "VerificationStage": "pipeline.stage",
    "arepair_run": "run.repair",
    "aextend_run": "run.extension",
    "aresume_run": "run.resume",
    "arun_single_model_verification": "run.single",
    "extend_run": "run.extension",
    "feature": "pipeline.stage",
    "hookimpl": "plugin.markers",
    "hookspec": "plugin.markers",
    "neutral": "plugin.markers",
    "open_client": "run.models",
    "repair_run": "run.repair",
    "resume_run": "run.resume",
    "run_single_model_verification": "run.single",
    "undo_repair": "run.undoing",
}

__all__ = [
    "AdapterRegistry",
    "AdapterSpec",
    "AgenticRubricTrait",
    "ArtifactKeys",
    "AttemptPolicy",
    "BaseVerificationStage",
    "Benchmark",
    "CallableRubricTrait",
    "Category",
    "DynamicRubric",
    "FewShotConfig",
    "Karenina",
    "Key",
    "LLMRubricTrait",
    "MetricRubricTrait",
    "ModelConfig",
    "ModelIdentity",
    "Outcome",
    "PromptConfig",
    "Question",
    "RegexRubricTrait",
    "RepairSelection",
    "ReplayEntry",
    "ReplayKey",
    "ReplayStore",
    "RetryPolicy",
    "Rubric",
    "RubricTrait",
    "RunControl",
    "Skip",
    "Stage",
    "StageOrchestrator",
    "TaskIdentity",
    "TraitCase",
    "TraitEvaluator",
    "TraitScore",
    "VerificationConfig",
    "VerificationContext",
    "VerificationResult",
    "VerificationResultSet",
    "VerificationStage",
    "__version__",
    "aextend_run",
    "arepair_run",
    "aresume_run",
    "arun_single_model_verification",
    "extend_run",
    "feature",
    "hookimpl",
    "hookspec",
    "neutral",
    "open_client",
    "repair_run",
    "resume_run",
    "run_single_model_verification",
    "undo_repair",
]


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(importlib.import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
