"""What one item costs in counted work: unlike time it is the same on every machine, however busy.

    python -m tests.benchmarks.counted [--items 200]

prints the counts per item as JSON; `tests/guards/test_counted_work.py` holds them against budgets.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import pstats
import tempfile
import tracemalloc
from pathlib import Path

from attrs import evolve

from karenina_core import Benchmark, VerificationResult
from karenina_core.run import journal_commits
from karenina_core.run.prepare import prepare
from karenina_core.run.runner import Destination, execute

from .measure import Row
from .workload import Workload, moons

__all__ = ["counted_rows"]

FILLING = 105
"""Replicates of ten questions that fill every cache which keeps a bounded number of things."""
PLACES = 30
"""Rows of a journal whose places are in memory; there they are thousands, which only a long run fills."""
WATCHED = {
    "encoded": "encode",
    "asdict": "asdict",
    "evolve": "evolve",
}
"""Functions whose calls are counted by name: JSON that is written, and the slow ways of attrs."""


def counted_rows(items: int) -> list[Row]:
    """Calls of functions per item, without and with a run directory."""
    rows = []
    for name, found in counted(items).items():
        rest = ", ".join(f"{key} {value:g}" for key, value in found.items() if key != "calls")
        rows.append(Row(f"one item, {name}, counted", found["calls"], None, None, f"calls; {rest}", unit=""))
    return rows


def counted(items: int) -> dict[str, dict[str, float]]:
    """`{"in memory" | "run directory": {"calls", "encoded", "asdict", "evolve"}}` per item, rounded."""
    workload = Workload()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("in memory", "run directory"):
            stored = name == "run directory"
            asyncio.run(_verified(workload, 20, Path(folder) / "first" if stored else None))
            profile = cProfile.Profile()
            few = _profiled(profile, workload, items // 2, Path(folder) / "few" if stored else None)
            profile = cProfile.Profile()
            many = _profiled(profile, workload, items + items // 2, Path(folder) / "many" if stored else None)
            found[name] = {key: round((many[key] - few[key]) / items, 1) for key in many}
    return found


def _profiled(profile: cProfile.Profile, workload: Workload, items: int, run_dir: Path | None) -> dict[str, int]:
    with asyncio.Runner() as runner:
        profile.enable()
        runner.run(_verified(workload, items, run_dir))
        profile.disable()
    stats = pstats.Stats(profile)
    rows: dict[tuple[str, int, str], tuple[int, ...]] = stats.stats  # type: ignore[attr-defined]  # left out of its stub
    calls = sum(row[1] for row in rows.values())
    watched = {key: sum(row[1] for where, row in rows.items() if where[2] == name) for key, name in WATCHED.items()}
    return {"calls": calls, **watched}


async def _verified(workload: Workload, items: int, run_dir: Path | None) -> None:
    results = await moons(items).arun_verification(workload.config, app=workload.app, run_dir=run_dir)
    assert results.get_summary()["outcomes"] == {"passed": items}


def kept(*sizes: int) -> dict[str, int]:
    """`{items: bytes}` of Python objects that a run of as many items with a directory holds when its last item is
    finished, beyond those that there were before."""
    workload = Workload()
    benchmark = moons(10)
    journal_commits.AT_MOST = PLACES
    tracemalloc.start()
    workload.verify(benchmark, evolve(workload.config, replicate_count=FILLING), FILLING * 10)
    held = {str(items): _held(workload, benchmark, items) for items in sizes}
    tracemalloc.stop()
    return held


def _held(workload: Workload, benchmark: Benchmark, items: int) -> int:
    done: list[int] = []

    def look(result: VerificationResult) -> None:
        done.append(0)
        if len(done) == items:
            gc.collect()
            done[-1] = tracemalloc.get_traced_memory()[0]

    prepared = prepare(benchmark, evolve(workload.config, replicate_count=items // 10), app=workload.app)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(execute(prepared, Destination(run_dir=Path(folder) / "run"), on_result=look))
    return done[-1] - before - 8 * items


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.counted", description=__doc__)
    parser.add_argument("--items", metavar="N", type=int, default=200, help="items (200)")
    items = parser.parse_args().items
    print(json.dumps({**counted(items), "bytes": kept(items, items * 10)}))


if __name__ == "__main__":
    main()
