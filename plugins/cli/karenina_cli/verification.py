"""What `karenina verify` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from karenina_runs.amend.repair import RepairSelection, planned_repair
from karenina_runs.benchmark import Benchmark
from karenina_runs.config.presets import PresetFolder
from karenina_runs.execute.continuation import RETRYABLE
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.directory import default_directory
from karenina_runs.folder.reuse import followed
from karenina_runs.folder.status import read_status, rescore_command, resume_command
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare
from karenina_runs.results.exports import Format, export_results, ready_format
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.results.stored import stored_results
from karenina_runs.summaries.canaries import exceeded
from karenina_runs.summaries.gates import Gate

from karenina_core.errors import one_line, plural

from .annotations import run_annotations
from .estimating import check_estimate, print_estimate
from .exits import GATE_FAILED, OK, SOME_FAILED
from .options.flags import configured, given_answers, select_questions, trust_line, trusted_with
from .options.gates import asked_gates, gate_document, gate_parts, note_gates, run_limits
from .output import Part, note, own_stdout, print_json, print_parts
from .plugin_options import given_files
from .progress import Progress
from .running import carried_out
from .summary import run_parts


def verify(path: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Run the benchmark and print the outcome, or with `estimate` what the run would take. Returns the exit code; see
    `exits` for what errors become."""
    with own_stdout() as out:
        check_estimate(options)
        prepared = _prepared(path, options, trust_line(arguments))
        if options["estimate"]:
            return print_estimate(prepared, options, out)
        judged = asked_gates(prepared, options)
        named = [options.get(name) for name in ("config", "answers")]
        named += [PresetFolder.of_user().find(options["preset"])] if options["preset"] is not None else []
        targets = (uri.partition(":")[2] for uri in options["sinks"])
        kept = [
            path,
            *given_files(options),
            *(Path(file) for file in named if file),
            *(Path(target) for target in targets if target),
        ]
        formats = {file: ready_format(prepared.app, file, kept=kept) for file in options["exports"]}
        directory = options["out"] or default_directory(path.stem)
        for line in followed(options["reuse"])[1]:
            note(f"Warning: {line}")
        if not options["quiet"]:
            config = prepared.config
            counts = (
                (len(prepared.questions), "questions"),
                (len(config.answering_models), "answering models"),
                (len(config.parsing_models), "judges"),
                (config.replicate_count, "replicates"),
            )
            product = " x ".join(f"{count} {name if count > 1 else name[:-1]}" for count, name in counts)
            note(f"{plural(len(prepared), 'item')} ({product}), mode {prepared.mode}, into {directory}")
        destination = Destination(run_dir=directory, sinks=options["sinks"], source=path, reuse=options["reuse"])
        progress = Progress(len(prepared), quiet=options["quiet"])
        most_errors = run_limits(options).most_errors(len(prepared))
        results = carried_out(partial(execute, prepared, destination), progress, directory, most_errors)
        unwritten = _export(directory, formats, quiet=options["quiet"])
        gates = judged(results)
        warnings = prepared.benchmark.warnings
        more, closing = gate_document(gates), gate_parts(gates)
        print_results(results, directory, warnings, out, as_json=options["as_json"], more=more, closing=closing)
    return max(
        SOME_FAILED if unwritten else OK,
        ended(results, len(prepared), directory, gates=gates, annotate=bool(options["annotations"])),
    )


def ended(
    results: VerificationResultSet,
    items: int,
    directory: Path,
    *,
    repaired: bool = False,
    gates: Sequence[Gate] = (),
    annotate: bool = False,
) -> int:
    """The exit code of a run of so many items that was not interrupted; `repaired`: in which some were made again.
    `annotate`: for GitHub Actions too."""
    counted = results.tally.outcomes
    missing = items - counted.total()
    unrepaired = 0
    for why in results.stopped:
        note(f"stopped: {why}")
    if missing or repaired or results.stopped:  # a budget was used up, or a model is asked no more
        found = read_status(directory)
        unrepaired = found.unrepaired
        line = resume_command(found, directory, retry_failed=bool(results.stopped) and _has_final_errors(results))
        if missing:
            note(f"{missing} of {items} items have no result; to continue, type: {line}")
        elif results.stopped:
            note(f"{plural(counted['error'], 'item')} ended in an error; to try again, type: {line}")
        if unrepaired:
            note(f"{plural(unrepaired, 'result')} still to be made again; to continue the repair, type: {line}")
    if results.tally.failed_scores:
        found = read_status(directory)
        if found.state == "completed" and not found.progress:
            # those that a resume does not make again
            rows = planned_repair(directory, RepairSelection(unscored=True)).rows
            if count := sum(row.outcome != "error" or row.detail not in RETRYABLE for row in rows):
                what = f"{plural(count, 'result')} without a score of some trait"
                note(f"{what}; to call the judges again, type: {rescore_command(found, directory)}")
    for line in run_annotations(results, gates) if annotate else ():
        note(line)
    if not note_gates(gates) or exceeded(results.canaries):
        return GATE_FAILED
    errors = 0 if any(gate.name == "errors" for gate in gates) else counted["error"]
    incomplete = missing or unrepaired or errors or results.sink_failures or results.tally.failed_scores
    return SOME_FAILED if incomplete else OK


def _has_final_errors(results: VerificationResultSet) -> bool:
    """Whether a resume without more would not try some of the errors again."""
    return any(kind not in RETRYABLE for row in results.get_summary()["models"] for kind in row["errors"])


def print_results(
    results: VerificationResultSet,
    directory: Path,
    warnings: Sequence[str],
    out: IO[str],
    *,
    as_json: bool,
    extends: Path | None = None,
    more: Mapping[str, Any] = {},
    closing: Sequence[Part] = (),
) -> None:
    """The end of a run, for people or as one JSON document. `warnings` are the benchmark's; `extends` is the run whose
    results were taken over; `more` is added to the document, and `closing` to what people read."""
    if as_json:
        for warning in warnings:
            note(f"Warning: {warning}")
        print_json({**results.get_summary(), **more}, out)
    else:
        print_parts([*run_parts(results, directory, warnings, extends=extends), *closing], out)


def _export(directory: Path, formats: Mapping[Path, Format], *, quiet: bool) -> list[Path]:
    """Write the run's results to the files. Returns those that could not be written; each of them is reported.

    What the run directory holds is written: it has no secrets, and need not be in memory.
    """
    unwritten = []
    for file, found in formats.items():
        try:
            stored = stored_results(directory)
            export_results(stored, file, found, stored.manifest)
        except Exception as error:  # a format of another package; the results are in the run directory
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
    answers = given_answers(options, loaded.app)
    with trusted_with(trusting, f"the author of {path}", path):
        return prepare(benchmark, loaded.config, app=loaded.app, question_ids=ids, answers=answers)
