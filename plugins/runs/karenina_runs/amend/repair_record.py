"""The record of a repair: which results of a finished run are made again, what was there before, how far it is.

Every repair has a folder `repairs/<time>` in the run directory. Before anything is changed it gets copies of the
journal, the results and the manifest, and `repair.json`, which says what is repaired. The manifest names the folder as
`repair` as long as the repair has not ended, and lists it under `repairs` afterwards.
"""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar, Literal

from attrs import asdict, evolve, field, frozen
from karenina_calls.files.bounded import read_json

from karenina_core.errors import ConfigError, RunDirectoryError, plural
from karenina_core.pipeline.item import CachedAnswer

from ..answers.answers import answer_of
from ..execute.continuation import CONTINUATIONS, RETRYABLE, Continuation, Progress, RunWriter, is_final, read_back
from ..files.atomic_files import write_atomically, write_json
from ..files.run_files import MANIFEST, RESULTS
from ..files.run_lock import LOCK, RunLock
from ..folder.directory import ANSWERS, ASKED_AGAIN, REPAIRS, read_manifest
from ..folder.fingerprint import digest_of
from ..journal.check import MARKED
from ..journal.connection import opened
from ..journal.journal import Journal
from ..journal.reader import JOURNAL, JournalReader
from ..plan.items import Item, Prepared

REPAIR = "repair.json"
FOLDER = REPAIRS
UNDONE = "undone"
"""The status of a repair that was taken back."""
SCHEMA_VERSION = "1.0"
Mode = Literal["replay", "live"]


@frozen(kw_only=True)
class Row:
    """One result that is made again, and how it had ended."""

    result_id: str
    question_id: str
    answering_model: str
    parsing_model: str
    replicate: int
    outcome: str
    detail: str | None = None

    @property
    def answer(self) -> tuple[str, str, int]:
        """What results of one answer have in common."""
        return self.question_id, self.answering_model, self.replicate


