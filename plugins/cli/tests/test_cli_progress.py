"""Progress on stderr: a line every few seconds in a pipe, lines that are drawn again on a terminal."""

from __future__ import annotations

import asyncio
import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from karenina_cli.output import note
from karenina_cli.progress import SECONDS, Progress
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.progress import Snapshot

ITEM: Any = SimpleNamespace(metadata=SimpleNamespace(outcome="passed"))


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """Takes texts, as a terminal does."""

    def isatty(self) -> bool:
        return True


def counting(**facts: Any) -> RunControl:
    control = RunControl()
    control.counted = SimpleNamespace(snapshot=lambda: Snapshot(**facts))  # type: ignore[assignment] # one method
    return control


def test_a_pipe_gets_a_line_every_few_seconds_and_not_one_for_an_item(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Progress(100, clock=clock) as progress:
        progress._control = counting(tokens=1_500)
        for _ in range(60):
            progress.advance(ITEM)
            clock.now += 0.25
            progress.tick()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "20/100 items; 5 s, about 20 s left; 1.5k tokens",
        "40/100 items; 10 s, about 15 s left; 1.5k tokens",
        "60/100 items; 15 s, about 10 s left; 1.5k tokens",
    ]
    assert SECONDS == 5.0


def test_a_short_run_says_in_the_end_what_it_did_and_a_quiet_one_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet, said in ((False, "3/3 items; 0 s\n"), (True, "")):
        with Progress(3, quiet=quiet, done=2, clock=Clock()) as progress:
            progress.advance(ITEM)
        assert capsys.readouterr().err == said


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_is_drawn_again_within_its_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    for name, value in (("TERM", "xterm"), ("COLUMNS", str(width)), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal)
    clock = Clock()

    async def watched(progress: Progress) -> None:
        async with progress.shown(counting(tokens=12_345, slowed=[("m" * 90, "waits 3 s")])):
            await asyncio.sleep(0)
            progress.advance(ITEM)
            clock.now = 4.0
            progress.tick()

    with Progress(4, clock=clock) as progress:
        asyncio.run(watched(progress))
    drawn = terminal.getvalue()
    assert "1/4 items  4 s" in drawn
    assert "12.3k tokens" in drawn
    assert ("mmm…" in drawn) == (width < 100)
    assert all(len(line) <= width for line in progress.lines(width))


@pytest.mark.parametrize("width", [60, 80])
def test_what_is_said_on_a_terminal_breaks_between_words(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, said = Terminal(), "gate failed: " + "cannot be decided " * 12
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stderr", terminal)
    note(said)
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 1
    assert all(len(line) <= width for line in lines)
    assert " ".join(lines).split() == said.split()


def test_a_closed_stderr_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with Progress(4, clock=clock) as progress:
        closed = io.StringIO()
        closed.close()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", closed)
            clock.now = 6.0
            progress.tick()
    assert progress._quiet
