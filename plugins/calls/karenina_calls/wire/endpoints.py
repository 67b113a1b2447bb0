"""Addresses, keys and `extra_kwargs` of models as adapters read them, and what may be wrong with them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

MODE = "endpoint_base_url_mode"
MODES = ("auto_v1", "raw")
MAX_BYTES = "max_response_bytes"
OWN_SETTINGS = frozenset({MODE, MAX_BYTES})
"""Names in `extra_kwargs` that are meant for adapters and sent to no server."""
DEFAULT_MAX_BYTES = 8_000_000
"""Chosen, not measured: far more than the text of a reply, and little enough to be held for every call."""
SESSION_MAX_BYTES = 64_000_000
"""What the program of an agent may write in one session."""
SUFFIX = "/chat/completions"
DEFAULT_TIMEOUT = 120.0
"""Seconds of a call whose model has no `request_timeout`: the default of the run's setting."""
VERSION = re.compile(r"v\d+\w*")


@frozen(kw_only=True)
class Endpoint:
    """A configuration that was checked, ready for requests."""

    url: str
    where: str
    """Method and address for error messages, without the query."""
    key: str = field(repr=False)
    timeout: float
    """Seconds for one attempt."""
    limit: int
    """Bytes of an unpacked reply."""
    extra: dict[str, Any]
    """The part of `extra_kwargs` that goes into the request."""

    @classmethod
    def of(cls, config: ModelConfig, url: str, key: str | None, own: Set[str] = OWN_SETTINGS) -> Endpoint:
        """`own` are the names in `extra_kwargs` that are sent to no server."""
        return cls(
            url=url,
            where=f"POST {url.split('?')[0]}",
            key=(key or "").strip(),
            timeout=config.request_timeout or DEFAULT_TIMEOUT,
            limit=max_response_bytes(config),
            extra={name: value for name, value in config.extra_kwargs.items() if name not in own},
        )


def api_path(path: str, extra: Mapping[str, Any], suffix: str = SUFFIX, version: str = "v1") -> str:
    """The path of an API by that of a base URL: without the `suffix` of a call, and with a `version` where it names
    none, unless it was complete or `endpoint_base_url_mode` is `raw`."""
    bare = path.rstrip("/").removesuffix(suffix)
    complete = bare != path.rstrip("/") or extra.get(MODE, MODES[0]) != MODES[0]
    return bare if complete or any(VERSION.fullmatch(part) for part in bare.split("/")) else f"{bare}/{version}"


def max_response_bytes(config: ModelConfig) -> int:
    """How many bytes a reply may have."""
    return int(config.extra_kwargs.get(MAX_BYTES, DEFAULT_MAX_BYTES))


def address_problems(url: str) -> Iterator[str]:
    """What is wrong with a base URL, as `field: message`. It is not shown: it may hold a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError where it is no number
    except ValueError as error:
        yield f"endpoint_base_url: is not a URL ({error})"
        return
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield "endpoint_base_url: must begin with http:// or https:// and name a host, such as https://host/v1"
    elif parts.username is not None or parts.password is not None:
        yield "endpoint_base_url: must hold no user name or password; put the key into api_key_env"


def key_problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with the key, which is not shown."""
    try:
        key = (config.api_key() or "").strip()
    except ConfigError as error:
        yield from map(str, error.problems)
    else:
        if not key.isprintable():
            yield "endpoint_api_key: the key has a control character in it, such as a line break; copy it again"


def provider_key(config: ModelConfig, variables: Sequence[str]) -> str | None:
    """The configured key; where none is, and the address is the provider's own, the first of its variables.

    A gateway gets the key that is configured for it and no other.
    """
    if (key := config.api_key()) is not None or config.endpoint_base_url:
        return key
    return next((key for name in variables if (key := os.environ.get(name))), None)


def provider_key_problems(config: ModelConfig, variables: Sequence[str]) -> list[str]:
    """What is wrong with the key that `provider_key` finds."""
    found = list(key_problems(config))
    if not found and config.endpoint_base_url is None and not provider_key(config, variables):
        named = " or ".join(variables)
        return [f"api_key_env: set the environment variable {named} to your key, or name another one"]
    return found


def json_problems(extra: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with `extra_kwargs` that go into the body of a request."""
    try:
        json.dumps(dict(extra), allow_nan=False)
    except (TypeError, ValueError) as error:
        yield f"extra_kwargs: must be JSON, because they go into the request ({error})"


def extra_problems(extra: Mapping[str, Any], reserved: Set[str]) -> Iterator[str]:
    """What is wrong with `extra_kwargs`, of which an adapter sets the `reserved` ones itself."""
    if (mode := extra.get(MODE, MODES[0])) not in MODES:
        yield f"extra_kwargs.{MODE}: must be one of {', '.join(MODES)}, not {mode!r}"
    yield from size_problems(extra)
    yield from (f"extra_kwargs.{name}: is set by karenina; leave it out" for name in sorted(reserved & extra.keys()))


def size_problems(extra: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with `max_response_bytes`."""
    limit = extra.get(MAX_BYTES, DEFAULT_MAX_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield f"extra_kwargs.{MAX_BYTES}: must be a positive number of bytes, not {limit!r}"
