"""What a session of the program is surrounded by: its folders and its environment variables."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import field, frozen
from karenina_calls.secrets.redaction import Secrets

from karenina_core.secrets import SHORTEST, is_secret_name, secrets_in
from karenina_core.values.config import ModelConfig

from .settings import ClaudeAgentSdkSettings

PASSED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
    | {"APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE"}
)
"""Variables that the program always gets, with those of the locale (`LC_...`). The last row is for Windows."""
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
ADDRESS = "ANTHROPIC_BASE_URL"
SETTINGS_FOLDER = "CLAUDE_CONFIG_DIR"
NO_KEY = "no-key"
MARK = "KARENINA_AGENT_SESSION"
"""The variable by which everything that a session has started is recognised."""
FIXED = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


@frozen(kw_only=True)
class Surroundings:
    """Where one session of the program works, and with what."""

    folder: Path
    """Its working folder."""
    private: Path
    """A folder of the session alone, which is removed afterwards."""
    environment: Mapping[str, str] = field(repr=False)
    """All of its variables."""
    secrets: Secrets = field(factory=Secrets, repr=False)
    """Values in them that must be shown nowhere."""


@asynccontextmanager
async def surrounded(
    config: ModelConfig, settings: ClaudeAgentSdkSettings, workspace: Path | None, *, retries: bool
) -> AsyncIterator[Surroundings]:
    """The surroundings of one session; without a workspace it works in an empty folder that is removed at the end.

    `retries`: whether the program may try a failed request again. Raises OSError and ConfigError.
    """
    made = tempfile.TemporaryDirectory(prefix="karenina-claude-", ignore_cleanup_errors=True)
    try:
        private = Path(made.name)
        folder = _working_folder(private, workspace)
        environment, secrets = _environment(config, settings, private)
        environment |= {"PWD": str(folder), MARK: uuid4().hex}
        if not retries:
            environment["CLAUDE_CODE_MAX_RETRIES"] = "0"
        yield Surroundings(folder=folder, private=private, environment=environment, secrets=secrets)
    finally:
        await uninterrupted(asyncio.to_thread(made.cleanup))


def _working_folder(private: Path, workspace: Path | None) -> Path:
    (private / "config").mkdir()
    if workspace is not None:
        return workspace.resolve()
    (private / "work").mkdir()
    return private / "work"


def _environment(
    config: ModelConfig, settings: ClaudeAgentSdkSettings, private: Path
) -> tuple[dict[str, str], Secrets]:
    """The variables, and the secrets among their values."""
    given = os.environ
    passed = {name: value for name, value in given.items() if name.upper() in PASSED or name.startswith("LC_")}
    named = {name: given[name] for name in settings.environment if name in given}
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
    if config.endpoint_base_url is not None:
        address = {ADDRESS: config.endpoint_base_url}
        key = key or NO_KEY  # else the program would send the user's own login there
    else:
        address = {}
    if key:
        return {config.api_key_env if config.api_key_env in KEYS else KEYS[0]: key, **address}
    return {name: os.environ[name] for name in (*KEYS, ADDRESS) if os.environ.get(name)}


async def uninterrupted(work: Awaitable[Any]) -> None:
    """Await something to its end, also where the waiting task is cancelled meanwhile; then that is passed on."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
