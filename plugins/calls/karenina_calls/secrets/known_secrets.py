"""What no file of a run may hold: the keys of its models, and what plugins and the environment are trusted with."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from attrs import fields, has

from karenina_core.plugin.application import Karenina
from karenina_core.secrets import SHORTEST, secrets_in
from karenina_core.values.config import ModelConfig

from ..tools.tool_servers import secrets_in_address
from .model_secrets import secrets_among, secrets_in_endpoint

__all__ = ["SECRET_VARIABLES", "secrets_of"]

SECRET_VARIABLES = "secret_variables"
"""In the metadata of a setting of a plugin: its texts are names of environment variables whose values are secret."""


def secrets_of(app: Karenina, models: Collection[ModelConfig]) -> dict[str, str]:
    """Every secret of a run with these models, each with the variable or the setting that it is the value of.

    These are the configured keys, what the addresses of tool servers hold, the environment's secrets (see
    `secrets_in`), and the variables that settings of plugins name; see `SECRET_VARIABLES`. Whatever is configured as a
    key is a secret, also where it is a plain word or a number; only what is shorter than 8 characters is none.
    """
    found: dict[str, str] = {}
    for model in models:
        found.update((value, name) for name, value in _secrets_of_model(model))
    variables = [*_named_variables(app), *(model.api_key_env for model in models if model.api_key_env is not None)]
    found.update((os.environ.get(name, ""), name) for name in variables)
    found.update(secrets_in(os.environ))
    return {value: name for value, name in found.items() if len(value) >= SHORTEST}


def _secrets_of_model(model: ModelConfig) -> Iterator[tuple[str, str]]:
    """`(setting, value)`."""
    yield from (("extra_kwargs", value) for value in secrets_among(model.extra_kwargs))
    yield from (("endpoint_base_url", value) for value in secrets_in_endpoint(model.endpoint_base_url or ""))
    for address in model.mcp_urls_dict.values():
        yield from (("mcp_urls_dict", value) for value in secrets_in_address(address))
    if model.endpoint_api_key is not None:
        yield "endpoint_api_key", model.endpoint_api_key.reveal()


def _named_variables(app: Karenina) -> Iterator[str]:
    for settings in app.every_settings().values():
        for setting in fields(type(settings)) if has(type(settings)) else ():
            if setting.metadata.get(SECRET_VARIABLES):
                yield from _texts(getattr(settings, setting.name))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple | set | frozenset):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
