"""What starting costs, in counted work, of CPython 3.11: an import at the top of a module is paid by every command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

SEE = "python -m tests.benchmarks.started"
MODULES = {"import karenina_core": 32, "karenina --help": 168}
"""Modules that are imported, beside those of a bare interpreter."""
CALLS = {"import karenina_core": 2350, "karenina --help": 30_000}
"""Calls of Python functions, without those that find modules and installed packages."""


@pytest.fixture(scope="module")
def started(repository: Path) -> Any:
    command = [sys.executable, "-m", "tests.benchmarks.started"]
    ran = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("what", MODULES)
def test_starting_imports_no_more_than_it_may(started: Any, what: str, within_budget: Callable[..., None]) -> None:
    within_budget(f"modules imported by {what}", len(started[what]["modules"]), MODULES[what], SEE)


@pytest.mark.parametrize("what", CALLS)
def test_starting_takes_no_more_calls_than_it_may(started: Any, what: str, within_budget: Callable[..., None]) -> None:
    within_budget(f"calls of {what}", started[what]["calls"], CALLS[what], SEE)


def test_the_metadata_of_a_package_is_read_once(started: Any) -> None:
    owners = {point.dist.name for point in entry_points(group="karenina.commands") if point.dist}
    assert "karenina-cli" in owners
    assert started["karenina --help"]["metadata"] <= len(owners)
