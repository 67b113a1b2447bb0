"""Runs whose process is killed: they are finished with `karenina resume`, and nothing tells them from others."""

from __future__ import annotations

import importlib.util
import random
import time
from pathlib import Path
from typing import Any

from karenina_core import VerificationResultSet
from karenina_core.testing import ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_kills", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
JUDGES, CONCURRENCY = ("j", "k"), 8
KILLS, ROUNDS = 50, 20
"""In a round; rounds with `--long`: 1,000 kills. The short form is one round of a sixth."""


class Killed:
    """A run in one folder whose process is killed again and again, and what must hold after each kill."""

    def __init__(self, forking: Any, server: ScriptedServer, folder: Path, words: list[object]) -> None:
        self.forking, self.server, self.folder, self.words = forking, server, folder, words
        self.told = folder.with_suffix(".told")
        self.prelude = world.NAMED + world.TELLING.format(path=str(self.told))
        self.kills = self.landed = 0
        self.calls: set[Any] = set()
        self.results: dict[str, str] = {}
        self.started = self.start()

    def start(self) -> Any:
        if (self.folder / "manifest.json").exists():
            return self.forking.start("resume", self.folder, "--quiet", prelude=self.prelude)
        return self.forking.start(*self.words, "--out", self.folder, "--quiet", prelude=self.prelude)

    def kill(self) -> None:
        self.landed += self.started.kill() == -9
        self.kills += 1
        self.check()
        self.started = self.start()

    def check(self) -> None:
        """Nothing that was there, acknowledged, or passed on to a judge is lost, and nothing is there twice."""
        calls, results = world.stored(self.folder)
        assert self.calls <= calls
        assert self.results.items() <= results.items()
        self.calls, self.results = calls, results
        assert self.server.count - len(calls) <= self.kills * CONCURRENCY
        if (self.folder / "journal.sqlite").exists():
            invariants.assert_journal(self.folder, *world.told(self.told))
            invariants.assert_run(self.folder, complete=False, judged=world.judged(self.server))
            assert len(VerificationResultSet.load(self.folder)) == len(results)

    def finish(self) -> None:
        assert self.started.wait() == 0, self.started.stderr
        invariants.assert_journal(self.folder, *world.told(self.told))


def round_of_kills(forking: Any, tmp_path: Path, number: int, chance: random.Random, kills: int) -> tuple[int, int]:
    """One run, killed at random moments: while it begins, while it asks, while it ends. Kills, and repeated calls."""
    questions = 5 * kills
    calls = questions * (1 + len(JUDGES))
    benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", questions)
    folder, other = tmp_path / f"killed-{number}", tmp_path / f"uninterrupted-{number}"
    with ScriptedServer(world.answering(0.01)) as server:
        config = world.write_config(tmp_path / "config.toml", server.url, CONCURRENCY, JUDGES)
        words = ["verify", benchmark, "--config", config]
        reference = forking.start(*words, "--out", other, "--quiet", prelude=world.NAMED)
        assert reference.wait() == 0, reference.stderr
        once = world.asked(server)
        assert once.total() == calls
    with ScriptedServer(world.answering(0.01), port=port_of(server.url)) as server:
        run = Killed(forking, server, folder, words)
        while run.kills < kills:
            if chance.random() < 0.8:
                world.wait_for_more(server, chance.randint(0, 2 * calls // kills), run.started)
                time.sleep(chance.uniform(0.0, 0.02))
            else:
                time.sleep(chance.uniform(0.0, 0.3))
            run.kill()
        run.finish()
        repeated = (world.asked(server) - once).total()
        assert world.asked(server).keys() == once.keys()
        assert repeated == server.count - calls <= run.kills * CONCURRENCY
        assert run.landed > kills // 2, "most processes had ended before they were killed"
        assert len(invariants.assert_run(folder, judged=world.judged(server))) == questions * len(JUDGES)
        assert world.results(folder) == world.results(other)
        assert world.summary(folder) == world.summary(other)
        invariants.assert_replayed(folder, tmp_path / f"again-{number}", lambda: server.count)
    return run.landed, repeated


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


def test_killed_at_random_moments_a_run_is_finished_as_if_nothing_had_happened(
    forking: Any, tmp_path: Path, long: bool
) -> None:
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    for number in range(ROUNDS if long else 1):
        counts = round_of_kills(forking, tmp_path, number, chance, KILLS if long else KILLS // 6)
        print("seed", seed, "kills, repeated calls:", counts)


def test_a_file_of_results_from_before_is_not_taken_for_that_of_a_killed_run(forking: Any, tmp_path: Path) -> None:
    """The file of an interrupted run is written again only when the run that goes on ends."""
    benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", 20)
    folder = tmp_path / "run"
    with ScriptedServer(world.answering(0.05)) as server:
        config = world.write_config(tmp_path / "config.toml", server.url, 2)
        started = forking.start("verify", benchmark, "--config", config, "--out", folder)
        world.wait_for_more(server, 8, started)
        started.send_signal(2)
        assert started.wait() == 130
        old = len((folder / "results.jsonl").read_text("utf-8").splitlines())
        started = forking.start("resume", folder)
        world.wait_for_more(server, 12, started)
        started.kill()
    assert world.manifest(folder)["status"] == "running"
    assert len((folder / "results.jsonl").read_text("utf-8").splitlines()) == old
    assert len(VerificationResultSet.load(folder)) == len(world.stored(folder)[1]) > old
    invariants.assert_run(folder, complete=False, judged=world.judged(server))
