"""A program that works as an agent, as a process with its folders: started with few environment variables, read within
bounds, ended with all its children."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import field, frozen

from karenina_core.errors import PortError

from ..files.process_cleanup import end_marked
from ..secrets.redaction import Secrets

PASSED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
    | {"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
    | {"APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE"}
)
"""Variables that a program always gets, with those of the locale (`LC_...`). The last row is for Windows."""
MARK = "KARENINA_AGENT_SESSION"
"""The variable by which everything that a session has started is recognised."""
CHUNK = 65536  # what a pipe of Linux holds
MOST_OUTPUT = 2000
"""Characters kept of what the program prints beside its messages."""
GRACE_SECONDS = 1.0
"""For each step: ending when stdin ends, ending at SIGTERM, having ended after SIGKILL."""
DRAIN_SECONDS = 0.2
"""For what an ended program has printed to arrive. Chosen, not measured."""


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


def passed_environment(names: Iterable[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """The variables that a program always gets, and of those that are set the ones called `names`."""
    given = os.environ
    passed = {name: value for name, value in given.items() if name.upper() in PASSED or name.startswith("LC_")}
    return passed, {name: given[name] for name in names if name in given}


@asynccontextmanager
async def session_folders(prefix: str, workspace: Path | None) -> AsyncIterator[tuple[Path, Path]]:
    """The private folder of one session, and the one to work in; without a workspace, an empty one that is removed at
    the end. Raises OSError."""
    made = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    try:
        yield Path(made.name), _working_folder(Path(made.name), workspace)
    finally:
        await uninterrupted(asyncio.to_thread(made.cleanup))


def _working_folder(private: Path, workspace: Path | None) -> Path:
    if workspace is not None:
        return workspace.resolve()
    (private / "work").mkdir()
    return private / "work"


def session_variables(folder: Path) -> dict[str, str]:
    """Variables of one session alone."""
    return {"PWD": str(folder), MARK: uuid4().hex}


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


class ProgramEnded(Exception):
    """The program ended before its work did."""


class AgentProgram:
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
        """Whether its work is done, after which it may end by itself."""

    async def start(self) -> None:
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

    async def write(self, data: str) -> None:
        """Send a text. Where the program has ended, the reader of its messages gets the error."""
        async with self._writing:
            if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
                return
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(data.encode("utf-8", "replace"))
                await self._process.stdin.drain()

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """The messages as they come, one JSON object a line; what else is printed counts as last output. Raises
        PortError (`bad_response`, `too_large`), and ProgramEnded at the end of an output without a result."""
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
            await is_over(self._process, GRACE_SECONDS)  # then its exit code and its last words are known
            await self._drained()
            raise ProgramEnded

    # What is known about it

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

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
        self.close_input()
        for name in (*([""] if self.finished else []), "SIGTERM", "SIGKILL"):
            if name:
                self._signal(name)
            if await is_over(process, GRACE_SECONDS):
                break
        self._ended = True
        self._signal("SIGKILL")
        await asyncio.to_thread(end_marked, MARK, self._surroundings.environment[MARK])
        await self._drained()
        if self._listening is not None:
            self._listening.cancel()
        close_pipes(process)

    def close_input(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _signal(self, name: str) -> None:
        if self._process is not None:
            signal_group(self._process, name)

    # Reading

    async def _drained(self) -> None:
        """Wait for the end of stderr, unless another process holds it open."""
        if self._listening is not None:
            await asyncio.wait([self._listening], timeout=DRAIN_SECONDS)

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
            raise PortError("the program wrote a message that is not JSON", kind="bad_response", raw=raw) from error
        return message


def signal_group(process: Process, name: str) -> None:
    """Send a signal to a process and all of its group; those that outlive it are reached too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.kill()


def close_pipes(process: Process) -> None:
    """A process that could not be ended may hold the pipes open; only asyncio's own name leads to them."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with contextlib.suppress(PermissionError):
            transport.close()


async def is_over(process: Process, seconds: float) -> bool:
    """Whether the process ends in this time. `Process.wait` would also wait for others that hold its pipes."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while process.returncode is None:
        if clock() > until:
            return False
        await asyncio.sleep(0.01)
    return True
