"""What a check has found, kept with a run of the same templates and judges: its report shows it beside the rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_calls.files.bounded import read_json
from karenina_runs.files.atomic_files import write_json
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError, Problem
from karenina_core.plugin.command_line import Section
from karenina_core.values.identity import template_id
from karenina_core.values.question import Question

from ..labels.binding import binding_of, judges_changed, stale

__all__ = ["NAME", "check_beside", "keep", "sections"]

NAME = "judge-check.json"
COLUMNS = ("judge", "of", "misread", "95 % interval", "readings")


def check_beside(run: Path, questions: Iterable[Question], judges: Iterable[str]) -> None:
    """Raises ConfigError, before anything is asked, where the run has other templates or judges than are checked."""
    about = [result.metadata for result in VerificationResultSet.load(run)]
    binding_of(run)
    templates = {row.question_id: row.template_id for row in about}
    asked = {question.id: template_id(question.answer_template) for question in questions}
    shared = asked.keys() & templates.keys()
    if not shared:
        raise ConfigError([Problem("--for", f"{run} has none of the questions that are checked")])
    if other := sorted(name for name in shared if asked[name] != templates[name]):
        raise ConfigError([Problem("--for", f"{run} has another template of {', '.join(map(repr, other[:3]))}")])
    known = {row.parsing_model for row in about}
    if unknown := sorted(set(judges) - known):
        what = f"{unknown[0]} is not a judge of {run}, which has {', '.join(sorted(known))}"
        raise ConfigError([Problem("--for", what)])


def keep(run: Path, document: Mapping[str, Any]) -> None:
    """Write it into the run; replaced. Raises ConfigError where that cannot be done."""
    changed = judges_changed(run, Path(document["run_dir"]))
    try:
        write_json(run / NAME, {**document, "other_settings": changed, "binding": binding_of(run)}, indent=1)
    except OSError as error:
        raise ConfigError(f"{run / NAME} cannot be written: {error.strerror}") from error


def sections(run: Path) -> Sequence[Section]:
    """How often each judge misread answers whose contents are known, and which fields; nothing where none was kept."""
    if not (run / NAME).is_file():
        return []
    title = "Check of the judge"
    try:
        found = read_json(run / NAME)
        rows = [row for judge in found["judges"] for row in _rows(judge)]
        before = [f"The judge had other settings in the check: {line}." for line in found["other_settings"]]
        before += [_errors(judge) for judge in found["judges"] if judge["errors"]]
        known = found["binding"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [Section({}, title, before=[f"{run / NAME} cannot be read: {error}"])]
    try:
        changed = stale(known, binding_of(run))
    except ConfigError as error:
        changed = [str(error)]
    before += [f"This check no longer holds: {'; '.join(changed)}."] if changed else []
    after = ["Answers whose contents are known, read before any model is blamed: karenina judge check."]
    return [Section({}, title, COLUMNS, rows, before=before, after=after)]


def _errors(judge: Mapping[str, Any]) -> str:
    return f"{judge['judge']}: {judge['errors']} of {judge['trials']} answers have no usable reply and are in no rate."


def _rows(judge: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Of all fields, then of each that was misread."""
    misread = [row for row in judge["by_field"] if row["rate"]]
    parts = [("all fields", judge["misread"]), *((f"{row['question']}: {row['field']}", row) for row in misread)]
    return [(judge["judge"], name, *_rate(row), str(row["n"])) for name, row in parts]


def _rate(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["rate"] is None:
        return "unknown", ""
    return f"{row['rate']:.1%}", "" if row["low"] is None else f"{row['low']:.1%} to {row['high']:.1%}"
