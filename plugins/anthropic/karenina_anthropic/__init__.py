"""karenina adapter for Anthropic's Messages API, which is asked directly over HTTP."""

from __future__ import annotations

from karenina_core import hookimpl
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec

from .settings import INTERFACE, PREFIX, check_config

__all__ = ["check_config", "karenina_register_adapters", "karenina_resolve_model"]


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    registry.register(
        AdapterSpec(
            interface=INTERFACE,
            description="Claude by Anthropic's own Messages API, or a gateway that speaks it",
            llm_factory="karenina_anthropic.port:AnthropicMessages",
            batch_factory="karenina_anthropic.batches:AnthropicBatches",
            config_checker=check_config,
            requires_modules=("aiohttp",),
            install_hint="pip install karenina-anthropic",
        )
    )


@hookimpl
def karenina_resolve_model(model: str) -> str | None:
    """`anthropic:name` is served here; `anthropic/name` is left to litellm, as all its providers are."""
    return INTERFACE if model.startswith(PREFIX) else None
