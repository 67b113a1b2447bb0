"""The console script as users run it: processes, signals and exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.folder.status import read_status

from karenina_core.testing import Reply, ScriptedServer

Script = Callable[..., subprocess.CompletedProcess[str]]
Files = Callable[..., Path]


def test_help_is_quick(run_script: Script) -> None:
    """CPU seconds, because the machine may be busy; far above the budget, far below a heavy import."""
    before = os.times()
    result = run_script("--help")
    after = os.times()
    assert result.returncode == 0
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 0.5


def test_a_run_and_its_exit_codes(run_script: Script, forking: Any, write_benchmark: Files, served: Any) -> None:
    def script(request: Any) -> Any:
        if "(q1)" in request.text:
            return Reply.error(401)
        return {"capital": "Paris"} if request.schema else "Paris."

    path = write_benchmark("q0", "q1")
    with ScriptedServer(script) as server:
        flags = [*served(server.url), "--out", "out"]
        result = run_script("verify", path, *flags, "--json")
        assert result.returncode == 3, result.stderr
        assert json.loads(result.stdout)["outcomes"] == {"passed": 1, "error": 1}
        assert forking.start("verify", path, *flags, ends=True).wait() == 74
    assert forking.start("verify", path, ends=True).wait() == 1
    assert forking.start("verify", ends=True).wait() == 2
    shown = run_script("show", "out", "q0", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert shown.returncode == 0
    assert "Outcome: passed" in shown.stdout


def test_two_interrupts_keep_what_is_finished(
    write_benchmark: Files, served: Any, tmp_path: Path, karenina_script: Path, draining: Any
) -> None:
    ended = threading.Event()

    async def waits() -> Reply:
        await asyncio.to_thread(ended.wait, 90)
        return Reply("Paris.")

    def script(request: Any) -> Any:
        if "(q1)" in request.text:
            return waits()
        return {"capital": "Paris"} if request.schema else "Paris."

    path = write_benchmark("q0", "q1")
    with ScriptedServer(script) as server:
        command = [karenina_script, "verify", path, *served(server.url), "--out", tmp_path / "out"]
        started = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            server.wait_for(3, timeout=90)
            _wait_for_result(tmp_path / "out")
            started.send_signal(signal.SIGINT)
            draining(started)
            started.send_signal(signal.SIGINT)
            out, err = started.communicate(timeout=90)
        finally:
            ended.set()
            started.kill()
    assert started.returncode == 130, err
    assert "Traceback" not in err
    assert "interrupted: 1 of 2 items are done" in err
    assert out == ""
    (line,) = (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["metadata"]["question_id"] == "q0"


def _wait_for_result(folder: Path) -> None:
    deadline = time.monotonic() + 90
    while read_status(folder).done < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_reader_that_leaves_is_no_crash(karenina_script: Path) -> None:
    started = subprocess.Popen(
        [str(karenina_script), "plugins"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    started.stdout.close()
    assert started.stderr is not None
    err = started.stderr.read()
    started.stderr.close()
    started.wait(timeout=90)
    assert "Traceback" not in err


def test_on_a_terminal_there_is_a_bar_and_no_command_of_a_model(
    write_benchmark: Files, served: Any, karenina_script: Path
) -> None:
    def script(request: Any) -> Any:
        return {"capital": "\x1b[2J"} if request.schema else "\x1b]0;owned\x07Paris"

    with ScriptedServer(script) as server:
        code, shown = _on_terminal(
            [karenina_script, "verify", write_benchmark("q0", "q1"), *served(server.url), "--out", "out"]
        )
    assert code == 0, shown
    assert "2/2" in shown
    assert "judged by" in shown
    code, explained = _on_terminal([karenina_script, "show", "out", "q0"])
    assert code == 0, explained
    assert "\\x1b]0;owned\\x07Paris" in explained
    for text in (shown, explained):
        assert "\x1b[2J" not in text
        assert "\x1b]0" not in text


def _on_terminal(command: Sequence[object]) -> tuple[int, str]:
    """Run with a terminal as stdout and stderr; the exit code and all that the terminal was sent."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    started = subprocess.Popen(
        list(map(str, command)), stdin=theirs, stdout=theirs, stderr=theirs, env=environment, close_fds=True
    )
    os.close(theirs)
    received = b""
    with contextlib.suppress(OSError):  # the terminal is closed with its last writer
        while piece := os.read(ours, 65536):
            received += piece
    os.close(ours)
    return started.wait(timeout=90), received.decode("utf-8", "replace")


SLOW_TO_END = """
import asyncio, os, signal, sys, time
from karenina_cli.running import ENDING, answered_signals


class Slow:
    def __del__(self):
        end = time.monotonic() + ENDING + 0.3
        while time.monotonic() < end:
            time.sleep(0.05)


kept = [Slow()]
kept.append(kept)  # so that it is there until the interpreter itself ends


async def interrupted_twice():
    with answered_signals(lambda: None, "the run did not answer"):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)


asyncio.run(interrupted_twice())
sys.exit(130)
"""


def test_an_interpreter_that_is_slow_to_end_keeps_the_exit_code() -> None:
    ran = subprocess.run([sys.executable, "-c", SLOW_TO_END], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (130, "")
