"""How much memory a run takes, and how much it writes, for more and more items.

    python -m tests.benchmarks.memory ITEMS QUESTIONS

is one measurement, in a process of its own: a run of as many items, with a run directory and a model that answers in
the process. All sizes have as many questions as the smallest has items; what there is more of are replicates, for a
benchmark that has more questions is itself larger.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from attrs import evolve, frozen

from karenina_core.run.journal_reader import JournalReader
from karenina_core.run.journal_rows import CALLS, RESULTS

from .measure import Row, peak_memory
from .workload import REPOSITORY, Workload, moons

__all__ = ["memory_rows", "written"]

SIZES = (5, 50, 500)
"""Items of the three runs, as multiples of `--items`."""
FLAT = 1.05
AMPLIFICATION = 1.5


@frozen
class Measured:
    """One process: the most memory, and before the first item, in MB; bytes written, bytes of what was to be kept,
    bytes in the run directory in the end, and those of its results.jsonl."""

    peak: float
    before: float
    written: int
    told: int
    there: int
    results: int


def memory_rows(items: int) -> list[Row]:
    """Memory at three sizes; written bytes by those that were to be kept, at the smallest and the largest of them.

    To be kept are every reply and every result, each once, as lines of JSON that nothing has compressed. Written is
    everything that the process hands over for writing: the journal's log, its copy into the database, places of rows,
    the manifest each time, and `results.jsonl`, where every result is once more.
    """
    sizes = [items * size for size in SIZES]
    measured = [_measured(size, questions=sizes[0]) for size in sizes]
    flat = measured[-2].peak
    rows = []
    for size, found in zip(sizes, measured, strict=True):
        told, budget = f"{found.before:.0f} MB before the first item", None
        if size == sizes[-1]:
            told, budget = f"{told}; {found.peak / flat:.3f} of a tenth of it", flat * FLAT
        rows.append(Row(f"memory, {size} items", found.peak, budget, found.peak / measured[0].peak, told, unit="MB"))
    for size, found in ((sizes[0], measured[0]), (sizes[-1], measured[-1])):
        parts = f"{found.written / 1e6:.1f} MB written for {found.told / 1e6:.1f} MB of replies and results"
        ends = f"{found.there / 1e6:.1f} MB there in the end, {found.results / 1e6:.1f} of them results.jsonl"
        rows.append(
            Row(f"writing, {size} items", found.written / found.told, AMPLIFICATION, None, f"{parts}; {ends}", unit="x")
        )
    return rows


def _measured(items: int, questions: int) -> Measured:
    command = [sys.executable, "-m", "tests.benchmarks.memory", str(items), str(questions)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return Measured(*json.loads(ran.stdout.splitlines()[-1]))


def written() -> int:
    """Bytes that this process has handed over for writing."""
    return int(Path("/proc/self/io").read_text("ascii").partition("wchar:")[2].split()[0])


def main() -> None:
    items, questions = int(sys.argv[1]), int(sys.argv[2])
    workload = Workload()
    config = evolve(workload.config, replicate_count=items // questions)
    workload.in_directory(20)  # imports and first uses are no run's memory
    before, size = peak_memory(), written()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        workload.verify(moons(questions), config, items, directory)
        size = written() - size
        there = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        results = (directory / "results.jsonl").stat().st_size
        peak = peak_memory()
        with JournalReader.open(directory) as journal:
            told = sum(
                len(journal.bodies.unpacked(row.body)) for table in (CALLS, RESULTS) for row in journal.rows(table)
            )
    print(json.dumps([peak, before, size, told, there, results]))


if __name__ == "__main__":
    main()
