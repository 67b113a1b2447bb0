"""What a run with a directory holds, and what it writes, in counted work: bytes, threads and commits.

    python -m tests.benchmarks.held [--items 100] [--places 50]

prints the counts as JSON; `tests/guards/test_counted_runs.py` holds them against budgets.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from attrs import define, evolve
from karenina_compare.comparison.compare import ties_among
from karenina_compare.numbers import headline_of
from karenina_report.counts import Counts
from karenina_report.listing import Listing
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.journal import writer as journal_writer
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, META, RESULTS, sealed
from karenina_runs.journal.writer import Entry, Writer, connected
from karenina_runs.plan.prepare import prepare
from karenina_runs.results.stored import stored_results
from karenina_vocabulary.rubric_part import read_traits

from karenina_core import Benchmark, VerificationResult

from .exports import write_run
from .memory import written
from .templates import distinct
from .workload import InProcess, Workload, moons

__all__ = ["bursts", "kept", "questions", "reported", "stored", "under_way"]

FILLING = 27
"""Replicates of ten questions that fill every cache which keeps a bounded number of things of an item: 256 at most."""
PLACES = 30
"""Rows of a journal whose places are in memory; there they are thousands, which only a long run fills."""
GATHERED = (20, 80)
"""Items under way at the same time: fewer than a model is asked at once before anything is known about it."""
JOINING = 0.0015
"""Seconds after which rows join another one: half of those for which it waits."""
BURSTS = 20
QUIET = 1.0
"""Seconds after which nobody else is expected to join a commit."""


def kept(few: int, many: int) -> dict[str, int]:
    """`{items: bytes}` of Python objects that a run of as many items with a directory holds when its last item is
    finished, beyond those that there were before."""
    workload = Workload()
    benchmark = moons(10)
    settings = vars(journal_writer)
    usual, settings["AT_MOST"] = settings["AT_MOST"], PLACES
    workload.verify(benchmark, evolve(workload.config, replicate_count=FILLING), FILLING * 10)
    tracemalloc.start()  # it takes twice the time
    for _ in range(2):  # what the first runs of a process leave behind would count as theirs
        _held(workload, benchmark, few // 2)
    held = {str(items): _held(workload, benchmark, items) for items in (few, many)}
    tracemalloc.stop()
    settings["AT_MOST"] = usual
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


def questions(few: int, many: int) -> float:
    """Objects that one more question with a template of its own leaves to the collector, which seldom looks in a run:
    those that refer to each other."""
    workload = Workload()
    collects = gc.isenabled()
    gc.disable()
    try:
        _left(workload, few)  # what the first run of a process leaves behind would count as its own
        least, most = _left(workload, few), _left(workload, many)
    finally:
        if collects:
            gc.enable()
    return round((most - least) / (many - few), 1)


def _left(workload: Workload, number: int) -> int:
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        workload.verify(distinct(number), workload.config, number, Path(folder) / "run")
    return gc.collect()


def reported(few: int, many: int) -> dict[str, int]:
    """`{"held", "most"}`: bytes of Python objects that a report holds of one more result when its last item is made,
    and the most while the numbers of the overview are computed from that."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [write_run(Path(folder) / str(count), count) for count in (few, many)]
        tracemalloc.start()
        found = [_reported(run) for run in (runs[1], *runs)]  # what the first leaves behind would count as its own
        tracemalloc.stop()
    (_, few_held, many_held), (_, few_most, many_most) = zip(*found, strict=True)
    more = many - few
    return {"held": round((many_held - few_held) / more), "most": round((many_most - few_most) / more)}


def _reported(run: Path) -> tuple[int, int]:
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    stored = stored_results(run)
    counts = Counts(Listing.of(stored.metadata()))
    for result in stored:
        counts.add(result, read_traits(result.rubric))
    del result
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.reset_peak()
    headline_of(counts.items)
    ties_among(counts.items)
    return held, tracemalloc.get_traced_memory()[1] - before


@define(eq=False)
class Gathering(InProcess):
    """Answers nobody before as many wait for it as are under way, and looks then."""

    together: int
    waiting: int = 0
    threads: int = 0
    bytes: int = 0
    all_there: asyncio.Event | None = None

    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        self.all_there = self.all_there or asyncio.Event()
        self.waiting += 1
        self.threads = max(self.threads, threading.active_count())
        if self.waiting == self.together:
            gc.collect()
            self.bytes = tracemalloc.get_traced_memory()[0]
            self.all_there.set()
        async with asyncio.timeout(60):
            await self.all_there.wait()
        return await InProcess.ainvoke(self, messages, output=output, temperature=temperature, call=call)


