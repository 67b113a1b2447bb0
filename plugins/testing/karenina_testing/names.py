"""The public names of the conformance kit."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core.testing": {
        "AnthropicMessages": "karenina_testing.adapters.anthropic_wire",
        "BrokenPromise": "karenina_testing.checks",
        "ChatCompletions": "karenina_testing.adapters.wires",
        "Check": "karenina_testing.checks",
        "FakeFilled": "karenina_testing.fakes",
        "FakeHandle": "karenina_testing.fakes",
        "Fault": "karenina_testing.checks",
        "GeminiGenerateContent": "karenina_testing.adapters.gemini_wire",
        "Reply": "karenina_testing.adapters.replies",
        "ScriptedBatches": "karenina_testing.adapters.batches",
        "ScriptedCall": "karenina_testing.fakes",
        "ScriptedLLM": "karenina_testing.fakes",
        "ScriptedServer": "karenina_testing.adapters.server",
        "ServedRequest": "karenina_testing.adapters.replies",
        "Spoken": "karenina_testing.adapters.replies",
        "StageInput": "karenina_testing.stages.inputs",
        "VirtualTimeLoop": "karenina_testing.virtual_time",
        "adapter_checks": "karenina_testing.adapters.adapters",
        "Wire": "karenina_testing.adapters.wires",
        "application": "karenina_testing.fakes",
        "check_adapter": "karenina_testing.adapters.adapters",
        "check_embedder": "karenina_testing.services",
        "check_search_tool": "karenina_testing.services",
        "check_stage": "karenina_testing.stages.stages",
        "check_trait_evaluator": "karenina_testing.traits.traits",
        "embedder_checks": "karenina_testing.services",
        "executor_checks": "karenina_testing.executors",
        "plugin_checks": "karenina_testing.plugins",
        "run_checks": "karenina_testing.checks",
        "run_in_virtual_time": "karenina_testing.virtual_time",
        "runtime_checks": "karenina_testing.runtimes.runtimes",
        "search_tool_checks": "karenina_testing.services",
        "sink_checks": "karenina_testing.sinks",
        "stage_checks": "karenina_testing.stages.stages",
        "strategies": "karenina_testing.strategies",
        "trait_checks": "karenina_testing.traits.traits",
    },
}
