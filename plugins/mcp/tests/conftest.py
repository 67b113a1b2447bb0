"""Tool servers in processes of their own, and clients of them that are closed after each test."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from karenina_mcp.server import McpServer
from karenina_mcp.settings import McpSettings
from karenina_testing.watch.processes import still_running

HERE = Path(__file__).parent / "data"
OURS = f"of-test-process-{os.getpid()}"
"""Among the arguments of every program that is started here, so that it is found in the table of processes."""
Use = Callable[[McpServer, dict[str, Any]], Awaitable[Any]]


def command(script: str, *arguments: object) -> str:
    return shlex.join([sys.executable, str(HERE / script), *map(str, arguments), OURS])


@pytest.fixture(autouse=True)
def no_program_is_left() -> Iterator[None]:
    """After every test, whatever it did."""
    yield
    assert still_running(OURS) == []


def used(address: str, use: Use, name: str = "tools", **settings: Any) -> Any:
    """Open a client of the address, let `use` work with it and its tools by name, and close it in any case."""
    # where the SDK lies in PYTHONPATH, a server that is written with it needs the variable too
    given = {name: ("PYTHONPATH",), **settings.pop("environment", {})}
    client = McpServer(name, address, McpSettings(**{"start_seconds": 20, "environment": given, **settings}))

    async def run() -> Any:
        try:
            await client.aopen()
            return await use(client, {tool.name: tool for tool in await client.alist()})
        finally:
            await client.aclose()

    return asyncio.run(asyncio.wait_for(run(), 40))


class OnStdio:
    """A server of tools on stdio, and the processes that were started of it."""

    def __init__(self, folder: Path, script: str) -> None:
        self.pids, self.script = folder / "pids", script
        self.address = self.changing("nothing")

    def changing(self, what: str) -> str:
        """The address of one that makes the change when it is started again."""
        return command(self.script, self.pids, what)

    def processes(self) -> list[int]:
        return [int(line) for line in self.pids.read_text().split()] if self.pids.exists() else []

    def use(self, use: Use, **settings: Any) -> Any:
        return used(self.address, use, **settings)


@pytest.fixture
def on_stdio(tmp_path: Path) -> OnStdio:
    """Of `tools_on_stdio.py`, which is written with the SDK."""
    return OnStdio(tmp_path, "tools_on_stdio.py")


@pytest.fixture
def quick(tmp_path: Path) -> OnStdio:
    """Of `quick_on_stdio.py`, which starts at once, where it does not matter how a server is written."""
    return OnStdio(tmp_path, "quick_on_stdio.py")


@pytest.fixture
def connect() -> Callable[..., Any]:
    """`connect(address, use, **settings)`, see `used`."""
    return used


@pytest.fixture
def plain() -> Callable[[str], str]:
    """The address of a server with the given fault."""
    return lambda fault: command("plain_server.py", fault)


class OnHttp:
    """Servers on the web: those of `tools_on_http.py`, which `host` starts, and those of `mute_service.py`."""

    def __init__(self, host: subprocess.Popen[str]) -> None:
        self.host = host
        self.processes: list[int] = []
        self.programs: list[subprocess.Popen[str]] = []

    def start(self, kind: str = "streamable", port: int = 0) -> int:
        """Start one and give its port."""
        assert self.host.stdin is not None
        assert self.host.stdout is not None
        self.host.stdin.write(f"{kind} {port}\n")
        self.host.stdin.flush()
        process, found = map(int, self.host.stdout.readline().split())
        self.processes.append(process)
        return found

    def mute(self, kind: str) -> int:
        """Start one of `mute_service.py`."""
        line = [sys.executable, str(HERE / "mute_service.py"), kind]
        server = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        self.programs.append(server)
        assert server.stdout is not None
        return int(server.stdout.readline())

    def kill(self) -> None:
        for server in self.programs:
            server.kill()
            server.communicate()
        for process in self.processes:
            until = time.monotonic() + 10
            with suppress(ProcessLookupError):  # raised when it has ended
                while time.monotonic() < until:
                    os.kill(process, signal.SIGKILL)
                    time.sleep(0.002)
        self.programs.clear()
        self.processes.clear()


@contextmanager
def measured() -> Iterator[list[int]]:
    """The most bytes that Python had allocated in the block, in a list that is filled at its end."""
    most: list[int] = []
    tracemalloc.start()
    try:
        yield most
        most.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.fixture
def most_memory() -> Callable[[], AbstractContextManager[list[int]]]:
    """`with most_memory() as most: ...`, then `most[0]` bytes; see `measured`."""
    return measured


@pytest.fixture(scope="session")
def http_host() -> Iterator[subprocess.Popen[str]]:
    line = [sys.executable, str(HERE / "tools_on_http.py")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        yield host


@pytest.fixture
def on_http(http_host: subprocess.Popen[str]) -> Iterator[OnHttp]:
    servers = OnHttp(http_host)
    yield servers
    servers.kill()
