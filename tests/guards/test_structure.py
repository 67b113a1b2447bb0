"""The structure of the source is held where it has a limit, and every fault of a small checkout is seen. A distribution
imports what its `pyproject.toml` declares and nothing else, and runs know nothing of what came after them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.structure import NAMED_IN_CORE, Source, Structure, named, read_structure, rows

MAX_FUNCTION_LINES = 60
"""Limits that a reader feels: above them the shape is wrong, and splitting lines does not help."""
MAX_MODULE_LINES = 400
RUNS = "karenina_runs"
EXECUTION = (f"{RUNS}.execute", f"{RUNS}.resume")
"""They know surroundings of an answer, and not that they are folders."""
PROJECT = '[project]\nname = "{}"\ndependencies = [{}]\n'


@pytest.fixture
def faulty(tmp_path: Path) -> Structure:
    files = {
        "pyproject.toml": PROJECT.format("karenina-core", '"attrs>=24"'),
        "karenina_core/__init__.py": "",
        "karenina_core/a.py": "from __future__ import annotations\nif 1:\n    from .b import x\n",
        "karenina_core/b.py": "def _once(p, *, q): ...\ndef f():\n    from . import c\n    _once(1, q=2)\n",
        "karenina_core/c.py": '"""litellm"""\nfrom karenina_core import a\nNAME = "litellm"\nOTHER = "x"  # why\n',
        "karenina_core/plugin/hookspecs.py": "@hookspec\ndef karenina_load(a, b): ...\n",
        "plugins/x/pyproject.toml": PROJECT.format("karenina-x", '"karenina-core>=1", "karenina-y"'),
        "plugins/x/karenina_x/__init__.py": "import karenina_z\nimport karenina_y.inner\n",
        "plugins/y/pyproject.toml": PROJECT.format("karenina-y", '"karenina-x"'),
        "plugins/y/karenina_y/__init__.py": "from karenina_core import Far\n",
        "plugins/y/karenina_y/inner.py": 'LATER = "karenina_z.far:Far"\n',
        "plugins/z/pyproject.toml": PROJECT.format("karenina-z", ""),
        "plugins/z/karenina_z/__init__.py": "",
        "plugins/z/karenina_z/names.py": 'NAMES: dict = {"karenina_core": {"Far": "karenina_z.far"}}\n',
        "plugins/z/karenina_z/far.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return read_structure(tmp_path)


def test_circles_of_imports_are_found_wherever_they_are_written(faulty: Structure) -> None:
    assert faulty.circles() == [["karenina_core.a", "karenina_core.b", "karenina_core.c"]]


def test_imports_that_are_not_declared_are_found(faulty: Structure) -> None:
    assert faulty.undeclared() == [
        "karenina_x imports karenina_z, and karenina-x does not declare karenina-z",
        "karenina_y imports karenina_z.far, and karenina-y does not declare karenina-z",
        "karenina_y.inner imports karenina_z.far, and karenina-y does not declare karenina-z",
    ]
    assert set(faulty.cycle()) == {"karenina-x", "karenina-y"}


def test_names_of_instances_are_found_but_not_in_prose(faulty: Structure) -> None:
    unused = [f"{module}: {name!r} is named no longer" for module, name in NAMED_IN_CORE]
    assert faulty.named_in_core() == sorted(["c:3: 'litellm'", *unused])


def test_a_name_that_is_a_word_of_english_is_looked_for_by_itself() -> None:
    known = {"manual", "ParseTemplate", "karenina-replay"}
    assert named("ParseTemplate needs karenina-replay: manual", known) == ["ParseTemplate", "karenina-replay"]
    assert named("manual", known) == ["manual"]


def test_everything_is_counted(faulty: Structure) -> None:
    assert {row.name: row.value for row in rows(faulty)} == {
        "lines of source in the core": 13,
        "lines of source in all": 18,
        "dependencies of the core": 1,
        "names of instances in the core": 1 + len(NAMED_IN_CORE),
        "circles of files": 1,
        "imports that are not declared": 3,
        "distributions in a circle": 3,
        "distributions": 4,
        "files in one folder of the core": 4,
        "files in one folder": 4,
        "private functions with one caller": 1 / 3,
        "lines with a comment": 1 / 18,
        "parameters of a function": 2,
        "hooks of the core": 1 + 5,
    }
    assert faulty.comments("karenina-core") == 1 / 13


def test_no_limit_is_exceeded(structure: Structure) -> None:
    assert structure.named_in_core() == []
    assert structure.undeclared() == []
    assert structure.circles() == []
    assert structure.cycle() == []
    assert [str(row) for row in rows(structure) if row.limit is not None and row.value > row.limit] == []


def test_the_core_needs_little(structure: Structure) -> None:
    needed = [re.split(r"[<>=]", line)[0] for line in structure.core_dependencies]
    assert needed == ["attrs", "cattrs", "pluggy", "stevedore", "structlog"]


def test_there_is_much_to_look_for(structure: Structure) -> None:
    assert len(structure.names_of_instances()) > 50
    assert len(structure.parameters) > 5000, "methods, too"


def test_functions_are_short(structure: Structure) -> None:
    long = [
        f"{source.module}: {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for source in structure.sources.values()
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_modules_are_short(structure: Structure) -> None:
    lengths = {name: len(source.text.splitlines()) for name, source in structure.sources.items()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_MODULE_LINES} == {}


def imported_modules(source: Source) -> Iterator[tuple[str, int]]:
    """`(absolute module, line)` of every import of one: also inside functions, under TYPE_CHECKING, and by
    `import_module` of a text."""
    by_text = "import_module" in source.text
    package = source.package.split(".")
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif by_text and isinstance(node, ast.Call) and "import_module" in ast.unparse(node):
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if any(ast.unparse(part).endswith("import_module") for part in (node.func, *node.args)):
                yield from ((text, node.lineno) for text in texts)


def test_the_reader_of_imports_sees_all_of_them() -> None:
    text = (
        "import os.path\nfrom ..model import x\n\ndef f():\n    from . import y\n    import karenina_jsonld\n"
        "    return importlib.import_module('numpy').x, to_thread(import_module, 'litellm')\n"
    )
    source = Source("pack.inner.module", Path("module.py"), "pack", text)
    found = {module for module, _ in imported_modules(source)}
    imported = {"os.path", "pack.model", "pack.model.x", "karenina_jsonld", "pack.inner", "pack.inner.y"}
    assert found == imported | {"numpy", "litellm"}


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ ;<>=!~\[]", requirement, maxsplit=1)[0]).lower()


def _declared(pyproject: dict[str, Any], *, extras: bool) -> set[str]:
    """The distributions that one names as dependencies, and in its extras."""
    project = pyproject["project"]
    optional = project.get("optional-dependencies", {}).values() if extras else ()
    return {_name(line) for lines in (project["dependencies"], *optional) for line in lines}


def test_what_is_imported_is_declared(
    repository: Path,
    source_files: list[Path],
    structure: Structure,
    core_pyproject: dict[str, Any],
    plugin_pyprojects: dict[str, dict[str, Any]],
) -> None:
    """The extra of the core is for installing all of ours; it permits no import."""
    owners = dict(packages_distributions())
    declared = {"karenina_core": _declared(core_pyproject, extras=False)}
    for pyproject in plugin_pyprojects.values():  # those that are installed from here are in no list of files
        package = pyproject["project"]["name"].replace("-", "_")
        owners[package] = [pyproject["project"]["name"]]
        declared[package] = _declared(pyproject, extras=True)
    owners["karenina_core"] = [core_pyproject["project"]["name"]]
    kit = declared["karenina_testing"]  # what the group `karenina.checks` names is imported by it alone
    elsewhere = {*source_files} - {source.path for source in structure.sources.values()}
    assert elsewhere == set(), "they are in no wheel: a distribution has one package, of its name"
    undeclared = []
    for source in structure.sources.values():
        package = source.module.partition(".")[0]
        for module, line in imported_modules(source):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top == package:
                continue
            allowed = declared[package] | (kit if source.path.name == "checks.py" else set())
            if not {_name(owner) for owner in owners.get(top, [])} & allowed:
                undeclared.append(f"{source.path.relative_to(repository)}:{line}: {top}")
    assert sorted(set(undeclared)) == []


def _importing(structure: Structure, room: str, among: tuple[str, ...]) -> list[str]:
    """The modules `among` these, outside of the room, that import something of it."""
    own = f"{RUNS}.{room}"
    assert any(name.startswith(f"{own}.") for name in structure.sources), f"there is no {own}"
    return [
        name
        for name, imported in structure.imports.items()
        if name.startswith(among) and not name.startswith(own) and any(f"{i}.".startswith(f"{own}.") for i in imported)
    ]


@pytest.mark.parametrize("room", ["amend", "batches"])
def test_a_room_above_runs_is_imported_by_nobody_beneath_it(structure: Structure, room: str) -> None:
    assert _importing(structure, room, (RUNS,)) == []


def test_what_carries_items_out_knows_no_workspaces(structure: Structure) -> None:
    assert _importing(structure, "workspaces", EXECUTION) == []
