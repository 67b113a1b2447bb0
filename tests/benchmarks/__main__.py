"""Measures and prints one table."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from attrs import asdict

from .matching import matching_rows
from .measure import Row, item_rows, process_rows
from .rubric import rubric_rows
from .workload import Workload


def table(rows: Sequence[Row]) -> str:
    """The rows as text, with the budgets beside the numbers."""
    lines = [f"{'':26}{'ms':>9}{'budget':>9}  {'':8}{'x bare':>7}  spread"]
    for row in rows:
        budget = f"{row.budget:g}" if row.budget else ""
        ratio = f"{row.ratio:.1f}" if row.ratio else ""
        lines.append(f"{row.name:26}{row.milliseconds:9.2f}{budget:>9}  {row.verdict:8}{ratio:>7}  {row.detail}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers to FILE too")
    parser.add_argument("--rounds", metavar="N", type=int, default=9, help="how often each thing is measured (9)")
    parser.add_argument("--items", metavar="N", type=int, default=200, help="items per round (200)")
    options = parser.parse_args()
    rows = process_rows(options.rounds)
    rows += [
        *item_rows(options.items, options.rounds, Workload()),
        *matching_rows(options.rounds),
        *rubric_rows(options.rounds),
    ]
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
