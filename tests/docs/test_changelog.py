"""Fragments of the changelog: named by the rule, and moved into CHANGELOG.md at a release."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def project(repository: Path, tmp_path: Path) -> Path:
    """A changelog without releases and the script, without the repository's own fragments."""
    (tmp_path / "changelog.d").mkdir()
    shutil.copy(repository / "changelog.d" / "assemble.py", tmp_path / "changelog.d")
    text = "# Changelog\n\n<!-- releases -->\n\nNo version has been released yet.\n"
    (tmp_path / "CHANGELOG.md").write_text(text, "utf-8")
    return tmp_path


def add(project: Path, name: str, text: str) -> None:
    (project / "changelog.d" / name).write_text(text, "utf-8")


def assemble(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, project / "changelog.d" / "assemble.py", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_a_release_takes_the_fragments_by_kind_and_name(project: Path) -> None:
    add(project, "zebra.added.md", "Zebras\nare striped.\n")
    add(project, "ape.added.md", "Apes.\n")
    add(project, "gnu.fixed.md", "Gnus.\n")
    assert assemble(project, "0.2.0", "2030-01-02").returncode == 0
    expected = """# Changelog

<!-- releases -->

## 0.2.0 (2030-01-02)

### Added

- Apes.
- Zebras are striped.

### Fixed

- Gnus.
"""
    assert (project / "CHANGELOG.md").read_text("utf-8") == expected
    assert [path.name for path in (project / "changelog.d").glob("*.md")] == []
    add(project, "bee.changed.md", "Bees.\n")
    assert assemble(project, "0.3.0", "2030-02-03").returncode == 0
    text = (project / "CHANGELOG.md").read_text("utf-8")
    assert text.index("## 0.3.0") < text.index("## 0.2.0")


@pytest.mark.parametrize(
    ("name", "text"), [("a.removed.md", "x"), ("a.added.txt", "x"), ("a.md", "x"), ("a.added.md", " ")]
)
def test_what_is_no_fragment_stops_the_release(project: Path, name: str, text: str) -> None:
    before = (project / "CHANGELOG.md").read_text("utf-8")
    add(project, "good.added.md", "Good.\n")
    add(project, name, text)
    ran = assemble(project, "0.2.0")
    assert ran.returncode != 0
    assert name in ran.stderr
    assert (project / "CHANGELOG.md").read_text("utf-8") == before
    assert (project / "changelog.d" / "good.added.md").exists()


def test_a_version_is_released_once_and_never_empty(project: Path) -> None:
    assert assemble(project, "0.2.0").returncode != 0
    add(project, "a.added.md", "A.\n")
    assert assemble(project, "0.2.0").returncode == 0
    add(project, "b.added.md", "B.\n")
    assert assemble(project, "0.2.0").returncode != 0


@pytest.mark.parametrize("words", [("--help",), ("now",), ("0.2.0", "yesterday"), ()])
def test_what_is_no_version_or_no_date_releases_nothing(project: Path, words: tuple[str, ...]) -> None:
    add(project, "a.added.md", "A.\n")
    assert (assemble(project, *words).returncode == 0) == (words == ("--help",))
    assert (project / "changelog.d" / "a.added.md").exists()


def test_the_fragments_of_this_repository_can_be_released(repository: Path, project: Path) -> None:
    for path in (repository / "changelog.d").glob("*.*"):
        shutil.copy(path, project / "changelog.d")
    shutil.copy(repository / "CHANGELOG.md", project)
    fragments = list((project / "changelog.d").glob("*.md"))
    ran = assemble(project, "99.0.0")
    assert (ran.returncode == 0) == bool(fragments), ran.stderr
