"""Judging trials: as a run that is made, estimated, or there already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen
from karenina_cli.exits import GATE_FAILED
from karenina_cli.output import note
from karenina_cli.progress import Progress
from karenina_cli.running import carried_out
from karenina_cli.verification import ended
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.files.run_files import MANIFEST
from karenina_runs.folder.directory import default_directory, read_manifest
from karenina_runs.folder.status import read_status, resume_command
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError, Problem, RunDirectoryError, plural

from .trials import TrialRun


@frozen
class Judged:
    """What became of the trials."""

    results: VerificationResultSet
    directory: Path
    code: int
    """The exit code of the run: 0, or 3 where some trials have no verdict."""


def judged(run: TrialRun, options: Mapping[str, Any], label: str) -> Judged:
    """Have the trials judged in a run of their own, or read them from `--out` where a run of the very same trials has
    been made there. Raises ConfigError for a directory of another run, or of one that has not ended."""
    prepared, directory = run.prepared, options["out"] or default_directory(label)
    if (directory / MANIFEST).is_file():
        return Judged(_earlier(run, directory), directory, 0)
    source = directory.with_name(f"{directory.name}.trials.jsonld")
    try:
        source.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirectoryError(f"{source.parent} cannot be made: {error.strerror}; give another --out") from None
    run.benchmark.save(source, app=prepared.app)  # an interrupted run is resumed with it
    if not options["quiet"]:
        note(f"{plural(len(prepared), 'item')} to judge, into {directory}")
    destination = Destination(run_dir=directory, sinks=options["sinks"], source=source)
    progress = Progress(len(prepared), quiet=options["quiet"])
    results = carried_out(partial(execute, prepared, destination), progress, directory)
    return Judged(results, directory, ended(results, len(prepared), directory))


def gate_code(rates: Iterable[tuple[str, float | None]], most: float | None, option: str, what: str) -> int:
    """4 where the share of a judge's trials that `what` says is larger than `option` allows, or unknown; 0 else, and
    where no gate is asked for. Each such judge is named on stderr."""
    failed = False
    for judge, share in rates if most is not None else ():
        if share is None or share > (most or 0):
            found = "nothing could be judged" if share is None else f"{share:.1%} {what}"
            note(f"Error: {judge}: {found}, and {option} allows {most:.1%}")
            failed = True
    return GATE_FAILED if failed else 0


def _earlier(run: TrialRun, directory: Path) -> VerificationResultSet:
    about, prepared = read_manifest(directory), run.prepared
    pairs = [tuple(pair) for pair in about.get("pairs", ())]
    digest = about["benchmark"].get("digest")
    alike = (digest, pairs, about["items"]) == (
        prepared.benchmark.digest,
        list(prepared.planned.pairs),
        len(prepared),
    )
    found = read_status(directory)
    if alike and found.state != "completed":
        what = f"the run in {directory} is not complete; type: {resume_command(found, directory)}"
        raise ConfigError([Problem("--out", what)])
    results = VerificationResultSet.load(directory, prepared.app) if alike else None
    if results is None or any(
        result.generation.has_answer and result.generation.raw_llm_response != run.answers[result.metadata.question_id]
        for result in results
    ):
        what = f"{directory} holds another run, or one of other trials or judges; give an empty directory"
        raise ConfigError([Problem("--out", what)])
    return results
