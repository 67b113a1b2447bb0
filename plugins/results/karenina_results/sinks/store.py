"""Keeping results in a database, and reading them back: the same code for SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

from karenina_calls.secrets.redaction import redactor
from karenina_runs.results.sinks import RunInfo

from karenina_core import VerificationResult
from karenina_core.errors import PluginError
from karenina_core.log import get_logger

from ..records import check_same, portable_record, result_of
from .schema import (
    DERIVED,
    SCHEMA_VERSION,
    Dialect,
    derived_tables,
    dropped_tables,
    inserted,
    kept_tables,
    layout,
    rows_of,
)

PAGE = 200
"""Results that are read at a time; chosen."""
ADDED = (
    "INSERT INTO stored_results (result_id, position, result) "
    "VALUES (?, (SELECT coalesce(max(position), 0) + 1 FROM stored_results), ?) ON CONFLICT (result_id) DO NOTHING"
)


class Connection(Protocol):
    """What `sqlite3` and psycopg have in common. Nothing is committed but by COMMIT."""

    def cursor(self) -> Any: ...

    def close(self) -> None: ...


class Store:
    """Writes results to a database: each once, each with all of its rows or not at all."""

    def __init__(
        self, connection: Connection, dialect: Dialect, secrets: Collection[str] = (), *, replaces: bool = False
    ) -> None:
        """`replaces`: another result of the same id takes the place of the one that is there."""
        self.connection = connection
        self._dialect = dialect
        self._replaces = replaces
        self._secrets = secrets
        self._redact = redactor(secrets)

    def prepare(self) -> None:
        """Make the tables; remake those derived from the results where they are of another version of karenina.

        Raises PluginError where the database is that of a later version.
        """
        with self._transaction() as cursor:
            if self._dialect.mark == "%s":  # two runs may begin at the same time
                cursor.execute("SELECT pg_advisory_xact_lock(hashtext('karenina results'))")
            for statement in kept_tables(self._dialect):
                cursor.execute(statement)
            found = cursor.execute("SELECT version, layout FROM schema_version").fetchone()
            check_version(found[0] if found else SCHEMA_VERSION)
            if found is None or found[1] != layout():
                for statement in (*dropped_tables(), *derived_tables(self._dialect)):
                    cursor.execute(statement)
                for texts in _pages(self.connection, self._dialect):
                    self._insert(cursor, [result_of(text) for text in texts])
                cursor.execute("DELETE FROM schema_version")
                added = self._sql("INSERT INTO schema_version (version, layout) VALUES (?, ?)")
                cursor.execute(added, (SCHEMA_VERSION, layout()))

    def begin_run(self, run_name: str, benchmark: str, items: int) -> None:
        """Note the run. One that is there stays as it is: it is continued, or its results are refused."""
        name = self._text(run_name)
        with self._transaction() as cursor:
            if cursor.execute(self._sql("SELECT 1 FROM runs WHERE run_name = ?"), (name,)).fetchone() is None:
                cursor.execute(
                    self._sql("INSERT INTO runs (run_name, benchmark, items, opened_at) VALUES (?, ?, ?, ?)"),
                    (name, self._text(benchmark), items, _now()),
                )

    def end_run(self, run_name: str, summary: Mapping[str, Any]) -> None:
        """Note how it ended; without a summary it did not end, but what is written of it."""
        if not summary:
            return
        written = self._text(json.dumps(summary, default=str))
        with self._transaction() as cursor:
            cursor.execute(
                self._sql("UPDATE runs SET closed_at = ?, summary = ? WHERE run_name = ?"),
                (_now(), written, self._text(run_name)),
            )

    def add(self, results: Iterable[VerificationResult]) -> None:
        """Write all of them, in one transaction; those that are there are left as they are.

        Raises PluginError where another result has the id of one of them, and must not be replaced: none of them is
        written then.
        """
        rows: list[VerificationResult] = []
        with self._transaction() as cursor:
            for result in results:
                text = portable_record(result, self._secrets)
                stored = result_of(text)  # the tables hold what the record holds, without secrets
                identifier = self._text(stored.metadata.result_id)
                cursor.execute(self._sql(ADDED), (identifier, text))
                if cursor.rowcount == 1:
                    rows.append(stored)
                    continue
                there = cursor.execute(
                    self._sql("SELECT result FROM stored_results WHERE result_id = ?"), (identifier,)
                )
                before = result_of(there.fetchone()[0])
                if not self._replaces:
                    check_same(stored, before)
                elif stored != before:
                    cursor.execute(
                        self._sql("UPDATE stored_results SET result = ? WHERE result_id = ?"), (text, identifier)
                    )
                    for table in DERIVED:
                        cursor.execute(self._sql(f"DELETE FROM {table.name} WHERE result_id = ?"), (identifier,))
                    rows = [row for row in rows if row.metadata.result_id != stored.metadata.result_id]
                    rows.append(stored)
            self._insert(cursor, rows)

    def close(self) -> None:
        self.connection.close()

    def _insert(self, cursor: Any, results: Sequence[VerificationResult]) -> None:
        found = [rows_of(result) for result in results]
        for table in DERIVED:
            if rows := [tuple(map(_storable, row)) for tables in found for row in tables[table.name]]:
                cursor.executemany(inserted(self._dialect, table), rows)

    def _text(self, text: str) -> str:
        plain: str = self._redact(text).encode("utf-8", "replace").decode("utf-8")
        return str(_storable(plain))

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self._dialect.mark)

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A cursor: everything that is done with it is kept, or nothing."""
        cursor = self.connection.cursor()
        try:
            cursor.execute(self._dialect.begin)
            try:
                yield cursor
            except BaseException:
                with suppress(Exception):  # what went wrong first is what counts
                    cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
        finally:
            cursor.close()


