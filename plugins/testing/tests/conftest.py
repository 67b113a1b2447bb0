"""Planted faults, and a package of somebody else."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from karenina_testing.checks import BrokenPromise, Check, run_checks

PLANTED = Path(__file__).parent / "planted"
STRANGER = Path(__file__).parents[3] / "tests" / "packages" / "stranger" / "karenina_stranger_wordcount.py"
MARK = "# the fault"


@pytest.fixture(scope="session")
def load() -> Iterator[Callable[[Path], ModuleType]]:
    """Import a module from its file; it is forgotten at the end."""
    loaded: dict[Path, ModuleType] = {}

    def from_file(path: Path) -> ModuleType:
        if path not in loaded:
            spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            loaded[path] = module
        return loaded[path]

    yield from_file
    for module in loaded.values():
        del sys.modules[module.__name__]


@pytest.fixture(scope="session")
def planted(load: Callable[[Path], ModuleType]) -> Callable[[str], ModuleType]:
    """`planted("crashes")`: the module with that fault."""
    return lambda name: load(PLANTED / f"{name}.py")


@pytest.fixture(scope="session")
def fault_line() -> Callable[[str], str]:
    """`fault_line("crashes")`: `crashes.py:` and the number of the line that is marked."""

    def numbered(name: str) -> str:
        lines = (PLANTED / f"{name}.py").read_text("utf-8").splitlines()
        marked = [number for number, line in enumerate(lines, 1) if line.endswith(MARK)]
        assert len(marked) == 1, f"{name}.py must mark one line with {MARK!r}"
        return f"{name}.py:{marked[0]}"

    return numbered


@pytest.fixture(scope="session")
def failure() -> Callable[[Iterable[Check], str], str]:
    """`failure(checks, "order")`: the message of the check of this name, which must fail."""

    def message(checks: Iterable[Check], name: str) -> str:
        with pytest.raises(BrokenPromise) as broken:
            next(check for check in checks if check.name == name).run()
        return str(broken.value)

    return message


@pytest.fixture(scope="session")
def only_failure(failure: Callable[[Iterable[Check], str], str]) -> Callable[[Iterable[Check], str], str]:
    """The same, where every other check must pass."""

    def message(checks: Iterable[Check], name: str) -> str:
        checks = list(checks)
        run_checks([check for check in checks if check.name != name])
        return failure(checks, name)

    return message


@pytest.fixture(scope="session")
def stranger_file() -> Path:
    return STRANGER


@pytest.fixture(scope="session")
def stranger(load: Callable[[Path], ModuleType]) -> ModuleType:
    return load(STRANGER)


@pytest.fixture
def site(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """`site(name, source, group="karenina.plugins")`: the environment of a process in which a module is installed as a
    plugin."""

    def install(name: str, source: str, group: str = "karenina.plugins", target: str = "") -> dict[str, str]:
        folder = tmp_path / "site"
        info = folder / f"karenina_{name}-1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (folder / f"karenina_{name}.py").write_text(source, "utf-8")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: karenina-{name}\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = karenina_{name}{target}\n", "utf-8")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "KARENINA"))}
        return {**kept, "PYTHONPATH": str(folder)}

    return install


@pytest.fixture
def looked_at_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Things that a test makes are looked at in this process: a fresh interpreter imports the whole test file first.

    `test_what_is_imported_here_already_is_seen_in_a_fresh_interpreter`, `failing` of the trait checks and the checks of
    built-in plugins start some.
    """
    monkeypatch.setattr("karenina_testing.watch.audit.importable", lambda factory: None)
