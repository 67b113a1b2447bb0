"""karenina: executable evaluations of language models, built from plugins.

Every name here is imported at its first use, so that `from karenina_core import hookimpl` costs pluggy only.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model.config import FewShotConfig, ModelConfig, PromptConfig, VerificationConfig
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
    from .plugin.markers import hookimpl, hookspec
    from .run.benchmark import Benchmark
    from .run.results import VerificationResultSet
    from .run.single import arun_single_model_verification, run_single_model_verification

__version__ = "0.1.0"

_HOMES = {
    "AdapterRegistry": "plugin.adapters",
    "AdapterSpec": "plugin.adapters",
    "AgenticRubricTrait": "model.rubric",
    "ArtifactKeys": "pipeline.keys",
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
    "Rubric": "model.rubric",
    "RubricTrait": "model.rubric",
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
    "arun_single_model_verification": "run.single",
    "feature": "pipeline.stage",
    "hookimpl": "plugin.markers",
    "hookspec": "plugin.markers",
    "run_single_model_verification": "run.single",
}

__all__ = [
    "AdapterRegistry",
    "AdapterSpec",
    "AgenticRubricTrait",
    "ArtifactKeys",
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
    "Rubric",
    "RubricTrait",
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
    "arun_single_model_verification",
    "feature",
    "hookimpl",
    "hookspec",
    "run_single_model_verification",
]


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(importlib.import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
