"""The only thread that writes to a journal, and what is between it and the event loop.

What waits at the same moment is committed together.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from attrs import define, field

from karenina_core.errors import RunDirectoryError

from ..files.run_lock import RunLock
from .rows import AT_MOST, META, PLACES, TABLES, Places, Table, prefix, sealed

WINDOW = 0.003
"""Seconds in which others may join a commit; chosen."""
AT_ONCE = 512
"""Entries that are committed without waiting for more; chosen."""
ROWS_A_STATEMENT = 64
"""Chosen. A statement lets other threads run, and may wait long for its next turn: rows are not written one by one."""
WAL_PAGES = 4000
"""Pages after which the write-ahead log is copied into the database: 16 MB; SQLite's own 1000 are copied too often."""
SHORT = 0.0005
"""Seconds that a thread computes on while another one wants its turn: a tenth of Python's own; chosen."""
GONE = (
    "it was deleted, or its folder was renamed, during the run. A renamed folder has everything that was "
    "acknowledged; continue it: karenina resume NEW-NAME. What was deleted is lost: start a new run"
)
_before: list[float] = []
_TABLE = attrgetter("table")


def _nothing(failure: RunDirectoryError | None) -> None:
    """For rows that no caller waits for."""


@define(eq=False)
class Entry:
    """A row to be written."""

    table: str
    row: Sequence[Any]
    then: Callable[[RunDirectoryError | None], None] = _nothing
    """Called by `deliver`, when the row is committed or never will be."""
    replaces: int | None = None
    """The id of a row of the same table that is deleted."""
    text: tuple[str, str] | None = None
    """The kind and the text of its body. Until they are packed the row has neither a body nor a checksum."""


@define(eq=False)
class Indexed(Entry):
    """The row of `meta` that says up to which one the places of a table's rows are in the journal, and these."""

    of: str = field(kw_only=True)
    places: str = field(kw_only=True)
    """JSON: a list of `[prefix, id]`, in ascending order."""
    replaces_all: bool = field(default=False, kw_only=True)
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
    _queue: SimpleQueue[Entry | None] = field(factory=SimpleQueue)
    _thread: threading.Thread | None = None
    _failure: RunDirectoryError | None = None
    _connection: sqlite3.Connection | None = None
    _inode: int = 0

    def start(self, connection: sqlite3.Connection) -> None:
        """Takes over a connection of `connected`, made with `check_same_thread=False`."""
        self._connection, self._inode = connection, self.path.stat().st_ino
        self._thread = threading.Thread(target=self._run, name="karenina-journal", daemon=True)
        self._thread.start()

    def submit(self, entry: Entry) -> None:
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

    def _batch(self) -> tuple[list[Entry], bool]:
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

    def _settle(self, batch: list[Entry]) -> None:
        if self._failure is None:
            try:
                more = [row for entry in batch if entry.text is not None for row in self.seal(entry)]
                self._commit([*more, *batch])
                for entry in batch:
                    if entry.table in self.last:
                        self.last[entry.table] = max(self.last[entry.table], entry.row[0])
                self.mark(self.last)
            except Exception as error:  # whatever it is: no task may wait for ever, and no call be paid for any more
                self._failure = no_longer(self.path, error)
                self._failure.__cause__ = error
        self.deliver(batch, self._failure)

    def _commit(self, batch: list[Entry]) -> None:
        assert self._connection is not None
        if os.stat(self.path).st_ino != self._inode:  # SQLite would write on to a file that was deleted
            raise FileNotFoundError(errno.ENOENT, "another file is in its place")
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            self.check()
            for table, group in groupby(sorted(batch, key=_TABLE), _TABLE):
                entries = list(group)
                for begin in range(0, len(entries), ROWS_A_STATEMENT):
                    self._write(table, entries[begin : begin + ROWS_A_STATEMENT])
            self._before_commit()
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise
        if any(entry.table == "batches" for entry in batch):  # nothing would show that the last one is gone; see `wal`
            execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _before_commit(self) -> None:
        """A point at which tests end the process."""

    def _write(self, table: str, entries: Sequence[Entry]) -> None:
        assert self._connection is not None
        execute = self._connection.execute
        execute(_insert(table, len(entries)), [value for entry in entries for value in entry.row])
        for entry in entries:  # afterwards: a row that is deleted may be among them
            if entry.replaces is not None:
                execute(f"DELETE FROM {table} WHERE id = ?", (entry.replaces,))
            if isinstance(entry, Indexed):
                places = PLACES[entry.of]
                if entry.replaces_all:
                    execute(f"DELETE FROM {places}")
                values = "json_extract(value, '$[0]'), json_extract(value, '$[1]')"
                execute(f"INSERT OR IGNORE INTO {places} SELECT {values} FROM json_each(?)", (entry.places,))


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """The thread that writes a journal comes back from SQLite several times for each commit, and waits for a turn each
    time: with Python's own setting a commit takes many times as long while items are worked on. The last of several
    sets what was set before.
    """
    _before.append(sys.getswitchinterval())
    sys.setswitchinterval(min(SHORT, _before[-1]))
    try:
        yield
    finally:
        first = _before[0]
        _before.pop()
        if not _before:
            sys.setswitchinterval(first)


