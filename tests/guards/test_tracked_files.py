"""The repository holds nothing of the machine that it was written on, and nothing unfinished."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

MACHINE_PATH = re.compile(r"(?<![\w.~*/-])/(?:root|home|Users|work|workspace|opt)/[\w.-]+")
PACKAGE_INDEX = re.compile(
    r"(?:pypi\.org|pythonhosted\.org|--(?:extra-)?index-url|--find-links[= ]/|/simple/?\b\"?$)", re.M
)
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
ABSTRACT = {
    ("karenina_core/pipeline/stage.py", "NotImplementedError"),
    ("plugins/vocabulary/karenina_vocabulary/evaluators.py", "NotImplementedError"),
    ("plugins/template/karenina_template/language/primitives/text.py", "NotImplementedError"),
    ("plugins/template/karenina_template/language/primitives/trace.py", "NotImplementedError"),
}
"""The base class of stages, whose subclasses must say what they do, and primitives that do not compare two values."""


@pytest.fixture(scope="module")
def texts(files: list[Path], repository: Path) -> dict[str, str]:
    """`{path: text}` of every file of text but this one, which spells out what it looks for."""
    found = {}
    for path in files:
        data = path.read_bytes()
        if path != Path(__file__) and b"\0" not in data[:8192]:
            found[path.relative_to(repository).as_posix()] = data.decode("utf-8", "replace")
    return found


def _hits(texts: dict[str, str], pattern: re.Pattern[str]) -> list[str]:
    return [f"{path}: {hit[0]}" for path, text in texts.items() for hit in pattern.finditer(text)]


def test_no_paths_of_a_machine(texts: dict[str, str]) -> None:
    assert _hits(texts, MACHINE_PATH) == []


def test_no_package_index(texts: dict[str, str]) -> None:
    assert _hits(texts, PACKAGE_INDEX) == []


def test_no_lock_file_and_nothing_generated(texts: dict[str, str]) -> None:
    names = {Path(path).name for path in texts}
    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock", ".DS_Store"}
    assert not [path for path in texts if "__pycache__" in path or ".egg-info" in path]


def test_nothing_unfinished(source_files: list[Path], repository: Path) -> None:
    found = []
    for path in source_files:
        relative = path.relative_to(repository).as_posix()
        text = path.read_text("utf-8")
        if not UNFINISHED.search(text) and "NotImplementedError" not in text:
            continue  # to read tokens takes much longer
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            stub = token.type == tokenize.NAME and token.string == "NotImplementedError"
            note = token.type == tokenize.COMMENT and UNFINISHED.search(token.string)
            if note or (stub and (relative, token.string) not in ABSTRACT):
                found.append(f"{relative}:{token.start[0]}: {token.string}")
    assert found == []


def test_every_text_file_ends_with_a_newline_and_has_no_carriage_returns(texts: dict[str, str]) -> None:
    """Data files of tests keep the bytes that they were given."""
    ours = {path: text for path, text in texts.items() if "/data/" not in path and text}
    assert [path for path, text in ours.items() if not text.endswith("\n")] == []
    assert [path for path, text in ours.items() if "\r" in text] == []
