"""A journal that is only read: nothing is written to it, also while another process writes."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attrs import define, field, frozen

from .compression import DICTIONARY, Bodies
from .connection import Opened, check_kind, damaged, opened, reading, stamp
from .ledger import Ledger
from .rows import BATCHES, CALLS, COPIES, META, RESULTS, TABLES, Places, Row, Table, prefix, row_of

JOURNAL = "journal.sqlite"
AT_A_TIME = 256
"""Rows that are fetched together; chosen."""
ID = re.compile(r"karenina-\d+-(\d+)-")
"""Of a batch; see `Batch.id_of`."""
DONE = "fetched"
"""The status of a batch whose replies are all in the journal."""
ENDING = "ending"
"""That of a batch of which nothing more is made: its provider was asked to end it, or does not have it."""
OPEN = ("sending", "sent", ENDING)
"""Those of batches whose replies are still to come, as far as they are made."""
FINAL = " of its own"
"""The end of a detail that is final."""


@frozen
class Done:
    """How a task ended, and the place of its result in the order of the plan."""

    task: str
    position: int
    result_id: str
    outcome: str
    detail: str | None = None
    final: bool = False
    """Whether an error of a transient kind would come again: that of an agent which used up its own budget."""

    @property
    def column(self) -> str | None:
        """What the column `detail` holds: the detail, and whether it is final."""
        return self.detail + FINAL if self.detail is not None and self.final else self.detail

    @classmethod
    def of(cls, row: Row, **more: Any) -> Self:
        """From a row of `results`; `more` are fields of the class itself."""
        column = row["detail"]
        detail = None if column is None else column.removesuffix(FINAL)
        return cls(row["task"], row["position"], row["result_id"], row["outcome"], detail, detail != column, **more)


@frozen
class StoredResult(Done):
    """With the result itself."""

    line: str = field(default="", repr=False)
    """As in `results.jsonl`."""


@frozen(kw_only=True)
class Batch:
    """Calls that a provider makes together, and later."""

    id: str
    model: str
    provider_id: str
    status: str
    keys: tuple[tuple[str, int], ...] = ()
    """Keys and numbers of its calls, in the order in which they were sent."""

    @classmethod
    def id_of(cls, number: int, calls_before: int) -> str:
        """The id of a new batch: the `number`th of its journal, whose last reply is `calls_before` when it is made."""
        return f"karenina-{number:06}-{calls_before}-{uuid.uuid4().hex}"

    @property
    def calls_before(self) -> int:
        """The journal's last reply when it was made: one from before to any of its calls is to be replaced."""
        found = ID.match(self.id)
        return int(found[1]) if found else 0


def journal_of(path: str | Path) -> Path:
    """The journal of a run directory, or the file itself."""
    path = Path(path)
    return path / JOURNAL if path.is_dir() else path


def run_number(run_id: str) -> int:
    """The number that every row of a run has: a part of another run's file that got in is noticed."""
    return zlib.crc32(run_id.encode("utf-8", "replace")) >> 1


