"""The log: silent until it is asked for, one line an event on stderr as it is then, with tracebacks, without secrets;
and what an error of a plugin says about its place."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import Result
from karenina_calls.secrets.redaction import hide
from karenina_cli.logs import Wanted, configure

from karenina_core.log import get_logger

SECRET = "canary-0815-secret"


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """The standard logger that karenina writes to, put back as it was."""
    logger = logging.getLogger("karenina")
    was = logger.handlers[:], logger.level, logger.propagate
    yield logger
    logger.handlers[:], logger.level, logger.propagate = was
    structlog.reset_defaults()


def test_an_event_is_one_line_with_its_level_its_text_and_its_facts(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(Wanted(level="info"))
    get_logger().info("item done", item="q1", seconds=0.5)
    get_logger("karenina.pipeline").warning("odd", why="a 'quote'")
    get_logger().warning(item="q2")
    assert capsys.readouterr().err == (
        "INFO item done item='q1' seconds=0.5\nWARNING odd why=\"a 'quote'\"\nWARNING  item='q2'\n"
    )


def test_what_is_below_the_level_is_not_written(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure(Wanted())
    get_logger().info("seen by no one")
    get_logger().warning("seen")
    configure(Wanted(level="error"))
    get_logger().warning("not any more")
    assert capsys.readouterr().err == "WARNING seen\n"


def test_an_event_is_written_once_and_where_stderr_is_then(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configure(Wanted())
    configure(Wanted())
    bar = io.StringIO()
    monkeypatch.setattr("sys.stderr", bar)
    get_logger().warning("under the bar")
    assert bar.getvalue() == "WARNING under the bar\n"
    assert caplog.records == [], "the handlers of the host program write it as well"


def test_secrets_of_the_environment_are_in_no_line(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(Wanted())
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    get_logger().warning(f"refused {SECRET}", header=f"Bearer {SECRET}")
    assert capsys.readouterr().err == "WARNING refused [redacted] header='Bearer [redacted]'\n"


def test_a_secret_is_in_no_line_as_python_writes_it(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(Wanted())
    monkeypatch.setenv("CANARY_API_KEY", "tab\tquote'\"back\\slash-0815")
    get_logger().warning("refused", why={"sent": os.environ["CANARY_API_KEY"]})
    assert capsys.readouterr().err == "WARNING refused why={'sent': '[redacted]'}\n"


def test_secrets_that_no_variable_holds_are_hidden_when_they_are_known(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(Wanted())
    hide(["canary-of-a-setting"])
    get_logger().warning("refused canary-of-a-setting")
    assert capsys.readouterr().err == "WARNING refused [redacted]\n"


def test_how_the_host_program_sets_up_structlog_changes_nothing(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.configure(processors=[], wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    configure(Wanted())
    get_logger().warning("odd")
    assert capsys.readouterr().err == "WARNING odd\n"


def failed(secret: str) -> Exception:
    try:
        {}[secret]
    except KeyError as error:
        return error
    raise AssertionError


def test_a_traceback_is_written_where_it_is_wanted_and_holds_no_secret(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    error, file = failed(SECRET), tmp_path / "run.log"
    shown = {
        Wanted(): "",
        Wanted(verbose=True): "INFO a stage failed stage='S'\n",
        Wanted(traceback=True): "INFO a stage failed stage='S'\nTraceback (most recent call last):",
        Wanted(level="debug"): "INFO a stage failed stage='S'\nTraceback (most recent call last):",
        Wanted(level="error", traceback=True): "INFO a stage failed stage='S'\nTraceback",
        Wanted(file=file): "",
    }
    for wanted, begins in shown.items():
        configure(wanted)
        get_logger().info("a stage failed", stage="S", exc_info=error)
        get_logger().info("plain") if wanted.traceback else None
        said = capsys.readouterr().err
        assert said.startswith(begins)
        assert ("Traceback" in said) == (wanted.traceback or wanted.level == "debug")
        assert "plain" not in said
        assert SECRET not in said
    configure(Wanted())  # closes the file
    (line, *more) = file.read_text("utf-8").splitlines()
    assert line.endswith("INFO karenina a stage failed stage='S'")
    assert more[0] == "Traceback (most recent call last):"
    assert more[-1] == "KeyError: '[redacted]'"
    assert SECRET not in "".join(more)


def test_the_error_at_hand_is_the_one_of_exc_info_true(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure(Wanted(traceback=True))
    try:
        raise ValueError("at hand")
    except ValueError:
        get_logger().warning("odd", exc_info=True)
    said = capsys.readouterr().err
    assert "exc_info" not in said.splitlines()[0]
    assert said.rstrip().endswith("ValueError: at hand")


def test_what_a_terminal_would_obey_is_written_out(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure(Wanted(traceback=True))
    get_logger().info("a stage failed", exc_info=ValueError("\x1b[2J"))
    assert "\x1b" not in capsys.readouterr().err


PLUGIN = """
from karenina_core import Category, Stage, hookimpl

class Guard(Stage):
    category = Category.GUARD

    def execute(self, context):
        self.look()

    def look(self):
        raise ZeroDivisionError("KEY")

@hookimpl
def karenina_register_stages(registry):
    registry.add(Guard)
