"""The command as users run it, in a process that may not reach anything but this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

PROJECT = Path(__file__).parents[1]
FORBID = """
import os, sys

def forbid(event, arguments):
    address = arguments[1] if event == "socket.connect" else None
    outside = isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1")
    if outside or event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        os.write(2, f"NETWORK {event} {arguments[1:]}\\n".encode())
        os._exit(86)

sys.addaudithook(forbid)
"""
"""Ends the process at the first attempt to look up a name or to connect to anything but loopback."""


@pytest.fixture(scope="session")
def project() -> Path:
    return PROJECT


@pytest.fixture(scope="session")
def script() -> Mapping[str, Mapping[str, Any]]:
    """What every model says to every question, and what must come of it."""
    loaded: Mapping[str, Mapping[str, Any]] = json.loads((PROJECT / "script.json").read_text("utf-8"))
    return loaded


def surroundings(**variables: object) -> dict[str, str]:
    """The environment without settings and keys, and with these variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KARENINA_")}
    kept = {name: value for name, value in kept.items() if not name.upper().endswith(("_KEY", "_TOKEN"))}
    return kept | {name: str(value) for name, value in variables.items()}


@pytest.fixture(scope="session")
def execute(forking: Any) -> Callable[..., CompletedProcess[str]]:
    """`execute(folder, "demo", ..., KARENINA_DISABLE="x")`: the command in a folder, without key and network."""

    def done(folder: Path, *words: object, **environment: object) -> CompletedProcess[str]:
        ran = forking.start(*words, prelude=FORBID, folder=folder, environment=surroundings(**environment))
        return CompletedProcess(words, ran.wait(60), ran.stdout, ran.stderr)

    return done


@pytest.fixture
def karenina(execute: Callable[..., CompletedProcess[str]], tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """`execute` in the folder of the test."""
    return partial(execute, tmp_path)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CompletedProcess[str]]:
    """An empty folder, and the demo as it ran there in a process that is guarded before it imports anything."""
    folder = tmp_path_factory.mktemp("demo")
    program = f"{FORBID}\nfrom karenina_cli import main\nmain()"
    command = [sys.executable, "-c", program, "demo"]
    ran = subprocess.run(
        command, cwd=folder, env=surroundings(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return folder, ran


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., Path]:
    """`site("name", entry="module", module="source")`: a folder for PYTHONPATH with an installed package in it."""

    def install(name: str, plugins: Mapping[str, str], **modules: str) -> Path:
        folder = tmp_path / "site"
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        points = "\n".join(f"{entry} = {module}" for entry, module in plugins.items())
        (metadata / "entry_points.txt").write_text(f"[karenina.plugins]\n{points}\n")
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(source)
        return folder

    return install
