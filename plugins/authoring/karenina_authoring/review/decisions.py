"""What reviewers decided, applied to a benchmark: which items they accept, edit and reject, and its next version."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

from attrs import asdict, evolve, frozen
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.templates import TemplateLoader

from karenina_core.errors import BenchmarkError, did_you_mean
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy
from karenina_core.values.question import Question

from ..audit.probes import Probe
from ..proof.prove import prove
from ..proof.report import with_proof
from .columns import BY, COMMENT, DECISION, ITEM, without_columns

Decision = Literal["accept", "edit", "reject"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
PARTS = ("question", "raw_answer", "answer_template", "template_language", "keywords", "answer_notes", "author",
         "sources", "question_rubric", "question_dynamic_rubric", "few_shot_examples", "workspace_path")  # fmt: skip
"""Fields of a question that an edit may change."""
REVIEW, CHANGELOG, DIGESTS = "review", "changelog", "item_digests"
"""Keys of the file: of a question's own metadata the last decision on it; of the benchmark's what became of each
version, and the digest of each item in this one."""


@frozen(kw_only=True)
class Change:
    """What became of one item."""

    question_id: str
    decision: Decision
    parts: tuple[str, ...] = ()
    """What an edit has changed."""
    by: str = ""
    comment: str = ""
    unfinished: str = ""
    """Why it is not finished although it was accepted or edited."""


@frozen(kw_only=True)
class Review:
    """A benchmark after a review."""

    benchmark: Benchmark
    changes: tuple[Change, ...]
    undecided: tuple[str, ...]
    """Questions without a decision."""
    ignored: tuple[str, ...]
    """Those of them whose cells were changed all the same: nothing of that was taken over."""


async def applied(
    benchmark: Benchmark,
    sheet: BenchmarkData,
    *,
    app: Karenina,
    policy: CodePolicy = "sandbox",
    version: str | None = None,
) -> Review:
    """Apply the decisions of a sheet. Raises BenchmarkError with every row that cannot be applied; then nothing is.

    An accepted item is finished, unless the proof of its template finds a fault. An edited one has the cells of the
    sheet, and is accepted as such. A rejected one is not finished, and stays in the file with the reason.
    """
    _check(benchmark, sheet)
    loader = TemplateLoader(app, policy)
    today = datetime.now(UTC).date().isoformat()
    changes: list[Change] = []
    undecided, ignored, questions = [], [], []
    for row in sheet.questions:
        own = benchmark.question(row.id)
        decision, parts = _decision(row), _changed(own, row)
        if decision is None:
            undecided.append(row.id)
            ignored += [row.id] if parts else []
            continue
        question = without_columns(row, own.custom_metadata) if decision == "edit" else own
        question, unfinished = await _decided(question, decision, app, loader)
        change = Change(
            question_id=row.id,
            decision=decision,
            parts=parts if decision == "edit" else (),
            by=_cell(row, BY),
            comment=_cell(row, COMMENT),
            unfinished=unfinished,
        )
        note = {
            "decision": decision,
            "by": change.by,
            "comment": change.comment,
            "date": today,
            "item": question.digest,
        }
        about = {**question.custom_metadata, REVIEW: {name: value for name, value in note.items() if value}}
        questions.append(evolve(question, custom_metadata=about))
        changes.append(change)
    found = benchmark.with_questions(questions)
    if changes:
        found = _versioned(found, changes, version or next_version(benchmark.version), today)
    return Review(benchmark=found, changes=tuple(changes), undecided=tuple(undecided), ignored=tuple(ignored))


async def _decided(
    question: Question, decision: Decision, app: Karenina, loader: TemplateLoader
) -> tuple[Question, str]:
    if decision == "reject":
        return evolve(question, finished=False), ""
    proof = await prove(question, app, loader=loader)
    if proof.state in ("unusable", "no_template"):
        return evolve(question, finished=False), proof.reasons[0] if proof.reasons else "it has no template"
    if proof.state == "not_checked":
        return evolve(question, finished=True), ""
    faults = list(proof.faults)
    if question.template is not None and not faults:
        probe = Probe.of(await loader.load(question.template))
        faults += [f"the field {one.name!r} accepts anything" for one in probe.fields if await probe.cannot_fail(one)]
    found = with_proof(question, proof)
    return evolve(found, finished=not faults), "; ".join(faults)


def _check(benchmark: Benchmark, sheet: BenchmarkData) -> None:
    problems = []
    if not any(DECISION in row.custom_metadata for row in sheet.questions):
        raise BenchmarkError(
            f"nothing is decided in this sheet: write accept, edit or reject into the column {DECISION!r}; karenina "
            "benchmark review BENCHMARK --sheet FILE writes one that has it"
        )
    for row in sheet.questions:
        word = _cell(row, DECISION).casefold()
        if word and word not in DECISIONS:
            hint = did_you_mean(word, DECISIONS)
            problems.append(f"{row.id}: {word!r} is not a decision{hint}; write accept, edit or reject")
        elif word and row.id not in benchmark:
            problems.append(f"{row.id}: the benchmark has no such question; leave the ids as they are")
        elif word and (known := _cell(row, ITEM)) and known != benchmark.question(row.id).digest:
            problems.append(f"{row.id}: has changed in the benchmark since the sheet was written; write a new sheet")
        elif word in ("accept", "reject") and (parts := _changed(benchmark.question(row.id), row)):
            problems.append(
                f"{row.id}: {', '.join(parts)} changed, and the decision is {word}; write edit to keep that"
            )
    if problems:
        raise BenchmarkError("\n".join(["the review cannot be applied:", *(f"- {text}" for text in problems)]))


def _decision(row: Question) -> Decision | None:
    return cast("Decision", word) if (word := _cell(row, DECISION).casefold()) else None


def _cell(row: Question, column: str) -> str:
    return str(row.custom_metadata.get(column) or "").strip()


def _changed(own: Question, row: Question) -> tuple[str, ...]:
    """The names of what is another one in the sheet."""
    parts = [name for name in PARTS if (getattr(own, name) or None) != (getattr(row, name) or None)]
    before, after = without_columns(own, {}), without_columns(row, own.custom_metadata)
    if {**own.custom_metadata, **before.custom_metadata} != after.custom_metadata:
        parts.append("custom columns")
    return tuple(parts)


def _versioned(benchmark: Benchmark, changes: Sequence[Change], version: str, today: str) -> Benchmark:
    """With its version, a line of the changelog, and the digest of every item."""
    log = benchmark.metadata.get(CHANGELOG)
    entry: dict[str, Any] = {
        "version": version,
        "date": today,
        "digest": benchmark.digest,
        "counts": dict(Counter(change.decision for change in changes)),
        "changes": [_plain(change) for change in changes],
    }
    metadata: Mapping[str, Any] = {
        **benchmark.metadata,
        CHANGELOG: [*(log if isinstance(log, list | tuple) else ()), entry],
        DIGESTS: {question.id: question.digest for question in benchmark},
    }
    return evolve(benchmark, version=version, metadata=metadata, source=None)


def _plain(change: Change) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(change).items() if value}


def next_version(version: str) -> str:
    """The version with its last number raised by one; with `.1` where it has none."""
    match = re.search(r"\d+(?=\D*$)", version)
    return f"{version}.1" if match is None else f"{version[: match.start()]}{int(match[0]) + 1}{version[match.end() :]}"
