"""The columns of a review sheet: what is known of an item, and what a reviewer decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from karenina_runs.benchmark import Benchmark

from karenina_core.values.question import Question

from ..audit.audit import Audit
from ..audit.printed import item_text
from ..proof.proof import KEY, Proof

DECISION, BY, COMMENT = "review decision", "review by", "review comment"
STATE, PROOF, AUDIT, ITEM = "review state", "review proof", "review audit", "review item"
BLANK = (DECISION, BY, COMMENT)
COLUMNS = (*BLANK, STATE, PROOF, AUDIT, ITEM)
TABLE = "table"
"""Of a benchmark's metadata: the columns that it has as a table, for the writers of tables."""
FIRST = {"id": "id", "question": "question", "answer": "answer"}
IDS = ("id", "question id", "item id")
"""Names for the column by which rows are found again, although their questions were edited."""


def with_columns(benchmark: Benchmark, audit: Audit, proofs: Mapping[str, Proof]) -> Benchmark:
    """The benchmark as a sheet shows it: with blank columns for the reviewer, and what is known of each item."""
    texts = {item.question_id: item_text(item) for item in audit.items}
    questions = []
    for question in benchmark:
        known = {
            STATE: state_of(question),
            PROOF: proof_text(proofs.get(question.id)),
            AUDIT: texts.get(question.id, ""),
            ITEM: question.digest,
        }
        about = {name: value for name, value in question.custom_metadata.items() if name not in COLUMNS}
        written = {name: text for name, text in known.items() if text}  # an empty cell is read as nothing at all
        questions.append(evolve(question, custom_metadata={**about, **written}))
    record = _record(benchmark)
    columns = {**(own_columns(benchmark) or FIRST), **dict.fromkeys(COLUMNS, "custom")}
    if "id" not in columns.values():
        columns = {next((name for name in IDS if name not in columns), "review id"): "id", **columns}
    metadata = {**benchmark.metadata, TABLE: {**record, "columns": columns}}
    return evolve(benchmark, questions=questions, metadata=metadata, source=None)


def _record(benchmark: Benchmark) -> Mapping[str, Any]:
    record = benchmark.metadata.get(TABLE)
    return record if isinstance(record, Mapping) else {}


def own_columns(benchmark: Benchmark) -> dict[str, str]:
    """What the columns of its sheet are, where it came from one."""
    columns = _record(benchmark).get("columns")
    return dict(columns) if isinstance(columns, Mapping) else {}


def state_of(question: Question) -> str:
    """Whether it is finished, and what became of its draft."""
    state = "no template" if question.template is None else "not finished" if question.finished is False else "finished"
    draft: Any = question.custom_metadata.get("draft")
    if isinstance(draft, Mapping):
        facts = [f"{name}: {value}" for name, value in draft.items() if isinstance(value, str) and value]
        return "\n".join([state, *(f"draft {fact}" for fact in facts)])
    return state


def proof_text(proof: Proof | None) -> str:
    """The figures of a proof, and why it does not hold."""
    if proof is None or proof.state == "no_template":
        return ""
    tallies = [
        f"{tally.right} of {tally.made} {what}"
        for tally, what in ((proof.mutants, "wrong values rejected"), (proof.variants, "other forms accepted"))
        if tally.made
    ]
    return "\n".join([", ".join([proof.state.replace("_", " "), *tallies]), *proof.reasons])


def without_columns(question: Question, own: Mapping[str, Any]) -> Question:
    """The question of a sheet with its own columns, but without those of the review; `own` is what the benchmark keeps
    of it that is in no column."""
    kept = {name: value for name, value in own.items() if not isinstance(value, str | int | float) or name == KEY}
    found = {name: value for name, value in question.custom_metadata.items() if name not in COLUMNS}
    return evolve(question, custom_metadata={**kept, **found})
