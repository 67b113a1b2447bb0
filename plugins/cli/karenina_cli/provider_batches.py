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
from .output import Part, Table, own_stdout, print_json, print_parts

__all__ = ["show_batches"]


def show_batches(folder: Path, options: Mapping[str, Any]) -> int:
    """Print how far the batches are, after they were cancelled where that is asked for. Returns the exit code.

    Raises ConfigError and RunDirectoryError.
    """

    def configured(manifest: Mapping[str, Any]) -> RunConfig:
        return later_config(manifest, options, Flags(trust=True))  # no code of the benchmark is run

    with own_stdout() as out:
        configure()
        found = asyncio.run(batches_there(folder, configured, cancel=options["cancel"]))
        if options["as_json"]:
            print_json({"run_dir": str(folder), "batches": [_document(batch) for batch in found]}, out)
        else:
            print_parts(_parts(found, folder), out)
    return SOME_FAILED if any(batch.problem for batch in found) else OK


def _document(batch: BatchThere) -> dict[str, Any]:
    state = batch.state
    return {
        "model": batch.model,
        "provider_id": batch.provider_id,
        "calls": batch.calls,
        "status": _status(batch),
        "completed": state.completed if state else None,
        "failed": state.failed if state else None,
        "problem": batch.problem or None,
    }


def _parts(found: Sequence[BatchThere], folder: Path) -> list[Part]:
    if not found:
        return [f"No batch of the run in {folder} is at a provider."]
    rows = [(batch.provider_id or "(no id)", batch.model, _progress(batch)) for batch in found]
    return [
        Table(("Batch", "Model", "How far it is"), rows),
        f"To fetch what is made: {resume_command(standing(folder), folder)}",
    ]


def _progress(batch: BatchThere) -> str:
    if (state := batch.state) is None:
        return f"{plural(batch.calls, 'call')}: {batch.problem}"
    failed = f", {state.failed} failed" if state.failed else ""
    return f"{_status(batch)}: {state.completed} of {plural(batch.calls, 'call')} made{failed}"


def _status(batch: BatchThere) -> str | None:
    """None where it is unknown."""
    if batch.cancelling:
        return "cancelling"
    return batch.state.status if batch.state else None
