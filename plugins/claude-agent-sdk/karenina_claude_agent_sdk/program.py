"""The program as a process: started with few environment variables, read within bounds, ended with all its children.

It is the transport of an SDK session. The SDK's own hands on every variable, leaves what the program started running
and leaves its stderr alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from typing import Any

from karenina_calls.files.process_cleanup import end_marked

from karenina_core.errors import PortError

from .surroundings import MARK, Surroundings

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
