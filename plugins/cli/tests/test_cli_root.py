"""The root command: what it lists, what it imports, and how it fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from karenina_cli import exits

import karenina_core
from karenina_core import errors

Run = Callable[..., Result]
Files = Callable[..., Path]
COMMANDS = {"verify", "plan", "plugins", "show", "doctor"}
HEAVY = {"pydantic", "cattrs", "attrs", "attr", "stevedore", "rich", "litellm", "aiohttp", "structlog", "asyncio"}


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_every_command(arguments: tuple[str, ...], run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 0
    listed = [line.split()[0] for line in result.output.splitlines() if re.match("  [a-z]", line)]
    assert set(listed) >= COMMANDS
    assert len(listed) == len(set(listed)), "a command under two headings"


def test_the_version_is_the_core_s(run: Run) -> None:
    assert run("--version").output == f"karenina {karenina_core.__version__}\n"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str, run: Run) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"karenina {command}" in result.output


def test_a_misspelt_command_gets_a_suggestion(run: Run) -> None:
    result = run("verfy")
    assert result.exit_code == 2
    assert "did you mean 'verify'?" in result.stderr


@pytest.mark.parametrize(("name", "group"), [("import", "benchmark"), ("validate", "benchmark"), ("new", "plugins")])
def test_a_command_of_a_group_is_shown_where_it_is(name: str, group: str, run: Run) -> None:
    result = run(name, "x")
    assert result.exit_code == 2
    assert f"{name} is a part of {group}; type: karenina {group} {name}" in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in sorted(COMMANDS))])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import atexit, json, sys\n"
        "names = lambda: sorted(name.partition('.')[0] for name in sys.modules)\n"
        "atexit.register(lambda: print(json.dumps(names()), file=sys.stderr))\n"
        "from karenina_cli import main\n"
        "main()"
    )
    command = [sys.executable, "-c", code, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    modules = set(json.loads(ran.stderr.splitlines()[-1]))
    assert "click" in modules
    assert modules & HEAVY == set()
    brought = (
        {"karenina_compare", "karenina_replay", "karenina_trust"} if "verify" in arguments else set()
    )  # those with options
    assert {name for name in modules if name.startswith("karenina_")} == {"karenina_cli", "karenina_core", *brought}


def test_strangers_commands_are_listed_without_being_imported(run: Run, install: Files) -> None:
    source = "raise SystemExit('imported')"
    install("karenina-strange", {"odd": "odd_one:command"}, odd_one=source)
    result = run("--help")
    assert result.exit_code == 0
    assert re.search(r"More commands:\n +odd\b", result.output)
    assert "(from" not in result.output


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('def command():\n    """Do something odd.\n\n    At length."""', "Do something odd."),
        ('@group.command("odd", help="Do it\\nnow.")\ndef command():\n    """Not this."""', "Do it now."),
        ('@command(short_help="Short.", help="Long.")\ndef command(): ...', "Short."),
        ('# @command(short_help="Before.")\n@command(help="Now.")\ndef command(): ...', "Now."),
        ('@other(short_help="Of another one.")\ndef other(): ...\n\ncommand = made_elsewhere()', ""),
        (
            '@other(short_help="Of another one.")\r\ndef other(): ...\r\n\r\n@x(help="Mine.")\r\ndef command(): ...',
            "Mine.",
        ),
        ("def command(): ...", ""),
        ("command = made_elsewhere()", ""),
        ('def other():\n    """Of another one."""', ""),
        ("def command(:", ""),
    ],
)
def test_help_says_what_strangers_commands_do_without_importing_them(
    source: str, line: str, run: Run, install: Files
) -> None:
    install("karenina-strange", {"odd": "odd_one:command"}, odd_one=f"raise SystemExit('imported')\n{source}\n")
    result = run("--help")
    assert result.exit_code == 0
    assert re.search(rf"More commands:\n  odd *{re.escape(line)}\n", result.output)


def test_help_says_what_commands_of_packages_do(run: Run) -> None:
    text = " ".join(run("--help").output.split())
    assert "compare Compare two runs, question by question." in text
    assert "Begin: demo Show what karenina does: no key, no network." in text


def test_a_stranger_s_command_runs(run: Run, install: Files) -> None:
    source = "import click\n@click.command()\ndef command():\n    click.echo('odd indeed')\n"
    install("karenina-odd", {"odd": "odd_two:command"}, odd_two=source)
    assert run("odd").stdout == "odd indeed\n"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("raise SystemExit(0)", "SystemExit"),
        ("command = 7", "is not a click command"),
        ("other = 7", "AttributeError"),
    ],
)
def test_a_command_that_cannot_be_imported_names_its_owner(source: str, reason: str, run: Run, install: Files) -> None:
    module = f"odd_{abs(hash(source))}"
    install("karenina-broken", {"odd": f"{module}:command"}, **{module: source})
    result = run("odd")
    assert result.exit_code == 1
    assert "karenina-broken" in result.stderr
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_the_command_line_keeps_its_commands(run: Run, install: Files) -> None:
    install("a-thief", {"plugins": "thief:command"}, thief="raise SystemExit('stolen')")
    result = run("plugins", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)
    assert "karenina-cli and a-thief both provide the command 'plugins'" in result.stderr


def test_a_stranger_s_error_names_its_owner_and_has_a_traceback_where_it_is_asked_for(run: Run, install: Files) -> None:
    source = "import click\n@click.command()\ndef command():\n    raise ZeroDivisionError('by \\x1b[31mzero')\n"
    install("karenina-zero", {"zero": "odd_zero:command"}, odd_zero=source)
    result = run("zero")
    assert result.exit_code == 1
    assert "code of karenina-zero failed: ZeroDivisionError" in result.stderr
    assert "Please report it" not in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" in run("--traceback", "zero").stderr
    assert "\x1b" not in run("--traceback", "zero").stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 1),
        (errors.PlanError("x"), 1),
        (errors.BenchmarkError("x"), 1),
        (errors.PluginError("x"), 1),
        (errors.TemplateRefused("x"), 1),
        (errors.AdapterUnavailableError("x"), 1),
        (errors.RunDirectoryError("x"), 74),
        (ExceptionGroup("one", [errors.RunDirectoryError("x")]), 74),
        (KeyboardInterrupt(), 130),
        (exits.Interrupted("x"), 130),
    ],
)
def test_expected_errors_are_reported_without_a_traceback(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.ended_by(error) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip()
    assert "Traceback" not in captured.err


def test_every_problem_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    exits.ended_by(errors.ConfigError([errors.Problem("run.a", "is wrong"), errors.Problem("run.b", "too")]))
    assert capsys.readouterr().err == "Error: 2 problems\n  run.a: is wrong\n  run.b: too\n"


def test_a_broken_contract_is_a_defect(capsys: pytest.CaptureFixture[str]) -> None:
    assert exits.ended_by(errors.ContractError("x")) == 1
    assert "Please report it" in capsys.readouterr().err
