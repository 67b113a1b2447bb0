"""What the guards of the structure see: a small checkout with every fault in it, and the source as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks.structure import REPOSITORY, Structure, read_structure

MOST_LINES_OF_THE_CORE = 7_000
MOST_FILES_IN_THE_CORE = 15
MOST_FILES = 20
"""Modules in one folder, its `__init__.py` included. The most of pluggy, httpx, structlog, tox, llm and attrs is 21."""
PROJECT = '[project]\nname = "{}"\ndependencies = [{}]\n'


@pytest.fixture
def faulty(tmp_path: Path) -> Structure:
    files = {
        "pyproject.toml": PROJECT.format("karenina-core", '"attrs>=24"'),
        "karenina_core/__init__.py": "",
        "karenina_core/a.py": "from __future__ import annotations\nif 1:\n    from .b import x\n",
        "karenina_core/b.py": "def _once(p, *, q): ...\ndef f():\n    from . import c\n    _once(1, q=2)\n",
        "karenina_core/c.py": '"""litellm"""\nfrom karenina_core import a\nNAME = "litellm"\nOTHER = "x"  # why\n',
        "plugins/x/pyproject.toml": PROJECT.format("karenina-x", '"karenina-core>=1", "karenina-y"'),
        "plugins/x/karenina_x/__init__.py": "import karenina_z\nimport karenina_y.inner\n",
        "plugins/y/pyproject.toml": PROJECT.format("karenina-y", '"karenina-x"'),
        "plugins/y/karenina_y/__init__.py": "from karenina_core import Far\n",
        "plugins/y/karenina_y/inner.py": "",
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
    ]
    assert set(faulty.cycle()) == {"karenina-x", "karenina-y"}


def test_names_of_instances_are_found_but_not_in_docstrings(faulty: Structure) -> None:
    assert faulty.named_in_core() == ["karenina_core.c:3: 'litellm'"]


def test_sizes_are_counted(faulty: Structure) -> None:
    assert (faulty.lines("karenina-core"), faulty.lines()) == (11, 15)
    assert faulty.called_once() == 1 / 2
    assert faulty.comments("karenina-core") == 1 / 11


@pytest.fixture(scope="module")
def found() -> Structure:
    return read_structure()


def test_what_is_imported_is_declared_and_goes_one_way(found: Structure) -> None:
    assert found.undeclared() == []
    assert found.cycle() == []


def test_no_modules_import_each_other(found: Structure) -> None:
    """Those that are imported for types alone count too."""
    assert found.circles() == []


def test_the_core_is_small_and_needs_little(found: Structure) -> None:
    assert found.lines("karenina-core") <= MOST_LINES_OF_THE_CORE
    needed = [re.split(r"[<>=]", line)[0] for line in found.core_dependencies]
    assert needed == ["attrs", "cattrs", "pluggy", "stevedore", "structlog"]


def test_folders_can_be_taken_in_at_a_glance(found: Structure) -> None:
    core = REPOSITORY / "karenina_core"
    crowded = {
        str(folder.relative_to(REPOSITORY)): count
        for folder, count in found.folders().items()
        if count > (MOST_FILES_IN_THE_CORE if folder.is_relative_to(core) else MOST_FILES)
    }
    assert crowded == {}
