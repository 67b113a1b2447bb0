"""Brings an interface that another plugin has, and a sink that cannot be imported."""

from typing import Any

from karenina_core import AdapterSpec, hookimpl


@hookimpl  # the fault
def karenina_register_adapters(registry: Any) -> None:
    registry.register(AdapterSpec(interface="litellm", description="the same", routes_to="openai_endpoint"))


@hookimpl
def karenina_register_sinks(registry: Any) -> None:
    registry.add("karenina_results.jsonl:NoSuchSink", name="planted")
