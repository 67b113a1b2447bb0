"""What `karenina verify` does."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import TemplateRefused, one_line
from ..log import configure
from ..run.benchmark import Benchmark
from ..run.directory import default_directory
from ..run.exports import Format, export_results, ready_format
from ..run.prepare import Prepared, prepare
from ..run.results import VerificationResultSet
from ..run.runner import Destination, execute
from ..run.stored import stored_results
from .exits import OK, SOME_FAILED, Interrupted
from .flags import configured, trust_line
from .output import note, own_stdout, print_json, print_parts
from .progress import Progress
from .selection import select_questions
from .summary import run_parts

__all__ = ["verify"]


def verify(path: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Run the benchmark and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        configure()
        prepared = _prepared(path, options, trust_line(arguments))
        kept = _needed_files(path, options)
        formats = {file: ready_format(prepared.app, file, kept=kept) for file in options["exports"]}
        directory = options["out"] or default_directory(path.stem)
        if not options["quiet"]:
            note(_announced(prepared, directory))
        destination = Destination(run_dir=directory, sinks=options["sinks"], source=path)
        results = _run(prepared, destination, quiet=options["quiet"])
        for sink, failure in results.sink_failures.items():
            note(f"Error: the sink {sink!r} failed and was closed; results are missing there: {failure}")
        unwritten = _export(directory, formats, quiet=options["quiet"])
        if options["as_json"]:
            for warning in prepared.benchmark.warnings:
                note(f"Warning: {warning}")
            print_json(results.get_summary(), out)
        else:
            print_parts(run_parts(results, directory, prepared.benchmark.warnings), out)
    failed = any(result.metadata.outcome == "error" for result in results)
    return SOME_FAILED if failed or results.sink_failures or unwritten else OK


def _needed_files(path: Path, options: Mapping[str, Any]) -> list[Path]:
    """What this run reads or writes beside its exports: none of it is to be replaced by one."""
    named = (options.get(name) for name in ("config", "manual_traces", "record", "replay"))
    targets = (uri.partition(":")[2] for uri in options["sinks"])
    return [path, *(Path(file) for file in named if file), *(Path(target) for target in targets if target)]


def _export(directory: Path, formats: Mapping[Path, Format], *, quiet: bool) -> list[Path]:
    """Write the run's results to the files. Returns those that could not be written; each of them is reported.

    What the run directory holds is written: it has no secrets, and need not be in memory.
    """
    unwritten = []
    for file, found in formats.items():
        try:
            stored = stored_results(directory)
            export_results(stored, file, found, stored.manifest)
        except Exception as error:  # a stranger's format; the results are in the run directory
            note(f"Error: {file} was not written; the results are in {directory}: {one_line(error)}")
            unwritten.append(file)
        else:
            if not quiet:
                note(f"written: {file}")
    return unwritten


def _prepared(path: Path, options: Mapping[str, Any], trusting: str) -> Prepared:
    """The run after every check. Raises TemplateRefused with the line to type for those who trust the file."""
    loaded = configured(options, trust_line=trusting)
    benchmark = Benchmark.load(path, options["workspace_root"], app=loaded.app)
    ids = None
    if options["questions"] is not None:
        ids = select_questions(options["questions"], [question.id for question in benchmark])
    try:
        return prepare(benchmark, loaded.config, app=loaded.app, question_ids=ids)
    except TemplateRefused as error:
        raise TemplateRefused(f"{error}\nIf you trust the author of {path}, type:\n{trusting}") from error


def _announced(prepared: Prepared, directory: Path) -> str:
    config = prepared.config
    counts = (
        (len(prepared.questions), "questions"),
        (len(config.answering_models), "answering models"),
        (len(config.parsing_models), "judges"),
        (config.replicate_count, "replicates"),
    )
    product = " x ".join(f"{count} {name if count > 1 else name[:-1]}" for count, name in counts)
    return f"{len(prepared)} items ({product}), mode {prepared.mode}, into {directory}"


def _run(prepared: Prepared, destination: Destination, *, quiet: bool) -> VerificationResultSet:
    """Run in this thread, so that an interrupt cancels the run and lets it keep what is finished."""
    progress = Progress(len(prepared), quiet=quiet)
    try:
        with progress, asyncio.Runner() as runner:
            return runner.run(_terminable(prepared, destination, progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        kept = destination.run_dir is not None and destination.run_dir.exists()
        where = f", kept in {destination.run_dir}" if kept else ""
        raise Interrupted(f"interrupted: {progress.done} of {progress.total} items are done{where}") from None


async def _terminable(prepared: Prepared, destination: Destination, progress: Progress) -> VerificationResultSet:
    """Run. SIGTERM, which schedulers and containers send, ends it as an interrupt does: it would leave workspaces."""
    task = asyncio.current_task()
    assert task is not None  # this is a coroutine
    with suppress(RuntimeError, ValueError):  # only Unix has it, only in the main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await execute(prepared, destination, on_result=progress.advance)
