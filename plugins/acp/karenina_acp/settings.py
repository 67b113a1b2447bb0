"""`[plugins.acp]`, `extra_kwargs` of a model, and the command that starts an agent. Starts nothing."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from typing import Any

from attrs import field, fields_dict, frozen
from karenina_calls.wire.endpoints import SESSION_MAX_BYTES, key_problems, size_problems

from karenina_core.errors import AdapterUnavailableError, ConfigError
from karenina_core.values.config import ModelConfig

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
"""Kinds of tool calls, https://agentclientprotocol.com/protocol/tool-calls."""
DEFAULT_ALLOW = ("read", "edit", "delete", "move", "search", "execute", "think", "other")
"""What an answering agent may do where it asks: nothing that reaches the web or changes how it asks."""
LOOKING = ("read", "search", "think")
"""What an agent may do that may only look."""
KNOWN = ("allow", "auth_method", "command", "max_response_bytes", "session_options")
"""Names in `extra_kwargs`."""
NO_COMMAND = (
    "no command starts the agent: name it with extra_kwargs command, or with command in [plugins.acp], "
    'such as "gemini --experimental-acp"'
)
NOT_PASSED = ("max_tokens", "endpoint_base_url", "model_provider")
"""Fields of a model that the protocol has no word for."""


@frozen(kw_only=True)
class AcpSettings:
    """`[plugins.acp]`: the agent that is run if a model names none, and what every agent is given."""

    command: str | None = None
    """The command that starts the agent, with its arguments, such as `"gemini --experimental-acp"`."""
    environment: tuple[str, ...] = field(default=(), converter=tuple)
    """Names of environment variables that an agent is given in addition to those that it always gets, such as
    `["GEMINI_API_KEY"]`."""


@frozen(kw_only=True)
class Choices:
    """What a model and the settings say about its agent."""

    command: tuple[str, ...]
    allow: frozenset[str] = frozenset(DEFAULT_ALLOW)
    """Kinds of tool calls that are allowed where an answering agent asks."""
    auth_method: str | None = None
    session_options: tuple[tuple[str, Any], ...] = ()
    """Options of a session, by id, that are set before the prompt."""
    most_bytes: int = SESSION_MAX_BYTES


def choices(config: ModelConfig, settings: AcpSettings) -> Choices:
    """Raises ConfigError where `extra_kwargs` cannot be used, AdapterUnavailableError where there is no program."""
    if found := list(_extra_problems(config)):
        raise ConfigError(found)
    extra = config.extra_kwargs
    words = _words(extra.get("command", settings.command or ()))
    if not words:
        raise AdapterUnavailableError(NO_COMMAND)
    program = shutil.which(os.path.expanduser(words[0]))
    if program is None:
        raise AdapterUnavailableError(
            f"{words[0]!r} is not a program that can be run; install the agent, or say where it is"
        )
    return Choices(
        command=(os.path.abspath(program), *words[1:]),
        allow=frozenset(extra.get("allow", DEFAULT_ALLOW)),
        auth_method=extra.get("auth_method"),
        session_options=tuple(extra.get("session_options", {}).items()),
        most_bytes=extra.get("max_response_bytes", SESSION_MAX_BYTES),
    )


def problems(config: ModelConfig, settings: AcpSettings | None = None) -> Iterator[str]:
    """What is wrong with a configuration, as `field: message`. Nothing is started."""
    if settings is not None and not settings.command and "command" not in config.extra_kwargs:
        yield f"extra_kwargs.command: {NO_COMMAND}"
    for name in NOT_PASSED:
        if getattr(config, name) is not None:
            yield f"{name}: cannot be passed on to an agent, which has settings of its own; leave it out"
    if config.temperature not in (None, fields_dict(ModelConfig)["temperature"].default):
        yield "temperature: cannot be passed on to an agent; leave it out"
    if config.endpoint_api_key is not None and config.api_key_env is None:
        yield "endpoint_api_key: say in api_key_env which variable the agent looks for its key in"
    yield from _extra_problems(config)
    yield from key_problems(config)


def _extra_problems(config: ModelConfig) -> Iterator[str]:
    extra = config.extra_kwargs
    for name in sorted(set(extra) - set(KNOWN)):
        yield f"extra_kwargs.{name}: cannot be passed on to the agent; available: {', '.join(KNOWN)}"
    if "command" in extra and not _is_command(extra["command"]):
        yield f"extra_kwargs.command: must be a command line or a list of words, not {extra['command']!r}"
    allow = extra.get("allow", ())
    if not isinstance(allow, list | tuple) or not set(map(str, allow)) <= set(KINDS):
        yield f"extra_kwargs.allow: must be a list of {', '.join(KINDS)}, not {allow!r}"
    if not isinstance(extra.get("auth_method", ""), str):
        yield f"extra_kwargs.auth_method: must be the id of a method, not {extra['auth_method']!r}"
    if not isinstance(options := extra.get("session_options", {}), dict):
        yield f"extra_kwargs.session_options: must be options by id, not {options!r}"
    yield from size_problems(extra)


def _is_command(command: Any) -> bool:
    try:
        return bool(_words(command))
    except (TypeError, ValueError):
        return False


def _words(command: Any) -> list[str]:
    """The words of a command. Raises ValueError, also where one has a NUL in it."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if not all(isinstance(word, str) and "\0" not in word for word in words):
        raise ValueError(f"{command!r} is no command")
    return words
