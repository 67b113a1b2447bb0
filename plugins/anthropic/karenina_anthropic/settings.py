"""What a model's configuration means for this interface, and what is wrong with it. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

from karenina_calls.wire.endpoints import (
    OWN_SETTINGS,
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

INTERFACE = "anthropic"
PREFIX = "anthropic:"
"""In front of a model's name, where a text says both."""
BASE_URL = "https://api.anthropic.com"
KEY_VARIABLES = ("ANTHROPIC_API_KEY",)
SUFFIX = "/messages"
API_VERSION = "2023-06-01"
"""https://platform.claude.com/docs/en/api/versioning"""
VERSION, BETA, AUTH, CACHING = "anthropic_version", "anthropic_beta", "auth", "prompt_caching"
AUTHS = ("x-api-key", "bearer")
OWN = OWN_SETTINGS | {VERSION, BETA, AUTH, CACHING}
RESERVED = frozenset({"model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice"})


def endpoint_of(config: ModelConfig) -> Endpoint:
    """Raises ConfigError where `config` cannot work."""
    if problems := check_config(config):
        raise ConfigError(problems)
    return Endpoint.of(config, messages_url(config), provider_key(config, KEY_VARIABLES), OWN)


def check_config(config: ModelConfig) -> list[str]:
    """What keeps this configuration from working, one `field: message` each."""
    url, extra = config.endpoint_base_url, config.extra_kwargs
    return [
        *(address_problems(url) if url else ()),
        *extra_problems(extra, RESERVED),
        *_own_problems(config),
        *json_problems(extra),
        *provider_key_problems(config, KEY_VARIABLES),
    ]


def _own_problems(config: ModelConfig) -> Iterator[str]:
    extra = config.extra_kwargs
    if not isinstance(version := extra.get(VERSION, API_VERSION), str) or not version.isprintable() or not version:
        yield f"extra_kwargs.{VERSION}: must be a version such as {API_VERSION}, not {version!r}"
    beta = extra.get(BETA, [])
    if not isinstance(beta, list | tuple) or not all(isinstance(one, str) and one.isprintable() for one in beta):
        yield f"extra_kwargs.{BETA}: must be a list of the names of beta features, not {beta!r}"
    if (auth := extra.get(AUTH, AUTHS[0])) not in AUTHS:
        yield f"extra_kwargs.{AUTH}: must be one of {', '.join(AUTHS)}, not {auth!r}"
    if not isinstance(caching := extra.get(CACHING, True), bool):
        yield f"extra_kwargs.{CACHING}: must be true or false, not {caching!r}"


def headers_of(config: ModelConfig, key: str) -> dict[str, str]:
    """What every request says beside its body."""
    extra = config.extra_kwargs
    headers = {"anthropic-version": extra.get(VERSION, API_VERSION)}
    if beta := extra.get(BETA):
        headers["anthropic-beta"] = ",".join(beta)
    if key:
        is_bearer = extra.get(AUTH, AUTHS[0]) == "bearer"
        headers |= {"Authorization": f"Bearer {key}"} if is_bearer else {"x-api-key": key}
    return headers


def model_name(config: ModelConfig) -> str:
    """As the provider knows it."""
    return config.name.removeprefix(PREFIX)


def messages_url(config: ModelConfig) -> str:
    """The URL of the Messages API: `/v1` is added to a base URL without a version, unless it is to be left alone."""
    parts = urlsplit(config.endpoint_base_url or BASE_URL)
    return urlunsplit(parts._replace(path=api_path(parts.path, config.extra_kwargs, SUFFIX) + SUFFIX, fragment=""))


def batches_url(messages: str, path: str) -> str:
    """The URL of a request about batches, by that of the Messages API."""
    parts = urlsplit(messages)
    return urlunsplit(parts._replace(path=f"{parts.path}/batches{path}"))
