"""What no file of a run may hold: the keys of its models, and what plugins and the environment are trusted with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import fields, has

from ..log import secrets_in
from ..model.config import ModelConfig
from ..ports.model_secrets import secrets_among, secrets_in_endpoint
from ..ports.tool_servers import secrets_in_address
from .application import Karenina

__all__ = ["SECRET_VARIABLES", "secrets_of"]

SECRET_VARIABLES = "secret_variables"
"""In the metadata of a setting of a plugin: its texts are names of environment variables whose values are secret."""
SHORTEST = 8
"""What is shorter is no secret but a placeholder such as `none`, which occurs in any text."""


def secrets_of(app: Karenina, models: Iterable[ModelConfig]) -> frozenset[str]:
    """Every secret of a run with these models, each as it is and as JSON has it.

    These are the configured keys, what the addresses of tool servers hold, the environment's variables whose names say
    that they are secret, and those that settings of plugins name; see `SECRET_VARIABLES`.
    """
    found = set(secrets_in(os.environ))
    found.update(os.environ.get(name, "") for name in _named_variables(app))
    for model in models:
        found.update(_secrets_of_model(model))
    written = {json.dumps(secret, ensure_ascii=ascii_)[1:-1] for secret in found for ascii_ in (True, False)}
    return frozenset(secret for secret in found | written if len(secret) >= SHORTEST)


def _secrets_of_model(model: ModelConfig) -> Iterator[str]:
    yield from secrets_among(model.extra_kwargs)
    yield from secrets_in_endpoint(model.endpoint_base_url or "")
    for address in model.mcp_urls_dict.values():
        yield from secrets_in_address(address)
    if model.endpoint_api_key is not None:
        yield model.endpoint_api_key.reveal()
    if model.api_key_env is not None:
        yield os.environ.get(model.api_key_env, "")


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
