"""What `karenina demo` does and prints: how well each model did, what failed and why, and what to type next."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve
from karenina_cli.exits import OK, SOME_FAILED
from karenina_cli.output import Part, note, own_stdout, print_found
from karenina_cli.progress import Progress
from karenina_cli.summary import model_parts, not_passed
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.directory import default_directory
from karenina_runs.plan.items import Prepared
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import plural
from karenina_core.values.result import VerificationResult

from .bundle import BENCHMARK, CALLS, FAILING, JUDGE, application, prepared


def demonstrate(directory: Path | None, *, quiet: bool = False, as_json: bool = False) -> int:
    """Run the bundled benchmark and print what came out. Returns the exit code."""
    with own_stdout() as out:
        run = prepared(application(replay=str(CALLS)))
        directory = directory or default_directory("demo")
        destination = Destination(run_dir=directory, source=BENCHMARK)
        with Progress(len(run), quiet=quiet) as progress, asyncio.Runner() as runner:
            found = runner.run(_shown(run, destination, progress))
        models = [model.identity for model in run.config.answering_models]
        questions = [question.id for question in run.questions]

        def place(result: VerificationResult) -> tuple[int, int]:
            return models.index(result.metadata.answering), questions.index(result.metadata.question_id)

        results = evolve(found, results=sorted(found, key=place))  # two demos print the same
        print_found(results.get_summary(), narrated(run, results, directory), out, as_json=as_json)
        problems = list(_problems(results))
        for problem in problems:
            note(f"Error: {problem}")
    return SOME_FAILED if problems else OK


async def _shown(run: Prepared, destination: Destination, progress: Progress) -> VerificationResultSet:
    control = RunControl()
    async with progress.shown(control):
        return await execute(run, destination, on_result=progress.advance, control=control)


def _problems(results: VerificationResultSet) -> Iterator[str]:
    failed = {(r.metadata.question_id, r.metadata.answering.model_name) for r in results if r.outcome.name == "error"}
    if unexpected := failed - FAILING:
        yield (
            f"{plural(len(unexpected), 'item')} ended in an error that was not recorded. The recording does not fit "
            "the packages that are installed: install the same version of karenina-core and of every other karenina "
            "package."
        )
    for sink, failure in results.sink_failures.items():
        yield f"the sink {sink!r} failed, so results are missing in the run directory: {failure}"


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
