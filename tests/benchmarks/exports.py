"""What exporting takes, and how much memory, for few results and for ten times as many.

    python -m tests.benchmarks.exports [--results 100000] [--folder DIR]

Each export and each reading back is a process of its own; its memory is the most that it ever held (resident). A tenth
of the results is done first: memory is flat where ten times as many results need hardly more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

__all__ = ["FORMATS", "Measured", "measure", "write_run"]

REPOSITORY = Path(__file__).parents[2]
FORMATS = ("jsonl", "json", "csv", "parquet", "sqlite")
BOUND = 1.3
"""What ten times as many results may need, as a multiple of what the tenth needs."""
WORDS = ("kinase", "binds", "receptor", "Mars", "two", "moons", "Phobos", "therefore", "evidence", "suggests")

CHILD = """
import hashlib, json, resource, sys, time
from pathlib import Path

from karenina_core import Karenina
from karenina_runs.results.exports import export_results, find_format
from karenina_runs.results.stored import stored_results
from karenina_results import formats
from karenina_results.formats.csv_file import read_rows
from karenina_results.records import portable_record

app = Karenina({"formats": formats})
task, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
began = time.perf_counter()
count, digest = 0, hashlib.sha256()
if task == "write":
    stored = stored_results(source, app)
    export_results(stored, target, find_format(app, target), stored.manifest)
elif task == "read" and target.suffix == ".csv":
    for row in read_rows(target):
        count += 1
        digest.update(row["result_id"].encode() + row["raw_llm_response"].encode())
else:
    for result in stored_results(target if task == "read" else source, app):
        count += 1
        told = result.metadata.result_id + result.generation.raw_llm_response
        digest.update(told.encode() if task == "rows" else portable_record(result).encode())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([peak, time.perf_counter() - began, count, digest.hexdigest()]))
"""


@frozen
class Measured:
    """One export or one reading back."""

    format: str
    task: str
    results: int
    mebibytes: float
    """The most memory that the process ever held."""
    seconds: float
    equal: bool = True
    """Whether what was read back is what was written."""


def write_run(folder: Path, results: int) -> Path:
    """A run directory with results of about the size that an answer with a rubric has; some occur twice."""
    from karenina_results.records import record
    from karenina_vocabulary.evaluation_parts import TemplatePart
    from karenina_vocabulary.rubric_part import RubricPart

    from karenina_core import ModelIdentity, VerificationResult
    from karenina_core.values.result import GenerationPart, MetadataPart, TrailEntry

    folder.mkdir(parents=True)
    draw = random.Random(7)
    judge = ModelIdentity("openai_endpoint", "judge")
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        for number in range(results):
            answer = " ".join(draw.choices(WORDS, k=200))
            usage = {"calls": 1, "attempts": 1, "seconds": 1.5, "input_tokens": 200, "output_tokens": 300}
            result = VerificationResult(
                metadata=MetadataPart(
                    question_id=f"urn:uuid:question-{number // 4}",
                    template_id="0" * 32,
                    result_id=hashlib.sha256(str(number).encode()).hexdigest()[:16],
                    question_text=f"Question {number // 4}?",
                    answering=ModelIdentity("openai_endpoint", f"model-{number % 2}"),
                    parsing=judge,
                    outcome="passed",
                    timestamp="2026-01-31T12:00:00+00:00",
                    replicate=number % 4 // 2 + 1,
                ),
                generation=GenerationPart(
                    raw_llm_response=answer, usage_metadata={"generation": usage, "total": usage}
                ),
                template=TemplatePart(
                    parsed_gt_response={"moons": 2, "names": ["Phobos"]},
                    parsed_llm_response={"moons": draw.randrange(3), "names": ["Phobos"]},
                    field_results={"moons": True, "names": None},
                    verify_result=True,
                ),
                rubric=RubricPart(
                    rubric_evaluation_performed=True,
                    llm_trait_scores={f"trait {n}": draw.randrange(1, 6) for n in range(5)},
                    trait_states={f"trait {n}": {"state": "ok", "reason": ""} for n in range(5)},
                ),
                trail=tuple(TrailEntry(f"Stage{n}", "ran", "", 0.1) for n in range(8)),
            )
            line = record(result)
            file.write(f"{line}\n" * (2 if number % 1000 == 0 else 1))
    return folder


def measure(source: Path, results: int, folder: Path, formats: Sequence[str] = FORMATS) -> Iterator[Measured]:
    """Export a run in every format, and read it back."""
    tasks = {name: "rows" if name == "csv" else "whole" for name in formats}
    wanted = {task: _child(task, source, source)[3] for task in set(tasks.values())}
    for name in formats:
        target = folder / f"results-{results}.{name}"
        peak, seconds, _, _ = _child("write", source, target)
        yield Measured(name, "write", results, peak, seconds)
        peak, seconds, count, digest = _child("read", source, target)
        equal = (count, digest) == (results, wanted[tasks[name]])
        yield Measured(name, "read", results, peak, seconds, equal)
        target.unlink()


def _child(task: str, source: Path, target: Path) -> tuple[float, float, int, str]:
    command = [sys.executable, "-c", CHILD, task, str(source), str(target)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    peak, seconds, count, digest = json.loads(ran.stdout)
    return peak, seconds, count, digest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.exports", description=__doc__)
    parser.add_argument("--results", metavar="N", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS, help="which formats (all)")
    parser.add_argument("--folder", metavar="DIR", type=Path, help="where the files go for a while")
    options = parser.parse_args()
    began, failed = time.perf_counter(), False
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="karenina-exports-") as name:
        folder, peaks = Path(name), {}
        for results in (options.results // 10, options.results):
            source = write_run(folder / f"run-{results}", results)
            size = (source / "results.jsonl").stat().st_size / 2**20
            print(f"{results} results, {size:.0f} MiB of JSON lines")
            for found in measure(source, results, folder, options.formats):
                before = peaks.setdefault((found.format, found.task), found.mebibytes)
                ratio = found.mebibytes / before
                failed |= ratio > BOUND or not found.equal
                print(
                    f"  {found.format:8} {found.task:6}{found.seconds:8.1f} s{found.mebibytes:8.0f} MiB"
                    f"{f'  x{ratio:.2f}' if results == options.results else ''}{'' if found.equal else '  NOT EQUAL'}"
                )
    print(f"{'OVER' if failed else 'within'} {BOUND} times the memory; {time.perf_counter() - began:.0f} s in all")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
