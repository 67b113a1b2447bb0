"""What `karenina resume`, `karenina repair` and `karenina extend` do with a run that is there."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from karenina_calls.files.bounded import read_json
from karenina_runs.amend.extension import Extending, extending, rebuilt_with
from karenina_runs.amend.extension import Wanted as Extension
from karenina_runs.amend.repair import RepairPlan, RepairSelection, begun_repair, planned_repair, undo_repair
from karenina_runs.amend.repair_record import REPAIR, Repair
from karenina_runs.benchmark import Benchmark
from karenina_runs.config.config_file import Flags, RunConfig
from karenina_runs.files.run_lock import owner_of
from karenina_runs.folder.directory import default_directory, read_manifest
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.folder.status import fork_command, read_status
from karenina_runs.resume import Resumption, Wanted, resumption, source_of

from karenina_core.errors import ConfigError, plural

from .exits import OK
from .options.flags import RUN_FIELDS, later_config, model_flags, select_questions, trust_line, trusted_with
from .options.gates import asked_gates, gate_document, gate_parts, run_limits
from .output import Part, Table, note, own_stdout, print_found
from .progress import Progress
from .running import carried_out
from .verification import ended, print_results

Configured = Callable[[Mapping[str, Any]], RunConfig]


def resume(folder: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Continue the run and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        wanted = Wanted(
            source=options["benchmark"],
            fork=options["fork"],
            retry_failed=options["retry_failed"],
            sinks=options["sinks"] or None,
        )
        found = checked(
            folder, options, trust_line(arguments), lambda configured: resumption(folder, configured, wanted)
        )
        for line in found.missing:
            note(f"Warning: {line}")
        if not options["quiet"] and owner_of(found.directory) is None:  # else it is refused in a moment
            line = f"{found.done} of {found.items} items are done; continuing in {found.directory}"
            if found.completed:
                line = f"the run in {found.directory} is finished: all {found.items} items have a result"
            elif found.destination.forked_from is not None:
                line = f"{found.items} items, into {found.directory}"
            note(line)
        judged = asked_gates(found.prepared, options)
        progress = Progress(found.items, quiet=options["quiet"], done=found.done)
        with _refused(folder):
            most_errors = run_limits(options).most_errors(found.items)
            results = carried_out(found.carry_out, progress, found.directory, most_errors)
        warnings, extended = found.prepared.benchmark.warnings, read_manifest(found.directory).get("extends")
        extends = None if extended is None else Path(extended["run_dir"])
        gates = judged(results)
        more, closing, as_json = gate_document(gates), gate_parts(gates), options["as_json"]
        print_results(
            results, found.directory, warnings, out, as_json=as_json, extends=extends, more=more, closing=closing
        )
    repaired = found.destination.continuation.replaces
    annotate = bool(options["annotations"])
    return ended(results, found.items, found.directory, repaired=repaired, gates=gates, annotate=annotate)


def checked(
    folder: Path, options: Mapping[str, Any], trusting: str, make: Callable[[Configured], Resumption]
) -> Resumption:
    """What `make` gives for the configuration of the run with what the options say instead. `trusting` is what to type
    to run Python templates in this process.

    Raises ConfigError and TemplateRefused with what to type instead.
    """
    given = ("concurrency", "budget_usd", "budget_tokens", "fail_fast")
    run = {name: options[name] for name in given if options[name] is not None}
    flags = Flags(run=run, trust=options["trust"], trust_line=trusting)
    with trusted_with(trusting), _refused(folder):
        return make(lambda manifest: later_config(manifest, options, flags))


@contextmanager
def _refused(folder: Path, verb: str = "resumed", command: str = "") -> Iterator[None]:
    """Where something has changed, the error says what to type instead: `command`, or what begins a fork of the run."""
    try:
        yield
    except Changed as error:
        instead = command or fork_command(read_status(folder), folder)
        changed = "\n".join(f"  {problem}" for problem in error.problems)
        raise ConfigError(
            f"{folder} cannot be {verb}, because its numbers depend on what has changed:\n{changed}\n"
            f"Undo that, or start a new run that makes only the missing calls: {instead}"
        ) from None


CHOSEN = {
    "answering_models": "--answering-model",
    "parsing_models": "--parsing-model",
    "replicates": "--replicate",
    "outcomes": "--outcome",
    "details": "--kind",
    "stages": "--stage",
}
"""Conditions, and what they are called on the command line."""


def repair(folder: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Repair the run and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        plan = _planned(folder, options)
        if options["dry_run"]:
            document = {"run_dir": str(folder), **plan.to_dict()}
            print_found(document, _plan_parts(plan), out, as_json=options["as_json"])
            return OK
        wanted = Wanted(source=options["benchmark"], sinks=options["sinks"] or None)
        found = checked(
            folder, options, trust_line(arguments), lambda configured: begun_repair(folder, plan, configured, wanted)
        )
        if not options["quiet"]:
            note(f"making {_counted(plan)} again; the previous results are in {_kept(found)}")
        progress = Progress(found.items, quiet=options["quiet"], done=found.done)
        results = carried_out(found.carry_out, progress, folder)
        document = read_json(_kept(found) / REPAIR)
        names = ("mode", "status", "rows", "selected", "outcomes_before", "outcomes_after", "changed")
        outcome = {"kept_in": str(_kept(found)), **{name: document.get(name) for name in names}}
        changes = "The repair is not finished."
        if outcome["status"] == "completed":
            changes = f"Repaired: {plural(outcome['rows'], 'result')}, {outcome['changed']} with another outcome"
        warnings = found.prepared.benchmark.warnings
        as_json = options["as_json"]
        print_results(results, folder, warnings, out, as_json=as_json, more={"repair": outcome}, closing=[changes])
    return ended(results, found.items, folder, repaired=True)


def take_back(folder: Path, *, as_json: bool) -> int:
    """Have the run as it was before its latest repair. Returns the exit code. Raises ConfigError, RunDirectoryError."""
    with own_stdout() as out:
        own = undo_repair(folder)
        line = f"{folder} is as it was before the repair, which is recorded in {own}"
        print_found({"run_dir": str(folder), "undone": str(own)}, [line], out, as_json=as_json)
    return OK


def _planned(folder: Path, options: Mapping[str, Any]) -> RepairPlan:
    """Raises ConfigError, with the options that choose nothing."""
    chosen: dict[str, Any] = {name: options[name] or None for name in CHOSEN}
    if options["questions"] is not None:
        chosen["question_ids"] = select_questions(options["questions"], read_manifest(folder)["questions"])
    selection = RepairSelection(**chosen, unscored=options["unscored"], everything=options["everything"])
    try:
        return planned_repair(folder, selection, options["mode"])
    except ConfigError as error:
        raise ConfigError(
            [problem._replace(path=CHOSEN.get(problem.path, problem.path)) for problem in error.problems]
        ) from None


def _plan_parts(plan: RepairPlan) -> list[Part]:
    document = plan.to_dict()
    rows = [(row["answering"], row["parsing"], str(row["rows"])) for row in document["models"]]
    outcomes = ", ".join(f"{name} {count}" for name, count in document["outcomes"].items())
    parts: list[Part] = [
        f"Mode {plan.mode}: {_counted(plan)}, of {plural(document['questions'], 'question')}",
        f"They are: {outcomes}",
        Table(("Answering model", "Judge", "Results"), rows),
    ]
    if plan.without_answer:
        parts.append(f"Without an answer to judge again: {len(plan.without_answer)}; they need --mode live")
    return [*parts, "Nothing was changed."]


def _counted(plan: RepairPlan) -> str:
    drawn_in = len(plan.rows) - plan.selected
    also = f", {drawn_in} of them because they share an answer with others" if drawn_in else ""
    return f"{len(plan.rows)} of {plural(plan.results, 'result')}{also}"


def _kept(found: Resumption) -> Path:
    repair = found.destination.continuation
    assert isinstance(repair, Repair)  # it has begun
    return repair.folder


def extend(folder: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Extend the run and print the outcome. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        found = _checked(folder, options, trust_line(arguments))
        counts, items = found.found, len(found.prepared)
        counted = [f"{counts.rows} from {folder}", f"{items - counts.rows} more"]
        if counts.again:
            counted.append(f"{counts.again} of them {'is' if counts.again == 1 else 'are'} retried")
        if found.traits:
            counted.append(f"{counts.scored} get {plural(len(found.traits), 'more trait')}")
        for line in found.missing:
            note(f"Warning: {line}")
        if not options["quiet"]:
            note(f"{items} items ({'; '.join(counted)}), into {found.directory}")
        progress = Progress(items, quiet=options["quiet"], done=counts.done)
        results = carried_out(found.carry_out, progress, found.directory)
        warnings = found.prepared.benchmark.warnings
        print_results(results, found.directory, warnings, out, as_json=options["as_json"], extends=folder)
    return ended(results, items, found.directory)


def _checked(folder: Path, options: Mapping[str, Any], trusting: str) -> Extending:
    """Raises ConfigError and TemplateRefused with what to type instead."""
    flags = Flags(
        run={field: options[name] for name, field in RUN_FIELDS.items() if options.get(name) is not None},
        answering=model_flags("answering", options),
        parsing=model_flags("parsing", options),
        trust=options["trust"],
        trust_line=trusting,
    )

    def chosen(ids: Sequence[str]) -> Sequence[str]:
        text = options["questions"]
        if text is None:
            return ()
        return ids if text == "all" and "all" not in ids else select_questions(text, ids)

    manifest = read_manifest(folder)
    made = later_config(manifest, options, flags, rebuilt_with)
    given, source = options["benchmark"], options["benchmark"] or source_of(manifest)
    benchmark = None if given is None else Benchmark.load(given, manifest.get("workspace_root"), app=made.app)
    wanted = Extension(
        run_dir=options["out"] or default_directory(folder.name if source is None else source.stem),
        benchmark=benchmark,
        source=given,
        questions=chosen,
        ask_missing=options["ask_missing"],
        sinks=options["sinks"],
    )
    command = shlex.join(["karenina", "verify", str(source or "BENCHMARK"), "--reuse", str(folder), "..."])
    with trusted_with(trusting), _refused(folder, "extended", command):
        return extending(folder, lambda manifest: made, wanted)
