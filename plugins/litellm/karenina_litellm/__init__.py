"""karenina's adapter for every provider that litellm reaches. litellm itself is imported when a model is opened."""

from __future__ import annotations

from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.markers import hookimpl

from .routes import problems

__all__ = ["karenina_register_adapters", "karenina_resolve_model"]

INTERFACE = "litellm"
ROUTED = {
    "langchain": "the name in older files; litellm asks the same provider, langchain is not used",
    "openrouter": "OpenRouter, through litellm",
    "claude_tool": "Anthropic's models through litellm; Anthropic's own client library is not used",
    "claude_agent_sdk": "Anthropic's models through litellm: answers without the agent and the tools of that SDK",
    "langchain_deep_agents": "the name in older files; litellm asks the same provider, without an agent",
}


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    """Register `litellm`, and the interface names of older files that it serves."""
    registry.register(
        AdapterSpec(
            interface=INTERFACE,
            description="every provider that litellm reaches",
            llm_factory="karenina_litellm.port:LiteLLM",
            requires_modules=("litellm",),
            install_hint="pip install karenina-litellm",
            config_checker=problems,
        )
    )
    for name, description in ROUTED.items():
        registry.register(AdapterSpec(interface=name, description=description, routes_to=INTERFACE))


@hookimpl
def karenina_resolve_model(model: str) -> str | None:
    """litellm takes every `provider/name`; which providers it knows is seen when the model is asked."""
    provider, _, name = model.partition("/")
    return INTERFACE if provider and name else None
