"""Runs whose directory cannot be written, from the beginning or from some moment on."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from karenina_core.testing import ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_run_disk", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
KILOBYTE = 1024
QUESTIONS, CONCURRENCY = 120, 8
LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
AS_NOBODY = "import os\nif os.getuid() == 0:\n    os.setgroups([])\n    os.setgid(65534)\n    os.setuid(65534)\n"
MOMENT = 1.0
"""Seconds after which nothing new may be asked."""


def talkative(size: int) -> Any:
    """Answers of that many bytes, which cannot be made smaller; and the time of every request."""
    times: list[float] = []

    def script(request: Any) -> Any:
        times.append(time.monotonic())
        number = world.number_of(request)
        if request.schema:
            return world.said(request)
        return f"{world.said(request)} {random.Random(number).randbytes(size // 2).hex()}"

    return script, times


class Full:
    """A run that fills its disk."""

    def __init__(self, forking: Any, folder: Path, run: Path, server: ScriptedServer) -> None:
        self.forking, self.run, self.server = forking, run, server
        self.told = folder / f"{run.name}.told"
        self.benchmark = world.write_benchmark(folder / "capitals.jsonld", QUESTIONS)
        self.config = world.write_config(folder / "config.toml", server.url, CONCURRENCY)

    def started(self, prelude: str = "") -> Any:
        telling = world.NAMED + world.TELLING.format(path=str(self.told)) + prelude
        words: list[object] = ["verify", self.benchmark, "--config", self.config, "--out", self.run]
        if (self.run / "manifest.json").exists():
            words = ["resume", self.run]
        return self.forking.start(*words, "--quiet", prelude=telling)

    def assert_stopped(self, started: Any, before: int) -> None:
        """It said why and how to go on, asked no more, and lost nothing that was acknowledged."""
        assert started.wait() == 74, started.stderr
        if (self.run / "journal.sqlite").exists():
            invariants.assert_journal(self.run, *world.told(self.told))
            if (self.run / "manifest.json").exists():
                judged = world.judged(self.server, before)
                invariants.assert_run(self.run, complete=False, written=False, judged=judged)
            assert self.server.count - before - len(world.stored(self.run)[0]) <= CONCURRENCY

    def assert_finished(self, before: int) -> None:
        """With room it is gone on with, and only what was under way is asked again."""
        resumed = self.started()
        assert resumed.wait() == 0, resumed.stderr
        invariants.assert_journal(self.run, *world.told(self.told))
        assert len(invariants.assert_run(self.run, judged=world.judged(self.server, before))) == QUESTIONS
        assert self.server.count - before <= 2 * QUESTIONS + CONCURRENCY


def test_a_run_that_fills_its_disk_stops_and_is_finished_when_there_is_room(
    forking: Any, small_disk: Path, tmp_path: Path, long: bool
) -> None:
    limit = "" if os.path.ismount(small_disk) else LIMITED.format(limit=2048 * KILOBYTE)
    script, times = talkative(24 * KILOBYTE)
    with ScriptedServer(script) as server:
        run = Full(forking, tmp_path, small_disk / "run", server)
        started = run.started(limit)
        run.assert_stopped(started, 0)
        assert "can no longer be written" in started.stderr
        assert "karenina resume" in started.stderr
        assert CONCURRENCY < len(world.stored(run.run)[0]) < 2 * QUESTIONS
        last = run.told.stat().st_mtime - time.time() + time.monotonic()
        assert times[-1] <= last + (MOMENT if long else 10 * MOMENT)  # where the machine is busy, they arrive late
        if not limit:
            subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        run.assert_finished(0)
        invariants.assert_replayed(run.run, tmp_path / "again", lambda: server.count)


def test_at_whatever_size_files_may_not_grow_nothing_is_lost(forking: Any, tmp_path: Path, long: bool) -> None:
    """Every write of a run may be the first that there is no room for."""
    chance = random.Random(seed := random.randrange(1 << 30) if long else 0)
    print("seed", seed)
    limits = range(4, 1200, 12) if long else [chance.randint(low, 2 * low) for low in (16, 70, 140, 280, 560)]
    script, _ = talkative(8 * KILOBYTE)
    codes = []
    with ScriptedServer(script) as server:
        for limit in [*limits, 64 * KILOBYTE]:
            before = server.count
            run = Full(forking, tmp_path, tmp_path / f"run-{limit}", server)
            started = run.started(LIMITED.format(limit=limit * KILOBYTE))
            codes.append(started.wait())
            if codes[-1] == 74:
                run.assert_stopped(started, before)
            else:
                assert codes[-1] == 0, started.stderr
            if limit < 64:
                assert server.count == before, "it was refused before anything was paid for"
            run.assert_finished(before)
            shutil.rmtree(run.run)
    assert set(codes) == {0, 74}
    assert codes[-1] == 0


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_asked(forking: Any, tmp_path: Path) -> None:
    with ScriptedServer(world.said) as server:
        benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", 3)
        config = world.write_config(tmp_path / "config.toml", server.url, 1)
        for above in (tmp_path, *tmp_path.parents):
            if above.owner() == tmp_path.owner() and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o755)
        (tmp_path / "shut").mkdir(mode=0o555)
        for run in (tmp_path / "shut", tmp_path / "shut" / "run"):
            words = ["verify", benchmark, "--config", config, "--out", run]
            started = forking.start(*words, prelude=AS_NOBODY)
            assert started.wait() == 74, started.stderr
            assert "another (--out DIR" in started.stderr or "another directory (--out DIR)" in started.stderr
        assert server.count == 0


def test_a_run_whose_folder_vanishes_stops(forking: Any, tmp_path: Path) -> None:
    script, _ = talkative(KILOBYTE)
    slow = world.answering(0.05)

    async def answer(request: Any) -> Any:
        await slow(request)
        return script(request)

    with ScriptedServer(answer) as server:
        run = Full(forking, tmp_path, tmp_path / "run", server)
        started = run.started()
        world.wait_for_more(server, 3 * CONCURRENCY, started)
        shutil.move(run.run, tmp_path / "elsewhere")
        count = server.count
        assert started.wait() == 74, started.stderr
        assert "Traceback" not in started.stderr
        assert server.count - count <= 2 * CONCURRENCY
        shutil.move(tmp_path / "elsewhere", run.run)
        invariants.assert_journal(run.run, *world.told(run.told))
        run.assert_finished(0)
