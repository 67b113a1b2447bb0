"""What a model's configuration means for this interface, and what is wrong with it. Imports nothing heavy."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from karenina_calls.wire.endpoints import (
    SUFFIX,
    Endpoint,
    address_problems,
    api_path,
    extra_problems,
    json_problems,
    key_problems,
)

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

INTERFACE = "openai_endpoint"
PREFIX = "openai_endpoint:"
"""In front of a model's name, where a text says both."""
RESERVED = frozenset({"model", "messages", "stream"})
NO_ADDRESS = (
    "endpoint_base_url: say where the server is, such as http://localhost:8000/v1 "
    "(--answering-base-url or --parsing-base-url)"
)


def endpoint_of(config: ModelConfig) -> Endpoint:
    """Raises ConfigError where `config` cannot work."""
    if problems := check_config(config):
        raise ConfigError(problems)
    return Endpoint.of(config, completions_url(config), config.api_key())


def check_config(config: ModelConfig) -> list[str]:
    """What keeps this configuration from working, one `field: message` each."""
    url, extra = config.endpoint_base_url, config.extra_kwargs
    problems = [*(address_problems(url) if url else [NO_ADDRESS]), *extra_problems(extra, RESERVED)]
    return [*problems, *json_problems(extra), *key_problems(config)]


def model_name(config: ModelConfig) -> str:
    """As the server knows it."""
    return config.name.removeprefix(PREFIX)


def completions_url(config: ModelConfig) -> str:
    """The URL that chat completions are asked of.

    A base URL without a version in its path gets `/v1`, unless `extra_kwargs["endpoint_base_url_mode"]` is `raw`. One
    that ends in `/chat/completions` is taken as it is. A query is kept. Raises ConfigError for an unusable base URL.
    """
    url = config.endpoint_base_url or ""
    if problems := list(address_problems(url)):
        raise ConfigError(problems)
    parts = urlsplit(url)
    path = api_path(parts.path, config.extra_kwargs) + SUFFIX
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def api_url(completions: str, path: str) -> str:
    """The URL of another part of the same API, such as `/files`, by that of its chat completions."""
    parts = urlsplit(completions)
    return urlunsplit(parts._replace(path=parts.path.removesuffix(SUFFIX) + path))
