"""karenina adapter for servers that speak the OpenAI chat completions protocol."""

from __future__ import annotations

from karenina_core import hookimpl
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec

from .settings import check_config

__all__ = ["check_config", "karenina_register_adapters"]


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    registry.register(
        AdapterSpec(
            interface="openai_endpoint",
            description="any server that speaks OpenAI chat completions: vLLM, Ollama, llama.cpp, gateways",
            llm_factory="karenina_openai_endpoint.port:OpenAIEndpoint",
            batch_factory="karenina_openai_endpoint.batches:OpenAIBatches",
            config_checker=check_config,
            requires_modules=("aiohttp",),
            install_hint="pip install karenina-openai-endpoint",
            requires_provider=False,
        )
    )
