"""How a run ends: its sinks are closed, and its directory says what became of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

from ..errors import RunDirectoryError
from .batching import Batching
from .continuing import count_stale
from .directory import RunDirectory
from .gateway import Gateway
from .items import Prepared
from .keeping import Keeper
from .sinks import Sinks
from .summary import Tally, spent
from .workspaces import Workspaces

__all__ = ["Ending", "end"]


class Ending(Protocol):
    """A run that is over, however that came."""

    @property
    def prepared(self) -> Prepared: ...
    @property
    def sinks(self) -> Sinks: ...
    @property
    def workspaces(self) -> Workspaces: ...
    @property
    def gateway(self) -> Gateway: ...
    @property
    def batching(self) -> Batching: ...
    @property
    def keeper(self) -> Keeper | None: ...
    @property
    def tally(self) -> Tally: ...
    @property
    def stale(self) -> set[str]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def ledger(self) -> dict[str, Any] | None: ...
    def count_kept_late(self) -> bool: ...


async def end(run: Ending, directory: RunDirectory | None, status: str, failure: BaseException | None) -> None:
    """Nothing that goes wrong here keeps the sinks open, or the directory from saying how the run ended. `failure` is
    what it failed with. Raises RunDirectoryError."""
    run.workspaces.close()
    run.gateway.close()
    summary: dict[str, Any] = {}
    run_dir: Path | None = directory.path if directory else None
    try:
        if run.keeper is not None:
            count_stale(run.keeper, run.stale, run.tally)
        summary = _summary(run, run_dir)
    finally:
        try:
            await asyncio.shield(_closed(run, run_dir, summary))
        except BaseException as error:  # `results.jsonl` may not be there: whoever reads the run takes the journal
            status = "interrupted" if status == "completed" else status
            failure = failure or error
            raise
        finally:  # also when a second interrupt does not wait for the sinks
            _ended(run, directory, status, summary, failure)


def _summary(run: Ending, run_dir: Path | None) -> dict[str, Any]:
    about: dict[str, Any] = {"run_dir": run_dir, "left_out": run.prepared.left_out, "ledger": run.ledger}
    return run.tally.document(notes=run.notes, **about)


async def _closed(run: Ending, run_dir: Path | None, summary: dict[str, Any]) -> None:
    try:
        await run.batching.aclose()
        if run.keeper is not None:
            await run.keeper.aclose()
            late = run.count_kept_late()
            summary |= _summary(run, run_dir) if late else spent(run.ledger)  # the last failures are counted now
    finally:
        await run.sinks.close(summary)


def _ended(
    run: Ending, directory: RunDirectory | None, status: str, summary: dict[str, Any], failure: BaseException | None
) -> None:
    """Observers hear of the end also where the run directory cannot be written."""
    try:
        if directory is not None:
            told = {"summary": summary, "ledger": run.ledger or {}, "sink_failures": run.sinks.failures}
            directory.ended(status, failure, told, lanes=run.gateway.history(), notes=run.notes)
    except RunDirectoryError:
        if not isinstance(failure, RunDirectoryError):  # it says more about the same
            raise
    finally:
        run.prepared.app.observe("karenina_run_finished", summary=summary, status=status)
