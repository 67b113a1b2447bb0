"""Making a journal, opening one again, and checking one: all of it is read, and what is not sound is noticed."""

from __future__ import annotations

import shlex
import sqlite3
import time
import uuid
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from karenina_core import __version__
from karenina_core.errors import ConfigError, RunDirectoryError, one_line, plural

from ..files.atomic_files import flush_folder
from ..files.run_lock import marked
from .connection import damaged
from .ledger import Ledger
from .reader import JOURNAL, JournalReader, journal_of, run_number
from .rows import (
    APPLICATION,
    COPIES,
    META,
    PAGE,
    PLACES,
    SCHEMA,
    TABLES,
    VERSION,
    Places,
    Table,
    as_json,
    prefix,
    sealed,
)
from .wal import log_damage, log_of
from .writer import connected

MARKED = ("calls", "failures", "results")
"""Tables whose largest ids `run.lock` knows."""
SAVED = "_saved"
"""What follows the name of one of these tables in the id of the row of `meta` that says what was gone from it when the
journal was saved; see `saved`. Ids of other rows may end so, too."""


@define(eq=False)
class Scanned:
    """One table."""

    table: str
    rows: int = 0
    """Those that are sound."""
    damaged: int = 0
    replaced: int = 0
    """Rows that others replaced."""
    gone: int = 0
    """Rows that could not be saved when the journal was."""
    last: int = 0
    """The largest id there is, or was when the journal was last written."""
    indexed: int = 0
    """Up to this id, the places of rows are in the journal."""
    recent: list[tuple[int, int]] = field(factory=list)
    """Places of the rows after that."""
    unreadable: int = 0
    """Those whose bodies are no JSON; they are among the damaged."""
    unplaced: set[tuple[int, int]] = field(factory=set)
    """Places that should be in the journal and are not."""
    indexed_places: list[tuple[int, int]] = field(factory=list)

    @property
    def missing(self) -> int:
        """Rows that left no trace. Ids have no other gaps."""
        return max(0, self.last - self.rows - self.damaged - self.replaced - self.gone)

    def problems(self) -> list[str]:
        found = []
        if changed := self.damaged - self.unreadable:
            verb = "is" if changed == 1 else "are"
            found.append(f"{plural(changed, 'row')} of the table {self.table} {verb} not what was written")
        if self.unreadable:
            found.append(f"{plural(self.unreadable, 'row')} of the table {self.table} cannot be read: not JSON")
        if self.missing:
            found.append(f"{plural(self.missing, 'row')} of the table {self.table} cannot be found")
        if self.unplaced:
            found.append(f"{plural(len(self.unplaced), 'row')} of the table {self.table} cannot be found by their keys")
        return found


def scanned(reader: JournalReader, table: Table, ledger: Ledger | None = None, *, bodies: bool = False) -> Scanned:
    """Read a table; with `bodies`, also whether these are JSON, which takes much longer. Its rows are counted in the
    ledger. Raises RunDirectoryError where it cannot be read."""
    name, before = table.name, reader.damaged[table.name]
    found = Scanned(name)
    if table.key != "INTEGER":
        found.rows = found.last = sum(1 for _ in reader.every(table))
        found.damaged = reader.damaged[name] - before
        return found
    found.indexed = int(reader.meta.get(f"{name}_indexed", "0"))
    for row in reader.rows(table):
        assert isinstance(row.id, int)
        if bodies and table.body and not reader.bodies.is_readable(row.body):
            found.unreadable += 1
        else:
            found.rows += 1
        found.replaced += row.facts.get("revision", 0)
        if ledger is not None:
            ledger.add(name, row.facts)
        if name in PLACES:
            place = (prefix(name, row.facts), row.id)
            (found.indexed_places if row.id <= found.indexed else found.recent).append(place)
    ((last,),) = reader.query(f"SELECT coalesce(max(id), 0) FROM {name}")
    of_run = reader.path.name == JOURNAL  # and no copy, and none that was saved
    last_saved, found.gone = saved(reader.meta).get(name, (0, 0))
    found.last = max(last, last_saved, marked(reader.path.parent).get(name, 0) if of_run else 0)
    if name in PLACES:
        there = set(reader.query(f"SELECT prefix, id FROM {PLACES[name]}"))
        found.unplaced = set(found.indexed_places) - there
    found.damaged = reader.damaged[name] - before + found.unreadable
    return found


def saved(meta: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """`{table: (the largest id that a row had had, how many rows were gone)}` of a journal that was saved."""
    found = ((name, meta[f"{name}{SAVED}"].split()) for name in MARKED if f"{name}{SAVED}" in meta)
    return {table: (int(last), int(gone)) for table, (last, gone) in found}


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


def make(path: Path, run_id: str | None) -> tuple[sqlite3.Connection, Found]:
    """A new journal. It gets its name when it is complete. Raises RunDirectoryError, sqlite3.Error and OSError."""
    run_id = run_id or uuid.uuid4().hex
    facts = {"run_id": run_id, "made_by": f"karenina-core {__version__}", "made_at": f"{time.time():.3f}"}
    if (log := log_of(path)).exists() and log.stat().st_size:
        raise damaged(path, "its log exists, but the file itself is gone")
    if any(marked(path.parent).values()):
        raise RunDirectoryError(
            f"{path} is gone, and what was paid for was in it; put the file back, or start a new run in another folder"
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
    return connected(path), Found()


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
                f"{path} belongs to the run {reader.run_id}, not to the run {run_id}; put the journal of this run back"
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


@frozen(kw_only=True)
class Health:
    """What a check found."""

    path: Path
    run_id: str | None = None
    rows: dict[str, int]
    """Sound rows, by table."""
    problems: tuple[str, ...] = ()
    """What is wrong; empty where everything is as it was written."""

    @property
    def sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "journal": str(self.path),
            "run_id": self.run_id,
            "sound": self.sound,
            "rows": self.rows,
            "problems": list(self.problems),
        }


def check(path: str | Path) -> Health:
    """Read all of a run directory's journal, or of this file. Nothing is written, and nothing that is in the file
    raises; ConfigError where there is none."""
    path = journal_of(path)
    if not path.is_file():
        if path.name == JOURNAL and (log_of(path).exists() or any(marked(path.parent).values())):
            raise ConfigError(f"{path} is gone, and what was paid for was in it; put the file back")
        raise ConfigError(
            f"there is no journal {path}: the folder is not a run directory, or no model was called in it yet; "
            "check the path"
        )
    rows: dict[str, int] = {}
    damage = log_damage(path)
    found = [] if damage is None else [damage]
    run_id = None
    try:
        with JournalReader.open(path) as reader:
            run_id = reader.run_id
            checks = (str(text) for (text,) in reader.query("PRAGMA integrity_check(20)"))
            found += [" ".join(text.split()) for text in checks if text != "ok"]
            if {sql for (sql,) in reader.query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")} != set(SCHEMA):
                found.append("its tables are not those of a journal")
            with path.open("rb") as file:
                header = file.read(100)
            if header[18:24] != b"\x02\x02\x00\x40\x20\x20" or header[44:48] != b"\0\0\0\4" or any(header[72:92]):
                found.append("its header is not what was written")
            for name, table in TABLES.items():
                table_found = scanned(reader, table, bodies=True)
                rows[name] = table_found.rows
                found += table_found.problems()
    except RunDirectoryError as error:
        found.append(one_line(error.__cause__) if error.__cause__ is not None else str(error))
    except (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError) as error:
        found.append(one_line(error))
    return Health(path=path, run_id=run_id, rows=rows, problems=tuple(dict.fromkeys(found)))
