"""What a model's configuration means for this interface, and what is wrong with it. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from karenina_calls.wire.endpoints import (
    Endpoint,
    address_problems,
    api_path,
    extra_problems,
    json_problems,
    provider_key,
    provider_key_problems,
)

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

INTERFACE = "gemini"
PREFIX = "gemini:"
"""In front of a model's name, where a text says both."""
BASE_URL = "https://generativelanguage.googleapis.com"
KEY_VARIABLES = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
"""In the order of Google's own libraries: https://ai.google.dev/gemini-api/docs/api-key."""
SUFFIX = "/models"
API_VERSION = "v1beta"
"""The version with system instructions and JSON Schemas: https://ai.google.dev/gemini-api/docs/api-versions."""
GENERATION = "generationConfig"
RESERVED = frozenset({"contents", "systemInstruction", "tools", "toolConfig"})
RESERVED_IN_GENERATION = frozenset({"maxOutputTokens", "candidateCount"})


def endpoint_of(config: ModelConfig) -> Endpoint:
    """Raises ConfigError where `config` cannot work."""
    if problems := check_config(config):
        raise ConfigError(problems)
    return Endpoint.of(config, method_url(config, "generateContent"), provider_key(config, KEY_VARIABLES))


def check_config(config: ModelConfig) -> list[str]:
    """What keeps this configuration from working, one `field: message` each."""
    url, extra = config.endpoint_base_url, config.extra_kwargs
    return [
        *(address_problems(url) if url else ()),
        *extra_problems(extra, RESERVED),
        *_generation_problems(extra.get(GENERATION, {})),
        *json_problems(extra),
        *provider_key_problems(config, KEY_VARIABLES),
    ]


def _generation_problems(generation: object) -> Iterator[str]:
    if not isinstance(generation, Mapping):
        yield f"extra_kwargs.{GENERATION}: must be a table of settings, not {generation!r}"
    elif found := sorted(RESERVED_IN_GENERATION & generation.keys()):
        yield f"extra_kwargs.{GENERATION}.{found[0]}: is set by karenina; leave it out (max_tokens limits replies)"


def model_name(config: ModelConfig) -> str:
    """As the provider knows it."""
    return config.name.removeprefix(PREFIX).removeprefix("models/")


def method_url(config: ModelConfig, method: str, **query: str) -> str:
    """The URL of a model's method. A base URL without a version gets `/v1beta`, unless it is to be left alone."""
    parts = urlsplit(config.endpoint_base_url or BASE_URL)
    path = api_path(parts.path, config.extra_kwargs, SUFFIX, API_VERSION)
    asked = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *query.items()])
    path = f"{path}{SUFFIX}/{quote(model_name(config), safe='')}:{method}"
    return urlunsplit(parts._replace(path=path, query=asked, fragment=""))
