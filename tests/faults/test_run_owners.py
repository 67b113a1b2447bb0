"""Several processes on one run directory, and on several: each item is made once, and nobody disturbs another."""

from __future__ import annotations

import importlib.util
import signal
import time
from pathlib import Path
from typing import Any

from karenina_runs.folder.status import read_status

from karenina_core.testing import ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_owners", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
PROCESSES, QUESTIONS, CONCURRENCY, ROUNDS = 4, 20, 4, 10
MEETING = """\
import os, time
while not os.path.exists({signal!r}):
    time.sleep(0.0005)
"""
"""Processes that wait for each other begin together."""


def words_of(folder: Path, server: ScriptedServer, questions: int = QUESTIONS) -> list[object]:
    benchmark = world.write_benchmark(folder / "capitals.jsonld", questions)
    return ["verify", benchmark, "--config", world.write_config(folder / "config.toml", server.url, CONCURRENCY)]


def together(forking: Any, folder: Path, *commands: list[object]) -> list[Any]:
    """Start these commands at the same moment."""
    signal_file = folder / "begin"
    signal_file.unlink(missing_ok=True)
    prelude = world.NAMED + MEETING.format(signal=str(signal_file))
    started = [forking.start(*words, "--quiet", prelude=prelude) for words in commands]
    time.sleep(0.05)
    signal_file.touch()
    return started


def assert_one_is_first(started: list[Any]) -> Any:
    """All but one are refused, and told by whom. Returns the one."""
    codes = [process.wait() for process in started]
    assert sorted(codes) == [0, *[74] * (len(started) - 1)], [process.stderr for process in started]
    first = started[codes.index(0)]
    for process in started:
        if process is not first:
            assert "is being written by process" in process.stderr or "is not empty" in process.stderr
            assert "Traceback" not in process.stderr
    return first


def test_of_several_that_begin_the_same_run_one_does(forking: Any, tmp_path: Path, long: bool) -> None:
    for number in range(ROUNDS * 5 if long else 3):
        with ScriptedServer(world.answering(0.02)) as server:
            run = tmp_path / f"run-{number}"
            words = [*words_of(tmp_path, server), "--out", run]
            assert_one_is_first(together(forking, tmp_path, *[words] * PROCESSES))
            assert server.count == 2 * QUESTIONS
            invariants.assert_run(run, judged=world.judged(server))
    invariants.assert_replayed(run, tmp_path / "again", lambda: server.count)


def test_of_several_that_go_on_with_the_same_run_one_does(forking: Any, tmp_path: Path, long: bool) -> None:
    for number in range(ROUNDS * 5 if long else 3):
        with ScriptedServer(world.answering(0.02)) as server:
            run = tmp_path / f"run-{number}"
            started = forking.start(*words_of(tmp_path, server), "--out", run, "--quiet", prelude=world.NAMED)
            world.wait_for_more(server, QUESTIONS // 2, started)
            started.kill()
            assert_one_is_first(together(forking, tmp_path, *[["resume", run]] * PROCESSES))
            assert server.count <= 2 * QUESTIONS + CONCURRENCY
            invariants.assert_run(run, judged=world.judged(server))
    invariants.assert_replayed(run, tmp_path / "again", lambda: server.count)


def test_the_run_of_a_dead_owner_is_taken_over_at_once_and_that_of_a_stopped_one_never(
    forking: Any, tmp_path: Path, long: bool
) -> None:
    with ScriptedServer(world.answering(0.05)) as server:
        run = tmp_path / "run"
        owner = forking.start(*words_of(tmp_path, server), "--out", run, "--quiet", prelude=world.NAMED)
        world.wait_for_more(server, QUESTIONS // 2, owner)
        owner.send_signal(signal.SIGSTOP)
        at = time.monotonic()
        refused = forking.start("resume", run, "--quiet")
        assert refused.wait() == 74
        assert f"is being written by process {owner.pid}" in refused.stderr
        waited = time.monotonic() - at
        assert waited < (1.0 if long else 20.0)
        owner.kill()
        assert read_status(run).pid is None
        at = time.monotonic()
        heir = forking.start("resume", run, "--quiet")
        assert heir.wait() == 0, heir.stderr
        assert server.count <= 2 * QUESTIONS + CONCURRENCY
        invariants.assert_run(run, judged=world.judged(server))


def test_who_has_lost_the_run_writes_no_more(forking: Any, tmp_path: Path) -> None:
    """Somebody removes the lock of a process that only seems to be dead."""
    with ScriptedServer(world.answering(0.05)) as server:
        run = tmp_path / "run"
        zombie = forking.start(*words_of(tmp_path, server), "--out", run, "--quiet", prelude=world.NAMED)
        world.wait_for_more(server, QUESTIONS // 2, zombie)
        zombie.send_signal(signal.SIGSTOP)
        (run / "run.lock").unlink()
        heir = forking.start("resume", run, "--quiet")
        if heir.wait() == 74:  # it was stopped while it was writing
            assert "database is locked" in heir.stderr
            zombie.send_signal(signal.SIGCONT)
            assert zombie.wait() == 74, zombie.stderr
            heir = forking.start("resume", run, "--quiet")
        assert heir.wait() == 0, heir.stderr
        before = {name: (run / name).read_bytes() for name in ("manifest.json", "results.jsonl", "journal.sqlite")}
        count = server.count
        zombie.send_signal(signal.SIGCONT)
        assert zombie.wait() == 74, zombie.stderr
        assert "another process may write here now" in zombie.stderr
        assert server.count <= count + CONCURRENCY
        assert {name: (run / name).read_bytes() for name in before} == before
        invariants.assert_run(run, judged=world.judged(server))


def test_runs_at_the_same_time_do_not_disturb_each_other(forking: Any, tmp_path: Path, long: bool) -> None:
    """They share the folder above, the benchmark, the server, and another run from which they all take replies."""
    questions = 200 if long else QUESTIONS
    with ScriptedServer(world.answering(0.1 if long else 0.02)) as server:
        words = words_of(tmp_path, server, questions)
        alone = together(forking, tmp_path, [*words, "--out", tmp_path / "alone"])[0]
        at = time.monotonic()
        assert alone.wait() == 0, alone.stderr
        seconds = time.monotonic() - at
        runs = [tmp_path / f"run-{number}" for number in range(PROCESSES)]
        at, count = time.monotonic(), server.count
        for process in together(forking, tmp_path, *[[*words, "--out", run] for run in runs]):
            assert process.wait() == 0, process.stderr
        assert server.count - count == PROCESSES * 2 * questions
        if long:
            assert time.monotonic() - at <= seconds / 0.8, "each is as fast as alone, but for a fifth"
        reusing = [tmp_path / f"reusing-{number}" for number in range(PROCESSES)]
        count = server.count
        for process in together(forking, tmp_path, *[[*words, "--out", run, "--reuse", runs[0]] for run in reusing]):
            assert process.wait() == 0, process.stderr
        assert server.count == count
        for run in runs:
            invariants.assert_run(run, judged=world.judged(server))
            assert world.results(run) == world.results(tmp_path / "alone")
        for run in reusing:
            invariants.assert_run(run)
            assert world.results(run) == world.results(tmp_path / "alone")
        invariants.assert_replayed(runs[0], tmp_path / "again", lambda: server.count)
