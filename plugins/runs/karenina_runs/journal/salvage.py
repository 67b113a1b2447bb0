"""Saving what is in a damaged journal: its rows are written to a new one, wherever in it they lie."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from attrs import field, frozen

from karenina_core.errors import RunDirectoryError

from ..files.atomic_files import flush_folder
from ..files.run_lock import RunLock, marked
from .check import MARKED, SAVED, saved
from .compression import DICTIONARY, Bodies
from .opening import insert, make_tables
from .pages import rows_on_pages
from .reader import JOURNAL, run_number
from .rows import COPIES, META, PLACES, TABLES, prefix, row_of, sealed
from .wal import log_of


@frozen(kw_only=True)
class Salvage:
    """What was saved."""

    path: Path
    rows: dict[str, int] = field(factory=dict)
    """By table."""
    last: dict[str, int] = field(factory=dict)
    """The largest ids that rows have had, by table, those included that could not be saved."""


def salvage(path: Path, to: Path, run_id: str | None = None) -> Salvage:
    """Write every row that can be read to a new journal. The damaged one is only read.

    `run_id` is that of its run, for the case that it is lost in the file.

    Raises RunDirectoryError where nothing can be read, the new file exists, or it cannot be written.
    """
    new = to.with_name(f".{to.name}.new")
    try:
        if to.exists():
            raise RunDirectoryError(f"{to} exists; move it away first")
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            make_tables(connection)
            for table, row in rows_on_pages(_whole_one(path)):  # later copies replace earlier ones
                insert(connection, table, sealed(table, row.id, row.run, tuple(row.facts.values()), row.body))
            counts, last = _finish(connection, path, run_id)
            connection.execute("PRAGMA journal_mode = WAL")
        with new.open("rb") as file:
            os.fsync(file.fileno())
        new.replace(to)
        flush_folder(to.parent)
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, RunDirectoryError):
            raise
        raise RunDirectoryError(f"{to} cannot be written: {error}; free space or make the folder writable") from error
    finally:
        with contextlib.suppress(OSError):
            new.unlink()
    return Salvage(path=to, rows=counts, last=last)


def put_in_place(folder: Path, salvaged: Salvage) -> Path:
    """Make a salvaged journal that of the run directory. The damaged one stays beside it. Returns its new name.

    Raises RunDirectoryError, also where another process writes to the run directory.
    """
    path = folder / JOURNAL
    with RunLock(folder) as lock:
        try:
            aside = _whole_one(path)
            if aside == path:
                # Both names are there until the new journal takes the place: whenever this process ends, there is a
                # journal, and nothing of the damaged one is lost.
                aside = path.with_name(f"journal-damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.sqlite")
                if log_of(path).exists():
                    os.link(log_of(path), log_of(aside))
                os.link(path, aside)
                flush_folder(folder)
            log_of(path).unlink(missing_ok=True)  # it would be read as a part of the new one
            path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
            salvaged.path.replace(path)
            flush_folder(folder)
            lock.mark(salvaged.last)
        except OSError as error:
            raise RunDirectoryError(
                f"the journal in {folder} cannot be replaced: {error.strerror}; make the folder writable"
            ) from error
    return aside


def _whole_one(path: Path) -> Path:
    """A journal by the name under which its log is there, too: it has another one when a replacement was cut short."""
    if log_of(path).exists():
        return path
    return next((other for other in path.parent.glob("journal-damaged-*.sqlite") if other.samefile(path)), path)


def _finish(connection: sqlite3.Connection, path: Path, run_id: str | None) -> tuple[dict[str, int], dict[str, int]]:
    """Leave the rows of one run, and one result for each task. Returns the numbers of rows and their largest ids."""
    runs: Counter[int] = Counter()
    for name in TABLES:
        runs.update(dict(connection.execute(f"SELECT run, count(*) FROM {name} GROUP BY run").fetchall()))
    if not runs:
        raise RunDirectoryError(f"nothing in {path} can be read; put a copy of the file back, or begin a new run")
    ((run, _),) = runs.most_common(1)
    for name in TABLES:
        connection.execute(f"DELETE FROM {name} WHERE run <> ?", (run,))
    connection.execute("DELETE FROM results WHERE id NOT IN (SELECT max(id) FROM results GROUP BY task)")
    before = marked(path.parent) if path.name == JOURNAL else {}
    for name, (last, _) in saved(dict(connection.execute("SELECT id, value FROM meta").fetchall())).items():
        before[name] = max(before.get(name, 0), last)
    run = _whole(connection, run, run_id)
    found = {}
    for name in MARKED:  # what is gone is written down: it is no news any more. Ids are not used again
        replaced = "sum(revision)" if "revision" in TABLES[name].facts else "0"
        statement = f"SELECT coalesce(max(id), 0), count(*), coalesce({replaced}, 0) FROM {name}"
        largest, there, replaced_rows = connection.execute(statement).fetchone()
        found[name] = last = max(before.get(name, 0), largest)
        gone = max(0, last - there - replaced_rows)
        insert(connection, META, sealed(META, f"{name}{SAVED}", run, (f"{last} {gone}",)))
    for name, places in PLACES.items():
        keys = ("key", "nth") if name == "calls" else ("task",)
        rows = connection.execute(f"SELECT id, {', '.join(keys)} FROM {name}").fetchall()
        pairs = [(prefix(name, dict(zip(keys, values, strict=True))), id_) for id_, *values in rows]
        connection.executemany(f"INSERT INTO {places} VALUES (?, ?)", sorted(pairs))
        upto = max((id_ for id_, *_ in rows), default=0)
        insert(connection, META, sealed(META, f"{name}_indexed", run, (str(upto),)))
    connection.execute("COMMIT")
    return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}, found


def _whole(connection: sqlite3.Connection, run: int, run_id: str | None) -> int:
    """Write what holds for the journal as a whole, from either of its copies. Returns the run's number, which all rows
    have then."""
    connection.executemany("DELETE FROM meta WHERE id = ?", [(f"{name}_indexed",) for name in PLACES])
    rows = connection.execute("SELECT id, value FROM copies UNION SELECT id, value FROM meta").fetchall()
    found = dict(rows)
    if "run_id" not in found:
        found["run_id"] = run_id or f"salvaged-{run:08x}"
        run = run_number(found["run_id"])
        for table in TABLES.values():
            for (id_,) in connection.execute(f"SELECT id FROM {table.name}").fetchall():
                row = row_of(table, connection.execute(f"SELECT * FROM {table.name} WHERE id = ?", (id_,)).fetchone())
                assert row is not None  # as it was found
                insert(connection, table, sealed(table, id_, run, tuple(row.facts.values()), row.body))
    bodies = Bodies()
    for name, value in found.items():
        insert(connection, META, sealed(META, name, run, (value,)))
        if name == "run_id" or name.startswith(DICTIONARY):
            insert(connection, COPIES, sealed(COPIES, name, run, (value, 1)))
            bodies.learn(name.removeprefix(DICTIONARY), value)
    for name in MARKED:
        stored = connection.execute(f"SELECT id, body FROM {name}")
        lost = [(id_,) for id_, body in stored if not bodies.is_readable(body or b"")]
        connection.executemany(f"DELETE FROM {name} WHERE id = ?", lost)
    return run
