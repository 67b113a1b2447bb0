"""The only thread that writes to a journal: what waits at the same moment is committed together."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field, frozen

from karenina_core.errors import RunDirectoryError

from .rows import PLACES, TABLES

WINDOW = 0.003
"""Seconds in which others may join a commit; chosen."""
AT_ONCE = 512
"""Entries that are committed without waiting for more; chosen."""
ROWS_A_STATEMENT = 64
"""A statement lets other threads run, and may wait long for its next turn: rows are not written one by one."""
WAL_PAGES = 4000
"""Pages after which the write-ahead log is copied into the database: 16 MB; SQLite's own 1000 are copied too often."""

GONE = (
    "it was deleted, or its folder was renamed, during the run. A folder that was renamed has everything that "
    "was acknowledged; type its new name: karenina resume NEW-NAME. What was deleted is lost: begin a new run"
)


@define(eq=False)
class Entry:
    """A row to be written."""

    table: str
    row: Sequence[Any]
    then: Callable[[RunDirectoryError | None], None]
    """Called by `deliver`, when the row is committed or never will be."""
    replaces: int | None = None
    """The id of a row of the same table that is deleted."""
    text: tuple[str, str] | None = None
    """The kind and the text of its body. Until they are packed the row has neither a body nor a checksum."""


@frozen(eq=False)
class Indexed:
    """Where rows are, in ascending order; up to the row with this id."""

    table: str
    places: str
    """JSON: a list of `[prefix, id]`."""
    upto: Entry
    """The row of `meta` that says so."""
    replaces_all: bool = False
    """What was there before is wrong."""


@define(eq=False)
class Writer:
    """Owns a connection to the journal.

    `deliver(entries, error)` is called in the writer's thread after every commit, and after a failure for everything
    that waits. After a failure nothing is written any more.
    """

    path: Path
    deliver: Callable[[list[Entry], RunDirectoryError | None], None]
    mark: Callable[[dict[str, int]], None]
    """Called with the last row of every table after a commit."""
    last: dict[str, int]
    """Of what is committed."""
    check: Callable[[], None] = field(kw_only=True)
    """Raises OSError where another process may write to the journal by now."""
    seal: Callable[[Entry], Sequence[Entry]] = field(kw_only=True)
    """Packs the text of an entry into its row. Returns what has to be committed with it. To compress takes as long as
    all else, and other threads run meanwhile."""
    window: float = WINDOW
    _queue: SimpleQueue[Entry | Indexed | None] = field(factory=SimpleQueue)
    _thread: threading.Thread | None = None
    _failure: RunDirectoryError | None = None
    _connection: sqlite3.Connection | None = None
    _inode: int = 0

    def start(self, connection: sqlite3.Connection) -> None:
        """Takes over a connection of `connected`, made with `check_same_thread=False`."""
        self._connection, self._inode = connection, self.path.stat().st_ino
        self._thread = threading.Thread(target=self._run, name="karenina-journal", daemon=True)
        self._thread.start()

    def submit(self, entry: Entry | Indexed) -> None:
        self._queue.put(entry)

    def stop(self) -> RunDirectoryError | None:
        """Write what waits, put everything into the one file, and end. Returns the failure, if there was one."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        return self._failure

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._batch()
            if batch:
                self._settle(batch)
        assert self._connection is not None
        with contextlib.suppress(sqlite3.Error):  # all is in the log, which is read when the journal is opened again
            if self._failure is None:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()

    def _batch(self) -> tuple[list[Entry | Indexed], bool]:
        """What is to be committed together, and whether it is the last."""
        first = self._queue.get()
        if first is None:
            return [], True
        if self._failure is None and self._queue.qsize() < AT_ONCE:
            time.sleep(self.window)
        batch = [first]
        while True:
            try:
                entry = self._queue.get_nowait()
            except Empty:
                return batch, False
            if entry is None:
                return batch, True
            batch.append(entry)

    def _settle(self, batch: list[Entry | Indexed]) -> None:
        rows = [_row(entry) for entry in batch]
        if self._failure is None:
            try:
                sealed = [more for row in rows if row.text is not None for more in self.seal(row)]
                self._commit([*sealed, *batch])
                for row in rows:
                    if row.table in self.last:
                        self.last[row.table] = max(self.last[row.table], row.row[0])
                self.mark(self.last)
            except (sqlite3.Error, OSError) as error:
                self._failure = no_longer(self.path, error)
            except (
                Exception
            ) as error:  # whatever it is: no task may wait for ever, and no call may be paid for any more
                self._failure = no_longer(self.path, error)
                self._failure.__cause__ = error
        self.deliver(rows, self._failure)

    def _commit(self, batch: list[Entry | Indexed]) -> None:
        assert self._connection is not None
        if os.stat(self.path).st_ino != self._inode:  # SQLite would write on to a file that was deleted
            raise FileNotFoundError(errno.ENOENT, "another file is in its place")
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            self.check()
            for table, group in groupby(sorted(batch, key=_table), _table):
                entries = list(group)
                for begin in range(0, len(entries), ROWS_A_STATEMENT):
                    self._write(table, entries[begin : begin + ROWS_A_STATEMENT])
            self._before_commit()
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise
        if "batches" in map(_table, batch):  # nothing would show that the last one is gone; see `wal`
            execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _before_commit(self) -> None:
        """A point at which tests end the process."""

    def _write(self, table: str, entries: Sequence[Entry | Indexed]) -> None:
        assert self._connection is not None
        execute = self._connection.execute
        rows = [_row(entry) for entry in entries]
        execute(_insert(table, len(rows)), [value for row in rows for value in row.row])
        for row in rows:  # afterwards: a row that is deleted may be among them
            if row.replaces is not None:
                execute(f"DELETE FROM {table} WHERE id = ?", (row.replaces,))
        for entry in entries:
            if isinstance(entry, Indexed):
                places = PLACES[entry.table]
                if entry.replaces_all:
                    execute(f"DELETE FROM {places}")
                values = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
                execute(f"INSERT OR IGNORE INTO {places} SELECT {values} FROM json_each(?)", (entry.places,))


def connected(path: Path) -> sqlite3.Connection:
    """A connection that writes. Raises RunDirectoryError where the file system cannot do what is needed, and
    sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise RunDirectoryError(
                f"the file system of {path.parent} does not allow a write-ahead log; begin a run in another directory "
                "(--out DIR)"
            )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    except BaseException:
        connection.close()
        raise
    return connection


def no_longer(path: Path, error: BaseException) -> RunDirectoryError:
    """What a failure to write means for the user."""
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return RunDirectoryError(f"{path} is gone ({reason}): {GONE}")
    of_disk = isinstance(error, sqlite3.OperationalError | OSError)
    when = "When there is room and the folder can be written again" if of_disk else "To continue"
    return RunDirectoryError(
        f"{path} can no longer be written ({reason}); what was acknowledged is safe. {when}: "
        f"karenina resume {shlex.quote(str(path.parent))}"
    )


def _row(entry: Entry | Indexed) -> Entry:
    return entry if isinstance(entry, Entry) else entry.upto


def _table(entry: Entry | Indexed) -> str:
    return _row(entry).table


@cache
def _insert(table: str, rows: int) -> str:
    """Batches and facts about the whole are replaced by their ids; other rows have new ones."""
    places = f"({','.join('?' * len(TABLES[table].columns))})"
    verb = "INSERT OR REPLACE" if TABLES[table].key == "TEXT" else "INSERT"
    return f"{verb} INTO {table} VALUES {','.join([places] * rows)}"