def stored(connection: Connection, dialect: Dialect) -> Iterator[VerificationResult]:
    """The results of a database, in the order in which they came; a page of them is in memory.

    Raises PluginError where the database is that of a later version of karenina.
    """
    cursor = connection.cursor()
    found = cursor.execute("SELECT version FROM schema_version").fetchone()
    cursor.close()
    check_version(found[0] if found else SCHEMA_VERSION)
    for texts in _pages(connection, dialect):
        yield from map(result_of, texts)


def check_version(version: int) -> None:
    if version > SCHEMA_VERSION:
        raise PluginError(
            f"the database is of version {version}, which is later than {SCHEMA_VERSION}; update karenina-results"
        )


def _pages(connection: Connection, dialect: Dialect) -> Iterator[list[str]]:
    """Records, some at a time. Each page is asked for by where the last one ended."""
    wanted = (
        "SELECT position, result_id, result FROM stored_results WHERE position > ? OR (position = ? AND result_id > ?) "
        f"ORDER BY position, result_id LIMIT {PAGE}"
    ).replace("?", dialect.mark)
    position, identifier = -1, ""
    while True:
        cursor = connection.cursor()
        rows = cursor.execute(wanted, (position, position, identifier)).fetchall()
        cursor.close()
        if not rows:
            return
        position, identifier = rows[-1][:2]
        yield [row[2] for row in rows]


def _storable(value: Any) -> Any:
    """PostgreSQL stores no NUL in a text."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


log = get_logger("karenina.results")


class DatabaseSink(ABC):
    """Every result is committed when `write` returns. Databases are waited for in threads, never in the event loop.

    A lost connection is opened again a few times before the sink fails.
    """

    name: ClassVar[str]
    waits: ClassVar[Sequence[float]] = (0.0, 1.0, 5.0)
    """Seconds before each attempt to reconnect."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._run: RunInfo | None = None
        self._one_at_a_time = threading.Lock()
        """Held in the thread: where a write is cancelled, its thread continues."""

    @abstractmethod
    def connect(self, run: RunInfo) -> Store:
        """Open the database and prepare it."""

    def lost(self, store: Store) -> bool:
        """Whether the error is a lost connection."""
        return False

    async def open(self, run: RunInfo) -> None:
        self._run = run

        def begin() -> None:
            store = self.connect(run)
            try:
                store.begin_run(run.run_name, run.benchmark, run.items)
            except BaseException:
                store.close()
                raise
            self._store = store

        await self._in_thread(begin)

    async def write(self, result: VerificationResult) -> None:
        await self._in_thread(lambda: self._do(lambda store: store.add([result])))

    async def close(self, summary: Mapping[str, Any]) -> None:
        def end() -> None:
            try:
                name = self._run.run_name if self._run is not None else ""
                self._do(lambda store: store.end_run(name, summary))
            finally:
                store, self._store = self._store, None
                if store is not None:
                    store.close()

        await self._in_thread(end)

    async def _in_thread(self, task: Callable[[], None]) -> None:
        def alone() -> None:
            with self._one_at_a_time:
                task()

        await asyncio.to_thread(alone)

    def _do(self, task: Callable[[Store], None]) -> None:
        """Do it, again where the connection was lost: whatever is written twice is there once."""
        if self._store is None:
            return
        try:
            task(self._store)
        except Exception as error:
            if not self.lost(self._store):
                raise
            self._reconnect(error)
            task(self._store)

    def _reconnect(self, error: Exception) -> None:
        """Raises what the last attempt raised."""
        assert self._run is not None
        log.warning("the connection of a sink was lost; reconnecting", sink=self.name, error=type(error).__name__)
        for wait in self.waits:
            time.sleep(wait)
            try:
                self._store = self.connect(self._run)
            except Exception as again:
                error = again
            else:
                return
        raise error
