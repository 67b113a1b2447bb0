"""Processes and a small disk for the tests in this folder."""

from __future__ import annotations

import importlib.util
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"faults_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


@pytest.fixture(scope="session")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Starts processes of the command line that need not import anything."""
    folder = tmp_path_factory.mktemp("warm")
    world = loaded("run_world")
    with ScriptedServer(world.said) as server:
        benchmark = world.write_benchmark(folder / "one.jsonld", 1)
        config = world.write_config(folder / "config.toml", server.url, 1)
        run = str(folder / "run")
        words = [["verify", str(benchmark), "--config", str(config), "--out", run], ["resume", run], ["doctor", run]]
        with loaded("forking").Forking(*words) as started:
            yield started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes. Where none can be mounted, the limit of `setrlimit` has to do."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    try:
        yield disk
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(disk)], check=True)
