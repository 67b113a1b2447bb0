"""How far a run is, from its directory alone: also while it goes on, and after it was killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ..errors import RunDirectoryError
from ..model.outcome import OutcomeName
from .batches import OPEN
from .directory import MANIFEST, read_manifest
from .journal_ledger import Ledger, Sums
from .journal_reader import Batch, JournalReader, journal_of
from .keeping import PASSING, stands
from .owner import owner_of
from .repairs import Repair, pending, remaining, settings_of
from .timeouts import TIMED_OUT

__all__ = ["Standing", "standing", "state_of"]


@frozen(kw_only=True)
class Standing:
    """What is known of a run."""

    run_name: str
    state: str
    """`running`: a process works on it. `completed`. `interrupted`: it ended early, and said so. `failed`: an error
    ended it. `killed`: it ended without saying so."""
    items: int
    outcomes: Mapping[OutcomeName, int] = field(factory=dict)
    errors: Mapping[str, int] = field(factory=dict)
    """By kind."""
    waiting: int = 0
    """Results among them that are tried again when the run is gone on with."""
    ledger: Mapping[str, Any] = field(factory=dict, repr=False)
    """As in the manifest."""
    pid: int | None = None
    """The process that works on it; 0 where it is not known which. None: none does."""
    written_at: datetime | None = None
    batches: Sequence[Mapping[str, Any]] = ()
    """Those at a provider whose replies are not all here yet: `model`, `provider_id`, `status`, `calls`."""
    damaged: int = 0
    """Rows of the journal that cannot be read."""
    trusted: bool = False
    """Whether code of the benchmark runs in the run's process: that has to be allowed whenever it is gone on with."""
    notes: Sequence[str] = ()
    """Of a run that ended early and said so: what it told at its end, such as what it was left for, and until when; of
    one that is complete, what helps against time-outs."""
    failure: str = ""
    """What ended a run that failed."""
    used_up: str = ""
    """The setting of the budget that allows no call any more; empty: none does not."""
    repair: Repair | None = None
    """That which has begun and not ended."""
    unrepaired: int = 0
    """Results that are still to be made anew in it."""

    @property
    def done(self) -> int:
        """Items that have a result."""
        return sum(self.outcomes.values())

    @property
    def is_resumable(self) -> bool:
        """Whether there is something left to do, and nobody who does it."""
        left = self.done < self.items or self.waiting > 0 or self.repair is not None
        return self.pid is None and (self.state != "completed" or left)


def standing(folder: Path) -> Standing:
    """Nothing is written, and nobody who writes is held up. Raises ConfigError, RunDirectoryError."""
    manifest = read_manifest(folder)
    pid = owner_of(folder)
    outcomes: Counter[Any] = Counter()
    errors: Counter[str] = Counter()
    waiting, damaged, unrepaired, ledger = 0, 0, 0, Ledger()
    repair, unclear = _repair(folder, manifest)
    batches: list[Mapping[str, Any]] = []
    if journal_of(folder).is_file():
        with JournalReader.open(folder) as reader:
            for end in reader.ends():
                outcomes[end.outcome] += 1
                errors[end.detail or "unknown"] += end.outcome == "error"
                waiting += not stands(end, PASSING)
            batches += map(_told, (batch for batch in reader.batches() if batch.status in OPEN))
            unrepaired = len(remaining(repair, reader)) if repair is not None else 0
            ledger, damaged = reader.ledger(), sum(reader.damaged.values())
    config = settings_of(manifest, repair)["config"]
    return Standing(
        run_name=manifest["run_name"],
        state=state_of(manifest, pid),
        items=manifest["items"],
        outcomes=dict(sorted(outcomes.items())),
        errors={kind: count for kind, count in sorted(errors.items()) if count},
        waiting=waiting,
        ledger=ledger.to_dict(),
        pid=pid,
        written_at=_written_at(folder),
        batches=batches,
        damaged=damaged,
        trusted=config.get("code_policy") == "trusted",
        notes=(*_notes(manifest), *unclear) if pid is None else (),
        failure=_failure(manifest) if pid is None else "",
        used_up=_used_up(config, ledger.total),
        repair=repair,
        unrepaired=unrepaired,
    )


def state_of(manifest: Mapping[str, Any], pid: int | None) -> str:
    """See `Standing`; `pid` is as `owner_of` has it."""
    if pid is not None:
        return "running"
    return "killed" if manifest["status"] == "running" else str(manifest["status"])


def _repair(folder: Path, manifest: Mapping[str, Any]) -> tuple[Repair | None, Sequence[str]]:
    """That which has not ended, or what nobody knows about it and what to type."""
    try:
        return pending(folder, manifest), ()
    except RunDirectoryError as error:
        return None, (str(error),)


def _notes(manifest: Mapping[str, Any]) -> Sequence[str]:
    notes = tuple((manifest.get("summary") or {}).get("notes", ()))
    if manifest["status"] == "completed":
        return tuple(note for note in notes if TIMED_OUT in note)
    return notes if manifest["status"] in ("interrupted", "failed") else ()


def _failure(manifest: Mapping[str, Any]) -> str:
    if manifest["status"] == "running" or (type_ := manifest.get("failure_type")) is None:
        return ""
    return f"{type_}: {manifest.get('failure_message') or ''}"


def _used_up(config: Mapping[str, Any], total: Sums) -> str:
    """By the budgets that hold when the run is gone on with, unless others are given."""
    spent = {"budget_usd": total.counted_usd, "budget_tokens": total.counted_tokens}
    limits = {name: config.get(name) for name in spent}
    return next((name for name, most in limits.items() if most is not None and spent[name] >= most), "")


def _told(batch: Batch) -> Mapping[str, Any]:
    return {
        "model": batch.model,
        "provider_id": batch.provider_id or None,
        "status": batch.status,
        "calls": len(batch.keys),
    }


def _written_at(folder: Path) -> datetime | None:
    journal = journal_of(folder)
    times = []
    for path in (journal, journal.with_name(f"{journal.name}-wal"), folder / MANIFEST):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None
