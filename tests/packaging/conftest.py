"""Building distributions as they would be published, and environments that know nothing of this repository."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
NEEDED = (
    *("karenina-cli", "karenina-generation", "karenina-jsonld", "karenina-replay", "karenina-results"),
    "karenina-template",
)
"""What runs a benchmark of templates with recorded answers, from the command line."""
BUILD = """
import importlib, sys
backend = importlib.import_module(sys.argv[1])
backend.build_sdist(sys.argv[2])
backend.build_wheel(sys.argv[2])
"""
"""The hooks of a build backend (PEP 517), called in the project's folder as a front end does."""


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def projects() -> dict[str, Path]:
    """`{distribution: folder}` of the core and every plugin."""
    plugins = sorted(path.parent for path in REPOSITORY.glob("plugins/*/pyproject.toml"))
    return {"karenina-core": REPOSITORY, **{f"karenina-{folder.name}": folder for folder in plugins}}


@pytest.fixture(scope="session")
def closure(projects: dict[str, Path]) -> Callable[..., list[str]]:
    """`closure(*distributions)`: these, and those of this repository that they declare, directly or not."""

    def needed(*distributions: str) -> list[str]:
        found: set[str] = set()
        waiting = [*distributions]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                project = tomllib.loads((projects[name] / "pyproject.toml").read_text("utf-8"))["project"]
                lines = (re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0] for line in project["dependencies"])
                waiting += [line for line in lines if line in projects]
        return sorted(found)

    return needed


def pip(venv: Path) -> list[str | Path]:
    """The `pip` that runs the tests, for another environment: to install one into each takes longer than all else."""
    return [sys.executable, "-m", "pip", "--python", venv / "bin" / "python"]


@pytest.fixture(scope="session", name="pip")
def pip_for() -> Callable[[Path], list[str | Path]]:
    return pip


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
    """Build sdist and wheel of a project with its own build backend, without a network; returns the folder of both.
    They are built once, whichever worker needs them first."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # of all workers of a session

    def make(project: Path) -> Path:
        out = shared / f"built-{sha256(str(project).encode()).hexdigest()[:16]}"
        out.mkdir(exist_ok=True)
        with (out / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (out / "complete").exists():
                settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
                run([sys.executable, "-c", BUILD, settings["build-system"]["build-backend"], out], project)
                (out / "complete").touch()
        return out

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
def places(
    wheels: Path, projects: dict[str, Path], build: Callable[[Path], Path], closure: Callable[..., list[str]]
) -> Callable[..., list[Path]]:
    """`places(*distributions)`: the folders that these, and all that they depend on, can be installed from."""
    return lambda *distributions: [wheels, *(build(projects[name]) for name in closure(*distributions))]


@pytest.fixture(scope="session")
def bare(
    places: Callable[..., list[Path]],
    run: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Path]:
    """`bare(*distributions, built=[folder])`: a new environment with these alone, installed from wheels; those of other
    projects are in the folders `built`."""

    def make(*distributions: str, built: Sequence[Path] = ()) -> Path:
        folder = tmp_path_factory.mktemp("fresh") / "venv"
        run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
        ours = [name.partition("[")[0] for name in distributions if name.startswith("karenina-")]
        extras = ["karenina-testing"] if "karenina-core[testing]" in distributions else []
        known = [name for name in (*ours, *extras) if not name.startswith(("karenina-stranger", "karenina-example"))]
        links = [option for place in (*places(*known), *built) for option in ("--find-links", str(place))]
        run([*pip(folder), "install", "--quiet", "--no-index", "--no-compile", *links, *distributions], folder.parent)
        return folder

    return make


@pytest.fixture(scope="session")
def fresh(bare: Callable[..., Path]) -> Callable[..., Path]:
    """`bare`, with what runs a benchmark of templates from the command line."""
    return lambda *distributions, built=(): bare(*distributions, *NEEDED, built=built)


@pytest.fixture(scope="session")
def sources(places: Callable[..., list[Path]]) -> list[Path]:
    """Where a reader of the tutorials installs from."""
    return places(*NEEDED, "karenina-testing")
