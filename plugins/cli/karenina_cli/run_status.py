"""What `karenina status` and `karenina batches` do."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karenina_runs.batches.provider_batches import BatchThere, batches_there
from karenina_runs.config.config_file import Flags, RunConfig
from karenina_runs.folder.status import RunStatus, read_status, resume_command

from karenina_core.errors import plural

from .exits import OK, SOME_FAILED
from .options.flags import later_config
from .output import Part, Table, inline, own_stdout, print_found
from .running import batch_text
from .summary import cost_text, counts, listing

UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))


def show_status(folder: Path, *, as_json: bool) -> None:
    """Print how far the run is. Raises ConfigError and RunDirectoryError."""
    with own_stdout() as out:
        found = read_status(folder)
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


def _parts(found: RunStatus, folder: Path) -> list[Part]:
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
        *([("retried on resume", str(found.waiting))] if found.waiting else []),
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
    what = "To stop it (it can be resumed)" if found.pid else "Next"
    return [*parts, f"{what}: {_next(found, folder)}"]


def _next(found: RunStatus, folder: Path) -> str:
    """What to type."""
    if found.pid:
        return f"kill -TERM {found.pid}"
    if found.pid == 0:
        return f"karenina status {shlex.quote(str(folder))}"
    if not found.is_resumable:
        return f"karenina show {shlex.quote(str(folder))}"
    return resume_command(found, folder)


def show_batches(folder: Path, options: Mapping[str, Any]) -> int:
    """Print how far the batches are, after they were cancelled where that is asked for. Returns the exit code.

    Raises ConfigError and RunDirectoryError.
    """

    def configured(manifest: Mapping[str, Any]) -> RunConfig:
        return later_config(manifest, options, Flags(trust=True))  # no code of the benchmark is run

    with own_stdout() as out:
        found = asyncio.run(batches_there(folder, configured, cancel=options["cancel"]))
        documents = [
            {
                "model": batch.model,
                "provider_id": batch.provider_id,
                "calls": batch.calls,
                "status": _status(batch),
                "completed": batch.state.completed if batch.state else None,
                "failed": batch.state.failed if batch.state else None,
                "problem": batch.problem or None,
            }
            for batch in found
        ]
        parts = _batch_parts(found, folder) if found else [f"No batch of the run in {folder} is at a provider."]
        print_found({"run_dir": str(folder), "batches": documents}, parts, out, as_json=options["as_json"])
    return SOME_FAILED if any(batch.problem for batch in found) else OK


def _batch_parts(found: Sequence[BatchThere], folder: Path) -> list[Part]:
    rows = []
    for batch in found:
        progress = f"{plural(batch.calls, 'call')}: {batch.problem}"
        if batch.state is not None:
            failed = f", {batch.state.failed} failed" if batch.state.failed else ""
            progress = f"{_status(batch)}: {batch.state.completed} of {plural(batch.calls, 'call')} made{failed}"
        rows.append((batch.provider_id or "(no id)", batch.model, progress))
    return [
        Table(("Batch", "Model", "How far it is"), rows),
        f"To fetch the finished replies: {resume_command(read_status(folder), folder)}",
    ]


def _status(batch: BatchThere) -> str | None:
    """None where it is unknown."""
    if batch.cancelling:
        return "cancelling"
    return batch.state.status if batch.state else None
