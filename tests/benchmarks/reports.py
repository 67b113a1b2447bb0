"""What the HTML report of many items takes, and how large it is.

    python -m tests.benchmarks.reports RESULTS

is one measurement, in a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from karenina_report import report_on

from .exports import write_run
from .measure import Row, peak_memory
from .processes import measured
from .yardstick import yardstick

__all__ = ["report_rows"]

PER_ITEM = 50
"""Results of the report for each of `--items`: 10,000 by default."""
SIZE, TIME = 3.0, 1.0
"""Kilobytes and CPU milliseconds of an item: 30 MB and 10 seconds for 10,000 of them."""


def report_rows(items: int) -> list[Row]:
    """Size and time of the report, each by item, and the most memory beside that of a tenth."""
    count = max(10, items * PER_ITEM)
    tenth, whole = measured("reports", count // 10), measured("reports", count)
    about = f"{count} items"
    return [
        Row("report, of an item", whole[0], SIZE, detail=f"{about}, as a file", unit="KB"),
        Row("report, making an item", whole[1], TIME, detail=about, yardstick=whole[2]),
        Row("report, memory", whole[3], None, whole[3] / tenth[3], f"{about}; {tenth[3]:.0f} MB for a tenth", "MB"),
    ]


def main() -> None:
    """Tells kilobytes and milliseconds of an item, those of the yardstick, and the most memory in MB."""
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        write_run(run, count)
        piece, began = yardstick().cpu, time.process_time()
        size = report_on(run).stat().st_size
        took = time.process_time() - began
    print(json.dumps([size / count / 1000, took / count * 1000, piece, peak_memory()]))


if __name__ == "__main__":
    main()
