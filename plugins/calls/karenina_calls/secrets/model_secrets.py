"""What a model's configuration may hold that no file should."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from karenina_core.secrets import SHORTEST, is_secret_name
from karenina_core.values.config import ModelConfig

from ..tools.tool_servers import SECRET_NAME, secrets_in_address

__all__ = ["OF_HEADERS", "secret_settings", "secrets_among", "secrets_in_endpoint"]

OF_HEADERS = re.compile(f"{SECRET_NAME.pattern}|cookie", re.IGNORECASE)
"""In the names of headers whose values are secret."""


def secret_settings(model: ModelConfig) -> list[str]:
    """The settings that hold a key or a password in the clear, with where in them: those that a file would show.

    Seen are the user of an address and values in its query, of a command, and in `extra_kwargs`, under names such as
    `key`, `token` and `Authorization`. A key under another name, or within a path, looks like any other text.
    """
    found = []
    if _endpoint_tells(model.endpoint_base_url or ""):
        found.append("endpoint_base_url")
    found += [
        f"mcp_urls_dict.{name}" for name, address in model.mcp_urls_dict.items() if any(secrets_in_address(address))
    ]
    found += [f"extra_kwargs.{name}" for name, value in model.extra_kwargs.items() if any(secrets_among(value, name))]
    return found


def _endpoint_tells(url: str) -> bool:
    user, query = _hidden(url)
    return bool(user) or any(SECRET_NAME.search(name) for name, _ in query)


def secrets_in_endpoint(url: str) -> Iterator[str]:
    """What an endpoint's address may hold that no other file should: its user, its password and its query."""
    user, query = _hidden(url)
    yield from filter(None, user.split(":", 1))
    yield from (value for _, value in query)


def _hidden(url: str) -> tuple[str, list[tuple[str, str]]]:
    """The user with the password, and the query."""
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
