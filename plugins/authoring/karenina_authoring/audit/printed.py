"""What `karenina benchmark audit` does: read the benchmark and the runs, audit, and say what was found."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from attrs import asdict, evolve
from karenina_cli.exits import GATE_FAILED, OK
from karenina_cli.output import Part, Table, inline, note, own_stdout, print_found
from karenina_cli.planning import code_policy
from karenina_cli.summary import listing
from karenina_runs.benchmark import Benchmark
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import plural
from karenina_core.plugin.application import Karenina

from .audit import Audit, audit
from .findings import SEVERITIES, AuditedItem

COLUMN = "audit"
TITLES = {"fault": "Faults", "suspect": "Suspects", "note": "Notes"}


def print_audit(
    path: Path, runs: Sequence[Path], *, trust: bool, strict: bool, output: Path | None, as_json: bool
) -> int:
    """Returns the exit code. Raises BenchmarkError for files that cannot be read or written."""
    with own_stdout() as out:
        app = Karenina.installed()
        benchmark = Benchmark.load(path, app=app)
        found = audited(benchmark, runs, app, trust=trust)
        if output is not None:
            with_column(benchmark, found).save(output, app=app)
        document = {
            "name": benchmark.name,
            "questions": found.questions,
            "counts": _counts(found),
            "items": [
                {
                    "rank": rank,
                    "question_id": item.question_id,
                    "severity": item.severity,
                    "findings": [asdict(finding) for finding in item.findings],
                }
                for rank, item in enumerate(found.items, 1)
            ],
            "notes": list(found.notes),
        }
        print_found(document, _parts(benchmark, found), out, as_json=as_json)
        if output is not None:
            note(f"Sheet: {output}")
    return GATE_FAILED if strict and found.alarms else OK


def audited(benchmark: Benchmark, runs: Iterable[Path], app: Karenina, *, trust: bool) -> Audit:
    """The audit of a benchmark with the results of these runs."""
    policy = code_policy(benchmark, trusted=trust)
    results = chain.from_iterable(VerificationResultSet.load(run, app) for run in runs)
    return asyncio.run(audit(benchmark, results, app=app, policy=policy))


def with_column(benchmark: Benchmark, found: Audit) -> Benchmark:
    """The benchmark with what was found as a column of its own."""
    texts = {item.question_id: item_text(item) for item in found.items}
    questions = [
        evolve(question, custom_metadata={**question.custom_metadata, COLUMN: texts.get(question.id, "")})
        for question in benchmark
    ]
    return benchmark.with_questions(questions)


def item_text(item: AuditedItem) -> str:
    """The findings on an item in one cell."""
    return "\n".join(f"{finding.severity}: {finding}" for finding in item.findings)


def _counts(found: Audit) -> dict[str, int]:
    counted = Counter(item.severity for item in found.items)
    return {severity: counted[severity] for severity in SEVERITIES}


def _parts(benchmark: Benchmark, found: Audit) -> list[Part]:
    parts: list[Part] = [f"{benchmark.name}: {plural(found.questions, 'question')}", ""]
    numbered = list(enumerate(found.items, 1))
    for severity in SEVERITIES:
        rows = [
            (str(rank), item.question_id, finding.check, inline(finding.message, 500))
            for rank, item in numbered
            if item.severity == severity
            for finding in item.findings
        ]
        parts.append(Table(("rank", "question", "check", "why"), rows, TITLES[severity]))
    parts.append(listing("Not checked", [(text,) for text in found.notes]))
    counts = [f"{count} {severity}{'s' * (count != 1)}" for severity, count in _counts(found).items() if count]
    return [*parts, f"Items with findings: {', '.join(counts)}" if counts else "Nothing was found."]
