"""Tools for testing plugins and benchmarks without a provider. Every name is imported at its first use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapters import adapter_checks, check_adapter
    from .apps import application
    from .batches import ScriptedBatches
    from .checks import BrokenPromise, Check, Fault, run_checks
    from .embedders import check_embedder, embedder_checks
    from .executors import executor_checks
    from .fakes import FakeFilled, FakeHandle, ScriptedCall, ScriptedLLM
    from .plugins import plugin_checks
    from .replies import Reply, ServedRequest
    from .runtimes import runtime_checks
    from .search_tools import check_search_tool, search_tool_checks
    from .server import ScriptedServer
    from .sinks import sink_checks
    from .stage_inputs import StageInput
    from .stages import check_stage, stage_checks
    from .traits import check_trait_evaluator, trait_checks
    from .virtual_time import VirtualTimeLoop, run_in_virtual_time

_HOMES = {
    "BrokenPromise": "checks",
    "Check": "checks",
    "FakeFilled": "fakes",
    "FakeHandle": "fakes",
    "Fault": "checks",
    "Reply": "replies",
    "ScriptedBatches": "batches",
    "ScriptedCall": "fakes",
    "ScriptedLLM": "fakes",
    "ScriptedServer": "server",
    "ServedRequest": "replies",
    "StageInput": "stage_inputs",
    "VirtualTimeLoop": "virtual_time",
    "adapter_checks": "adapters",
    "application": "apps",
    "check_adapter": "adapters",
    "check_embedder": "embedders",
    "check_search_tool": "search_tools",
    "check_stage": "stages",
    "check_trait_evaluator": "traits",
    "embedder_checks": "embedders",
    "executor_checks": "executors",
    "plugin_checks": "plugins",
    "run_checks": "checks",
    "run_in_virtual_time": "virtual_time",
    "runtime_checks": "runtimes",
    "search_tool_checks": "search_tools",
    "sink_checks": "sinks",
    "stage_checks": "stages",
    "trait_checks": "traits",
}

__all__ = [
    "BrokenPromise",
    "Check",
    "FakeFilled",
    "FakeHandle",
    "Fault",
    "Reply",
    "ScriptedBatches",
    "ScriptedCall",
    "ScriptedLLM",
    "ScriptedServer",
    "ServedRequest",
    "StageInput",
    "VirtualTimeLoop",
    "adapter_checks",
    "application",
    "check_adapter",
    "check_embedder",
    "check_search_tool",
    "check_stage",
    "check_trait_evaluator",
    "embedder_checks",
    "executor_checks",
    "plugin_checks",
    "run_checks",
    "run_in_virtual_time",
    "runtime_checks",
    "search_tool_checks",
    "sink_checks",
    "stage_checks",
    "trait_checks",
]


def __getattr__(name: str) -> Any:
    if home := _HOMES.get(name):
        value = getattr(importlib.import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
