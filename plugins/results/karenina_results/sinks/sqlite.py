"""The sink sqlite: results in one database file, which anything can query."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from karenina_runs.results.sinks import RunInfo

from karenina_core import VerificationResult
from karenina_core.errors import BenchmarkError, PluginError

from .schema import SQLITE
from .store import DatabaseSink, Store, stored

BATCH = 500
"""Results of one transaction; chosen."""
SECONDS = 30.0
"""How long another process that writes to the same file is waited for; chosen."""


class Sqlite(DatabaseSink):
    """`sqlite:FILE`. Results of several runs may go into one file, also at the same time."""

    name = "sqlite"

    def __init__(self, target: str = "") -> None:
        super().__init__()
        if not target:
            raise PluginError("it needs a file: sqlite:FILE")
        self._path = Path(target)

    def connect(self, run: RunInfo) -> Store:
        connection = _connection(self._path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            store = Store(connection, SQLITE, run.secrets, replaces=run.resumed)
            store.prepare()
        except BaseException:
            connection.close()
            raise
        return store


def write_file(results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a database that is one file, without those that belong to one that is being written.

    Raises OSError where it cannot be written.
    """
    connection = _connection(path)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # a file that is not finished is thrown away
        connection.execute("PRAGMA synchronous = OFF")
        store = Store(connection, SQLITE)
        store.prepare()
        total, remaining = 0, iter(results)
        while batch := list(islice(remaining, BATCH)):
            store.add(batch)
            total += len(batch)
        if run_name := manifest.get("run_name"):
            benchmark = manifest.get("benchmark")
            name = benchmark.get("name") if isinstance(benchmark, Mapping) else benchmark
            store.begin_run(str(run_name), str(name or ""), total)
            store.end_run(str(run_name), manifest.get("summary") or {})
    except sqlite3.Error as error:
        raise OSError(f"{path}: {error}") from error
    finally:
        connection.close()


def read_file(path: Path) -> Iterator[VerificationResult]:
    """The results of a database. Raises BenchmarkError where it has none."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=SECONDS)
        try:
            yield from stored(connection, SQLITE)
        finally:
            connection.close()
    except (sqlite3.Error, ValueError, PluginError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}; give a database that karenina wrote") from error


class SqliteFile:
    """The format sqlite: a database that anything can query, with the tables and views of the sinks."""

    name = "sqlite"
    suffixes = (".sqlite", ".sqlite3", ".db")
    write = staticmethod(write_file)
    read = staticmethod(read_file)


def _connection(path: Path) -> sqlite3.Connection:
    # Transactions are begun and ended by Store; its calls come from threads of a pool, one at a time.
    return sqlite3.connect(path, timeout=SECONDS, isolation_level=None, check_same_thread=False)
