"""What `karenina benchmark review` does and prints."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import asdict
from karenina_cli.output import Part, Table, inline, own_stdout, print_found
from karenina_cli.planning import code_policy
from karenina_cli.summary import listing
from karenina_runs.benchmark import Benchmark

from karenina_core.errors import BenchmarkError, plural
from karenina_core.plugin.application import Karenina

from ..audit.audit import Audit
from ..audit.printed import audited
from ..proof.proof import Proof
from ..proof.report import proven
from .columns import own_columns, with_columns
from .decisions import DECISIONS, Review, applied


def write_sheet(path: Path, sheet: Path, runs: Sequence[Path], *, trust: bool, as_json: bool) -> None:
    """Raises BenchmarkError, also where the sheet is there: somebody may have written into it."""
    if sheet.exists():
        raise BenchmarkError(f"{sheet} already exists, perhaps with decisions; choose another name, or remove it")
    with own_stdout() as out:
        app = Karenina.installed()
        benchmark = Benchmark.load(path, app=app)
        found, proofs = sheet_for_review(benchmark, sheet, app, runs, trust=trust)
        states = Counter(proof.state for proof in proofs)
        document = {"sheet": str(sheet), "questions": len(benchmark), "alarms": len(found.alarms), "proofs": states}
        parts = [
            f"{sheet}: {plural(len(benchmark), 'question')}, {states['proven']} proven, "
            f"{len(found.alarms)} with something to look at",
            'Write accept, edit or reject into "review decision", save it, and apply it with --apply.',
        ]
        print_found(document, parts, out, as_json=as_json)


def sheet_for_review(
    benchmark: Benchmark, sheet: Path, app: Karenina, runs: Sequence[Path] = (), *, trust: bool = False
) -> tuple[Audit, Sequence[Proof]]:
    """Write the sheet, and return what is in it. Raises BenchmarkError."""
    found = audited(benchmark, runs, app, trust=trust)
    ids = [question.id for question in benchmark]
    proofs = asyncio.run(proven(app, benchmark, ids, code_policy(benchmark, trusted=trust)))
    with_columns(benchmark, found, {proof.question: proof for proof in proofs}).save(sheet, app=app)
    return found, proofs


def apply_sheet(path: Path, sheet: Path, output: Path, version: str | None, *, trust: bool, as_json: bool) -> None:
    """Raises BenchmarkError; then nothing is written."""
    with own_stdout() as out:
        app = Karenina.installed()
        benchmark = Benchmark.load(path, app=app)
        decided = Benchmark.from_table(sheet, columns=own_columns(benchmark), app=app)
        policy = code_policy(benchmark, trusted=trust)
        review = asyncio.run(applied(benchmark, decided, app=app, policy=policy, version=version))
        if review.changes:
            review.benchmark.save(output, app=app)
        document: dict[str, Any] = {
            "file": str(output) if review.changes else None,
            "version": review.benchmark.version,
            "digest": review.benchmark.digest,
            "changes": [asdict(change) for change in review.changes],
            "undecided": list(review.undecided),
            "ignored": list(review.ignored),
        }
        print_found(document, _parts(review, benchmark.version, output), out, as_json=as_json)


def _parts(review: Review, before: str, output: Path) -> list[Part]:
    rows = [
        (
            change.question_id,
            change.decision,
            ", ".join(change.parts),
            change.by,
            inline(f"not finished: {change.unfinished}" if change.unfinished else change.comment),
        )
        for change in review.changes
    ]
    counts = Counter(change.decision for change in review.changes)
    listed = [f"{decision} {counts[decision]}" for decision in DECISIONS if counts[decision]]
    end = "Nothing was decided, and nothing is written."
    if review.changes:
        end = f"{output}: version {before} became {review.benchmark.version} ({', '.join(listed)})"
    return [
        Table(("question", "decision", "changed", "by", "remark"), rows, "Decisions"),
        listing("Changed in the sheet without a decision, and ignored", [(name,) for name in review.ignored]),
        f"Without a decision: {plural(len(review.undecided), 'question')}",
        end,
    ]
