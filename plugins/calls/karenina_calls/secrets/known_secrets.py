"""What no file of a run may hold: the keys of its models, and what plugins and the environment are trusted with."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from attrs import fields, has

from karenina_core.plugin.application import Karenina
from karenina_core.secrets import SHORTEST, is_secret_name, secrets_in
from karenina_core.values.config import ModelConfig

from ..tools.tool_servers import SECRET_NAME, secrets_in_address

SECRET_VARIABLES = "secret_variables"
"""In the metadata of a setting of a plugin: its texts are names of environment variables whose values are secret."""
OF_HEADERS = re.compile(f"{SECRET_NAME.pattern}|cookie", re.IGNORECASE)
"""In the names of headers whose values are secret."""


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


def secret_settings(model: ModelConfig) -> list[str]:
    """The settings that hold a key or a password in the clear, with where in them: those that a file would show.

    Seen are the user of an address and values in its query, of a command, and in `extra_kwargs`, under names such as
    `key`, `token` and `Authorization`. A key under another name, or within a path, looks like any other text.
    """
    found = []
    user, query = _user_and_query(model.endpoint_base_url or "")
    if user or any(SECRET_NAME.search(name) for name, _ in query):
        found.append("endpoint_base_url")
    found += [
        f"mcp_urls_dict.{name}" for name, address in model.mcp_urls_dict.items() if any(secrets_in_address(address))
    ]
    found += [f"extra_kwargs.{name}" for name, value in model.extra_kwargs.items() if any(secrets_among(value, name))]
    return found


def secrets_in_endpoint(url: str) -> Iterator[str]:
    """What an endpoint's address may hold that no other file should: its user, its password and its query."""
    user, query = _user_and_query(url)
    yield from filter(None, user.split(":", 1))
    yield from (value for _, value in query)


def _user_and_query(url: str) -> tuple[str, list[tuple[str, str]]]:
    try:
        parts = urlsplit(url)
    except ValueError:  # no URL, which its adapter complains about
        return "", []
    return parts.netloc.rpartition("@")[0], parse_qsl(parts.query)


def secrets_among(value: Any, name: str = "", *, header: bool = False) -> Iterator[str]:
    """Texts under names such as `api_key`, and in headers such as `X-Auth`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_among(item, str(key), header=header or "header" in name.lower())
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets_among(item, name, header=header)
    elif isinstance(value, str) and (is_secret_name(name) or (header and OF_HEADERS.search(name))):
        bare = value.removeprefix("Bearer ")
        yield from [bare] if len(bare) >= SHORTEST else []
