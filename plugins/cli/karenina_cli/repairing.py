"""What `karenina repair` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.amend.repair import RepairPlan, RepairSelection, begun_repair, planned_repair, undo_repair
from karenina_runs.amend.repairs import REPAIR, Repair
from karenina_runs.folder.directory import read_manifest
from karenina_runs.resume import Resumption, Wanted

from karenina_core.errors import ConfigError, plural
from karenina_core.log import configure

from .exits import OK
from .options.flags import trust_line
from .options.selection import select_questions
from .output import Part, Table, note, own_stdout, print_found
from .progress import Progress
from .resuming import checked
from .running import carried_out
from .verification import ended, print_results

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
        configure()
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
            note(f"making {_counted(plan)} again; what was there before is in {_kept(found)}")
        progress = Progress(found.items, quiet=options["quiet"], done=found.done)
        results = carried_out(found.carry_out, progress, folder)
        document = json.loads((_kept(found) / REPAIR).read_bytes())
        names = ("mode", "status", "rows", "selected", "outcomes_before", "outcomes_after", "changed")
        outcome = {"kept_in": str(_kept(found)), **{name: document.get(name) for name in names}}
        changes = "The repair has not ended."
        if outcome["status"] == "completed":
            changes = f"Repaired: {plural(outcome['rows'], 'result')}, {outcome['changed']} with another outcome"
        warnings = found.prepared.benchmark.warnings
        as_json = options["as_json"]
        print_results(results, folder, warnings, out, as_json=as_json, more={"repair": outcome}, closing=[changes])
    return ended(results, found.items, folder, repaired=True)


def take_back(folder: Path, *, as_json: bool) -> int:
    """Have the run as it was before its latest repair. Returns the exit code. Raises ConfigError, RunDirectoryError."""
    with own_stdout() as out:
        configure()
        own = undo_repair(folder)
        line = f"{folder} is as it was before the repair whose record is in {own}"
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
        parts.append(f"Without an answer to be judged again: {len(plan.without_answer)}; they need --mode live")
    return [*parts, "Nothing was changed."]


def _counted(plan: RepairPlan) -> str:
    drawn_in = len(plan.rows) - plan.selected
    also = f", {drawn_in} of them because they share an answer with others" if drawn_in else ""
    return f"{len(plan.rows)} of {plural(plan.results, 'result')}{also}"


def _kept(found: Resumption) -> Path:
    repair = found.destination.continuation
    assert isinstance(repair, Repair)  # it has begun
    return repair.folder
