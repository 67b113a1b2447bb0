"""What a model's configuration means for this interface, and what is wrong with it. Imports nothing heavy."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

DEFAULT_MAX_RESPONSE_BYTES = 8_000_000
DEFAULT_TIMEOUT = 120.0
MODE = "endpoint_base_url_mode"
MAX_BYTES = "max_response_bytes"
MODES = ("auto_v1", "raw")
RESERVED = ("model", "messages", "stream")
SUFFIX = "/chat/completions"
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
    def of(cls, config: ModelConfig) -> Endpoint:
        """Raises ConfigError where `config` cannot work."""
        if problems := check_config(config):
            raise ConfigError(problems)
        url = completions_url(config)
        return cls(
            url=url,
            where=f"POST {url.split('?')[0]}",
            key=(config.api_key() or "").strip(),
            timeout=config.request_timeout or DEFAULT_TIMEOUT,
            limit=max_response_bytes(config),
            extra={name: value for name, value in config.extra_kwargs.items() if name not in (MODE, MAX_BYTES)},
        )


def check_config(config: ModelConfig) -> list[str]:
    """What keeps this configuration from working, one `field: message` each."""
    problems = _url_problems(config.endpoint_base_url)
    extra = config.extra_kwargs
    if (mode := extra.get(MODE, "auto_v1")) not in MODES:
        problems.append(f"extra_kwargs.{MODE}: must be one of {', '.join(MODES)}, not {mode!r}")
    limit = extra.get(MAX_BYTES, DEFAULT_MAX_RESPONSE_BYTES)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        problems.append(f"extra_kwargs.{MAX_BYTES}: must be a positive number of bytes, not {limit!r}")
    problems += [f"extra_kwargs.{name}: is set by karenina; leave it out" for name in RESERVED if name in extra]
    try:
        json.dumps(dict(extra), allow_nan=False)
    except (TypeError, ValueError) as error:
        problems.append(f"extra_kwargs: must be JSON, because they go into the request ({error})")
    try:
        key = (config.api_key() or "").strip()
    except ConfigError as error:
        problems += [str(problem) for problem in error.problems]
    else:
        if not key.isprintable():
            problems.append(
                "endpoint_api_key: the key has a line break or another control character in it; copy it again"
            )
    return problems


def _url_problems(url: str | None) -> list[str]:
    if not url:
        return [
            "endpoint_base_url: say where the server is, such as http://localhost:8000/v1 "
            "(--answering-base-url or --parsing-base-url)"
        ]
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError where it is no number
    except ValueError as error:
        return [f"endpoint_base_url: is not a URL ({error})"]
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return ["endpoint_base_url: must begin with http:// or https:// and name a host"]
    if parts.username is not None or parts.password is not None:
        return ["endpoint_base_url: must hold no user name or password; put the key into api_key_env"]
    return []


def completions_url(config: ModelConfig) -> str:
    """The URL that chat completions are asked of.

    A base URL without a version in its path gets `/v1`, unless `extra_kwargs["endpoint_base_url_mode"]` is `raw`. One
    that ends in `/chat/completions` is taken as it is. A query is kept. Raises ConfigError for an unusable base URL.
    """
    if problems := _url_problems(config.endpoint_base_url):
        raise ConfigError(problems)
    parts = urlsplit(config.endpoint_base_url or "")
    path = parts.path.rstrip("/").removesuffix(SUFFIX)
    complete = path != parts.path.rstrip("/")
    versioned = any(VERSION.fullmatch(segment) for segment in path.split("/"))
    if not complete and not versioned and config.extra_kwargs.get(MODE, "auto_v1") == "auto_v1":
        path += "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path + SUFFIX, parts.query, ""))


def api_url(completions: str, path: str) -> str:
    """The URL of another part of the same API, such as `/files`, by that of its chat completions."""
    parts = urlsplit(completions)
    return urlunsplit(parts._replace(path=parts.path.removesuffix(SUFFIX) + path))


def max_response_bytes(config: ModelConfig) -> int:
    """How large the body of a reply may be, unpacked."""
    return int(config.extra_kwargs.get(MAX_BYTES, DEFAULT_MAX_RESPONSE_BYTES))