@define(eq=False)
class Commits:
    """Hands rows to the writer, and wakes those who wait when theirs are committed, or never will be."""

    path: Path
    run: int
    places: dict[str, Places]
    """Where committed rows are."""
    on_failure: Callable[[], None]
    seal: Callable[[Entry], Sequence[Entry]]
    """See `Writer.seal`."""
    failure: RunDirectoryError | None = None
    """Nothing can be written any more."""
    waiting: int = 0
    """Rows that are neither committed nor refused yet."""
    _writer: Writer | None = None
    _turns: contextlib.ExitStack = field(factory=contextlib.ExitStack, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def start(self, connection: sqlite3.Connection, last: Mapping[str, int], lock: RunLock) -> None:
        """`last` is the last row of every table; `lock` is marked with it after every commit."""
        self.places |= {name: Places(name) for name in PLACES if name not in self.places}
        self._writer = Writer(self.path, self._deliver, lock.mark, dict(last), check=lock.check, seal=self.seal)
        self._writer.start(connection)
        self._turns.enter_context(short_turns())

    def check(self) -> None:
        """Raises RunDirectoryError where nothing can be written any more."""
        if self.failure is not None:
            raise self.failure

    async def committed(
        self,
        table: str,
        row: Sequence[Any],
        settled: Callable[[RunDirectoryError | None], None] = _nothing,
        replaces: int | None = None,
        text: tuple[str, str] | None = None,
    ) -> None:
        """Write a row. `settled` is called in any case, also when the caller is cancelled. Raises RunDirectoryError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(failure: RunDirectoryError | None) -> None:
            settled(failure)
            if future.done():  # its caller was cancelled
                return
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

        self.submit(Entry(table, row, then, replaces, text))
        await future

    def submit(self, entry: Entry) -> None:
        """Write a row without waiting for it."""
        assert self._writer is not None
        self._loop = asyncio.get_running_loop()
        self.waiting += 1
        self._writer.submit(entry)

    def placed(self, table: Table, facts: Mapping[str, Any], id_: int) -> None:
        """A row is committed, and can be found from now on."""
        self.places[table.name].add(prefix(table.name, facts), id_)

    def index(self, name: str, places: str, upto: int, *, replaces_all: bool = False) -> None:
        """Write the places of rows, up to the row with this id."""
        assert self._writer is not None
        row, then = sealed(META, f"{name}_indexed", self.run, (str(upto),)), partial(self._left, name, upto)
        self.waiting += 1
        self._writer.submit(Indexed("meta", row, then, of=name, places=places, replaces_all=replaces_all))

    def leave(self, at_least: int) -> None:
        """Write the places that are in memory where there are as many."""
        if self.failure is not None:
            return
        for name, places in self.places.items():
            if (leaving := places.leave(at_least)) is not None:
                self.index(name, *leaving)

    def close(self) -> None:
        """Take nothing more."""
        self.leave(1)
        self.failure = self.failure or RunDirectoryError(f"{self.path} is closed; open it again")

    def stop(self) -> RunDirectoryError | None:
        """Wait until everything is written. Returns the failure, if there was one."""
        try:
            return None if self._writer is None else self._writer.stop()
        finally:
            self._turns.close()

    def _left(self, name: str, upto: int, failure: BaseException | None) -> None:
        if failure is None:
            self.places[name].left(upto)

    def _deliver(self, entries: list[Entry], failure: RunDirectoryError | None) -> None:
        """In the writer's thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: no task waits any more
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._settled, entries, failure)

    def _settled(self, entries: list[Entry], failure: RunDirectoryError | None) -> None:
        self.waiting -= len(entries)
        self.failure = self.failure or failure
        for entry in entries:
            entry.then(failure)
        if failure is None:
            self.leave(AT_MOST)
        else:
            self.on_failure()


def connected(path: Path) -> sqlite3.Connection:
    """A connection that writes. Raises RunDirectoryError where the file system cannot do what is needed, and
    sqlite3.Error."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    try:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise RunDirectoryError(
                f"the file system of {path.parent} does not allow a write-ahead log; start a run in another directory "
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


@cache
def _insert(table: str, rows: int) -> str:
    """Batches and facts about the whole are replaced by their ids; other rows have new ones."""
    places = f"({','.join('?' * len(TABLES[table].columns))})"
    verb = "INSERT OR REPLACE" if TABLES[table].key == "TEXT" else "INSERT"
    return f"{verb} INTO {table} VALUES {','.join([places] * rows)}"
