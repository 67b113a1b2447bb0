"""What `karenina verify --estimate` takes for a large benchmark."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.estimate import estimated
from karenina_runs.plan.prepare import prepare

from .measure import Row
from .workload import Workload, moons
from .yardstick import took, yardstick

__all__ = ["estimate_rows"]

TIMES = 50
"""Items of the benchmark, as a multiple of `--items`: 10,000 by default."""
BUDGET = 2000.0
"""Milliseconds for 10,000 items: somebody waits for the answer."""


def estimate_rows(items: int, rounds: int) -> list[Row]:
    """The benchmark is read, the run is prepared, its calls are counted: as the command does it, without its start."""
    workload, items = Workload(), TIMES * items
    with TemporaryDirectory() as folder:
        path = Path(folder) / "moons.jsonld"
        moons(items).save(path)
        turns, seen = [], []
        for _ in range(max(1, rounds // 3)):
            turns.append(yardstick().cpu)
            seen.append(took(partial(_estimate, workload, path, items)).cpu)
    detail = f"{items} items, read and prepared"
    budget = BUDGET * items / 10_000
    return [Row("verify --estimate", median(seen), budget, detail=detail, yardstick=median(turns))]


def _estimate(workload: Workload, path: Path, items: int) -> None:
    prepared = prepare(Benchmark.load(path, app=workload.app), workload.config, app=workload.app)
    found = estimated(prepared)
    assert found["calls"]["low"] == found["calls"]["high"] == 2 * items
