"""The batches of a run that are at providers: their state there, and cancelling them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_calls.models.model_ports import make_port
from karenina_calls.ports.batch import BatchPort, BatchState
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import hide

from karenina_core.errors import ConfigError, PortError, one_line
from karenina_core.values.config import ModelConfig

from ..config.config_file import RunConfig
from ..files.run_lock import owner_of
from ..folder.directory import read_manifest
from ..journal.journal import Journal
from ..journal.reader import ENDING, OPEN, Batch, JournalReader, journal_of
from .batches import retried

GONE = 404  # HTTP, not found


@frozen(kw_only=True)
class BatchThere:
    """A batch whose replies are not all in the run directory."""

    model: str
    provider_id: str | None
    """None: the provider knows of none."""
    calls: int
    state: BatchState | None = None
    """None: not known, see `problem`."""
    problem: str = ""
    cancelling: bool = False
    """Whether it was asked to end, and has not ended yet."""
    gone: bool = False
    """Whether the provider does not have it."""


async def batches_there(
    folder: Path, configured: Callable[[Mapping[str, Any]], RunConfig], *, cancel: bool = False
) -> list[BatchThere]:
    """Ask the providers for the states of a run's batches. `configured` gets the manifest, and is not called where
    there is no batch.

    With `cancel` they are asked not to make what they have not made yet, and the journal says of which batches nothing
    more is made; else the run directory is only read. Raises ConfigError, also where a process works on the run that
    would send more, and RunDirectoryError.
    """
    manifest = read_manifest(folder)
    if cancel and (pid := owner_of(folder)) is not None:
        how = f"; end it first: kill -TERM {pid}" if pid else "; end it first"
        raise ConfigError(f"a process works on the run in {folder}, and would send more{how}")
    rows: list[Batch] = []
    if journal_of(folder).is_file():
        with JournalReader.open(folder) as reader:
            rows = [row for row in reader.batches() if row.status in OPEN]
    made = configured(manifest) if rows else None
    found = [await _there(made, row, cancel=cancel) for row in rows if made is not None]
    if cancel and (ending := [row for row, batch in zip(rows, found, strict=True) if batch.state or batch.gone]):
        journal = Journal.open(folder, run_id=manifest["run_id"])
        for row in ending:
            await journal.put_batch(evolve(row, status=ENDING))
        await journal.aclose()
    return found


async def _there(made: RunConfig, row: Batch, *, cancel: bool) -> BatchThere:
    config = made.config
    models = (*config.answering_models, *config.parsing_models)
    found = BatchThere(
        model=row.model,
        provider_id=row.provider_id or None,
        calls=len(row.keys),
        problem="its model is not in the configuration; look for it at the provider",
    )
    for model in (config.for_model(model) for model in models if str(model.identity) == row.model):
        try:
            async with _port(made, model) as port:
                tried = partial(retried, model=model, longest=config.call_seconds)
                batch_id: str | None = row.provider_id or await tried(partial(port.find, row.id))
                if batch_id is None:
                    found = evolve(found, problem="the provider does not list it; maybe it was never sent", gone=True)
                    continue
                found = evolve(found, provider_id=batch_id)
                state = await tried(partial(port.poll, batch_id))
                if cancel and state.status == "running":
                    await tried(partial(port.cancel, batch_id))
                    state = await tried(partial(port.poll, batch_id))
                return evolve(found, state=state, problem="", cancelling=cancel and state.status == "running")
        except PortError as error:
            found = evolve(found, problem=one_line(error), gone=bool(row.provider_id) and error.status == GONE)
            if error.status != GONE:  # else another model of this name may have another server
                break
    return found


@asynccontextmanager
async def _port(made: RunConfig, model: ModelConfig) -> AsyncIterator[BatchPort]:
    """Raises PortError where the model's interface has no batches, and ConfigError."""
    hide(secrets_of(made.app, (model,)))
    spec = made.app.adapters.resolve_interface(model.interface).spec
    if spec.batch_factory is None:
        raise PortError(f"the interface {spec.interface!r} has no batch interface", kind="plugin")
    port: BatchPort = make_port(made.app.adapters, spec.batch_factory, model, spec)
    try:
        if opener := getattr(port, "aopen", None):
            await opener()
        yield port
    finally:
        await port.aclose()
