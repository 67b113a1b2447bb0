"""What `karenina demo` does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve
from karenina_cli.exits import OK, SOME_FAILED
from karenina_cli.output import note, own_stdout, print_found
from karenina_cli.progress import Progress
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.directory import default_directory
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import plural
from karenina_core.log import configure
from karenina_core.values.result import VerificationResult

from .bundle import BENCHMARK, CALLS, FAILING, application, prepared
from .narration import narrated


def demonstrate(directory: Path | None, *, quiet: bool = False, as_json: bool = False) -> int:
    """Run the bundled benchmark and print what came out. Returns the exit code."""
    with own_stdout() as out:
        configure()
        run = prepared(application(replay=str(CALLS)))
        directory = directory or default_directory("demo")
        destination = Destination(run_dir=directory, source=BENCHMARK)
        with Progress(len(run), quiet=quiet) as progress, asyncio.Runner() as runner:
            found = runner.run(execute(run, destination, on_result=progress.advance))
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
