"""What the models of each interface can do: a table of docs/reference/configuration.md, and a check for each cell.

The cells are what adapters declare. tests/docs/test_capabilities.py runs the check of every cell with a scripted
server; a check fails where something is declared and not there, and where it is there and not declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from karenina_calls.models.model_ports import make_port
from karenina_testing.plugins import declared_options

from karenina_core import Karenina, ModelConfig
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports import PortCapabilities
from karenina_core.testing import Check, adapter_checks

SERVED = ("openai_endpoint", "litellm", "anthropic", "gemini", "langchain")
"""Interfaces whose models are asked at an address. Their plugins say in which protocol, by `karenina.checks`."""
UNSERVED = ("acp", "claude_agent_sdk", "manual")
"""Interfaces that ask a program, or nobody."""
Declared = Callable[[AdapterSpec, PortCapabilities], bool]


def _channel(name: str) -> Declared:
    return lambda spec, capabilities: name in capabilities.output_channels


COLUMNS: Mapping[str, tuple[str, Declared]] = {
    "system prompt": ("system_prompt", lambda spec, capabilities: capabilities.supports_system_prompt),
    "tools": ("tools", lambda spec, capabilities: capabilities.supports_tools),
    "JSON Schema": ("channels", _channel("json_schema")),
    "forced tool": ("channels", _channel("tool_call")),
    "JSON mode": ("channels", _channel("json_object")),
    "streams": ("streaming", lambda spec, capabilities: capabilities.supports_streaming),
    "thinking": ("thinking", lambda spec, capabilities: capabilities.reports_thinking),
    "cached tokens": ("cached_tokens", lambda spec, capabilities: capabilities.reports_cached_tokens),
    "batches": ("batches", lambda spec, capabilities: spec.batch_factory is not None),
}
"""A capability, the check that looks at it, and where it is declared."""


def rows(app: Karenina) -> dict[str, list[bool]]:
    """Interface -> what it declares, in the order of the columns."""
    found = {}
    for interface in SERVED:
        spec = app.adapters.get_spec(interface)
        capabilities = _capabilities(app, spec)
        found[interface] = [declared(spec, capabilities) for _, declared in COLUMNS.values()]
    return found


def _options(app: Karenina, interface: str) -> dict[str, Any]:
    options: dict[str, Any] = declared_options(app.adapters[interface].plugin).get(interface, {})
    return options


def _capabilities(app: Karenina, spec: AdapterSpec) -> Any:
    plain = ModelConfig(model_name="m", interface=spec.interface, model_provider="openai")
    model = _options(app, spec.interface).get("config", plain)
    return make_port(app.adapters, spec.llm_factory, model, spec).capabilities


def checks(app: Karenina, interface: str) -> dict[str, Check]:
    """The check of each column, by its name."""
    made = adapter_checks(app.adapters.get_spec(interface), **_options(app, interface))
    return {check.name: check for check in made if check.name in {name for name, _ in COLUMNS.values()}}
