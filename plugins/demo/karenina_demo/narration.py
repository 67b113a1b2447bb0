"""What the demo prints: how well each model did, what failed and why, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from karenina_cli.output import Part
from karenina_cli.summary import model_parts, not_passed
from karenina_runs.plan.items import Prepared
from karenina_runs.results.results import VerificationResultSet

from .bundle import BENCHMARK, FAILING, JUDGE

INTERESTING = ("osimertinib-resistance", "--model", "birch-small")
"""The wrong answer contains the right one."""
REWORDED = ("denosumab-jaw", "--model", "birch-small")
"""The right answer in other words."""
LIVE = (
    *("--with", "abstention", "--with", "sufficiency", "--set", "run.deep_judgment_rubric_mode=use_checkpoint"),
    *("--answering-model", "openai/gpt-4.1-mini", "--parsing-model", "openai/gpt-4.1"),
)


def narrated(run: Prepared, results: VerificationResultSet, directory: Path) -> list[Part]:
    """Everything that is printed about a demo whose results are in `directory`."""
    return [
        f"{run.benchmark.name}: {len(run.questions)} questions, {len(run.config.answering_models)} answering models, "
        "1 judge. Every call is replayed from a recording: no key, no network.",
        f"The judge ({JUDGE}) extracts facts from an answer without seeing the truth; code compares them with it.",
        "",
        *model_parts(results),
        *not_passed(results, len(results)),
        *_notes(results),
        "",
        f"Results: {directory}",
        "One item explained, where the wrong answer contains the right one:",
        f"  {shlex.join(['karenina', 'show', str(directory), *INTERESTING])}",
        "And one where the right answer is put in other words:",
        f"  {shlex.join(['karenina', 'show', str(directory), *REWORDED])}",
        "The same benchmark against live models (with OPENAI_API_KEY set, or other models and providers):",
        f"  {shlex.join(['karenina', 'verify', str(BENCHMARK), '--trust', *LIVE])}",
    ]


def _notes(results: VerificationResultSet) -> Iterator[str]:
    if any(
        (r.metadata.question_id, r.metadata.answering.model_name) in FAILING and r.outcome.name == "error"
        for r in results
    ):
        yield "The error is part of the recording: a provider failed. There is no verdict, and no pass rate counts it."
        yield "After an error karenina verify exits with code 3; the demo exits with 0, because this one is meant."
    declined = sum(r.checks.abstention_override_applied for r in results)
    too_little = sum(r.checks.sufficiency_override_applied for r in results)
    reworded = [r.metadata.question_id for r in results if r.template and r.template.embedding_override_applied]
    yield f"Answers that decline (AbstentionCheck): {declined}; that say too little (SufficiencyCheck): {too_little}."
    unscored = sum(bool(r.rubric.trait_errors) for r in results if r.rubric)
    absent = sum(len(r.rubric.dynamic_rubric_skipped_traits) for r in results if r.rubric)
    yield f"Right answers in other words than expected (EmbeddingCheck): {', '.join(reworded) or 'none'}."
    yield (
        f"Items with a trait that the judge did not score: {unscored}, their other traits are scored; traits left out "
        f"because the answer does not speak of what they are about: {absent}."
    )
    repairs = sum(r.template.judge_repairs for r in results if r.template)
    yield f"Replies of the judge that did not fit their template and were corrected by it: {repairs}."