"""
Run = Callable[..., Result]


@pytest.fixture
def guarded(
    run: Run, write_benchmark: Any, write_answers: Any, install: Any, log: logging.Logger, monkeypatch: Any
) -> Callable[..., Result]:
    """A run with a stage of another package that fails, with a secret in its words."""
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    install("karenina-odd-guard", {"odd": "odd_guard"}, "karenina.plugins", odd_guard=PLUGIN.replace("KEY", SECRET))
    path, answers = write_benchmark("q0"), write_answers(q0="Paris")

    def verify(*options: object, before: tuple[object, ...] = ()) -> Result:
        given = ("--answering-interface", "manual", "--manual-traces", answers, "--out", "out")
        return run(*before, "verify", path, *given, *options)

    return verify


PLACE = "ZeroDivisionError: [redacted] (odd_guard.py:11 in look)"


def test_file_and_line_of_an_exception_are_in_the_result_and_in_show(guarded: Any, run: Run) -> None:
    result = guarded("--json")
    assert result.exit_code == 3
    (line,) = Path("out/results.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["metadata"]["error"] == f"Guard: {PLACE}"
    assert SECRET not in line
    for shown in (run("show", "out", "q0").stdout, run("show", "out", "q0", "--json").stdout):
        assert "(odd_guard.py:11 in look)" in shown
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(
    ("options", "lines", "traceback"),
    [
        ((), False, False),
        (("--verbose",), True, False),
        (("-v",), True, False),
        (("--log-level", "info"), True, False),
        (("--log-level", "debug"), True, True),
        (("--traceback",), True, True),
        (("--verbose", "--traceback"), True, True),
        (("--log-file", "run.log"), False, False),
    ],
)
def test_the_options_stand_before_the_command_or_after_it(
    options: tuple[str, ...], lines: bool, traceback: bool, before: bool, guarded: Any
) -> None:
    result = guarded(before=options) if before else guarded(*options)
    assert result.exit_code == 3, result.stderr
    assert ("INFO a stage failed stage='Guard' item='q0'" in result.stderr) == lines
    assert ("Traceback (most recent call last)" in result.stderr) == traceback
    assert SECRET not in result.stderr
    if "--log-file" in options:
        written = Path("run.log").read_text("utf-8")
        assert "in look\n    raise ZeroDivisionError" in written
        assert PLACE in written
        assert SECRET not in written.replace(f'raise ZeroDivisionError("{SECRET}")', "")


def test_a_log_file_that_cannot_be_written_is_said_at_once(guarded: Any) -> None:
    result = guarded("--log-file", "no/such/folder/run.log")
    assert result.exit_code == 2
    assert "no/such/folder/run.log cannot be written" in result.stderr
    assert not Path("out").exists()


def test_the_log_of_one_command_is_not_that_of_the_next(guarded: Any, run: Run) -> None:
    guarded("--traceback", "--log-file", "run.log")
    size = Path("run.log").stat().st_size
    result = run("repair", "out", "--everything", "--mode", "rescore", "--quiet")
    assert "Traceback" not in result.stderr
    assert Path("run.log").stat().st_size == size


BROKEN = "import a_package_that_is_not_there\n"


def test_a_plugin_that_failed_is_reported_even_with_quiet_and_refused_with_strict_plugins(
    run: Run, write_benchmark: Any, write_answers: Any, install: Any
) -> None:
    install("karenina-odd-guard", {"odd": "odd_guard"}, "karenina.plugins", odd_guard=BROKEN)
    given = ("--answering-interface", "manual", "--manual-traces", write_answers(q0="Paris"), "--quiet")
    path = write_benchmark("q0")
    result = run("verify", path, *given)
    assert result.exit_code == 0, result.stderr
    assert "Warning: the plugin odd failed and is left out: needs the package 'a_package_that_is_not" in result.stderr
    strict = run("verify", path, *given, "--strict-plugins")
    assert strict.exit_code == 1
    assert "Error: plugin odd: needs the package 'a_package_that_is_not_there', which is not installed" in strict.stderr
    named = run("verify", path, *given, "--set", "plugins.odd.most=3")
    assert named.exit_code == 1
    assert "plugins.odd: the plugin failed: needs the package" in named.stderr
    sink = run("verify", path, *given, "--sink", "labdb:x")
    assert sink.exit_code == 1
    assert "no sink is called 'labdb'" in sink.stderr
    assert "odd (failed: needs the package" in sink.stderr
    adapter = run("verify", path, "--answering-model", "m", "--parsing-model", "m", "--answering-interface", "acme")
    assert adapter.exit_code == 1
    assert "odd (failed: needs the package" in adapter.stderr


def test_a_failure_of_a_plugins_own_code_is_not_reported_as_karenina_s(run: Run, install: Any) -> None:
    source = "import click\n\n@click.command()\ndef command():\n    {}['x']\n"
    install("karenina-odd", {"odd": "odd_command:command"}, odd_command=source)
    result = run("odd")
    assert result.exit_code == 1
    said = "Error: code of karenina-odd failed: KeyError: 'x' (odd_command.py:5 in command); report it to its authors"
    assert said in result.stderr
    assert "Please report it" not in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback (most recent call last)" in run("--traceback", "odd").stderr


def test_the_group_of_an_entry_point_that_is_misspelt_is_seen(run: Run, install: Any) -> None:
    install("karenina-odd", {"odd": "odd_plugin"}, "karenina.plugin", odd_plugin="")
    assert "karenina-odd declares 'odd' in the group 'karenina.plugin' of entry points" in run("doctor").stderr
    assert "(did you mean 'karenina.plugins'?)" in run("plugins").stderr
