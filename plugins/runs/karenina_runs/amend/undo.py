"""Taking a repair back: the run is again as it was before it."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karenina_core.errors import ConfigError, RunDirectoryError, plural

from ..files.atomic_files import replacing, write_json
from ..files.run_files import MANIFEST, RESULTS
from ..files.run_lock import RunLock, marked
from ..folder.directory import read_manifest
from ..journal.reader import ENDING, JOURNAL, OPEN, JournalReader
from ..journal.wal import log_of
from .repairs import REPAIR, UNDONE, change_manifest, continued, undo_line


def undo_repair(run_dir: str | Path) -> Path:
    """Take a repair back: the one that has not ended, else the latest one that was not taken back already. Returns its
    folder.

    Journal, results and manifest are those of before it; what was asked and made in the run since is gone from them.
    The folder stays, with the record of the repair. When this is interrupted, call it again to finish it. Raises
    ConfigError where there is no repair, or a batch of it is at a provider that may still make more of it, and
    RunDirectoryError where another process writes to the run or what was kept is gone or cannot be read; nothing is
    changed then.
    """
    folder = Path(run_dir)
    read_manifest(folder)  # before anything is made there
    with RunLock(folder) as lock:
        manifest = read_manifest(folder)
        ended = reversed(manifest.get("repairs", ()))
        latest = (name for name in ended if _record(folder / name).get("status") != UNDONE)
        if not (name := str(manifest.get("repair") or next(latest, ""))):
            raise ConfigError(f"there is no repair of {folder} that could be taken back")
        before = _kept(folder / name, manifest)
        known = _open_batches(folder / name)
        with suppress(RunDirectoryError):  # a journal that cannot be read names none
            if calls := sum(count for batch, count in _open_batches(folder).items() if batch not in known):
                where = shlex.quote(str(folder))
                raise ConfigError(
                    f"{plural(calls, 'call')} of the repair may still be made, in batches at providers, and would be "
                    f"lost with it; have them cancelled: karenina batches {where} --cancel (or continue the repair: "
                    f"karenina resume {where}), then type the same again"
                )
        try:
            _restore(folder, name, before, lock)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, RunDirectoryError):
                raise
            raise RunDirectoryError(
                f"{folder / name} cannot be put back into {folder}: {error}; see to that and type: {undo_line(folder)}"
            ) from error
    return folder / name


def _record(own: Path) -> dict[str, Any]:
    """Empty where it cannot be read."""
    try:
        found = json.loads((own / REPAIR).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _kept(own: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of before, when everything is there. Raises RunDirectoryError."""
    try:
        before = read_manifest(own)
        if not (own / RESULTS).is_file():
            raise ConfigError(f"it has no {RESULTS}")
        with JournalReader.open(own) as reader:
            ((sound,),) = reader.query("PRAGMA quick_check(1)")
            if sound != "ok" or reader.run_id != manifest["run_id"]:
                raise ConfigError(f"its {JOURNAL} is damaged or of another run")
    except (ConfigError, RunDirectoryError) as error:
        raise RunDirectoryError(
            f"what was there before the repair cannot be taken from {own}: {error}; nothing was changed. Put that "
            "folder back, and type the same again"
        ) from error
    return before


def _open_batches(folder: Path) -> dict[str, int]:
    """How many calls there are in each batch that may still be made. Raises RunDirectoryError."""
    with JournalReader.open(folder) as reader:
        return {row.id: len(row.keys) for row in reader.batches() if row.status in OPEN and row.status != ENDING}


def _restore(folder: Path, name: str, before: Mapping[str, Any], lock: RunLock) -> None:
    """In an order in which everything between says that the repair is being taken back, until all of it is."""
    own, now = folder / name, datetime.now(UTC).isoformat()
    manifest, journal = read_manifest(folder), folder / JOURNAL
    listed = [other for other in manifest.get("repairs", ()) if other != name]
    write_json(own / REPAIR, {**_record(own), "status": UNDONE, "undone_at": now})
    change_manifest(folder, {"repair": name, "status": "interrupted", **continued(manifest, True)})
    lock.mark(marked(own))  # the journal is to hold less than it did
    # A log that a killed process has left would be read into whatever takes the place of its journal.
    damaged = (sqlite3.Error, UnicodeDecodeError)  # SQLite quotes what it cannot read
    with suppress(*damaged), closing(sqlite3.connect(journal)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for path in (log_of(journal), journal.with_name(f"{journal.name}-shm")):
        path.unlink(missing_ok=True)
    for file in (JOURNAL, RESULTS):
        with replacing(folder / file) as target, (own / file).open("rb") as source:
            shutil.copyfileobj(source, target)
    restored = {**before, "repair": None, "repairs": [*listed, name], "updated_at": now}
    write_json(folder / MANIFEST, restored, indent=2)
