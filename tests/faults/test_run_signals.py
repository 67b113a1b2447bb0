"""Runs that are interrupted, ended or stopped by signals, one of them as a process of the console script."""

from __future__ import annotations

import asyncio
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.folder.status import read_status

from karenina_core.testing import Reply, ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_signals", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
SCRIPT = Path(sys.executable).with_name("karenina")
QUESTIONS, CONCURRENCY = 8, 3
ROOM = 10.0
"""Seconds beside what is promised: the machine may be busy. `--long` is for a quiet one, and leaves less."""


class Script:
    """The console script itself, as `Forked` is used."""

    def __init__(self, *words: object) -> None:
        self._running = subprocess.Popen([str(SCRIPT), *map(str, words)], stderr=subprocess.PIPE, text=True)
        self.send_signal = self._running.send_signal
        self.stderr = ""

    def wait(self) -> int:
        _, self.stderr = self._running.communicate(timeout=120)
        return self._running.returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def begun(start: Callable[..., Any], folder: Path, server: ScriptedServer, more: str = "", **facts: Any) -> Any:
    benchmark = world.write_benchmark(folder.parent / "capitals.jsonld", QUESTIONS)
    config = world.write_config(folder.parent / "config.toml", server.url, CONCURRENCY, more=more)
    return start("verify", benchmark, "--config", config, "--out", folder, **facts)


def assert_finished_by_resuming(forking: Any, folder: Path, server: ScriptedServer, asked: int) -> None:
    """Nothing that was paid for is asked again."""
    resumed = forking.start("resume", folder, "--quiet")
    assert resumed.wait() == 0, resumed.stderr
    assert server.count == asked
    assert len(invariants.assert_run(folder, judged=world.judged(server))) == QUESTIONS
    invariants.assert_replayed(folder, folder.parent / "again", lambda: server.count)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_waits_for_what_is_asked_and_pays_for_nothing_twice(
    number: signal.Signals, forking: Any, folder: Path, long: bool
) -> None:
    longest = 3.0 if long else 0.5

    async def slow(request: Any) -> Any:
        await asyncio.sleep(longest)
        return world.said(request)

    with ScriptedServer(slow) as server:
        if number == signal.SIGINT:
            process = begun(Script, folder, server)
        else:
            process = begun(forking.start, folder, server, ends=True)
        server.wait_for(CONCURRENCY + 1, timeout=120)  # some have answered, some are under way
        at = time.monotonic()
        process.send_signal(number)
        code, err = process.wait(), process.stderr
        seconds = time.monotonic() - at
        assert code == 130, err
        assert seconds <= longest + 1.0 + (1.0 if long else ROOM)
        paid = server.count
        calls, results = world.stored(folder)
        assert len(calls) == paid, "what was asked when the signal came is kept"
        assert read_status(folder).state == "interrupted"
        invariants.assert_run(folder, complete=False, judged=world.judged(server))
        assert len(results) < QUESTIONS
        assert_finished_by_resuming(forking, folder, server, 2 * QUESTIONS)


def test_the_second_signal_ends_the_run_at_once(forking: Any, folder: Path, long: bool) -> None:
    hanging = [True]

    def hangs(request: Any) -> Any:
        return Reply.hang(100) if hanging[0] and world.number_of(request) % 3 == 2 else world.said(request)

    with ScriptedServer(hangs) as server:
        process = begun(forking.start, folder, server, ends=True)
        world.wait_until(lambda: (folder / "manifest.json").exists() and read_status(folder).done >= 2)
        process.send_signal(signal.SIGINT)
        world.wait_until(lambda: "interrupt again to end at once" in process.stderr)
        at = time.monotonic()
        process.send_signal(signal.SIGINT)
        code, err = process.wait(), process.stderr
        seconds = time.monotonic() - at
        assert code == 130, err
        assert seconds < (0.5 if long else 0.5 + ROOM)
        assert "Traceback" not in err
        assert "To continue, type: karenina resume" in err
        invariants.assert_run(folder, complete=False, judged=world.judged(server))
        cut = server.count - len(world.stored(folder)[0])
        assert 0 < cut <= CONCURRENCY
        hanging[0] = False
        assert_finished_by_resuming(forking, folder, server, 2 * QUESTIONS + cut)


def test_a_stopped_process_keeps_its_run_and_goes_on_as_if_nothing_had_been(
    forking: Any, folder: Path, long: bool
) -> None:
    """Stopped like a computer that sleeps: longer than the calls may take, which is many times what they take."""
    seconds, limit = (60.0, 20.0) if long else (4.5, 3.5)

    async def slow(request: Any) -> Any:
        await asyncio.sleep(0.2)
        return world.said(request)

    with ScriptedServer(slow) as server:
        process = begun(forking.start, folder, server, f"request_timeout = {limit}\n")
        server.wait_for(CONCURRENCY + 1, timeout=120)
        process.send_signal(signal.SIGSTOP)
        before = time.monotonic()
        refused = forking.start("resume", folder, "--quiet")
        assert refused.wait() == 74
        assert f"is being written by process {process.pid}" in refused.stderr
        assert read_status(folder).pid == process.pid
        time.sleep(max(0.0, seconds - (time.monotonic() - before)))
        process.send_signal(signal.SIGCONT)
        code, err = process.wait(), process.stderr
        assert code == 0, err
        records = invariants.assert_run(folder, judged=world.judged(server))
        assert [record["metadata"]["outcome"] for record in records].count("error") == 0
        again = [sum(record["metadata"]["retry_counts"].values()) for record in records]
        assert max(again) <= 1, "one pause counts against a call once"
        assert server.count - 2 * QUESTIONS == sum(again) <= CONCURRENCY
        invariants.assert_replayed(folder, folder.parent / "again", lambda: server.count)
