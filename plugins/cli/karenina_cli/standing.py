"""What `karenina status` does."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from karenina_runs.folder.status import Standing, resume_command, standing

from karenina_core.errors import plural

from .output import Part, Table, inline, own_stdout, print_found
from .running import batch_text
from .summary import cost_text, counts, listing

UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def show_status(folder: Path, *, as_json: bool) -> None:
    """Print how far the run is. Raises ConfigError and RunDirectoryError."""
    with own_stdout() as out:
        found = standing(folder)
        document = {
            "run_dir": str(folder),
            "run_name": found.run_name,
            "state": found.state,
            "failure": found.failure or None,
            "pid": found.pid,
            "items": found.items,
            "done": found.done,
            "outcomes": dict(found.outcomes),
            "errors": dict(found.errors),
            "tried_again": found.waiting,
            "repair": next((dict(row.facts) for row in found.progress if row.kind == "repair"), None),
            "ledger": dict(found.ledger),
            "written_at": found.written_at.isoformat() if found.written_at else None,
            "batches": [dict(batch) for batch in found.batches],
            "damaged": found.damaged,
            "notes": list(found.notes),
            "next": _next(found, folder),
        }
        print_found(document, _parts(found, folder), out, as_json=as_json)


def _parts(found: Standing, folder: Path) -> list[Part]:
    total, written = found.ledger["total"], "unknown"
    if (moment := found.written_at) is not None:
        passed = max(0, round((datetime.now(UTC) - moment).total_seconds()))
        unit, seconds = next((unit for unit in UNITS if passed >= 2 * unit[1]), UNITS[-1])
        written = f"{moment.astimezone():%Y-%m-%d %H:%M:%S} ({plural(passed // seconds, unit)} ago)"
    who = {None: "", 0: " (by some process)"}.get(found.pid, f" (process {found.pid})")
    rows = [
        ("state", f"{found.state}{who}"),
        *([("because of", inline(found.failure, 500))] if found.failure else []),
        ("items", f"{found.done} of {found.items}"),
        *([("outcomes", counts(found.outcomes))] if found.outcomes else []),
        *([("errors", counts(found.errors))] if found.errors else []),
        *([("tried again on resume", str(found.waiting))] if found.waiting else []),
        *((row.kind, row.text) for row in found.progress),
        ("calls", f"{total['calls']} made, {total['reused']} reused, {plural(total['failed'], 'attempt')} failed"),
        ("tokens", f"{total['input_tokens']} in, {total['output_tokens']} out"),
        ("cost", cost_text(total)),
        *(("batch", batch_text(batch)) for batch in found.batches),
        ("last written", written),
    ]
    parts: list[Part] = [Table(("", ""), rows, f"Run {found.run_name}")]
    parts.append(listing("Notes", [(note,) for note in found.notes]))
    if found.damaged:
        where = shlex.quote(str(folder))
        parts.append(f"{plural(found.damaged, 'row')} of the journal cannot be read: karenina doctor {where}")
    what = "To stop it, so that it can be resumed" if found.pid else "Next"
    return [*parts, f"{what}: {_next(found, folder)}"]


def _next(found: Standing, folder: Path) -> str:
    """What to type."""
    if found.pid:
        return f"kill -TERM {found.pid}"
    if found.pid == 0:
        return f"karenina status {shlex.quote(str(folder))}"
    if not found.is_resumable:
        return f"karenina show {shlex.quote(str(folder))}"
    return resume_command(found, folder)
