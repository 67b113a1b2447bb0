"""Runs during which the wall clock jumps: only clocks that never do are trusted with waiting and measuring."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.limits.adaptive_limit import Bucket
from karenina_runs.journal.reader import JournalReader

from karenina_core.testing import Reply, ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_clock", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
JUMPING = """\
import datetime, random, sys, time
chance, real, genuine = random.Random(7), time.time, datetime.datetime
steps = {steps}
offset = [0.0]

def jumped():
    if chance.random() < 0.5:
        offset[0] = chance.choice(steps)
    return offset[0]

class Jumping(genuine):
    @classmethod
    def now(cls, tz=None):
        return genuine.now(tz) + datetime.timedelta(seconds=jumped())

time.time = lambda: real() + jumped()
for module in list(sys.modules.values()):
    if getattr(module, "datetime", None) is genuine and module.__name__.startswith("karenina"):
        module.datetime = Jumping
"""
JUMPS = {"a day": [-86400.0, 0.0, 86400.0], "daylight saving": [0.0, 3600.0], "a leap second": [0.0, -1.0, 1.0]}
QUESTIONS, CONCURRENCY = 20, 4
A_MINUTE = 900
RATE = f"requests_per_minute = {A_MINUTE}\n"


def seconds_in(value: Any) -> Iterator[float]:
    """Every duration in a document."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("seconds", "execution_time") and isinstance(item, int | float):
                yield item
            yield from seconds_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from seconds_in(item)


@pytest.mark.parametrize("jumps", JUMPS)
def test_a_clock_that_jumps_changes_nothing_but_dates(forking: Any, tmp_path: Path, jumps: str, long: bool) -> None:
    questions, refused = QUESTIONS * (10 if long else 1), list[str]()
    times: list[float] = []

    def limited(request: Any) -> Any:
        times.append(time.monotonic())
        if world.number_of(request) % 10 == 3 and request.text not in refused:
            refused.append(request.text)
            return Reply.error(429, retry_after=0.5)
        return world.said(request)

    with ScriptedServer(limited) as server:
        benchmark = world.write_benchmark(tmp_path / "capitals.jsonld", questions)
        config = world.write_config(tmp_path / "config.toml", server.url, CONCURRENCY, more="request_timeout = 60.0\n")
        config.write_text(config.read_text("utf-8").replace("[models", f"{RATE}[models").replace(RATE, "", 1) + RATE)
        run, prelude = tmp_path / "run", world.NAMED + JUMPING.format(steps=JUMPS[jumps])
        started = forking.start("verify", benchmark, "--config", config, "--out", run, "--quiet", prelude=prelude)
        world.wait_for_more(server, questions // 2, started)
        started.kill()
        resumed = forking.start("resume", run, "--quiet", prelude=prelude)
        assert resumed.wait() == 0, resumed.stderr
        invariants.assert_run(run, judged=world.judged(server))
        assert world.manifest(run)["summary"]["outcomes"].keys() == {"passed", "failed"}
        lines = [json.loads(line) for line in (run / "results.jsonl").read_text("utf-8").splitlines()]
        durations = list(seconds_in(lines))
        assert len(durations) > 5 * questions
        assert min(durations) >= 0.0
        assert max(durations) < 600.0
        with JournalReader.open(run) as reader:
            assert reader.query("SELECT count(*) FROM calls WHERE seconds < 0") == [(0,)]
            ids = [id_ for (id_,) in reader.query("SELECT id FROM calls")]
            ats = [at for (at,) in reader.query("SELECT at FROM calls ORDER BY id")]
        assert ids == list(range(1, len(ids) + 1))
        assert ats != sorted(ats), "the clock has jumped"
        invariants.assert_replayed(run, tmp_path / "again", lambda: server.count)
    assert_limited(times)


def assert_limited(times: list[float]) -> None:
    """Never more than the buckets of both models, of both processes, let through."""
    bucket = Bucket.per_minute(A_MINUTE)
    burst, rate = 4 * (bucket.capacity + 1), 2 * bucket.rate
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + rate * (times[last] - times[first])
