"""karenina's adapter for langchain's chat models. langchain itself is imported when a model is opened."""

from __future__ import annotations

from collections.abc import Iterator

from karenina_calls.wire.endpoints import key_problems, size_problems

from karenina_core import hookimpl
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.values.config import ModelConfig

__all__ = ["karenina_register_adapters"]

INTERFACE = "langchain"
OWN = frozenset(
    {"api_key", "base_url", "cache", "callbacks", "http_async_client", "max_retries", "max_tokens", "model"}
    | {"model_provider", "temperature", "timeout"}
)
"""Arguments of langchain that this adapter sets itself."""


def problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with a configuration, as `field: message`. langchain is not imported."""
    for name in sorted(OWN & config.extra_kwargs.keys()):
        yield f"extra_kwargs.{name}: is set by karenina; leave it out"
    yield from size_problems(config.extra_kwargs)
    yield from key_problems(config)


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    """Register `langchain`, in place of the calls through litellm that serve the name without langchain."""
    registry.register(
        AdapterSpec(
            interface=INTERFACE,
            description="langchain's chat models, for every provider that has a package for them",
            llm_factory="karenina_langchain.port:LangchainModel",
            config_checker=problems,
            requires_modules=("langchain",),
            install_hint='pip install "karenina-langchain[library]"',
            fallback_interface="litellm",
        ),
        replaces=INTERFACE,
    )
