"""What is printed and written of proofs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve
from karenina_cli.exits import COULD_NOT_RUN, GATE_FAILED, OK
from karenina_cli.options.flags import select_questions
from karenina_cli.output import Part, Table, inline, note, own_stdout, print_found
from karenina_cli.planning import code_policy
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.templates import TemplateLoader

from karenina_core.errors import plural
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy
from karenina_core.values.question import Question

from .proof import KEY, Proof, Tally, kept
from .prove import prove

STATES: Mapping[str, str] = {
    "proven": "proven",
    "not_proven": "not proven",
    "unusable": "cannot be used",
    "not_checked": "not checked",
    "no_template": "without a template",
}
COLUMNS = ("question", "state", "own values", "wrong values rejected", "other forms accepted", "in the file")
SHOWN = 3
"""Reasons per question that `validate` prints; `prove` prints them all."""


async def proven(
    app: Karenina, benchmark: BenchmarkData, ids: Sequence[str], policy: CodePolicy = "sandbox"
) -> list[Proof]:
    """The proofs of these questions, in order."""
    loader = TemplateLoader(app, policy)
    return [await prove(benchmark.question(name), app, loader=loader) for name in ids]


def with_proof(question: Question, proof: Proof) -> Question:
    """The question with the figures of its proof; not finished where the proof has found a fault."""
    metadata = {**question.custom_metadata, KEY: proof.figures()}
    finished = False if proof.faults else question.finished
    return evolve(question, custom_metadata=metadata, finished=finished)


def run(path: Path, options: Mapping[str, Any]) -> int:
    """Print the proofs of a benchmark, and write them if asked to. Returns the exit code."""
    with own_stdout() as out:
        app = Karenina.installed()
        for warning in app.warnings:
            note(f"Warning: {warning}")
        benchmark = Benchmark.load(path, app=app)
        ids = [question.id for question in benchmark]
        chosen = ids if options["questions"] is None else select_questions(options["questions"], ids)
        found = asyncio.run(proven(app, benchmark, chosen, code_policy(benchmark, trusted=options["trust"])))
        tried = [proof for proof in found if proof.state in ("proven", "not_proven")]
        if tried and options["write"]:
            benchmark = benchmark.with_questions(with_proof(benchmark.question(p.question), p) for p in tried)
            benchmark.save(path, app=app)
        parts = [_summary(benchmark.name, found), "", *_tables(benchmark, found)]
        if tried and options["write"]:
            parts.append(f"The figures are in {path}.")
        if all(proof.state == "no_template" for proof in found):
            parts.append("Nothing was proven; `karenina benchmark draft` writes templates.")
        print_found(_document(benchmark, found), parts, out, as_json=options["as_json"])
    states = {proof.state for proof in found}
    if "unusable" in states:
        return COULD_NOT_RUN
    return OK if "proven" in states and not states & {"not_proven", "not_checked"} else GATE_FAILED


def proof_section(app: Karenina, benchmark: BenchmarkData, ids: Sequence[str], policy: CodePolicy) -> Section:
    """What `karenina benchmark validate` says of these questions: it is not usable where a proof has found a fault."""
    found = asyncio.run(proven(app, benchmark, ids, policy))
    tried = [proof for proof in found if proof.state in ("proven", "not_proven")]
    # What a template gives away, the command lists itself.
    rows = [
        (proof.question, inline(reason, 300))
        for proof in tried
        for reason in [*proof.reasons[len(proof.leaks) :]][:SHOWN]
    ]
    stale = [proof.question for proof in found if kept(benchmark.question(proof.question)) == "stale"]
    after = [_summary("Proofs", tried)] if tried else []
    after += [f"Changed since their proof: {', '.join(stale)}"] if stale else []
    return Section(
        {"proofs": _document(benchmark, found)["questions"]},
        "Templates that are not proven",
        ("question", "why"),
        rows,
        before=[""],
        after=after,
        usable=not any(proof.faults for proof in found),
    )


def _document(benchmark: BenchmarkData, found: Sequence[Proof]) -> dict[str, Any]:
    states: Counter[str] = Counter(proof.state for proof in found)
    rows = [proof.document() | {"in_file": kept(benchmark.question(proof.question))} for proof in found]
    return {"name": benchmark.name, "questions": rows, "counts": {state: states[state] for state in STATES}}


def _summary(name: str, found: Sequence[Proof]) -> str:
    states: Counter[str] = Counter(proof.state for proof in found)
    listed = [f"{states[state]} {words}" for state, words in STATES.items() if states[state]]
    return f"{name}: {plural(len(found), 'question')}, {', '.join(listed) or 'none to prove'}"


def _tables(benchmark: BenchmarkData, found: Sequence[Proof]) -> list[Part]:
    rows = [
        (
            proof.question,
            STATES[proof.state],
            "" if proof.own_values is None else "accepted" if proof.own_values else "rejected",
            _counted(proof.mutants),
            _counted(proof.variants),
            {"none": "", "current": "yes", "stale": "of an older template"}[kept(benchmark.question(proof.question))],
        )
        for proof in found
    ]
    why = [(proof.question, inline(reason, 300)) for proof in found for reason in proof.reasons]
    left_out = [
        (proof.question, name, reason) for proof in found if proof.holds for name, reason in proof.left_out.items()
    ]
    return [
        Table(COLUMNS, rows, "Proofs"),
        Table(("question", "why"), why, "To fix"),
        Table(("question", "field", "why"), left_out, "Fields that were left out"),
    ]


def _counted(tally: Tally) -> str:
    return f"{tally.right} of {tally.made}" if tally.made else ""
