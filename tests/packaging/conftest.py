"""Building distributions as they would be published, and environments that know nothing of this repository."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from importlib.metadata import Distribution, distribution, distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
NEEDED = (
    *("karenina-cli", "karenina-generation", "karenina-jsonld", "karenina-replay", "karenina-results"),
    "karenina-template",
)
"""What runs a benchmark of templates with recorded answers, from the command line."""
NEW = ("--quiet", "--no-index", "--no-compile", "--ignore-installed", "--no-warn-conflicts")
Run = Callable[..., subprocess.CompletedProcess[str]]


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def projects() -> dict[str, Path]:
    """`{distribution: folder}` of the core and every plugin."""
    plugins = sorted(path.parent for path in REPOSITORY.glob("plugins/*/pyproject.toml"))
    return {"karenina-core": REPOSITORY, **{f"karenina-{folder.name}": folder for folder in plugins}}


@pytest.fixture(scope="session")
def strangers() -> list[Path]:
    """The folders of packages that karenina does not know."""
    places = ("examples/plugins/*/pyproject.toml", "tests/packages/*/pyproject.toml")
    return sorted(path.parent for place in places for path in REPOSITORY.glob(place))


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
def run() -> Run:
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
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all workers of a session."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@contextlib.contextmanager
def unfinished(folder: Path) -> Iterator[bool]:
    """Whether the block has to fill the folder: whichever worker needs it first does, and the others wait for it."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "complete"
        yield not complete.exists()
        complete.touch()


