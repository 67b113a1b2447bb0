"""The structure of the source is held where it has a limit, and every fault of a small checkout is seen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.benchmarks.structure import NAMED_IN_CORE, Structure, named, read_structure, rows

MAX_FUNCTION_LINES = 60
"""Limits that a reader feels: above them the shape is wrong, and splitting lines does not help."""
MAX_MODULE_LINES = 400
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
    assert len(structure.parameters()) > 1000


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
