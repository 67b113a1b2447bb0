"""What the guards look at: the repository, its files and its distributions."""

from __future__ import annotations

import gc
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.structure import Structure, read_structure

COUNTED_ON = (3, 11)
REPOSITORY = Path(__file__).parents[2]
NOT_OURS = {".git", ".venv", "venv", "wheels", "build", "dist", "__pycache__", "karenina-runs"}


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """Every file that is, or would be, under version control; generated ones are not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True).stdout.split("\0")
        found = [REPOSITORY / name for name in listed if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive, or no git
        found = [path for path in REPOSITORY.rglob("*") if not _is_generated(path.relative_to(REPOSITORY))]
    return sorted(path for path in found if path.is_file() and not path.is_symlink())


@pytest.fixture(scope="session")
def within_budget() -> Callable[[str, float, float, str], None]:
    """Call it with what is counted, how much it is, its budget, and the command that counts it. Budgets are a little
    above what is counted today: so each change that costs something is one that somebody has decided. They are those of
    CPython 3.11, for another one calls and holds other things: there nothing is held against them."""
    if sys.version_info[:2] != COUNTED_ON:
        pytest.skip(f"budgets of counted work are those of CPython {'.'.join(map(str, COUNTED_ON))}")

    def check(what: str, counted: float, budget: float, see: str) -> None:
        assert counted <= budget, (
            f"{what}: {counted:g}, and the budget is {budget:g}. What is done more than before, and must it be? "
            f"`{see}` counts it, here and in a checkout of before. Raise the budget only for something that is worth "
            "it, in the change that brings it, and say there for what"
        )
        assert counted > budget / 2, (
            f"{what}: only {counted:g} of {budget:g}. If that much was saved, lower the budget so that it stays saved; "
            f"if not, `{see}` does not count any more what it should"
        )

    return check


def _is_generated(path: Path) -> bool:
    return bool(NOT_OURS & set(path.parts)) or any(p.endswith(("_cache", ".egg-info")) for p in path.parts)


@pytest.fixture(scope="session")
def structure() -> Structure:
    """What is shipped, read and parsed. To look for garbage among the trees takes three times as long as to parse."""
    gc.disable()
    try:
        found = read_structure()
        assert found.imports, "every tree is there"
        return found
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def core_pyproject() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="session")
def plugin_pyprojects() -> dict[str, dict[str, Any]]:
    """`{folder under plugins: its pyproject.toml}`."""
    return {
        path.parent.name: tomllib.loads(path.read_text("utf-8"))
        for path in sorted(REPOSITORY.glob("plugins/*/pyproject.toml"))
    }


@pytest.fixture(scope="session")
def source_files(files: list[Path]) -> list[Path]:
    """The Python modules that are shipped: the core's and the plugins', without tests."""
    return [path for path in files if path.suffix == ".py" and _is_shipped(path.relative_to(REPOSITORY))]


def _is_shipped(path: Path) -> bool:
    if path.parts[0] == "karenina_core":
        return True
    return path.parts[0] == "plugins" and len(path.parts) > 3 and path.parts[2].startswith("karenina_")
