"""karenina's adapter for agents that speak the Agent Client Protocol."""

from __future__ import annotations

from karenina_core import hookimpl
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.kinds import SettingsRegistry

from .settings import problems

__all__ = ["karenina_register_adapters", "karenina_register_settings"]


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    registry.register(
        AdapterSpec(
            interface="acp",
            description="any agent that speaks the Agent Client Protocol, with tools of its own",
            llm_factory="karenina_acp.ports:AcpModel",
            agent_factory="karenina_acp.ports:AcpAgent",
            config_checker=problems,
            agent_tier="deep_agent",
        )
    )


@hookimpl
def karenina_register_settings(registry: SettingsRegistry) -> None:
    registry.add("karenina_acp.settings:AcpSettings")
