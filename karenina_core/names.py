"""Which module each public name is in: names are imported at their first use, from whatever distribution has them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["NAMES", "exports"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "AdapterRegistry": "karenina_core.plugin.adapters",
        "AdapterSpec": "karenina_core.plugin.adapters",
        "AgenticRubricTrait": "karenina_core.model.traits",
        "ArtifactKeys": "karenina_core.pipeline.artifact_keys",
        "AttemptPolicy": "karenina_core.model.config",
        "BaseVerificationStage": "karenina_core.pipeline.stage",
        "Benchmark": "karenina_core.run.benchmark",
        "CallableRubricTrait": "karenina_core.model.traits",
        "Category": "karenina_core.pipeline.stage",
        "DynamicRubric": "karenina_core.model.rubric",
        "FewShotConfig": "karenina_core.model.prompt_config",
        "Karenina": "karenina_core.plugin.application",
        "Key": "karenina_core.pipeline.keys",
        "LLMRubricTrait": "karenina_core.model.traits",
        "MetricRubricTrait": "karenina_core.model.traits",
        "ModelConfig": "karenina_core.model.config",
        "ModelIdentity": "karenina_core.model.identity",
        "Outcome": "karenina_core.model.outcome",
        "PromptConfig": "karenina_core.model.prompt_config",
        "Question": "karenina_core.model.question",
        "RegexRubricTrait": "karenina_core.model.traits",
        "RepairSelection": "karenina_core.run.repair_selection",
        "ReplayEntry": "karenina_core.run.answers",
        "ReplayKey": "karenina_core.run.answers",
        "ReplayStore": "karenina_core.run.answers",
        "RetryPolicy": "karenina_core.model.config",
        "Rubric": "karenina_core.model.rubric",
        "RubricTrait": "karenina_core.model.rubric",
        "RunControl": "karenina_core.run.control",
        "Skip": "karenina_core.pipeline.stage",
        "Stage": "karenina_core.pipeline.stage",
        "StageOrchestrator": "karenina_core.pipeline.orchestrator",
        "TaskIdentity": "karenina_core.model.identity",
        "TraitCase": "karenina_core.pipeline.traits",
        "TraitEvaluator": "karenina_core.pipeline.traits",
        "TraitScore": "karenina_core.pipeline.traits",
        "VerificationConfig": "karenina_core.model.config",
        "VerificationContext": "karenina_core.pipeline.context",
        "VerificationResult": "karenina_core.model.result",
        "VerificationResultSet": "karenina_core.run.results",
        "VerificationStage": "karenina_core.pipeline.stage",
        "aextend_run": "karenina_core.run.extension",
        "arepair_run": "karenina_core.run.repair",
        "aresume_run": "karenina_core.run.resume",
        "arun_single_model_verification": "karenina_core.run.single",
        "extend_run": "karenina_core.run.extension",
        "feature": "karenina_core.pipeline.stage",
        "hookimpl": "karenina_core.plugin.markers",
        "hookspec": "karenina_core.plugin.markers",
        "neutral": "karenina_core.plugin.markers",
        "open_client": "karenina_core.run.models",
        "repair_run": "karenina_core.run.repair",
        "resume_run": "karenina_core.run.resume",
        "run_single_model_verification": "karenina_core.run.single",
        "undo_repair": "karenina_core.run.undoing",
    },
    "karenina_core.ports": {
        "AgentConfig": "karenina_core.ports.values",
        "AgentPort": "karenina_core.ports.protocols",
        "AgentResult": "karenina_core.ports.values",
        "CallContext": "karenina_core.ports.values",
        "LLMPort": "karenina_core.ports.protocols",
        "LLMResponse": "karenina_core.ports.values",
        "Message": "karenina_core.model.message",
        "OutputFormat": "karenina_core.ports.values",
        "ParsePortResult": "karenina_core.ports.values",
        "ParserPort": "karenina_core.ports.protocols",
        "ParsesModels": "karenina_core.ports.models_of_data",
        "PortCapabilities": "karenina_core.ports.values",
        "StreamingLLMPort": "karenina_core.ports.protocols",
        "StreamingLLMResponse": "karenina_core.ports.values",
        "TextBlock": "karenina_core.model.message",
        "ThinkingBlock": "karenina_core.model.message",
        "Tool": "karenina_core.ports.values",
        "ToolOutcome": "karenina_core.ports.values",
        "ToolResultBlock": "karenina_core.model.message",
        "ToolServer": "karenina_core.ports.tool_servers",
        "ToolUseBlock": "karenina_core.model.message",
        "UsageMetadata": "karenina_core.model.message",
        "tool_digest": "karenina_core.ports.tool_servers",
    },
    "karenina_core.prompts": {
        "AdapterInstruction": "karenina_core.prompts.instructions",
        "AdapterInstructionRegistry": "karenina_core.prompts.instructions",
        "PromptAssembler": "karenina_core.prompts.assembler",
        "PromptTask": "karenina_core.prompts.tasks",
        "untrusted": "karenina_core.prompts.untrusted_text",
    },
    "karenina_core.templates": {
        "AllOf": "karenina_core.templates.strategies",
        "AnyOf": "karenina_core.templates.strategies",
        "AtLeastN": "karenina_core.templates.strategies",
        "BaseAnswer": "karenina_core.templates.answer",
        "BooleanMatch": "karenina_core.templates.primitives.boolean",
        "ContainsAll": "karenina_core.templates.primitives.text",
        "ContainsAny": "karenina_core.templates.primitives.text",
        "DateMatch": "karenina_core.templates.primitives.dates",
        "DateRange": "karenina_core.templates.primitives.dates",
        "DateTolerance": "karenina_core.templates.primitives.dates",
        "ExactMatch": "karenina_core.templates.primitives.text",
        "FieldCheck": "karenina_core.templates.strategies",
        "FieldVerdict": "karenina_core.templates.handle",
        "FilledTemplate": "karenina_core.templates.handle",
        "LiteralMatch": "karenina_core.templates.primitives.text",
        "NumericExact": "karenina_core.templates.primitives.numeric",
        "NumericGraded": "karenina_core.templates.primitives.graded",
        "NumericMaximum": "karenina_core.templates.primitives.numeric",
        "NumericMinimum": "karenina_core.templates.primitives.numeric",
        "NumericRange": "karenina_core.templates.primitives.numeric",
        "NumericRangeGraded": "karenina_core.templates.primitives.graded",
        "NumericThresholdGraded": "karenina_core.templates.primitives.graded",
        "NumericTolerance": "karenina_core.templates.primitives.numeric",
        "OrderedMatch": "karenina_core.templates.primitives.sets",
        "RegexMatch": "karenina_core.templates.primitives.text",
        "RegexVerdict": "karenina_core.templates.handle",
        "SemanticMatch": "karenina_core.templates.primitives.semantic",
        "SetContainment": "karenina_core.templates.primitives.sets",
        "SynonymMap": "karenina_core.templates.normalize",
        "TemplateField": "karenina_core.templates.handle",
        "TemplateHandle": "karenina_core.templates.handle",
        "TemplateRuntime": "karenina_core.templates.handle",
        "TraceContains": "karenina_core.templates.primitives.trace",
        "TraceLength": "karenina_core.templates.primitives.trace",
        "TracePrimitive": "karenina_core.templates.primitives.trace",
        "TraceRegex": "karenina_core.templates.primitives.trace",
        "VerificationPrimitive": "karenina_core.templates.primitives.base",
        "VerifiedField": "karenina_core.templates.answer",
        "lint_benchmark": "karenina_core.templates.lint",
        "lint_schema": "karenina_core.templates.lint",
        "lint_template": "karenina_core.templates.lint",
        "primitive_from_spec": "karenina_core.templates.specs",
        "template_spec": "karenina_core.templates.class_specs",
        "to_spec": "karenina_core.templates.specs",
    },
    "karenina_core.testing": {
        "BrokenPromise": "karenina_core.testing.checks",
        "Check": "karenina_core.testing.checks",
        "FakeFilled": "karenina_core.testing.fakes",
        "FakeHandle": "karenina_core.testing.fakes",
        "Fault": "karenina_core.testing.checks",
        "Reply": "karenina_core.testing.replies",
        "ScriptedBatches": "karenina_core.testing.batches",
        "ScriptedCall": "karenina_core.testing.fakes",
        "ScriptedLLM": "karenina_core.testing.fakes",
        "ScriptedServer": "karenina_core.testing.server",
        "ServedRequest": "karenina_core.testing.replies",
        "StageInput": "karenina_core.testing.stage_inputs",
        "VirtualTimeLoop": "karenina_core.testing.virtual_time",
        "adapter_checks": "karenina_core.testing.adapters",
        "application": "karenina_core.testing.apps",
        "check_adapter": "karenina_core.testing.adapters",
        "check_embedder": "karenina_core.testing.embedders",
        "check_search_tool": "karenina_core.testing.search_tools",
        "check_stage": "karenina_core.testing.stages",
        "check_trait_evaluator": "karenina_core.testing.traits",
        "embedder_checks": "karenina_core.testing.embedders",
        "executor_checks": "karenina_core.testing.executors",
        "plugin_checks": "karenina_core.testing.plugins",
        "run_checks": "karenina_core.testing.checks",
        "run_in_virtual_time": "karenina_core.testing.virtual_time",
        "runtime_checks": "karenina_core.testing.runtimes",
        "search_tool_checks": "karenina_core.testing.search_tools",
        "sink_checks": "karenina_core.testing.sinks",
        "stage_checks": "karenina_core.testing.stages",
        "strategies": "karenina_core.testing.strategies",
        "trait_checks": "karenina_core.testing.traits",
    },
}
"""Package -> public name -> module; `strategies` is a module itself."""


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that has the names which `NAMES` lists for it.

    A name whose distribution is not installed raises ImportError, which says what to install.
    """
    names = NAMES[package]

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = _imported(names[name], name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return __getattr__, __dir__, sorted(names)


def _imported(module: str, name: str) -> Any:
    top = module.partition(".")[0]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != top:
            raise
        distribution = top.replace("_", "-")
        raise ImportError(f"{name} is in {distribution}, which is not installed: pip install {distribution}") from None
    return found if module.endswith(f".{name}") else getattr(found, name)
