"""`[plugins.claude_agent_sdk]`, `extra_kwargs` of a model, and where the program is. Imports nothing of the SDK."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import field, fields_dict, frozen
from karenina_calls.wire.endpoints import SESSION_MAX_BYTES, address_problems, key_problems, size_problems

from karenina_core.errors import ConfigError
from karenina_core.values.config import ModelConfig

NAME = "claude"
SCRIPTS = (".bat", ".cmd")
"""Windows hands arguments of these to a shell, which may take a text for a command: they are not run."""
MISSING = (
    "the program `claude` is not there: install it (npm install -g @anthropic-ai/claude-code, or a claude-agent-sdk "
    "that brings it along), or say where it is with program in [plugins.claude_agent_sdk]"
)
PROVIDER = "anthropic"
DEFAULT_TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "Write")
"""What an answering agent is offered of the program's own tools: nothing that reaches the web, asks people or starts
other agents."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
KNOWN = ("claude_code_prompt", "effort", "max_response_bytes", "tools")
"""Names in `extra_kwargs`."""
NAME_ENDS = " ,()\t\n"
"""Characters that end the name of a tool on the program's command line."""


@frozen(kw_only=True)
class ClaudeAgentSdkSettings:
    """`[plugins.claude_agent_sdk]`: the program that is run, and what it is given."""

    program: str | None = None
    """The program: a path, or a name to look for on PATH. By default the one that comes with the SDK, else `claude` on
    PATH."""
    environment: tuple[str, ...] = field(default=(), converter=tuple)
    """Names of environment variables that the program is given in addition to those that it always gets, such as
    `["HTTPS_PROXY"]`."""


def program_path(settings: ClaudeAgentSdkSettings | None = None) -> str | None:
    """The program to run: the one of the settings, the one in the SDK's own package, or `claude` on PATH."""
    if settings is not None and settings.program is not None:
        found = shutil.which(os.path.expanduser(settings.program))
    else:
        found = _bundled() or shutil.which(f"{NAME}.exe" if os.name == "nt" else NAME)
    if found is None or (os.name == "nt" and found.lower().endswith(SCRIPTS)):
        return None
    return os.path.abspath(found)


def _bundled() -> str | None:
    try:
        spec = importlib.util.find_spec("claude_agent_sdk")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "_bundled", f"{NAME}.exe" if os.name == "nt" else NAME)
        if path.is_file():
            return str(path)
    return None


def unavailable(settings: ClaudeAgentSdkSettings | None = None) -> str | None:
    """Why there is no program to run, or None."""
    if program_path(settings) is not None:
        return None
    if settings is not None and settings.program is not None:
        return f"program in [plugins.claude_agent_sdk] is {settings.program!r}, which is not a program that can be run"
    return MISSING


@frozen(kw_only=True)
class Choices:
    """The part of `extra_kwargs` that this adapter knows."""

    tools: tuple[str, ...] = DEFAULT_TOOLS
    """Of the program's own tools, those that an answering agent is offered."""
    effort: str | None = None
    claude_code_prompt: bool = False
    """Whether karenina's prompt is put after the program's own, and not in its place."""
    most_bytes: int = SESSION_MAX_BYTES
    """How much the program may write to its stdout in one session."""


def choices(config: ModelConfig) -> Choices:
    """Raises ConfigError where `extra_kwargs` cannot be used."""
    if found := list(_extra_problems(config)):
        raise ConfigError(found)
    extra = config.extra_kwargs
    return Choices(
        tools=tuple(dict.fromkeys(extra.get("tools", DEFAULT_TOOLS))),
        effort=extra.get("effort"),
        claude_code_prompt=extra.get("claude_code_prompt", False),
        most_bytes=extra.get("max_response_bytes", SESSION_MAX_BYTES),
    )


def problems(config: ModelConfig) -> Iterator[str]:
    """What is wrong with a configuration, as `field: message`. Nothing is asked and nothing imported."""
    if config.model_provider not in (None, PROVIDER):
        yield (
            f"model_provider: the agent always asks {PROVIDER}; remove the provider, or use the interface 'litellm' "
            f"for {config.model_provider}"
        )
    if config.temperature not in (None, fields_dict(ModelConfig)["temperature"].default):
        yield "temperature: the program has no option for it and uses its own; leave it out"
    if config.endpoint_base_url is not None:
        yield from address_problems(config.endpoint_base_url)
    yield from _extra_problems(config)
    yield from key_problems(config)


def _extra_problems(config: ModelConfig) -> Iterator[str]:
    extra = config.extra_kwargs
    for name in sorted(set(extra) - set(KNOWN)):
        yield f"extra_kwargs.{name}: cannot be passed on to the agent; available: {', '.join(KNOWN)}"
    tools = extra.get("tools", DEFAULT_TOOLS)
    if isinstance(tools, str) or not isinstance(tools, list | tuple) or not all(map(_is_tool_name, tools)):
        yield f"extra_kwargs.tools: must be a list of names such as {list(DEFAULT_TOOLS)}, not {tools!r}"
    if (effort := extra.get("effort")) is not None and effort not in EFFORTS:
        yield f"extra_kwargs.effort: must be one of {', '.join(EFFORTS)}, not {effort!r}"
    if not isinstance(own := extra.get("claude_code_prompt", False), bool):
        yield f"extra_kwargs.claude_code_prompt: must be true or false, not {own!r}"
    yield from size_problems(extra)


def _is_tool_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name) and not set(name) & set(NAME_ENDS) and not name.startswith("-")
