"""What a question with a template of its own takes: CPU, and memory that stays.

    python -m tests.benchmarks.templates cpu|memory QUESTIONS

is one measurement, in a process of its own. The model answers within it. Memory is measured with a run directory, for
without one the results stay in it.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from pathlib import Path

from karenina_core import Benchmark, Question

from .measure import Row, peak_memory
from .processes import measured
from .workload import TEMPLATE, Workload
from .yardstick import yardstick

__all__ = ["distinct", "template_rows"]

SIZES = (5, 50, 500)
"""Questions of the runs, as multiples of `--items`: 1,000 to 100,000 by default."""
TIME, KEPT = 1.0, 2.0
"""CPU milliseconds of a question, and kilobytes that one more question keeps."""


def distinct(questions: int) -> Benchmark:
    """A benchmark of as many questions, each with a template whose texts and right answers are its own."""
    return Benchmark.create("moons").with_questions(
        Question(
            question=f"How many moons does Mars have, and what are they called? ({number})",
            raw_answer="Two: Phobos and Deimos",
            answer_template=_template(number),
            template_language="karenina-template",
        )
        for number in range(questions)
    )


def _template(number: int) -> str:
    described = json.loads(TEMPLATE)
    described["fields"][0]["description"] += f", as of survey {number}"
    described["fields"][1]["description"] += f", in survey {number}"
    described["fields"][0]["verify_with"] = {"type": "NumericTolerance", "tolerance": 0.5 + number % 7 / 16}
    return json.dumps(described)


def template_rows(items: int) -> list[Row]:
    """CPU of a question at the first two sizes, and what one more question keeps between the first and each of the
    others: less what the benchmark itself has of it, which is there before the run."""
    sizes = [items * size for size in SIZES]
    rows = []
    for size in sizes[:-1]:
        took, piece = measured("templates", "cpu", size)
        detail = f"{size} questions, no HTTP, no run directory"
        rows.append(Row(f"distinct template, {size}", took, TIME, detail=detail, yardstick=piece))
    grown = [measured("templates", "memory", size)[0] for size in sizes]
    for size, more in zip(sizes[1:], grown[1:], strict=True):
        kept = (more - grown[0]) * 1024 / (size - sizes[0])
        rows.append(Row(f"kept of a question, {size}", kept, KEPT, detail=f"{more:.0f} MB more in a run", unit="KB"))
    return rows


def main() -> None:
    """Tells of `cpu` milliseconds of a question and the yardstick; of `memory` the MB by which the process grew."""
    what, questions = sys.argv[1], int(sys.argv[2])
    workload = Workload()
    workload(20)  # imports and first uses are no question's cost
    benchmark = distinct(questions)
    if what == "cpu":
        piece, began = yardstick().cpu, time.process_time()
        workload.verify(benchmark, workload.config, questions)
        print(json.dumps([(time.process_time() - began) / questions * 1000, piece]))
        return
    workload.in_directory(20)
    gc.collect()
    before = peak_memory()
    with tempfile.TemporaryDirectory() as folder:
        workload.verify(benchmark, workload.config, questions, Path(folder) / "run")
    print(json.dumps([peak_memory() - before]))


if __name__ == "__main__":
    main()
