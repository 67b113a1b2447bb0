"""Runs with much in every item that are interrupted again and again: they equal others, and grow no larger."""

from __future__ import annotations

import importlib.util
import random
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

from karenina_core.testing import Reply, ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_growth", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
QUESTIONS, CONCURRENCY, RESUMES = 60, 4, 5
TEN_KILOBYTES = 10_240
GROWTH = 0.05
"""Of the whole directory, at each time that a run is gone on with."""
ONCE = "".join(f"retry_policy.{kind}.max_attempts = 1\n" for kind in ("server", "connection", "timeout"))


def long_answer(request: Any) -> Any:
    """Ten kilobytes that are not the same in any two answers."""
    if request.schema:
        return world.said(request)
    return f"{world.said(request)} {random.Random(world.number_of(request)).randbytes(TEN_KILOBYTES // 2).hex()}"


def slow(request: Any) -> Any:
    answer = long_answer(request)
    return Reply(answer, latency=0.02)


def size(run: Path) -> int:
    return sum(path.stat().st_size for path in run.iterdir())


def test_a_run_of_large_items_that_is_interrupted_equals_one_that_is_not_and_is_no_larger(
    forking: Any, tmp_path: Path, long: bool
) -> None:
    questions = QUESTIONS * (10 if long else 1)
    run, other = tmp_path / "run", tmp_path / "uninterrupted"
    with ScriptedServer(slow) as server:
        benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", questions, TEN_KILOBYTES)
        config = world.write_config(tmp_path / "config.toml", server.url, CONCURRENCY)
        words = ["verify", benchmark, "--config", config, "--quiet"]
        started = forking.start(*words, "--out", other, prelude=world.NAMED)
        assert started.wait() == 0, started.stderr
        count = server.count
        started = forking.start(*words, "--out", run, prelude=world.NAMED)
        for number in range(RESUMES):
            world.wait_for_more(server, questions // RESUMES, started)
            started.send_signal((signal.SIGINT, signal.SIGKILL, signal.SIGTERM)[number % 3])
            assert started.wait() in (130, -9)
            invariants.assert_run(run, complete=False, judged=world.judged(server, count))
            started = forking.start("resume", run, "--quiet")
        assert started.wait() == 0, started.stderr
        records = invariants.assert_run(run, judged=world.judged(server, count))
        assert min(len(str(record)) for record in records) > 2 * TEN_KILOBYTES
        assert world.results(run) == world.results(other)
        told, uninterrupted = world.summary(run), world.summary(other)
        lost = told["ledger"]["total"].pop("failed"), uninterrupted["ledger"]["total"].pop("failed")
        assert (lost[0] <= RESUMES * CONCURRENCY, lost[1]) == (True, 0)
        assert told["ledger"]["total"] == uninterrupted["ledger"]["total"]
        assert told["summary"]["outcomes"] == uninterrupted["summary"]["outcomes"]
        assert told["summary"]["tokens"] == uninterrupted["summary"]["tokens"]
        assert size(run) <= size(other) * (1 + GROWTH)
        before, count = size(run), server.count
        for _ in range(RESUMES):
            again = forking.start("resume", run, "--quiet")
            assert again.wait() == 0, again.stderr
        assert size(run) == before
        invariants.assert_replayed(run, tmp_path / "again", lambda: server.count)
        assert server.count == count


def test_errors_that_are_tried_again_in_vain_make_a_run_no_larger(forking: Any, tmp_path: Path) -> None:
    def failing(request: Any) -> Any:
        return Reply.error(500) if world.number_of(request) % 10 == 7 else long_answer(request)

    run, sizes = tmp_path / "run", []
    with ScriptedServer(failing) as server:
        benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", QUESTIONS, TEN_KILOBYTES)
        config = world.write_config(tmp_path / "config.toml", server.url, CONCURRENCY, more=ONCE)
        started = forking.start("verify", benchmark, "--config", config, "--out", run, "--quiet")
        for _ in range(RESUMES + 1):
            assert started.wait() == 3, started.stderr
            invariants.assert_run(run, judged=world.judged(server))
            assert world.manifest(run)["summary"]["outcomes"]["error"] == QUESTIONS // 10
            sizes.append(size(run))
            started = forking.start("resume", run, "--quiet")
        assert started.wait() == 3
        assert world.manifest(run)["ledger"]["total"]["failed"] == (RESUMES + 2) * QUESTIONS // 10
    for before, after in pairwise(sizes):
        assert after <= before * (1 + GROWTH)
