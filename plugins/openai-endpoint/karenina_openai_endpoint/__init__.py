"""karenina adapter for servers that speak the OpenAI chat completions protocol."""

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
            description="any server that speaks OpenAI chat completions: vLLM, Ollama, llama.cpp, gateways",
            llm_factory="karenina_openai_endpoint.port:OpenAIEndpoint",
            batch_factory="karenina_openai_endpoint.batches:OpenAIBatches",
            config_checker=check_config,
            requires_modules=("aiohttp",),
            install_hint="pip install karenina-openai-endpoint",
            requires_provider=False,
        )
    )


@hookimpl
def karenina_resolve_model(model: str) -> str | None:
    """`openai_endpoint:name` is served here, at the address that the model is given."""
    return INTERFACE if model.startswith(PREFIX) else None
