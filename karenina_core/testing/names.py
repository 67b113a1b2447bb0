"""The public names of the conformance kit."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
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