@pytest.fixture(scope="session")
def build(shared: Path, run: Run, projects: dict[str, Path], strangers: list[Path]) -> Callable[..., list[Path]]:
    """`build(*projects)`: the folders of sdist and wheel of each, built with its own build backend, without a network.
    Those of this repository are built at once: to start a process for each takes seven times as long."""
    known = [*projects.values(), *strangers]

    def folder(project: Path) -> Path:
        return shared / f"built-{sha256(str(project).encode()).hexdigest()[:16]}"

    def make(*wanted: Path) -> list[Path]:
        together = known if set(wanted) <= set(known) else wanted
        with unfinished(folder(together[0])) as begin:
            if begin:
                pairs = chain.from_iterable((project, folder(project)) for project in together)
                run([sys.executable, REPOSITORY / ".ci" / "build.py", *pairs], shared)
        return [folder(project) for project in wanted]

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
def sources(
    wheels: Path,
    projects: dict[str, Path],
    strangers: list[Path],
    build: Callable[..., list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Path]:
    """The folders that everything can be installed from: two, because pip looks into each for every package."""
    folder = tmp_path_factory.mktemp("wheels")
    for wheel in chain.from_iterable(out.glob("*.whl") for out in build(*projects.values(), *strangers)):
        (folder / wheel.name).hardlink_to(wheel)
    return [wheels, folder]


@pytest.fixture(scope="session")
def by_pip(sources: list[Path], run: Run) -> Callable[..., Path]:
    """`by_pip(folder, *distributions)`: a new environment into which pip has installed these from wheels. Nothing is
    installed there before, which pip would look for again and again."""

    def make(folder: Path, *wanted: str) -> Path:
        run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
        links = [option for place in sources for option in ("--find-links", str(place))]
        run([*pip(folder), "install", *NEW, *links, *wanted], folder.parent)
        return folder

    return make


@pytest.fixture(scope="session")
def installed(
    wheels: Path, projects: dict[str, Path], strangers: list[Path], shared: Path, by_pip: Callable[..., Path]
) -> dict[str, Distribution]:
    """`{name: distribution}` of all that the folder of wheels is enough for: those of karenina and strangers in an
    environment into which pip has installed their wheels, the others as they are beside the tests. Nothing is run
    there: other environments take from it."""
    foreign = {normal(path.name.partition("-")[0]) for path in wheels.glob("*.whl")}
    available = set(foreign)
    needs = dict(map(_needed, (*projects.values(), *strangers)))
    while more := {name for name, needed in needs.items() if needed <= available} - available:
        available |= more
    folder = shared / "installed"
    with unfinished(folder) as begin:
        if begin:
            by_pip(folder / "venv", "--no-deps", *sorted(needs.keys() & available))
    places = list(map(str, folder.glob("venv/lib/python*/site-packages")))
    beside = {normal(found.name): found for found in distributions() if normal(found.name) in foreign}
    assert beside.keys() == foreign, f"in {wheels}, and not installed here: {foreign - beside.keys()}"
    return beside | {normal(found.name): found for found in distributions(path=places)}


def _needed(project: Path) -> tuple[str, set[str]]:
    """The name of a project, and of those that it depends on."""
    table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    return table["name"], {normal(Requirement(line).name) for line in table["dependencies"]}


@pytest.fixture(scope="session")
def closure(installed: dict[str, Distribution]) -> Callable[..., dict[str, Distribution]]:
    """`closure(*requirements)`: the distributions of these, and of all that they declare, by name. Versions fit."""

    def needed(*requirements: str) -> dict[str, Distribution]:
        waiting, seen = [*map(Requirement, requirements)], set()
        while waiting:
            wanted = waiting.pop()
            found = installed[normal(wanted.name)]
            assert wanted.specifier.contains(found.version, prereleases=True), f"{wanted} is not {found.version}"
            for extra in {"", *wanted.extras}:
                if (normal(wanted.name), extra) not in seen:
                    seen.add((normal(wanted.name), extra))
                    lines = map(Requirement, found.requires or ())
                    waiting += [line for line in lines if line.marker is None or line.marker.evaluate({"extra": extra})]
        return {name: installed[name] for name, _ in sorted(seen)}

    return needed


def placed(found: Distribution, packages: Path, scripts: Path | None = None) -> None:
    """Install what is installed elsewhere: its files, and its scripts where a folder for them is given. All that are
    placed share what Python has compiled of them, which takes longer than the rest."""
    for file in found.files or ():
        source, target = Path(str(file.locate())).resolve(), packages / file
        if "bin" in file.parts and ".." in file.parts:
            if scripts is not None:
                _, _, program = source.read_text("utf-8").partition("\n")
                (scripts / file.name).write_text(f"#!{scripts / 'python'}\n{program}", "utf-8")
                (scripts / file.name).chmod(0o755)
        elif "__pycache__" not in file.parts and ".." not in file.parts:
            if not target.parent.exists():
                target.parent.mkdir(parents=True)
            if file.suffix == ".py" and not (compiled := target.parent / "__pycache__").exists():
                with contextlib.suppress(PermissionError):  # of an environment that is another user's
                    (source.parent / "__pycache__").mkdir(exist_ok=True)
                compiled.symlink_to(source.parent / "__pycache__")
            try:
                target.hardlink_to(source)
            except OSError as error:
                # What is on another disk cannot be linked, and what is another user's need not be linkable.
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES):
                    raise
                shutil.copy2(source, target)


@pytest.fixture(scope="session", name="placed")
def placed_in() -> Callable[..., None]:
    return placed


@pytest.fixture(scope="session")
def bare(
    closure: Callable[..., dict[str, Distribution]], run: Run, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """`bare(*requirements)`: a new environment with these, and what they declare, alone."""

    def make(*requirements: str) -> Path:
        folder = tmp_path_factory.mktemp("fresh") / "venv"
        run([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
        (packages,) = folder.glob("lib/python*/site-packages")
        for found in closure(*requirements).values():
            placed(found, packages, folder / "bin")
        return folder

    return make


@pytest.fixture(scope="session")
def fresh(bare: Callable[..., Path]) -> Callable[..., Path]:
    """`bare`, with what runs a benchmark of templates from the command line."""
    return lambda *requirements: bare(*requirements, *NEEDED)


@pytest.fixture(scope="session")
def own_pip() -> Callable[[Path], None]:
    """`own_pip(venv)`: a `pip` for an environment, the one that runs the tests: a reader of the tutorials types it."""

    def give(venv: Path) -> None:
        (packages,) = venv.glob("lib/python*/site-packages")
        placed(distribution("pip"), packages, venv / "bin")

    return give
