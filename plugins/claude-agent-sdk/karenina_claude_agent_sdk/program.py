"""The program as a process, with its folders: started with few environment variables, read within bounds, ended with
all its children.

It is the transport of an SDK session. The SDK's own hands on every variable, leaves what the program started running
and leaves its stderr alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import field, frozen
from karenina_calls.files.process_cleanup import end_marked
from karenina_calls.secrets.redaction import Secrets

from karenina_core.errors import PortError
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
    address = {} if config.endpoint_base_url is None else {ADDRESS: config.endpoint_base_url}
    if address:
        key = key or NO_KEY  # else the program would send the user's own login there
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


CHUNK = 65536
MOST_OUTPUT = 2000
"""Characters kept of what the program prints beside its messages."""
GRACE_SECONDS = 1.0
"""For each step: ending when stdin ends, ending at SIGTERM, having ended after SIGKILL."""


class ProgramEnded(Exception):
    """The program ended before its work did."""


class Program:
    """One run of the program. `end` has to be awaited, whatever happened."""

    def __init__(self, command: Sequence[str], surroundings: Surroundings, most_bytes: int) -> None:
        self._command = command
        self._surroundings = surroundings
        self._limit = most_bytes
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._words = bytearray()
        self._ended = False
        self.finished = False
        """Whether it has given its result, after which it may end by itself."""

    # The transport of a session

    async def connect(self) -> None:
        """Start the program. Raises OSError where it cannot be started."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self._surroundings.folder,
            env=dict(self._surroundings.environment),
            start_new_session=True,
        )
        self._listening = asyncio.create_task(self._listen(self._process))

    def is_ready(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def write(self, data: str) -> None:
        """Send a message. Where the program has ended, the reader of its messages gets the error."""
        async with self._writing:
            if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
                return
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(data.encode("utf-8", "replace"))
                await self._process.stdin.drain()

    async def end_input(self) -> None:
        self._close_input()

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """The messages as they come. Raises PortError (`bad_response`, `too_large`), and ProgramEnded at the end of an
        output without a result."""
        if self._process is None or self._process.stdout is None:
            raise ProgramEnded
        growing, received = bytearray(), 0
        while chunk := await self._process.stdout.read(CHUNK):
            received += len(chunk)
            if received > self._limit:
                raise PortError(
                    f"the program wrote more than {self._limit} bytes; allow more with extra_kwargs max_response_bytes",
                    kind="too_large",
                )
            growing += chunk
            if b"\n" not in chunk:
                continue
            *lines, growing = growing.split(b"\n")
            for line in lines:
                if (message := self._message(line)) is not None:
                    yield message
        if (message := self._message(growing)) is not None:
            yield message
        if not self.finished:
            raise ProgramEnded

    async def close(self) -> None:
        """Called by the SDK at the end of a session."""
        await self.end()

    # What is known about it

    @property
    def exit_code(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    def last_output(self) -> str:
        """The end of what it printed beside its messages, at most 2000 characters, without secrets."""
        return self.without_secrets(self._words.decode(errors="replace").strip())[-MOST_OUTPUT:]

    def without_secrets(self, text: str) -> str:
        return self._surroundings.secrets.text(text)

    # The end

    def hurry(self) -> None:
        """Ask the program to end now, in the middle of its work."""
        self._signal("SIGTERM")

    async def end(self) -> None:
        """End the program and all that it has started; may be called any number of times."""
        process = self._process
        if process is None or self._ended:
            return
        self._close_input()
        for name in (*([""] if self.finished else []), "SIGTERM", "SIGKILL"):
            if name:
                self._signal(name)
            if await _is_over(process, GRACE_SECONDS):
                break
        self._ended = True
        self._signal("SIGKILL")
        await asyncio.to_thread(end_marked, MARK, self._surroundings.environment[MARK])
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=0.2)
            self._listening.cancel()
        # a process that could not be ended may hold the pipes open; only asyncio's own name leads to them
        transport = getattr(process, "_transport", None)
        if transport is not None:
            with contextlib.suppress(PermissionError):
                transport.close()

    def _signal(self, name: str) -> None:
        """Send a signal to the program and all of its group; those that outlive it are reached too."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, getattr(signal, name))
            else:
                self._process.kill()

    def _close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    # Reading

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None
        while words := await process.stderr.read(CHUNK):
            self._record(words)

    def _record(self, words: bytes | bytearray) -> None:
        self._words += words[-4 * MOST_OUTPUT :]
        del self._words[: -4 * MOST_OUTPUT]

    def _message(self, line: bytes | bytearray) -> dict[str, Any] | None:
        """The message on a line; None for what the program prints beside its messages."""
        text = line.strip()
        if not text.startswith(b"{"):
            if text:
                self._record(text + b"\n")
            return None
        try:
            message: dict[str, Any] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raw = self.without_secrets(text.decode(errors="replace"))
            raise PortError("the program wrote a message that is no JSON", kind="bad_response", raw=raw) from error
        self.finished = self.finished or message.get("type") == "result"
        return message


async def _is_over(process: Process, seconds: float) -> bool:
    """Whether the program ends in this time. `Process.wait` would also wait for other processes that hold its pipes."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while process.returncode is None:
        if clock() > until:
            return False
        await asyncio.sleep(0.01)
    return True
