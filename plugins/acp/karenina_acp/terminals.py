"""Commands that an agent lets karenina run, https://agentclientprotocol.com/protocol/terminals."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from karenina_calls.agents.program import CHUNK, close_pipes, is_over, signal_group
from karenina_calls.files.sandboxed_names import Refused

from karenina_core.secrets import is_secret_name

MOST_OUTPUT = 1_000_000
"""Bytes kept of what a command prints, as many as the example of the protocol asks for."""
MOST_TERMINALS = 64
"""At a time. Chosen, not measured: far more than an agent has use for."""
LOOK_SECONDS = 60.0  # the command is waited for again after it: any length does
SHELL = ("/bin/sh", "-c")
"""Agents send a whole command line where they send no arguments, and editors hand it to a shell."""


@define(eq=False)
class _Terminal:
    process: Process
    most: int
    output: bytearray = field(factory=bytearray)
    truncated: bool = False
    reading: asyncio.Task[None] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while chunk := await self.process.stdout.read(CHUNK):
            self.output += chunk
            if (surplus := len(self.output) - self.most) > 0:
                del self.output[:surplus]
                self.truncated = True

    def text(self) -> str:
        return self.output.decode(errors="ignore" if self.truncated else "replace")

    def status(self) -> dict[str, Any] | None:
        code = self.process.returncode
        if code is None:
            return None
        if code < 0:
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": code, "signal": None}


@define(eq=False)
class Terminals:
    """The commands of one session. They run in its folder, as the user who runs karenina."""

    folder: Path
    environment: Mapping[str, str]
    _open: dict[str, _Terminal] = field(factory=dict, init=False)
    _shown: dict[str, _Terminal] = field(factory=dict, init=False)
    """Also those that were released: their output is still shown."""

    async def create(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises Refused, KeyError, TypeError, ValueError and OSError, as the others do."""
        if len(self._open) >= MOST_TERMINALS:
            raise Refused(f"there are {MOST_TERMINALS} terminals already: release one")
        folder = await asyncio.to_thread(Path(params.get("cwd") or self.folder).resolve)
        if not folder.is_relative_to(self.folder):
            raise Refused(f"{str(folder)!r} is outside the workspace: run commands inside of it")
        given = {str(one["name"]): str(one["value"]) for one in params.get("env") or ()}
        command, arguments = str(params["command"]), [str(word) for word in params.get("args") or ()]
        process = await asyncio.create_subprocess_exec(
            *((command, *arguments) if arguments else (*SHELL, command)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=folder,
            env={name: text for name, text in self.environment.items() if not is_secret_name(name)} | given,
            start_new_session=True,
        )
        limit = params.get("outputByteLimit")
        most = min(MOST_OUTPUT, limit) if isinstance(limit, int) and limit >= 0 else MOST_OUTPUT
        number = f"terminal-{len(self._shown) + 1}"
        self._open[number] = self._shown[number] = _Terminal(process, most)
        return {"terminalId": number}

    async def output(self, params: Mapping[str, Any]) -> dict[str, Any]:
        terminal = self._found(params)
        status = terminal.status()
        if status is not None:
            await asyncio.wait([terminal.reading], timeout=0.2)  # the rest, unless another process holds the pipe
        about = {"exitStatus": status} if status is not None else {}
        return {"output": terminal.text(), "truncated": terminal.truncated, **about}

    async def wait_for_exit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        terminal = self._found(params)
        while not await is_over(terminal.process, LOOK_SECONDS):
            pass
        return terminal.status() or {}

    async def kill(self, params: Mapping[str, Any]) -> dict[str, Any]:
        signal_group(self._found(params).process, "SIGKILL")
        return {}

    async def release(self, params: Mapping[str, Any]) -> dict[str, Any]:
        await self.kill(params)
        self._open.pop(params["terminalId"])
        return {}

    def shown(self, number: str) -> str:
        """What the command of a terminal has printed; an empty text where there is none of this name."""
        terminal = self._shown.get(number)
        return terminal.text() if terminal is not None else ""

    async def aclose(self) -> None:
        """Kill what still runs."""
        for terminal in self._shown.values():
            signal_group(terminal.process, "SIGKILL")
            terminal.reading.cancel()
            close_pipes(terminal.process)

    def _found(self, params: Mapping[str, Any]) -> _Terminal:
        number = params["terminalId"]
        if number not in self._open:
            raise Refused(f"there is no terminal {number!r}")
        return self._open[number]
