"""What one item costs in counted work: unlike time it is the same on every machine, however busy.

    python -m tests.benchmarks.counted [--items 200] [--most 20]

prints the counts per item as JSON; `tests/guards/test_counted_work.py` holds them against budgets. `--most` says which
functions are called most often: beside the same of a version before, what is done more.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import Any

from karenina_report import report_on
from karenina_runs.plan.templates import TemplateLoader

from karenina_core import ModelConfig, VerificationConfig

from .exports import write_run
from .loopback import server
from .measure import Row
from .templates import distinct
from .workload import Workload, moons

__all__ = ["counted_rows"]

WATCHED = {
    "encoded": "encode",
    "asdict": "asdict",
    "evolve": "evolve",
}
"""Functions whose calls are counted by name: JSON that is written, and the slow ways of attrs."""


IN_FLIGHT = 50
"""Items at the same time where a server is asked."""
Where = tuple[str, int, str]
"""File, line and name of a function."""


def counted_rows(items: int) -> list[Row]:
    """Calls of functions per item, without and with a run directory, and those of the journal's thread."""
    rows = []
    for name, found in counted(items, over_http=False).items():
        rest = ", ".join(f"{key} {value:g}" for key, value in found.items() if key != "calls")
        rows.append(Row(f"one item, {name}, counted", found["calls"], None, None, f"calls; {rest}", unit=""))
    return rows


def counted(items: int, *, over_http: bool = True) -> dict[str, dict[str, float]]:
    """`{"in memory" | "distinct template" | "report" | "run directory" | "journal" | "HTTP" | "HTTP, journal":
    {"calls", "encoded", "asdict", "evolve"}}` per item, rounded: what the event loop's thread does, and beside it the
    one that writes the journal of a run with a directory, as the one over HTTP is. Of a distinct template, what loading
    takes; of a report, what one more result takes."""
    return {name: _summed(calls) for name, calls in _calls(items, over_http=over_http)}


def _calls(items: int, *, over_http: bool) -> Iterator[tuple[str, dict[Where, float]]]:
    """How often every function is called per item, by where it is."""
    workload = Workload()
    yield "in memory", _per_item(workload, items, stored=False)[0]
    yield "distinct template", _per_template(workload, items)
    yield "report", _per_result(items)
    yield from zip(("run directory", "journal"), _per_item(workload, items, stored=True), strict=True)
    if over_http:
        with server(latency=0.02) as url:
            model = ModelConfig(model_name="any", interface="openai_endpoint", endpoint_base_url=url)
            workload.config = VerificationConfig(
                answering_models=[model], parsing_models=[model], concurrency=IN_FLIGHT
            )
            yield from zip(("HTTP", "HTTP, journal"), _per_item(workload, items, stored=True), strict=True)


def _summed(calls: Mapping[Where, float]) -> dict[str, float]:
    watched = {key: sum(n for where, n in calls.items() if where[2] == name) for key, name in WATCHED.items()}
    return {key: round(value, 1) for key, value in {"calls": sum(calls.values()), **watched}.items()}


def _per_item(workload: Workload, items: int, *, stored: bool) -> list[dict[Where, float]]:
    """Of two sizes, what the larger one does more, in the loop's thread and in the journal's; with a server, both have
    as many items in flight."""
    least = max(items // 2, 1)
    with tempfile.TemporaryDirectory() as folder:
        directories = [Path(folder) / name if stored else None for name in ("first", "few", "many")]
        asyncio.run(_verified(workload, 20, directories[0]))
        runs = [_profiled(workload, n, d) for n, d in zip((least, least + items), directories[1:], strict=True)]
    return [{of: (many[of] - few[of]) / items for of in many | few} for few, many in zip(*runs, strict=True)]


def _per_template(workload: Workload, items: int) -> dict[Where, float]:
    """Loading a template that no other question has: of a shape that is known, as nearly all of a benchmark are."""
    sources = [question.template for question in distinct(items + 1).questions if question.template is not None]
    profile = cProfile.Profile()

    async def load() -> None:
        loader = TemplateLoader(workload.app, "refuse")
        await loader.load(sources.pop())
        profile.enable()
        for source in sources:
            await loader.load(source)
        profile.disable()

    asyncio.run(load())
    return {where: count / items for where, count in _rows(profile).items()}


def _per_result(items: int) -> dict[Where, float]:
    """A report on results with five traits: what one of so many takes more than one of a third of them, so that what a
    page has once does not count."""
    found, least = [], max(items // 2, 1)
    with tempfile.TemporaryDirectory() as folder:
        report_on(write_run(Path(folder) / "first", 1))  # it imports
        for name, count in (("few", least), ("many", least + items)):
            run = write_run(Path(folder) / name, count)
            profile = cProfile.Profile()
            profile.runcall(report_on, run)
            found.append(_rows(profile))
    few, many = found
    return {where: (many[where] - few[where]) / items for where in few.keys() | many.keys()}


def _rows(profile: cProfile.Profile) -> Counter[Where]:
    rows: dict[Where, tuple[int, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # left out of its stub
    return Counter({where: row[1] for where, row in rows.items()})


def _profiled(workload: Workload, items: int, run_dir: Path | None) -> tuple[Counter[Where], Counter[Where]]:
    profile, journal = cProfile.Profile(), Counter[Where]()
    with asyncio.Runner() as runner:
        threading.setprofile(partial(_count, journal))
        profile.enable()
        runner.run(_verified(workload, items, run_dir))
        profile.disable()
        threading.setprofile(None)
    return _rows(profile), journal


def _count(calls: Counter[Where], frame: FrameType, event: str, arg: Any) -> None:
    """What a thread that is profiled calls, if it is the journal's."""
    if threading.current_thread().name != "karenina-journal":
        return
    if event == "call":
        calls[frame.f_code.co_filename, frame.f_code.co_firstlineno, frame.f_code.co_name] += 1
    elif event == "c_call":
        calls["~", 0, f"<{arg.__qualname__}>"] += 1


async def _verified(workload: Workload, items: int, run_dir: Path | None) -> None:
    results = await moons(items).arun_verification(workload.config, app=workload.app, run_dir=run_dir)
    assert results.get_summary()["outcomes"] == {"passed": items}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.counted", description=__doc__)
    parser.add_argument("--items", metavar="N", type=int, default=200, help="items (200)")
    parser.add_argument("--most", metavar="N", type=int, default=0, help="name the functions called most, on stderr")
    options = parser.parse_args()
    found = {}
    for name, calls in _calls(options.items, over_http=True):
        found[name] = _summed(calls)
        for (file, line, function), count in sorted(calls.items(), key=itemgetter(1), reverse=True)[: options.most]:
            print(f"{name:20}{count:8.1f}  {function}  {file}:{line}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
