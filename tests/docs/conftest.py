"""The pages of the documentation, taken apart."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

REPOSITORY = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Block:
    """One fenced block: the language and the rest of its first line, and where it begins."""

    language: str
    what: str
    text: str
    line: int

    def named(self, word: str) -> str | None:
        """The value of `word=value` in the first line."""
        found = re.search(rf"\b{word}=(\S+)", self.what)
        return found[1] if found else None

    @property
    def is_executed(self) -> bool:
        """Whether it is carried out, or compared with what was."""
        return self.what in ("run", "output") or self.named("terminal") is not None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2].strip(), found[3], text.count("\n", 0, found.start()) + 1)


def is_output(expected: str, printed: str) -> bool:
    """Whether the output is the expected one.

    `...` stands for anything within its line, and alone on a line for any number of lines. Widths of columns do not
    count: a run of blanks is as good as one.
    """
    lines = []
    for line in _lines(expected):
        inside = "[^\n]*?".join(re.escape(part) for part in line.split("..."))
        lines.append("(?:[^\n]*\n)*?" if line.strip() == "..." else f"{inside}\n")
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in _lines(printed))) is not None


def _lines(text: str) -> list[str]:
    return [re.sub("[ \t]+", " ", line).rstrip() for line in text.strip("\n").splitlines()]


def pages() -> list[Path]:
    """Every page for people: the documentation and the files at the root of the repository."""
    return sorted(
        [*(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("*.md"), *REPOSITORY.glob("plugins/*/README.md")]
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page" in metafunc.fixturenames:
        executed = "folder" in metafunc.fixturenames
        wanted = [page for page in pages() if not executed or any(block.is_executed for block in blocks(page))]
        metafunc.parametrize("page", wanted, ids=[path.relative_to(REPOSITORY).as_posix() for path in wanted])


@pytest.fixture(scope="session")
def executed() -> list[Path]:
    """The pages of which something is executed."""
    return [page for page in pages() if any(block.is_executed for block in blocks(page))]


@pytest.fixture(scope="session")
def matches() -> Callable[[str, str], bool]:
    return is_output


@pytest.fixture(scope="session")
def commands() -> Iterator[Path]:
    """A folder for `PATH`, whose `karenina` need not import anything."""
    spec = importlib.util.spec_from_file_location("docs_warm", Path(__file__).with_name("warm.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.warm() as folder:
        yield folder


@pytest.fixture
def page_blocks(page: Path) -> list[Block]:
    return list(blocks(page))


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY
