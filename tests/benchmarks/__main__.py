"""Measures and prints one table."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import asdict

from .counted import counted_rows
from .matching import matching_rows
from .measure import Row, item_rows, process_rows
from .memory import memory_rows
from .resume import resume_rows
from .rubric import rubric_rows
from .throughput import throughput_rows

GROUPS: Mapping[str, Callable[[Namespace], list[Row]]] = {
    "start": lambda options: process_rows(options.rounds),
    "item": lambda options: item_rows(options.items, options.rounds),
    "counted": lambda options: counted_rows(options.items),
    "matching": lambda options: matching_rows(options.rounds),
    "rubric": lambda options: rubric_rows(options.rounds),
    "throughput": lambda options: throughput_rows(options.items, options.rounds),
    "memory": lambda options: memory_rows(options.items),
    "resume": lambda options: resume_rows(options.items),
}
"""What is measured, by the name for `--only`."""


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the budgets beside the numbers."""
    lines = [f"{'':36}{'':>11}{'budget':>10}  {'':8}{'x bare':>7}  about"]
    for row in rows:
        budget = f"{row.budget:.4g}" if row.budget else ""
        ratio = f"{row.ratio:.2f}" if row.ratio else ""
        value = f"{row.value:.2f} {row.unit:2}"
        lines.append(f"{row.name:36}{value:>11}{budget:>10}  {row.verdict:8}{ratio:>7}  {row.detail}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE too")
    parser.add_argument("--rounds", metavar="N", type=int, default=9, help="how often each thing is measured (9)")
    parser.add_argument("--items", metavar="N", type=int, default=200, help="items per round; others follow (200)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=GROUPS, help=f"of {', '.join(GROUPS)}")
    options = parser.parse_args()
    rows = [row for name, measure in GROUPS.items() if name in (options.only or GROUPS) for row in measure(options)]
    print(f"Python {platform.python_version()} on {platform.machine()}; medians of {options.rounds} rounds")
    print(table(rows))
    if options.json:
        document = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rounds": options.rounds,
            "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        print(f"written to {options.json}", file=sys.stderr)


if __name__ == "__main__":
    main()
