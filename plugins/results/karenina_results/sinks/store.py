"""Keeping results in a database, and reading them back: the same code for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from karenina_calls.secrets.redaction import redactor

from karenina_core import VerificationResult
from karenina_core.errors import PluginError

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
"""Results that are read at a time."""
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

    def _transaction(self) -> _Transaction:
        return _Transaction(self.connection, self._dialect.begin)


class _Transaction:
    """Everything that is done with the cursor, or nothing."""

    def __init__(self, connection: Connection, begin: str) -> None:
        self._cursor = connection.cursor()
        self._begin = begin

    def __enter__(self) -> Any:
        self._cursor.execute(self._begin)
        return self._cursor

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self._cursor.execute("COMMIT" if kind is None else "ROLLBACK")
        except Exception:
            if kind is None:
                raise  # else what went wrong first is what counts
        finally:
            self._cursor.close()


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
