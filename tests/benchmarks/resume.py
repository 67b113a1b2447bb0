"""What going on with a run costs: of one that is finished, and of one whose process ended when half of it was done.

    python -m tests.benchmarks.resume whole|half|rest FOLDER ITEMS

is one measurement, in a process of its own, with a model that answers in the process. `half` ends without a word, as
a process does that is killed; `rest` goes on with whatever is in the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from attrs import evolve, frozen
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.plan.prepare import prepare

from karenina_core import VerificationResult, VerificationResultSet, resume_run

from .measure import Row
from .memory import written
from .processes import KILLED, measured
from .workload import Workload, moons

__all__ = ["resume_rows"]

TIMES = 50
"""Items of the run, as a multiple of `--items`."""
QUESTIONS = 50


@frozen
class Measured:
    """One process: seconds by the clock, CPU seconds, and bytes written."""

    wall: float
    cpu: float
    written: int


def resume_rows(items: int) -> list[Row]:
    """Time and bytes of going on, beside those of a run that nothing interrupts."""
    items *= TIMES
    with tempfile.TemporaryDirectory() as folder:
        whole = _measured("whole", Path(folder) / "whole", items)
        finished = _measured("rest", Path(folder) / "whole", items)
        first = _measured("half", Path(folder) / "half", items)
        second = _measured("rest", Path(folder) / "half", items)
    cpu, size = first.cpu + second.cpu, first.written + second.written
    parts = f"{cpu / whole.cpu:.2f} x its CPU, {size / whole.written:.2f} x its bytes, for both processes together"
    once = f"{whole.cpu:.2f} s CPU, {whole.written / 1e6:.1f} MB written when it is not interrupted"
    return [
        Row(
            f"resume, {items} items, finished",
            finished.wall * 1000,
            None,
            finished.wall / whole.wall,
            f"wall, x the run itself; {finished.cpu:.2f} s CPU, {finished.written / 1e6:.1f} MB written",
        ),
        Row(
            f"resume, {items} items, half done",
            second.wall * 1000,
            None,
            second.wall / whole.wall,
            f"wall, x the whole run; {second.cpu:.2f} s CPU, {second.written / 1e6:.1f} MB written; {parts}; {once}",
        ),
    ]


def _measured(what: str, folder: Path, items: int) -> Measured:
    return Measured(*measured("resume", what, folder, items))


def main() -> None:
    what, folder, items = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    workload, benchmark = Workload(), moons(QUESTIONS)
    config = evolve(workload.config, replicate_count=items // QUESTIONS)
    workload.in_directory(20)  # imports and first uses are no run's cost
    began, used, before, done = time.perf_counter(), time.process_time(), written(), 0

    def tell() -> None:
        print(json.dumps([time.perf_counter() - began, time.process_time() - used, written() - before]), flush=True)

    def count(result: VerificationResult) -> None:
        nonlocal done
        done += 1
        if what == "half" and done == items // 2:
            tell()
            os._exit(KILLED)

    if what == "rest":
        results: VerificationResultSet = resume_run(folder, benchmark=benchmark, config=config, app=workload.app)
    else:
        prepared = prepare(benchmark, config, app=workload.app)
        results = asyncio.run(execute(prepared, Destination(run_dir=folder), on_result=count))
    assert results.get_summary()["outcomes"] == {"passed": items}
    tell()


if __name__ == "__main__":
    main()
