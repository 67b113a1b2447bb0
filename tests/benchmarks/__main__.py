"""Measures and prints one table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from attrs import asdict

from .connections import connection_rows
from .counted import counted_rows
from .estimates import estimate_rows
from .matching import matching_rows
from .measure import Row, item_rows, process_rows
from .memory import memory_rows
from .prefixes import prefix_rows
from .processes import share_imports
from .reports import report_rows
from .resume import resume_rows
from .rubric import rubric_rows
from .sandbox import sandbox_rows
from .templates import template_rows
from .throughput import throughput_rows
from .yardstick import REFERENCE

GROUPS: Mapping[str, Callable[[Namespace], list[Row]]] = {
    "start": lambda options: process_rows(options.rounds),
    "item": lambda options: item_rows(options.items, options.rounds),
    "counted": lambda options: counted_rows(options.items),
    "matching": lambda options: matching_rows(options.rounds),
    "rubric": lambda options: rubric_rows(options.rounds),
    "prefixes": lambda options: prefix_rows(),
    "throughput": lambda options: throughput_rows(options.items, options.rounds),
    "connections": lambda options: connection_rows(options.items),
    "memory": lambda options: memory_rows(options.items),
    "resume": lambda options: resume_rows(options.items),
    "templates": lambda options: template_rows(options.items),
    "report": lambda options: report_rows(options.items),
    "estimate": lambda options: estimate_rows(options.items, options.rounds),
    "sandbox": lambda options: sandbox_rows(options.items, options.templates),
}
"""What is measured, by the name for `--only`."""


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the budgets beside the numbers: as they were set, and what they are here and now."""
    lines = [f"{'':36}{'':>11}{'budget':>10}{'here':>9}  {'':8}{'x bare':>7}{'x piece':>9}  about"]
    for row in rows:
        value = f"{row.value:.2f} {row.unit:2}"
        numbers = f"{_number(row.budget, '.4g'):>10}{_number(row.here, '.4g'):>9}  {row.verdict:8}"
        ratios = f"{_number(row.ratio, '.2f'):>7}{_number(row.pieces, '.3g'):>9}"
        lines.append(f"{row.name:36}{value:>11}{numbers}{ratios}  {row.detail}")
    return "\n".join(lines)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE too")
    parser.add_argument("--check", action="store_true", help="exit code 1 if something is over its budget")
    parser.add_argument("--rounds", metavar="N", type=int, default=9, help="how often each thing is measured (9)")
    parser.add_argument("--items", metavar="N", type=int, default=200, help="items per round; others follow (200)")
    parser.add_argument(
        "--templates", metavar="N", type=int, default=0, help="distinct templates that the sandbox runs beside (0)"
    )
    parser.add_argument("--only", metavar="NAME", action="append", choices=GROUPS, help=f"of {', '.join(GROUPS)}")
    parser.add_argument(
        "--share-imports", action="store_true", help="see quickly whether all can be measured: numbers mean nothing"
    )
    options = parser.parse_args()
    if options.share_imports and options.check:
        parser.error("numbers of --share-imports mean nothing: measure without it to --check")
    if options.share_imports:
        share_imports()
    load, cpus = os.getloadavg()[0], os.cpu_count()
    rows = [row for name, measure in GROUPS.items() if name in (options.only or GROUPS) for row in measure(options)]
    pieces = [row.yardstick for row in rows if row.yardstick is not None]
    piece = median(pieces) if pieces else None
    print(f"Python {platform.python_version()} on {platform.machine()}; medians of {options.rounds} rounds")
    print(f"load when it began: {load:.1f} on {cpus} CPUs; the busier it is, the less times by the clock say")
    if piece is not None:
        print(f"piece: {piece:.1f} ms here and now, {REFERENCE:.1f} ms where the budgets were set")
    print(table(rows))
    if options.json:
        document = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rounds": options.rounds,
            "load": load,
            "imports_shared": options.share_imports,
            "yardstick": {"here": piece, "reference": REFERENCE},
            "rows": [{**asdict(row), "here": row.here, "pieces": row.pieces, "verdict": row.verdict} for row in rows],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        print(f"written to {options.json}", file=sys.stderr)
    return checked(rows) if options.check else 0


def checked(rows: Sequence[Row]) -> int:
    """The exit code of `--check`: 1 where a row is over its budget, which is said on stderr."""
    over = [row for row in rows if row.verdict == "OVER"]
    for row in over:
        print(f"over its budget: {row.name}: {row.value:.2f} {row.unit}, budget {row.here:.4g} here", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
