"""How much memory a run takes, and how much it writes, for more and more items.

    python -m tests.benchmarks.memory ITEMS QUESTIONS

is one measurement, in a process of its own: a run of as many items, with a run directory and a model that answers in
the process. All sizes have as many questions as the smallest has items; what there is more of are replicates, for a
benchmark that has more questions is itself larger.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from attrs import evolve, frozen
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, RESULTS

from .measure import Row, peak_memory
from .processes import measured
from .workload import Workload, moons

__all__ = ["memory_rows", "written"]

SIZES = (5, 50, 500)
"""Items of the three runs, as multiples of `--items`."""
FLAT = 1.05
AMPLIFICATION = 1.5


@frozen
class Measured:
    """One process: the most memory, and before the first item, in MB; bytes that were handed over for writing, that
    went to a disk, and of what was to be kept; bytes of the journal in the end, and of results.jsonl."""

    peak: float
    before: float
    written: int
    disk: int
    told: int
    journal: int
    results: int


def memory_rows(items: int) -> list[Row]:
    """Memory at three sizes; written bytes by those that were to be kept, at the smallest and the largest of them.

    Write amplification is bytes that are written by bytes that are given to be kept. Given are every reply and every
    result, each once, as lines of JSON; the journal compresses them. Written is all that the process hands to the file
    system: the journal's log, its copy into the database, places of rows, the manifest each time, and `results.jsonl`,
    where every result is once more.

    In `detail` is what goes to the disk of it, in whole pages of the file system; and what the journal alone writes for
    each byte that stays in it: what is written less one `results.jsonl`, by the size of the journal in the end. That is
    several, for what is committed within the same few milliseconds takes whole pages of the log, however little it is.
    """
    sizes = [items * size for size in SIZES]
    seen = [Measured(*measured("memory", size, sizes[0])) for size in sizes]
    flat = seen[-2].peak
    rows = []
    for size, found in zip(sizes, seen, strict=True):
        told, budget = f"{found.before:.0f} MB before the first item", None
        if size == sizes[-1]:
            told, budget = f"{told}; {found.peak / flat:.3f} of a tenth of it", flat * FLAT
        rows.append(Row(f"memory, {size} items", found.peak, budget, found.peak / seen[0].peak, told, unit="MB"))
    for size, found in ((sizes[0], seen[0]), (sizes[-1], seen[-1])):
        rows.append(_amplification(size, found))
    return rows


def _amplification(items: int, found: Measured) -> Row:
    own = (found.written - found.results) / found.journal
    disk = f"{found.disk / found.told:.2f} x on the disk" if found.disk else "on no disk"
    detail = (
        f"{found.written / 1e6:.1f} MB written for {found.told / 1e6:.1f} MB of replies and results; {disk}; "
        f"{own:.1f} x of what stays in the journal, {found.journal / 1e6:.1f} MB compressed, beside "
        f"{found.results / 1e6:.1f} MB of results.jsonl"
    )
    name = f"write amplification, {items} items"
    return Row(name, found.written / found.told, AMPLIFICATION, None, detail, unit="x")


def written(what: str = "wchar") -> int:
    """Bytes that this process has handed over for writing; as `write_bytes`, those that are to go to a disk: 0 where
    files are kept in memory."""
    return int(Path("/proc/self/io").read_text("ascii").partition(f"\n{what}:")[2].split()[0])


def main() -> None:
    items, questions = int(sys.argv[1]), int(sys.argv[2])
    workload = Workload()
    config = evolve(workload.config, replicate_count=items // questions)
    workload.in_directory(20)  # imports and first uses are no run's memory
    before, counted = peak_memory(), ("wchar", "write_bytes")
    begun = [written(what) for what in counted]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        workload.verify(moons(questions), config, items, directory)
        sizes = [written(what) - size for what, size in zip(counted, begun, strict=True)]
        files = [(directory / name).stat().st_size for name in ("journal.sqlite", "results.jsonl")]
        peak = peak_memory()
        with JournalReader.open(directory) as journal:
            told = sum(
                len(journal.bodies.unpacked(row.body)) for table in (CALLS, RESULTS) for row in journal.rows(table)
            )
    print(json.dumps([peak, before, *sizes, told, *files]))


if __name__ == "__main__":
    main()
