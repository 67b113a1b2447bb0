"""The embedder `litellm`: the embedding models of every provider that litellm reaches."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

__all__ = ["karenina_register_embedders", "karenina_register_settings"]


@hookimpl
def karenina_register_embedders(registry: Any) -> None:
    registry.add("karenina_embedding.litellm_embedder:LiteLLM", name="litellm")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_embedding.litellm_embedder:LiteLLMSettings")
