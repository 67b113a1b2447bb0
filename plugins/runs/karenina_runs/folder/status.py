"""The progress of a run, from its directory alone: also while it is running, and after it was killed."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import field, frozen
from karenina_calls.limits.failures import TIMED_OUT

from karenina_core.errors import RunDirectoryError
from karenina_core.values.outcome import OutcomeName

from ..execute.continuation import RETRYABLE, Continuation, Progress, begun, is_final, settings_of
from ..files.run_files import MANIFEST
from ..files.run_lock import owner_of
from ..journal.ledger import Ledger
from ..journal.reader import OPEN, JournalReader, journal_of
from .directory import read_manifest


@frozen(kw_only=True)
class RunStatus:
    """What is known of a run."""

    run_name: str
    state: str
    """`running`: a process works on it. `completed`. `interrupted`: it ended early. `failed`: an error ended it.
    `killed`: its process ended without writing that."""
    items: int
    outcomes: Mapping[OutcomeName, int] = field(factory=dict)
    errors: Mapping[str, int] = field(factory=dict)
    """By kind."""
    waiting: int = 0
    """Results among them that are tried again when the run is resumed."""
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
    """Whether code of the benchmark runs in the run's process: that has to be allowed whenever it is resumed."""
    notes: Sequence[str] = ()
    """Of a run that was interrupted or failed: those of its summary, such as what is left and until when; of one that
    is complete, what helps against time-outs."""
    failure: str = ""
    """What ended a run that failed."""
    used_up: str = ""
    """The setting of the budget that is used up; empty: none is."""
    progress: Sequence[Progress] = ()
    """Of what has begun and not ended, such as a repair."""
    unrepaired: int = 0
    """Results that are still to be made again in it."""

    @property
    def done(self) -> int:
        """Items that have a result."""
        return sum(self.outcomes.values())

    @property
    def is_resumable(self) -> bool:
        """Whether something is left to do, and no process works on it."""
        left = self.done < self.items or self.waiting > 0 or bool(self.progress)
        return self.pid is None and (self.state != "completed" or left)


def read_status(folder: Path) -> RunStatus:
    """Nothing is written, and no process that writes has to wait. Raises ConfigError, RunDirectoryError."""
    manifest = read_manifest(folder)
    pid = owner_of(folder)
    outcomes: Counter[Any] = Counter()
    errors: Counter[str] = Counter()
    waiting, damaged, unrepaired, ledger = 0, 0, 0, Ledger()
    there: list[Continuation] = []
    notes, failure = _at_the_end(manifest)
    try:
        there = begun(folder, manifest)
    except RunDirectoryError as error:
        notes.append(str(error))
    progress: list[Progress] = []
    batches: list[Mapping[str, Any]] = []
    if journal_of(folder).is_file():
        with JournalReader.open(folder) as reader:
            for end in reader.ends():
                outcomes[end.outcome] += 1
                errors[end.detail or "unknown"] += end.outcome == "error"
                waiting += not is_final(end, RETRYABLE)
            for batch in reader.batches():
                if batch.status in OPEN:
                    about = {"model": batch.model, "provider_id": batch.provider_id or None}
                    batches.append({**about, "status": batch.status, "calls": len(batch.keys)})
            for continuation in there:
                left = len(continuation.remaining(reader))
                unrepaired += left
                progress += filter(None, [continuation.progress(left)])
            ledger, damaged = reader.ledger(), sum(reader.damaged.values())
    config = settings_of(manifest, there)["config"]
    spent = {"budget_usd": ledger.total.counted_usd, "budget_tokens": ledger.total.counted_tokens}
    limits = {name: config.get(name) for name in spent}  # in a resumed run, unless others are given
    return RunStatus(
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
        trusted=config.get("code_policy") == "trusted" and manifest.get("trusted_code") is None,
        notes=tuple(notes) if pid is None else (),
        failure=failure if pid is None else "",
        used_up=next((name for name, most in limits.items() if most is not None and spent[name] >= most), ""),
        progress=progress,
        unrepaired=unrepaired,
    )


def state_of(manifest: Mapping[str, Any], pid: int | None) -> str:
    """See `RunStatus`; `pid` is as `owner_of` has it."""
    if pid is not None:
        return "running"
    return "killed" if manifest["status"] == "running" else str(manifest["status"])


def _at_the_end(manifest: Mapping[str, Any]) -> tuple[list[str], str]:
    """The notes of a run that has ended, and what it failed with."""
    status, notes = manifest["status"], (manifest.get("summary") or {}).get("notes", ())
    if status == "completed":
        notes = [note for note in notes if TIMED_OUT in note]
    kind = manifest.get("failure_type")
    failure = "" if status == "running" or kind is None else f"{kind}: {manifest.get('failure_message') or ''}"
    return list(notes if status in ("completed", "interrupted", "failed") else ()), failure


def _written_at(folder: Path) -> datetime | None:
    journal = journal_of(folder)
    times = []
    for path in (journal, journal.with_name(f"{journal.name}-wal"), folder / MANIFEST):
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC) if times else None


def resume_command(found: RunStatus, folder: Path, *, retry_failed: bool = False) -> str:
    """With every option without which it would be refused: the budget that is used up, what was given to the run and is
    not in its directory, and that its code is trusted. `retry_failed`: errors that would come again are tried again,
    too. Raises ConfigError."""
    more = [f"--{found.used_up.replace('_', '-')} MORE"] if found.used_up else []
    more += ["--retry-failed"] if retry_failed else []
    return _line("resume", found, folder, more)


def rescore_command(found: RunStatus, folder: Path) -> str:
    """It calls the judges of results without a score again. Raises ConfigError."""
    return _line("repair", found, folder, ["--unscored"])


def fork_command(found: RunStatus, folder: Path) -> str:
    """It begins another run with the calls of this one. Raises ConfigError."""
    return _line("resume", found, folder, ["--fork NEWDIR"])


def _line(command: str, found: RunStatus, folder: Path, options: Sequence[str]) -> str:
    trust = ["--trust"] if found.trusted else []
    source = read_manifest(folder)["benchmark"].get("path")
    moved = ["--benchmark FILE"] if source and not Path(source).exists() else []
    given = [*options, *moved, *_given_again(folder), *trust]
    return " ".join([f"karenina {command}", shlex.quote(str(folder)), *given])


def cancel_command(folder: Path) -> str:
    """It cancels the batches of a run. Raises ConfigError."""
    options = (option for option in _given_again(folder) if not option.startswith("--sink"))
    return " ".join(["karenina batches", shlex.quote(str(folder)), "--cancel", *options])


def _given_again(folder: Path) -> list[str]:
    """Options for what was not written, as the manifest has them: at the end of each hint that names one."""
    hints = (row["hint"].partition(": --") for row in read_manifest(folder).get("not_written", ()))
    return list(dict.fromkeys(f"--{option}" for _, is_named, option in hints if is_named))
