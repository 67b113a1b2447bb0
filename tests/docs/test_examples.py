"""The examples of the documentation work, and say what really comes out.

The first line of a fenced block says what is done with it:

    python run          executed; the blocks of one page share their names
    text output         what the block before it printed; see `matches`
    console run         every line that begins with `$ ` is run by bash; what follows is its output
    console terminal=80 the same in a terminal of 80 columns, which no line of the output is wider than
    console installed   needs an installed package: run by tests/packaging in a fresh environment
    python save=NAME    written to the page's folder as NAME (any language)
    python file=PATH    equal to that file of the repository (any language)

Every other block of Python must at least compile, and every other call of `karenina` name a command and options that
exist. All of a page happens in one empty folder that has a copy of `examples`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import pytest
from karenina_cli.root import karenina

Matches = Callable[[str, str], bool]


@pytest.fixture
def folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a page's examples happen. Modules that they save can be imported, as from a script in that folder."""
    shutil.copytree(repository / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_DATA_HOME", str(Path.cwd() / "data"))  # what is trusted there is trusted nowhere else
    for name in list(os.environ):
        if name.startswith(("KARENINA_", "PYTEST_ADDOPTS")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:langsmith_plugin")  # it takes three seconds of each start
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def commands_of(text: str) -> Iterator[tuple[str, str | None]]:
    """`(command, expected output or None)` of a block of console lines; a backslash continues a command."""
    for part in re.split(r"^\$ ", _joined(text), flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output if output.strip() else None


def _joined(text: str) -> str:
    """Lines that end with a backslash go on in the next one."""
    return re.sub(r"\\\n[ ]*", "", text)


def test_a_page_keeps_its_promises(
    page: Path, page_blocks: Sequence[Any], folder: Path, commands: Path, matches: Matches
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in page_blocks:
        where = f"{page.name}, line {block.line}"
        if name := block.named("save"):
            (folder / name).write_text(block.text, "utf-8")
        elif block.what == "output":
            assert printed is not None, f"{where}: nothing was printed before this output"
            assert matches(block.text, printed), f"{where}: printed was\n{printed}"
        elif block.what == "run" and block.language == "python":
            printed = _executed(block.text, names, where)
        elif columns := block.named("terminal"):
            for command, expected in commands_of(block.text):
                printed = _on_a_terminal(command, int(columns), where)
                assert expected is None or matches(expected, printed), f"{where}: {command} printed\n{printed}"
        elif block.what == "run":
            for command, expected in commands_of(block.text):
                printed = _ran(command, where, commands)
                assert expected is None or matches(expected, printed), f"{where}: {command} printed\n{printed}"


def test_of_most_pages_something_is_executed(executed: Sequence[Path]) -> None:
    assert len(executed) >= 50, "pages whose blocks are marked otherwise are tried by no test"


def test_the_first_command_of_the_readme_prints_what_is_shown(
    repository: Path, folder: Path, commands: Path, matches: Matches
) -> None:
    """What comes after the installation; .ci/run types the whole command."""
    script = repository / ".ci" / "readme_commands.py"
    line = subprocess.run([sys.executable, script, "1"], capture_output=True, text=True, check=True).stdout
    printed = _ran(f"{line.rpartition(' && ')[2].strip()} 2> progress.txt", "README.md", commands)
    shown = re.search(r"<!-- output 1 -->\n```text\n(.*?)```", (repository / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert matches(shown[1], printed), printed


def _executed(source: str, names: dict[str, Any], where: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, where, "exec"), names)
    return out.getvalue()


def _ran(command: str, where: str, commands: Path) -> str:
    """What bash prints. Python of a page that starts `karenina`, perhaps to send it a signal, gets the real one."""
    ran = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,  # a page with a session of pytest, on a busy machine
        check=False,
    )
    assert ran.returncode == 0, f"{where}: {command} exited with {ran.returncode}\n{ran.stdout}"
    return ran.stdout


class Terminal(io.StringIO):
    """What a person would see: whoever writes to it takes it for a terminal."""

    def isatty(self) -> bool:
        return True


def _on_a_terminal(command: str, columns: int, where: str) -> str:
    """What a command of karenina prints in a terminal, its progress left out."""
    name, *words = shlex.split(command)
    assert name == "karenina", where
    out = Terminal()
    terminal = {"COLUMNS": str(columns), "TERM": "xterm"}
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        for variable, value in terminal.items():
            patch.setenv(variable, value)
        code = karenina.main(words, prog_name="karenina", standalone_mode=False)
    printed = click.unstyle(out.getvalue())
    assert code in (0, None), f"{where}: {command} exited with {code}\n{printed}"
    wide = [line for line in printed.splitlines() if len(line) > columns and not line.lstrip().startswith("karenina ")]
    assert wide == [], f"{where}: {command} prints lines wider than {columns} columns"
    return printed


def test_what_is_not_executed_can_be(page: Path, page_blocks: Sequence[Any], repository: Path) -> None:
    """Files that are shown are the real ones, Python compiles, commands and their options exist."""
    for block in page_blocks:
        if path := block.named("file"):
            assert block.text.strip() == (repository / path).read_text("utf-8").strip(), path
        if block.language == "python" and not block.text.startswith("karenina_"):  # signatures in the list of hooks
            compile(block.text, f"{page.name}, line {block.line}", "exec")
    known = {point.name for point in entry_points(group="karenina.commands")}
    shell = [_typed(block.text) for block in page_blocks if block.language in ("console", "sh")]
    indented = re.findall(r"^ {4}(karenina .*)$", _joined(page.read_text("utf-8")), re.MULTILINE)
    for line in "\n".join([*shell, *indented]).splitlines():
        for words in _karenina_calls(line):
            name = next((word for word in words if not word.startswith("-")), None)
            assert name is None or name in known, f"{page.name}: {line}"
            if name is not None:
                unknown = _options(words) - _of_command(name)
                assert not unknown, f"{page.name}: {name} has no {unknown}"


def _typed(text: str) -> str:
    """The commands of a block; of one that shows output too, the lines that begin with `$ `."""
    lines = _joined(text).splitlines()
    return "\n".join([line for line in lines if line.startswith("$ ")] or lines)


def _karenina_calls(line: str) -> Iterator[list[str]]:
    """The words after every `karenina` that begins a command in a line of shell."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    call: list[str] | None = None
    beginning = True
    for word in lexer:
        if set(word) <= set(";&|<>()"):
            if call is not None:
                yield call
            call, beginning = None, True
        elif call is not None:
            call.append(word)
        elif beginning and ("=" in word or word in ("uv", "run")):
            continue  # a variable for this command alone, or uv's way of running it
        else:
            call, beginning = ([] if beginning and word == "karenina" else None), False
    if call is not None:
        yield call


def _options(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("--")} - {"--help", "--version"}


@cache
def _of_command(name: str) -> set[str]:
    command = karenina.get_command(click.Context(karenina), name)
    assert command is not None
    return _accepted(command)


def _accepted(command: click.Command) -> set[str]:
    context = click.Context(command)
    group = command if isinstance(command, click.Group) else click.Group()
    inner = [group.get_command(context, name) for name in group.list_commands(context)]
    own = {name for p in command.get_params(context) for name in (*p.opts, *p.secondary_opts)}
    return own.union(*(_accepted(other) for other in inner if other is not None))


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\nb\n", "a \nb", True),
        ("a\nb", "a\nc", False),
        ("took ... ms", "took 12 ms", True),
        ("a\n...\nz", "a\nb\nc\nz", True),
        ("a\n...\nz", "a\nz", True),
        ("a...z", "a\nz", False),
        ("a    b", "a b", True),
        ("a\n...\nz", "a\nb\nc", False),
        ("a.c", "abc", False),
    ],
)
def test_outputs_are_compared_strictly_but_for_dots(expected: str, printed: str, same: bool, matches: Matches) -> None:
    assert matches(expected, printed) is same


def test_calls_are_found_in_shell_lines() -> None:
    line = "$ A=1 karenina plan --json | head && pip install karenina; uv run karenina plugins > out.txt"
    assert list(_karenina_calls(line)) == [["plan", "--json"], ["plugins"]]
