"""karenina adapter for Google's Gemini API, which is asked directly over HTTP."""

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
            description="Gemini by Google's own API, or a gateway that speaks it",
            llm_factory="karenina_gemini.port:GeminiGenerateContent",
            config_checker=check_config,
            requires_modules=("aiohttp",),
            install_hint="pip install karenina-gemini",
        )
    )


@hookimpl
def karenina_resolve_model(model: str) -> str | None:
    """`gemini:name` is served here; `gemini/name` is left to litellm, as all its providers are."""
    return INTERFACE if model.startswith(PREFIX) else None
