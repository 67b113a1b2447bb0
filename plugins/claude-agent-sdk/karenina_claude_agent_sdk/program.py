"""The program with its folders, its variables and its keys, as the transport of an SDK session.

The SDK's own transport hands on every variable, leaves what the program started running and leaves its stderr alone.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karenina_calls.agents.program import (
    AgentProgram,
    Surroundings,
    passed_environment,
    session_folders,
    session_variables,
)
from karenina_calls.secrets.redaction import Secrets

from karenina_core.secrets import SHORTEST, is_secret_name, secrets_in
from karenina_core.values.config import ModelConfig

from .settings import ClaudeAgentSdkSettings

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
ADDRESS = "ANTHROPIC_BASE_URL"
SETTINGS_FOLDER = "CLAUDE_CONFIG_DIR"
NO_KEY = "no-key"
FIXED = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


@asynccontextmanager
async def surrounded(
    config: ModelConfig, settings: ClaudeAgentSdkSettings, workspace: Path | None, *, retries: bool
) -> AsyncIterator[Surroundings]:
    """The surroundings of one session; without a workspace it works in an empty folder that is removed at the end.

    `retries`: whether the program may try a failed request again. Raises OSError and ConfigError.
    """
    async with session_folders("karenina-claude-", workspace) as (private, folder):
        (private / "config").mkdir()
        environment, secrets = _environment(config, settings, private)
        environment |= session_variables(folder)
        if not retries:
            environment["CLAUDE_CODE_MAX_RETRIES"] = "0"
        yield Surroundings(folder=folder, private=private, environment=environment, secrets=secrets)


def _environment(
    config: ModelConfig, settings: ClaudeAgentSdkSettings, private: Path
) -> tuple[dict[str, str], Secrets]:
    """The variables, and the secrets among their values."""
    given = os.environ
    passed, named = passed_environment(settings.environment)
    limits = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": config.max_tokens}
    if config.request_timeout is not None:
        limits["API_TIMEOUT_MS"] = max(1, round(config.request_timeout * 1000))
    access = _access(config)
    if any(name in access or name in named for name in KEYS):
        access[SETTINGS_FOLDER] = str(private / "config")  # nothing of the user's own settings and logins is needed
    elif SETTINGS_FOLDER in given:
        access[SETTINGS_FOLDER] = given[SETTINGS_FOLDER]
    texts = {name: str(value) for name, value in limits.items() if value is not None}
    keys = {value: name for name, value in access.items() if is_secret_name(name) and len(value) >= SHORTEST}
    keys.pop(NO_KEY, None)
    return {**passed, **FIXED, **texts, **named, **access}, Secrets({**secrets_in(named), **keys})


def _access(config: ModelConfig) -> dict[str, str]:
    """The key and the address. Keys of the environment go to no server that the configuration names."""
    key = (config.api_key() or "").strip()
    address = {} if config.endpoint_base_url is None else {ADDRESS: config.endpoint_base_url}
    if address:
        key = key or NO_KEY  # else the program would send the user's own login there
    if key:
        return {config.api_key_env if config.api_key_env in KEYS else KEYS[0]: key, **address}
    return {name: os.environ[name] for name in (*KEYS, ADDRESS) if os.environ.get(name)}


class Program(AgentProgram):
    """One run of the program, as the transport of an SDK session."""

    async def connect(self) -> None:
        await self.start()

    def is_ready(self) -> bool:
        return self.is_running

    async def end_input(self) -> None:
        self.close_input()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        async for message in self.messages():
            yield message

    async def close(self) -> None:
        """Called by the SDK at the end of a session."""
        await self.end()

    def _message(self, line: bytes | bytearray) -> dict[str, Any] | None:
        message = super()._message(line)
        self.finished = self.finished or (message is not None and message.get("type") == "result")
        return message
