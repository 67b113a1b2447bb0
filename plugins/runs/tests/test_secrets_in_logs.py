"""The log: silent until it is asked for, one line an event on stderr as it is then, without secrets."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from karenina_calls.secrets.redaction import hide

from karenina_core.log import configure, get_logger

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
    configure("INFO")
    get_logger().info("item done", item="q1", seconds=0.5)
    get_logger("karenina.pipeline").warning("odd", why="a 'quote'")
    get_logger().warning(item="q2")
    assert capsys.readouterr().err == (
        "INFO item done item='q1' seconds=0.5\nWARNING odd why=\"a 'quote'\"\nWARNING  item='q2'\n"
    )


def test_what_is_below_the_level_is_not_written(log: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    get_logger().info("seen by no one")
    get_logger().warning("seen")
    configure("ERROR")
    get_logger().warning("not any more")
    assert capsys.readouterr().err == "WARNING seen\n"


def test_an_event_is_written_once_and_where_stderr_is_then(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    configure()
    configure()
    bar = io.StringIO()
    monkeypatch.setattr("sys.stderr", bar)
    get_logger().warning("under the bar")
    assert bar.getvalue() == "WARNING under the bar\n"
    assert caplog.records == [], "the handlers of the host program write it as well"


def test_secrets_of_the_environment_are_in_no_line(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    monkeypatch.setenv("CANARY_API_KEY", SECRET)
    get_logger().warning(f"refused {SECRET}", header=f"Bearer {SECRET}")
    assert capsys.readouterr().err == "WARNING refused [redacted] header='Bearer [redacted]'\n"


def test_a_secret_is_in_no_line_as_python_writes_it(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    monkeypatch.setenv("CANARY_API_KEY", "tab\tquote'\"back\\slash-0815")
    get_logger().warning("refused", why={"sent": os.environ["CANARY_API_KEY"]})
    assert capsys.readouterr().err == "WARNING refused why={'sent': '[redacted]'}\n"


def test_secrets_that_no_variable_holds_are_hidden_when_they_are_known(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    hide(["canary-of-a-setting"])
    get_logger().warning("refused canary-of-a-setting")
    assert capsys.readouterr().err == "WARNING refused [redacted]\n"


def test_how_the_host_program_sets_up_structlog_changes_nothing(
    log: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    structlog.configure(processors=[], wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    configure()
    get_logger().warning("odd")
    assert capsys.readouterr().err == "WARNING odd\n"
