"""`karenina plugins new`: what it writes installs, keeps its promises, and is clean, with no edit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_testing.authoring.package import KINDS

from karenina_core.errors import ConfigError, PluginError

REPOSITORY = Path(__file__).parents[3]
PACKAGES = [f"made-{kind}" for kind in KINDS]


def ran(*words: str | Path, cwd: Path, site: Path | None = None) -> str:
    """What a command prints that must succeed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "KARENINA"))}
    environment |= {"PYTHONPATH": str(site)} if site else {}
    done = subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def typed(*words: str | Path, text: str | None = None) -> tuple[int, str]:
    """Exit code and output of `karenina plugins new`."""
    result = CliRunner().invoke(karenina, ["plugins", "new", *map(str, words)], input=text)
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of every kind, and `site`, where all are installed."""
    folder = tmp_path_factory.mktemp("made")
    for kind in KINDS:
        code, output = typed(kind, f"made-{kind}", "--into", folder, "--author", "Jane Doe <jane@example.org>")
        assert code == 0, output
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", folder / "site")
    ran("pip", "install", *options, *(folder / f"karenina-{name}" for name in PACKAGES), cwd=folder)
    return folder


def test_new_packages_pass_their_tests(made: Path, long: bool) -> None:
    """Without `--long`, of the checks one for each: `tests/packaging/test_new_packages.py` has all of them."""
    options = ("-rA", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin")  # the latter takes three seconds
    options += () if long else ("-k", "not test_conformance or registered or own_name")
    tests = [made / f"karenina-{name}" / "tests" for name in PACKAGES]
    output = ran("pytest", *options, *tests, cwd=made, site=made / "site")
    passed = {line.partition(" ")[2] for line in output.splitlines() if line.startswith("PASSED")}
    for name in PACKAGES:
        own = [test for test in passed if f"/test_{name.replace('-', '_')}.py::" in test]
        assert {"::test_conformance[" in test for test in own} == {True, False}, f"{name}: {own}"


@pytest.mark.parametrize("name", PACKAGES)
def test_a_new_package_has_ten_files_at_most(name: str, made: Path) -> None:
    folder = made / f"karenina-{name}"
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    written = {path for path in written if "__pycache__" not in path and not path.startswith((".hypothesis", "build"))}
    assert {"pyproject.toml", "README.md", ".gitignore", ".github/workflows/ci.yml"} < written
    assert len(written) <= 10


def test_new_packages_are_clean(made: Path) -> None:
    """Not in their folders: what a linter finds depends on the settings of each package."""
    folders = [made / f"karenina-{name}" for name in PACKAGES]
    ran("ruff", "check", "--no-cache", *folders, cwd=made)
    ran("ruff", "format", "--no-cache", "--check", *folders, cwd=made)


@pytest.mark.parametrize("name", ["x", "a-name-of-24-characters1"])
def test_the_length_of_a_name_changes_nothing(name: str, tmp_path: Path) -> None:
    for kind in KINDS:
        code, output = typed(kind, name, "--into", tmp_path / kind)
        assert code == 0, output
    ran("ruff", "check", "--no-cache", tmp_path, cwd=tmp_path)
    ran("ruff", "format", "--no-cache", "--check", tmp_path, cwd=tmp_path)


def test_new_packages_have_sound_types(made: Path) -> None:
    sources = [made / f"karenina-{name}" / f"karenina_{name.replace('-', '_')}" for name in PACKAGES]
    tests = [path for name in PACKAGES for path in (made / f"karenina-{name}" / "tests").glob("*.py")]
    # As everything here is checked, with what the run before has left: karenina takes twenty times as long as these.
    known = REPOSITORY / ".mypy_cache" / "new_packages"
    options = ("--strict", "--config-file", REPOSITORY / "pyproject.toml", "--cache-dir", known)
    ran("mypy", *options, *sources, *tests, cwd=made, site=made / "site")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    assert typed("sink", "mine", "--into", tmp_path)[0] == 0
    readme = tmp_path / "karenina-mine" / "README.md"
    readme.write_text("mine", "utf-8")
    code, output = typed("stage", "mine", "--into", tmp_path)
    assert (code, readme.read_text("utf-8")) == (1, "mine")
    assert "already exists" in output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("stagge", "mine"), "there is no kind 'stagge' (did you mean 'stage'?)"),
        (("stage", "My_Stage"), "write my-stage"),
        (("stage", "karenina-mine"), "write mine"),
        (("stage", "jsonl"), "karenina-results has a plugin called 'jsonl'"),
        (("stage", "runs"), "a package karenina_runs is installed here"),
        (("stage", "settings"), "choose another name, such as my-settings"),
        (("stage", "none"), "choose another name, such as my-none"),
        (("stage", "a" * 25), "may have 24"),
        (("stage", "mine", "--description", 'a "b"'), "the description must be one line"),
        (("stage", "mine", "--author", "<jane>"), "write the author as"),
    ],
)
def test_what_cannot_be_written_is_refused_with_a_remedy(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    code, output = typed(*words, "--into", tmp_path)
    assert code == 1
    assert said in output
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_wrong_usage_where_nobody_can_be_asked(tmp_path: Path) -> None:
    code, output = typed("stage", "--into", tmp_path)
    assert code == 2
    assert "karenina plugins new stage word-limit" in output


def test_what_is_missing_is_asked_for_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_testing.authoring.commands.is_terminal", lambda: True)
    answers = "sink\nMy Sink\nmy-sink\nKeeps everything\nJane Doe\n"
    code, output = typed("--into", tmp_path, text=answers)
    assert code == 0, output
    assert "write my-sink" in output  # asked again
    project = (tmp_path / "karenina-my-sink" / "pyproject.toml").read_text("utf-8")
    assert 'description = "Keeps everything."' in project
    assert 'authors = [{ name = "Jane Doe" }]' in project


def test_it_says_what_to_type_next(tmp_path: Path) -> None:
    _, output = typed("stage", "mine", "--into", tmp_path)
    assert "pip install -e '.[dev]'" in output
    assert "karenina plugins check mine" in output


def test_names_are_checked_before_anything_else() -> None:
    from karenina_testing.authoring.package import checked_name

    assert checked_name("a-1") == "a-1"
    with pytest.raises(PluginError):
        checked_name("jsonld")
    with pytest.raises(ConfigError):
        checked_name("-")
