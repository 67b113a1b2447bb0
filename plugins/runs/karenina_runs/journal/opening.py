"""Making a journal, and opening one again: what is in it is read once, and what is not sound is noticed."""

from __future__ import annotations

import shlex
import sqlite3
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import define, field

from karenina_core import __version__
from karenina_core.errors import RunDirectoryError, plural

from ..files.atomic_files import flush_folder
from ..files.run_lock import marked
from .check import scanned
from .connection import damaged
from .ledger import Ledger
from .reader import JournalReader, run_number
from .rows import APPLICATION, COPIES, META, PAGE, PLACES, SCHEMA, TABLES, VERSION, Places, Table, as_json, sealed
from .wal import log_damage, log_of
from .writer import connected


@define(eq=False)
class Found:
    """What a journal held when it was opened."""

    ledger: Ledger = field(factory=Ledger)
    places: dict[str, Places] = field(factory=dict)
    last: dict[str, int] = field(factory=dict)
    """The largest id of every table with numbers as ids."""
    replaced: dict[str, tuple[str, int]] = field(factory=dict)
    """Places, as JSON, that replace those in the journal, which are wrong, and up to which row."""
    notes: tuple[str, ...] = ()


def make(path: Path, run_id: str | None) -> sqlite3.Connection:
    """A new journal. It gets its name when it is complete. Raises RunDirectoryError, sqlite3.Error and OSError."""
    run_id = run_id or uuid.uuid4().hex
    facts = {"run_id": run_id, "made_by": f"karenina-core {__version__}", "made_at": f"{time.time():.3f}"}
    if (log := log_of(path)).exists() and log.stat().st_size:
        raise damaged(path, "its log is there, and the file itself is gone")
    if any(marked(path.parent).values()):
        raise RunDirectoryError(
            f"{path} is gone, and what was paid for was in it; put the file back, or begin a new run in another folder"
        )
    new = path.with_name(f".{path.name}.new")
    for left in (new, log_of(new), new.with_name(f"{new.name}-journal"), new.with_name(f"{new.name}-shm")):
        left.unlink(missing_ok=True)
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        make_tables(connection)
        run = run_number(run_id)
        for name, value in facts.items():
            insert(connection, META, sealed(META, name, run, (value,)))
        insert(connection, COPIES, sealed(COPIES, "run_id", run, (run_id, 1)))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    new.replace(path)
    flush_folder(path.parent)
    return connected(path)


def make_tables(connection: sqlite3.Connection) -> None:
    """Begin a transaction that makes a new file a journal without rows."""
    connection.execute(f"PRAGMA page_size = {PAGE}")
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in SCHEMA:
        connection.execute(statement)


def insert(connection: sqlite3.Connection, table: Table, row: tuple[Any, ...]) -> None:
    """Write a row of `sealed`, in place of one with its id."""
    connection.execute(f"INSERT OR REPLACE INTO {table.name} VALUES ({','.join('?' * len(row))})", row)


def reopened(path: Path, run_id: str | None) -> tuple[sqlite3.Connection, Found]:
    """Open a journal that is there, and read all of it.

    Raises RunDirectoryError where it is another run's, or so damaged that writing to it could lose what is in it, and
    sqlite3.Error. Nothing is written then: a connection that writes would empty the log when it is closed, and with it
    what `salvage` finds there.
    """
    if damage := log_damage(path):
        raise damaged(path, damage)
    found, notes = Found(), []
    with JournalReader.open(path) as reader:
        if run_id is not None and reader.run_id != run_id:
            raise RunDirectoryError(
                f"{path} is that of the run {reader.run_id}, not of the run {run_id}; put the journal of this run back"
            )
        ((problem,),) = reader.query("PRAGMA quick_check(1)")
        if problem != "ok":
            raise damaged(path, problem)
        for name, table in TABLES.items():
            rows = scanned(reader, table, found.ledger)
            if rows.missing:
                raise damaged(path, f"{plural(rows.missing, 'row')} of the table {name} cannot be found")
            if rows.damaged:
                notes.append(
                    f"{plural(rows.damaged, 'row')} of the table {name} in {path} cannot be read and count as "
                    f"missing: see karenina doctor {shlex.quote(str(path.parent))}"
                )
            found.last[name] = rows.last
            if name in PLACES:
                found.places[name] = Places(name, rows.indexed)
                for number, id_ in rows.recent:
                    found.places[name].add(number, id_)
                if rows.unplaced:
                    found.replaced[name] = (as_json(rows.indexed_places), rows.indexed)
    found.notes = tuple(notes)
    connection = connected(path)
    try:
        _empty_log(connection)
    except BaseException:
        connection.close()
        raise
    return connection, found


def _empty_log(connection: sqlite3.Connection) -> None:
    """What a crash has left behind the last whole transaction may not stay there: behind later transactions it would
    look like one that followed them. While another process reads, it stays."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