def under_way(few: int, many: int) -> dict[str, float]:
    """`{"bytes", "threads"}`: what one more item under way holds while its model has not answered, and the threads of a
    process in which many are."""
    _gathered(few)
    tracemalloc.start()
    least, most = _gathered(few), _gathered(many)
    tracemalloc.stop()
    return {"bytes": round((most.bytes - least.bytes) / (many - few)), "threads": most.threads}


def _gathered(items: int) -> Gathering:
    model = Gathering(items)
    workload = Workload(model)
    config = evolve(workload.config, concurrency=items)
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        workload.verify(moons(items), config, items, Path(folder) / "run")
    model.threads = max(model.threads, threading.active_count())  # those that are kept for further work
    workload.app.loop.close()
    model.bytes -= before
    return model


def bursts(rows: int, times: int) -> list[int]:
    """Commits that each of several bursts of rows takes, by the writer of a journal as it is: the other rows come when
    the first one has been there for half of the time in which they may join it."""
    committed: SimpleQueue[int] = SimpleQueue()

    def deliver(entries: list[Entry], error: Exception | None) -> None:
        committed.put(0 if error else len(entries))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        connection = connected(path)
        connection.execute(META.definition)
        writer = Writer(path, deliver, lambda last: None, {}, check=lambda: None, seal=lambda entry: ())
        writer.start(connection)
        found = [_burst(writer, committed, [f"{burst} {row}" for row in range(rows)]) for burst in range(times)]
        writer.stop()
    return found


def _burst(writer: Writer, committed: SimpleQueue[int], names: list[str]) -> int:
    commits, first, *others = 0, *(Entry("meta", sealed(META, name, 1, ("",)), lambda error: None) for name in names)
    writer.submit(first)
    time.sleep(JOINING)
    for entry in others:
        writer.submit(entry)
    waiting = len(names)
    while waiting:
        waiting -= committed.get(timeout=60)
        commits += 1
    return commits


class Together(Writer):
    """Commits when as many rows wait as there are items under way, however long the machine takes for them. In a run
    rows have as little time to join as anybody can wait for, and how many do depends on how busy the machine is; here
    it depends on nothing but which row must be committed before another one can come. `bursts` is about that time."""

    places = 0
    commits = 0

    def _batch(self) -> Any:
        seen, since = 0, time.monotonic()
        while (waiting := self._queue.qsize()) < Together.places and (not waiting or time.monotonic() - since < QUIET):
            if waiting != seen:
                seen, since = waiting, time.monotonic()
            time.sleep(0.001)
        return super()._batch()

    def _before_commit(self) -> None:
        Together.commits += 1


def stored(items: int, places: int) -> dict[str, float]:
    """`{"commits", "amplification"}` where rows have all the time that it takes until they wait together: commits per
    reply and result, times the items under way, all of which can join one; and bytes that are written, per byte of what
    is to be kept: every reply and every result, once."""
    workload = Workload()
    config = evolve(workload.config, concurrency=places)
    Together.places, Together.commits = places, 0
    usual, vars(journal_writer)["Writer"] = Writer, Together
    try:
        with tempfile.TemporaryDirectory() as folder:
            before, directory = written(), Path(folder) / "run"
            workload.verify(moons(items), config, items, directory)
            size = written() - before
            with JournalReader.open(directory) as journal:
                lengths = [len(journal.bodies.unpacked(row.body)) for t in (CALLS, RESULTS) for row in journal.rows(t)]
    finally:
        vars(journal_writer)["Writer"] = usual
    workload.app.loop.close()
    return {
        "commits": round(Together.commits * places / len(lengths), 2),
        "amplification": round(size / sum(lengths), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.held", description=__doc__)
    parser.add_argument("--items", metavar="N", type=int, default=100, help="items (100)")
    parser.add_argument("--places", metavar="N", type=int, default=50, help="items under way (50)")
    options = parser.parse_args()
    items, places = options.items, options.places
    document: dict[str, Any] = {"stored": stored(items * 3, places), "under_way": under_way(*GATHERED)}
    document |= {"questions": questions(items // 2, items), "reported": reported(items, items * 3)}
    print(json.dumps({**document, "bursts": bursts(places, BURSTS), "kept": kept(items, items * 3)}))


if __name__ == "__main__":
    main()