@frozen(kw_only=True)
class Repair(Continuation):
    """A repair that has begun."""

    kind: ClassVar[str] = "repair"
    replaces: ClassVar[bool] = True
    folder: Path
    """Of its own, with what was there before."""
    mode: Mode
    """`replay`: the answers stay, and only their judges are asked. `live`: the questions are asked again."""
    rows: tuple[Row, ...] = field(repr=False)
    calls_before: int
    """The journal's last reply from before the repair: such a reply is not taken for an item that is repaired."""
    results_before: int
    """The journal's last result from before the repair."""
    config: Mapping[str, Any] = field(factory=dict, repr=False)
    """Its settings, such as what may be spent: those of the run stay as they are."""
    begins: bool = False
    """Whether it has begun just now: when nothing of it can be made, there is none."""
    tasks: frozenset[str] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "tasks", frozenset(row.result_id for row in self.rows))

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.config

    def resumed(self, prepared: Prepared, before: Continuation) -> Repair:
        return evolve(self, reopens=True, again=before.again, shares_answers=before.shares_answers)

    def remaining(self, reader: JournalReader) -> set[str]:
        """The results that are still those of before, or have met with transient errors. Raises RunDirectoryError."""
        done = {end.task for end in reader.ends(self.results_before) if is_final(end, RETRYABLE)}
        return {task for task in self.tasks if task not in done}

    def progress(self, remaining: int) -> Progress:
        facts = {"mode": self.mode, "rows": len(self.rows), "remaining": remaining}
        return Progress(self.kind, facts, f"{remaining} of {plural(len(self.rows), 'result')} still to be made again")

    def configured(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Its settings are written into `repair.json`: those of the run stay."""
        config = facts.pop("config")
        _note(self, lambda: {"config": config})
        return facts

    def replaced(self, journal: Journal) -> set[str]:
        journal.repeat_calls(lambda call: call.result_id in self.tasks, self.calls_before)
        return self.remaining(journal.reader)

    def answer(self, writer: RunWriter, item: Item) -> CachedAnswer | None:
        """Where answers stay, the item's own, with what it took."""
        if self.mode != "replay":
            return None
        stored, task = writer.stored(item), writer.task(item)
        if stored is None:  # it may not have been saved from a damaged journal
            with JournalReader.open(self.folder) as reader:
                found = reader.result(task)
            stored = None if found is None else read_back(found)
        if stored is None or (answer := answer_of(stored)) is None:
            raise RunDirectoryError(
                f"the answer of {task} is gone from {writer.journal.reader.path}, so it cannot be judged again; undo "
                f"the repair, type: {undo_line(writer.folder)}"
            )
        calls = {name: {**row, "cached": bool(row.get("cached"))} for name, row in answer.usage_metadata.items()}
        return evolve(answer, usage_metadata=calls)

    def notes(self, writer: RunWriter) -> tuple[str, ...]:
        if not writer.replaced:
            return ()
        left, line = plural(len(writer.replaced), "result"), f"karenina resume {shlex.quote(str(writer.folder))}"
        return (f"the repair is not finished: {left} still to be made again; {line} continues it",)

    def ended(self, folder: Path) -> None:
        end_repair(folder, self)

    def failed(self, folder: Path) -> None:
        """One that has begun just now is removed where nothing was asked or made in it."""
        if not self.begins:
            return
        with suppress(ConfigError, OSError), RunLock(folder):  # what was first says what to do
            if read_manifest(folder).get("repair") == named(self) and _size(folder) == _size(self.folder):
                write_atomically(folder / MANIFEST, (self.folder / MANIFEST).read_bytes())
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.parent.rmdir()  # unless others are kept there


def begin_repair(
    folder: Path, rows: Sequence[Row], mode: Mode, config: Mapping[str, Any], about: Mapping[str, Any]
) -> Repair:
    """Keep what is there, and write into the manifest that a repair has begun. The caller holds the run's lock.

    `config` is as `RunDirectory.configured` gives it; `about` is written into `repair.json`. Raises RunDirectoryError;
    nothing is changed then.
    """
    manifest = read_manifest(folder)
    _clear(folder, manifest)
    now = datetime.now(UTC)
    own = folder / FOLDER / f"{now:%Y%m%dT%H%M%S%fZ}"
    with JournalReader.open(folder) as reader:
        last = _largest_ids(reader)
    before: dict[str, Any] = {"calls_before": last["calls"], "results_before": last["results"]}
    repair = Repair(folder=own, mode=mode, rows=tuple(rows), config=config, **before)
    document = {
        "schema_version": SCHEMA_VERSION,
        "timestamp": now.isoformat(),
        "status": "running",
        "run_id": manifest["run_id"],
        "mode": mode,
        **about,
        "rows": len(rows),
        "source": RESULTS,
        "source_sha256": digest_of(folder / RESULTS),
        "outcomes_before": _outcomes(row.outcome for row in rows),
        **before,
        "config": config,
        "selected_keys": [asdict(row) for row in rows],
    }
    try:
        _keep(folder, own, document)
    except (OSError, sqlite3.Error) as error:
        raise RunDirectoryError(
            f"what is in {folder} cannot be kept beside it: {error}; nothing was changed. Free space and run the same "
            "command again"
        ) from error
    begun: dict[str, Any] = {"repair": named(repair), "status": "running", **continued(manifest, True)}
    if mode == "live" and (folder / ANSWERS).is_file():  # what the run asks for itself is used instead of given answers
        given = (tuple(row) for row in manifest.get(ASKED_AGAIN, ()))
        begun[ASKED_AGAIN] = sorted({*given, *(row.answer for row in rows)})
    change_manifest(folder, begun)
    return repair


def continued(manifest: Mapping[str, Any], repaired: bool) -> dict[str, list[str]]:
    """What has begun in a run, with its repair or without."""
    others = [name for name in manifest.get(CONTINUATIONS, ()) if name != Repair.kind]
    return {CONTINUATIONS: [*others, Repair.kind] if repaired else others}


def named(repair: Repair) -> str:
    """As the manifest names it."""
    return f"{FOLDER}/{repair.folder.name}"


def undo_line(folder: Path) -> str:
    """What to type to take a repair back."""
    return f"karenina repair {shlex.quote(str(folder))} --undo"


def pending(folder: Path, manifest: Mapping[str, Any]) -> Repair | None:
    """The repair of this run that has begun and not ended. Raises RunDirectoryError where its record is gone, or it is
    being taken back."""
    if not (name := manifest.get("repair")):
        return None
    own = folder / str(name)
    try:
        record = read_json(own / REPAIR)
        if record["status"] != UNDONE:
            return Repair(
                folder=own,
                mode=record["mode"],
                rows=tuple(Row(**row) for row in record["selected_keys"]),
                calls_before=record["calls_before"],
                results_before=record["results_before"],
                config=dict(record.get("config", {})),
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{own / REPAIR}, which says what is being repaired, cannot be read ({error}); put it back, or undo the "
            f"repair: {undo_line(folder)}"
        ) from error
    raise RunDirectoryError(
        f"the repair {name} of {folder} was being undone when that was interrupted; finish that, type: "
        f"{undo_line(folder)}"
    )


def end_repair(folder: Path, repair: Repair) -> dict[str, Any] | None:
    """Write into `repair.json` that a repair has ended, and return it; None where some results remain, or another
    process has ended it or taken it back.

    Raises RunDirectoryError.
    """
    with RunLock(folder):
        manifest, name = read_manifest(folder), named(repair)
        if manifest.get("repair") != name:
            return None
        with JournalReader.open(folder) as reader:
            if repair.remaining(reader):
                return None
            ends = {done.task: done for done in reader.ends() if done.task in repair.tasks}
        before = {row.result_id: (row.outcome, row.detail) for row in repair.rows}
        document = _note(
            repair,
            lambda: {
                "status": "completed",
                "completed_at": datetime.now(UTC).isoformat(),
                "outcomes_after": _outcomes(done.outcome for done in ends.values()),
                "changed": sum((done.outcome, done.detail) != before[task] for task, done in ends.items()),
                "result_sha256": digest_of(folder / RESULTS),
            },
        )
        others = [other for other in manifest.get("repairs", ()) if other != name]
        change_manifest(folder, {"repair": None, "repairs": [*others, name], **continued(manifest, False)})
        return document


def _note(repair: Repair, facts: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Write these facts into `repair.json`, and return all of it. Raises RunDirectoryError."""
    try:
        document: dict[str, Any] = read_json(repair.folder / REPAIR)
        document |= facts()
        write_json(repair.folder / REPAIR, document)
    except (OSError, ValueError) as error:
        raise RunDirectoryError(f"{repair.folder / REPAIR} cannot be written: {error}") from error
    return document


def _keep(folder: Path, own: Path, document: Mapping[str, Any]) -> None:
    """The repair's own folder, complete when it has its name. Raises OSError and sqlite3.Error."""
    made = folder / FOLDER / f".{own.name}.{token_hex(4)}"
    try:
        made.mkdir(parents=True)
        for name in (MANIFEST, RESULTS, LOCK):
            if (folder / name).exists():
                shutil.copyfile(folder / name, made / name)
        source = opened(folder / JOURNAL)
        try:
            with closing(sqlite3.connect(made / JOURNAL)) as target:
                source.connection.backup(target)
        finally:
            source.close()
        write_json(made / REPAIR, document)
        made.rename(own)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _clear(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Remove what a process has left that was killed before the manifest named its repair: nothing is lost with it."""
    named_there = {manifest.get("repair"), *manifest.get("repairs", ())}
    for own in (folder / FOLDER).glob("*Z*"):
        if f"{FOLDER}/{own.name}" in named_there:
            continue
        with suppress(OSError, ValueError, KeyError, TypeError):  # it does no harm
            record = {} if own.name.startswith(".") else read_json(own / REPAIR)
            results = digest_of(folder / RESULTS)
            if not record or (record["status"] == "running" and record["source_sha256"] == results):
                shutil.rmtree(own)


def change_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Change the manifest of a run that no process carries out. The caller holds its lock. Raises RunDirectoryError."""
    now = datetime.now(UTC).astimezone().isoformat()
    try:
        write_json(folder / MANIFEST, {**read_manifest(folder), **facts, "updated_at": now}, indent=2)
    except OSError as error:
        raise RunDirectoryError(f"{folder / MANIFEST} cannot be written: {error.strerror}") from error


def _outcomes(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _largest_ids(reader: JournalReader) -> dict[str, int]:
    return {table: reader.query(f"SELECT coalesce(max(id), 0) FROM {table}")[0][0] for table in MARKED}


def _size(folder: Path) -> tuple[Any, ...]:
    """How much its journal holds. Raises RunDirectoryError."""
    with JournalReader.open(folder) as reader:
        return _largest_ids(reader), reader.batches()
