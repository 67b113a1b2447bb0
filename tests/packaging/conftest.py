"""Building distributions as they would be published, and environments that know nothing of this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NEEDED = ("karenina-generation", "karenina-jsonld", "karenina-manual", "karenina-results", "karenina-template")


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def projects() -> dict[str, Path]:
    """`{distribution: folder}` of the core and every plugin."""
    plugins = sorted(path.parent for path in REPOSITORY.glob("plugins/*/pyproject.toml"))
    return {"karenina-core": REPOSITORY, **{f"karenina-{folder.name}": folder for folder in plugins}}


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without anything that could change which packages are found."""
    foreign = ("PIP_", "UV_", "KARENINA_", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **more}


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a clean environment and demand that it succeeds."""

    def succeed(command: Sequence[str | Path], cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=clean_environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{command} exited with {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    return succeed


@pytest.fixture(scope="session")
def build(
    tmp_path_factory: pytest.TempPathFactory, run: Callable[..., subprocess.CompletedProcess[str]]
) -> Callable[[Path], Path]:
    """Build sdist and wheel of a project with its own build backend, without a network; returns the folder of both."""
    built: dict[Path, Path] = {}

    def make(project: Path) -> Path:
        if project not in built:
            out = tmp_path_factory.mktemp("dist")
            run([sys.executable, "-m", "hatchling", "build", "--directory", out], project)
            built[project] = out
        return built[project]

    return make


@pytest.fixture(scope="session")
def wheels(repository: Path) -> Path:
    """The folder of wheels. One that is named must be usable; only where none is, the tests are skipped."""
    named = os.environ.get("KARENINA_WHEELS")
    folder = Path(named) if named else repository / ".ci" / "wheels"
    if not any(folder.glob("pluggy-*.whl")):
        if named:
            pytest.fail(f"KARENINA_WHEELS: there are no wheels in {folder}")
        pytest.skip(f"there is no folder of wheels at {folder}; .ci/run fills one")
    return folder


@pytest.fixture(scope="session")
def sources(wheels: Path, projects: dict[str, Path], build: Callable[[Path], Path]) -> list[Path]:
    """The folders that karenina and all that it depends on can be installed from."""
    return [wheels, *(build(projects[name]) for name in ("karenina-core", *NEEDED))]


@pytest.fixture(scope="session")
def fresh(
    sources: list[Path], run: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """`fresh(*distributions, built=[folder])`: a new environment with karenina and these, installed from wheels."""

    def make(*distributions: str, built: Sequence[Path] = ()) -> Path:
        folder = tmp_path_factory.mktemp("fresh") / "venv"
        run([sys.executable, "-m", "venv", folder], folder.parent)
        places = [option for place in (*sources, *built) for option in ("--find-links", str(place))]
        install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", *places]
        run([*install, *distributions, *NEEDED], folder.parent)
        return folder

    return make
