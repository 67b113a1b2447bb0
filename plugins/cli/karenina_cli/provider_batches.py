"""What `karenina batches` does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_runs.batches.provider_batches import BatchThere, batches_there
from karenina_runs.config.config_file import Flags, RunConfig
from karenina_runs.folder.status import resume_command, standing

from karenina_core.errors import plural
from karenina_core.log import configure

from .exits import OK, SOME_FAILED
from .options.flags import later_config
from .output import Part, Table, own_stdout, print_found


def show_batches(folder: Path, options: Mapping[str, Any]) -> int:
    """Print how far the batches are, after they were cancelled where that is asked for. Returns the exit code.

    Raises ConfigError and RunDirectoryError.
    """

    def configured(manifest: Mapping[str, Any]) -> RunConfig:
        return later_config(manifest, options, Flags(trust=True))  # no code of the benchmark is run

    with own_stdout() as out:
        configure()
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
        parts = _parts(found, folder) if found else [f"No batch of the run in {folder} is at a provider."]
        print_found({"run_dir": str(folder), "batches": documents}, parts, out, as_json=options["as_json"])
    return SOME_FAILED if any(batch.problem for batch in found) else OK


def _parts(found: Sequence[BatchThere], folder: Path) -> list[Part]:
    rows = []
    for batch in found:
        progress = f"{plural(batch.calls, 'call')}: {batch.problem}"
        if batch.state is not None:
            failed = f", {batch.state.failed} failed" if batch.state.failed else ""
            progress = f"{_status(batch)}: {batch.state.completed} of {plural(batch.calls, 'call')} made{failed}"
        rows.append((batch.provider_id or "(no id)", batch.model, progress))
    return [
        Table(("Batch", "Model", "How far it is"), rows),
        f"To fetch what is made: {resume_command(standing(folder), folder)}",
    ]


def _status(batch: BatchThere) -> str | None:
    """None where it is unknown."""
    if batch.cancelling:
        return "cancelling"
    return batch.state.status if batch.state else None