@define(eq=False)
class JournalReader:
    """Everything that is in a journal. Rows that are not what was written are left out and counted in `damaged`.

    Its methods raise RunDirectoryError where the file cannot be read.
    """

    path: Path
    run_id: str
    meta: dict[str, str]
    damaged: Counter[str] = field(factory=Counter)
    """By table."""
    bodies: Bodies = field(factory=Bodies)
    _opened: Opened = field(kw_only=True)
    _run: int = field(kw_only=True)
    _places: dict[str, Places] = field(factory=dict)
    _seen: dict[str, int] = field(factory=dict)
    _version: int = -1

    @classmethod
    def open(cls, path: str | Path) -> JournalReader:
        """The journal of a run directory, or this file. Raises RunDirectoryError."""
        path = journal_of(path)
        found = opened(path)
        try:
            with reading(path):
                check_kind(path, found.connection)
                meta = _meta(found.connection)
            run_id = meta.get("run_id")
            if run_id is None:
                raise damaged(path, "it does not name its run")
        except BaseException:
            found.close()
            raise
        reader = cls(path, run_id, meta, opened=found, run=run_number(run_id))
        reader._learn()
        return reader

    def close(self) -> None:
        self._opened.close()

    def __enter__(self) -> JournalReader:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def rows(self, table: Table, after: int = 0) -> Iterator[Row]:
        """Rows with numbers as ids, in their order. Between any two of them the journal may grow."""
        statement = f"{_select(table)} WHERE id > ? ORDER BY id LIMIT {AT_A_TIME}"
        while True:
            found = self.query(statement, after)
            for columns in found:
                if (row := self._checked(table, columns)) is not None:
                    yield row
            if len(found) < AT_A_TIME:
                return
            after = found[-1][0]

    def every(self, table: Table) -> Iterator[Row]:
        """Rows of a small table, whatever their ids are."""
        found = (self._checked(table, columns) for columns in self.query(_select(table)))
        return (row for row in found if row is not None)

    def query(self, statement: str, *values: Any) -> list[Any]:
        """The rows of any question to the database."""
        try:
            return self._connected().execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise damaged(self.path, error) from error

    def call(self, key: str, nth: int) -> Row | None:
        """The latest reply to a call."""
        return self.row(CALLS, {"key": key, "nth": nth})

    def done(self, task: str) -> Done | None:
        """How a task ended, if it did."""
        row = self.row(RESULTS, {"task": task})
        return None if row is None else Done.of(row)

    def result(self, task: str) -> StoredResult | None:
        """A task's result, if it has one."""
        row = self.row(RESULTS, {"task": task})
        return None if row is None else self._result(row)

    def results(self) -> Iterator[StoredResult]:
        """Results in the order of the plan, one after the other: they need not fit into memory."""
        with reading(self.path):
            found = self._connected().execute("SELECT id FROM results ORDER BY position, id")
            order = array("q", (id_ for (id_,) in found))
        for begin in range(0, len(order), AT_A_TIME):
            ids = order[begin : begin + AT_A_TIME]
            statement = f"{_select(RESULTS)} WHERE id IN ({','.join('?' * len(ids))})"
            rows = {columns[0]: columns for columns in self.query(statement, *ids)}
            for columns in (rows[id_] for id_ in ids if id_ in rows):
                if (row := self._checked(RESULTS, columns)) and (result := self._result(row)):
                    yield result

    def ends(self, after: int = 0) -> Iterator[Done]:
        """How tasks ended, in the order in which they did; only results after that row."""
        return map(Done.of, self.rows(RESULTS, after))

    def outcomes(self) -> dict[str, int]:
        """`{outcome: number of tasks}`, sorted."""
        return dict(sorted(Counter(done.outcome for done in self.ends()).items()))

    def ledger(self) -> Ledger:
        """What the calls took, counted from the rows."""
        ledger = Ledger()
        for name in ("calls", "failures"):
            for row in self.rows(TABLES[name]):
                ledger.add(name, row.facts)
        return ledger

    def batches(self) -> list[Batch]:
        """In the order in which they were made."""
        found = []
        for row in self.every(BATCHES):
            keys = tuple((key, nth) for key, nth in json.loads(row["keys"]))
            facts = {name: row[name] for name in ("model", "provider_id", "status")}
            found.append(Batch(id=str(row.id), keys=keys, **facts))
        return sorted(found, key=lambda batch: batch.id)

    def near(self, table: str) -> Places:
        """Places of the table's rows, those that are not in the journal yet included."""
        if table not in self._places:
            self._places[table] = Places(table, int(self.meta.get(f"{table}_indexed", "0")))
            self._seen[table] = self._places[table].upto
            self._version = -1
        (version,) = self.query("PRAGMA data_version")[0]
        if version != self._version:
            for name, places in self._places.items():
                for row in self.rows(TABLES[name], self._seen[name]):  # those that were added since
                    assert isinstance(row.id, int)
                    places.add(prefix(name, row.facts), row.id)
                    self._seen[name] = row.id
            self._version = version
        return self._places[table]

    def row(self, table: Table, wanted: dict[str, Any], places: Places | None = None) -> Row | None:
        """The latest sound row that says what is wanted. `places` are those of its table, where they are known."""
        number, places = prefix(table.name, wanted), self.near(table.name) if places is None else places
        try:  # as `reading` does; this is asked for every call
            ids = places.find(number, self._connected)
        except sqlite3.Error as error:
            raise damaged(self.path, error) from error
        return self.candidates(table, ids, wanted) if ids else None

    def candidates(self, table: Table, ids: list[int], wanted: dict[str, Any]) -> Row | None:
        """The first of these rows that is sound and says what is wanted."""
        for id_ in ids:
            for columns in self.query(f"{_select(table)} WHERE id = ?", id_):
                row = self._checked(table, columns)
                if row is not None and all(row[name] == value for name, value in wanted.items()):
                    return row
        return None

    def _result(self, row: Row) -> StoredResult | None:
        try:
            return StoredResult.of(row, line=self.bodies.unpacked(row.body))
        except ValueError:
            self.damaged["results"] += 1
            return None

    def _checked(self, table: Table, columns: tuple[Any, ...]) -> Row | None:
        row = row_of(table, columns)
        if row is not None and not self.bodies.can_unpack(row.body):  # its dictionary may be newer than this reader
            with reading(self.path):
                self.meta |= _meta(self._connected())
            self._learn()
        if row is None or row.run != self._run or not self.bodies.can_unpack(row.body):
            self.damaged[table.name] += 1
            return None
        return row

    def _learn(self) -> None:
        for name, text in self.meta.items():
            if name.startswith(DICTIONARY):
                self.bodies.learn(name.removeprefix(DICTIONARY), text)

    def _connected(self) -> sqlite3.Connection:
        """The connection; another one where a process has begun to write since the file was opened."""
        if self._opened.alone is not None and stamp(self.path) != self._opened.alone:
            self._opened.close()
            self._opened = opened(self.path)
            self._version = -1
        return self._opened.connection


def _meta(connection: sqlite3.Connection) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in (COPIES, META):
        fetched: list[Any] = connection.execute(_select(table)).fetchall()
        for columns in fetched:
            if (row := row_of(table, columns)) is not None:
                found[str(row.id)] = row["value"]
    return found


def _select(table: Table) -> str:
    return f"SELECT {', '.join(table.columns)} FROM {table.name}"
