"""karenina's adapter for the agent of the Claude Agent SDK. The SDK itself is imported when a model is opened."""

from __future__ import annotations

from karenina_core import hookimpl
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.kinds import SettingsRegistry

from .settings import problems, unavailable

__all__ = ["karenina_register_adapters", "karenina_register_settings"]

INTERFACE = "claude_agent_sdk"


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    """Register `claude_agent_sdk`, in place of the plain model calls that another plugin serves the name with."""
    registry.register(
        AdapterSpec(
            interface=INTERFACE,
            description="the agent of the Claude Agent SDK, with tools of its own",
            llm_factory="karenina_claude_agent_sdk.ports:ClaudeModel",
            agent_factory="karenina_claude_agent_sdk.ports:ClaudeAgent",
            config_checker=problems,
            availability_checker=unavailable,
            requires_modules=("claude_agent_sdk",),
            install_hint='pip install "karenina-claude-agent-sdk[sdk]"',
            agent_tier="deep_agent",
        ),
        replaces=INTERFACE,
    )


@hookimpl
def karenina_register_settings(registry: SettingsRegistry) -> None:
    registry.add("karenina_claude_agent_sdk.settings:ClaudeAgentSdkSettings")
