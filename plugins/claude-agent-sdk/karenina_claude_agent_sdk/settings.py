"""`[plugins.claude_agent_sdk]`: the program that is run, and what it is given."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from attrs import field, frozen

__all__ = ["MISSING", "ClaudeAgentSdkSettings", "program_path", "unavailable"]


@frozen(kw_only=True)
class ClaudeAgentSdkSettings:
    """`[plugins.claude_agent_sdk]`: the program that is run, and what it is given."""

    program: str | None = None
    """The program: a path, or a name to look for on PATH. By default the one that comes with the SDK, else `claude` on
    PATH."""
    environment: tuple[str, ...] = field(default=(), converter=tuple)
    """Names of environment variables that the program is given beside those that it always gets, such as
    `["HTTPS_PROXY"]`."""


NAME = "claude"
SCRIPTS = (".bat", ".cmd")
"""Windows hands arguments of these to a shell, which may take a text for a command: they are not run."""
MISSING = (
    "the program `claude` is not there: install it (npm install -g @anthropic-ai/claude-code, or a claude-agent-sdk "
    "that brings it along), or say where it is with program in [plugins.claude_agent_sdk]"
)


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
        return f"program in [plugins.claude_agent_sdk] is {settings.program!r}, which is no program that can be run"
    return MISSING
