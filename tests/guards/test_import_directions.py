"""The core imports no plugin, rooms import downward, plugins import only what they declare, and never each other."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

ROOMS = (
    "cli",
    "testing",
    "run",
    "pipeline",
    "plugin",
    "ports",
    "prompts",
    "model",
    "templates",
    "errors",
    "log",
    "secrets",
    "entry_points",
    "names",
)
"""From top to bottom. A room imports itself and what is below it."""
BOTTOM = {
    "names": {"entry_points"},
    "templates": {"errors", "names"},
    "model": {"entry_points", "errors"},
    "entry_points": set(),
    "errors": set(),
    "log": {"errors", "secrets"},
    "secrets": set(),
}
"""What the lowest rooms may import beside themselves."""
BELOW_ALL = "karenina_core.plugin.discovery"
"""What is installed is asked everywhere; the module imports `errors` alone."""


def imported_modules(path: Path, package: str) -> Iterator[tuple[str, int]]:
    """`(absolute module, line)` of every import of a file, those inside functions and under TYPE_CHECKING included."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def _package(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).parent.parts)


def _room(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "karenina_core" and len(parts) > 1 and parts[1] in ROOMS else None


def test_the_reader_of_imports_sees_all_of_them(tmp_path: Path) -> None:
    source = tmp_path / "pack" / "inner" / "module.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "import os.path\nfrom ..model import x\n\ndef f():\n    from . import y\n    import karenina_jsonld\n", "utf-8"
    )
    found = {module for module, _ in imported_modules(source, "pack.inner")}
    assert found == {"os.path", "pack.model", "pack.model.x", "karenina_jsonld", "pack.inner", "pack.inner.y"}


def test_the_core_imports_no_plugin(repository: Path, source_files: list[Path]) -> None:
    strangers = [
        f"{path.relative_to(repository)}:{line}: {module}"
        for path in source_files
        if path.is_relative_to(repository / "karenina_core")
        for module, line in imported_modules(path, _package(path, repository))
        if module.startswith("karenina_") and module.split(".")[0] != "karenina_core"
    ]
    assert strangers == []


def test_rooms_import_downward(repository: Path, source_files: list[Path]) -> None:
    upward = []
    for path in source_files:
        relative = path.relative_to(repository)
        if relative.parts[0] != "karenina_core" or relative.as_posix() == "karenina_core/__init__.py":
            continue  # the package itself names everything, lazily
        own = relative.parts[1].removesuffix(".py")
        assert own in ROOMS, f"{relative}: a new room; put it into ROOMS, where it belongs"
        below = BOTTOM.get(own, set(ROOMS[ROOMS.index(own) + 1 :])) | {own}
        for module, line in imported_modules(path, _package(path, repository)):
            room = _room(module)
            if room is not None and room not in below and not f"{module}.".startswith(f"{BELOW_ALL}."):
                upward.append(f"{relative}:{line}: {own} imports {room}")
    assert sorted(set(upward)) == []


@pytest.fixture(scope="module")
def declared(core_pyproject: dict[str, Any], plugin_pyprojects: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """`{package of a plugin: distributions that it may import}`: its dependencies, its extras and those of the core."""
    core = set(map(_name, core_pyproject["project"]["dependencies"]))
    return {
        next(iter(pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])): {
            *core,
            *map(_name, pyproject["project"]["dependencies"]),
            *(
                _name(line)
                for extra in pyproject["project"].get("optional-dependencies", {}).values()
                for line in extra
            ),
        }
        for pyproject in plugin_pyprojects.values()
    }


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ ;<>=!~\[]", requirement, maxsplit=1)[0]).lower()


def test_plugins_import_what_they_declare_and_no_other_plugin(
    repository: Path,
    source_files: list[Path],
    declared: dict[str, set[str]],
    plugin_pyprojects: dict[str, dict[str, Any]],
) -> None:
    owners = dict(packages_distributions())
    for pyproject in plugin_pyprojects.values():  # those that are installed from here are in no list of files
        (package,) = pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        owners[package] = [pyproject["project"]["name"]]
    undeclared = []
    for path in source_files:
        relative = path.relative_to(repository)
        if relative.parts[0] != "plugins":
            continue
        package = relative.parts[2]
        assert package in declared, f"{relative} is in no wheel; name {package} in its pyproject.toml"
        for module, line in imported_modules(path, _package(path, repository / Path(*relative.parts[:2]))):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top in ("karenina_core", package):
                continue
            if not {_name(owner) for owner in owners.get(top, [])} & declared[package]:
                undeclared.append(f"{relative}:{line}: {top}")
    assert sorted(set(undeclared)) == []


def test_no_two_plugins_need_each_other(plugin_pyprojects: dict[str, dict[str, Any]]) -> None:
    needs = {
        pyproject["project"]["name"]: set(map(_name, pyproject["project"]["dependencies"]))
        for pyproject in plugin_pyprojects.values()
    }
    TopologicalSorter({name: found & needs.keys() for name, found in needs.items()}).prepare()
