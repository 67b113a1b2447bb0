"""A journal that is only read: nothing is written to it, also while another process writes."""

from __future__ import annotations

import json
import re
import sqlite3
import uuid
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from attrs import define, field, frozen

from .compression import DICTIONARY, Bodies
from .connection import Opened, check_kind, damaged, opened, stamp, told
from .index import Places, prefix
from .ledger import Ledger
from .rows import BATCHES, CALLS, COPIES, META, RESULTS, TABLES, Row, Table, row_of

__all__ = [
    "DONE",
    "ENDING",
    "JOURNAL",
    "OPEN",
    "Batch",
    "Done",
    "JournalReader",
    "StoredResult",
    "done_of",
    "journal_of",
    "run_number",
]

JOURNAL = "journal.sqlite"
AT_A_TIME = 256
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
    """Whether an error of a kind that may be gone would come again: that of an agent which used up its own budget."""

    @property
    def column(self) -> str | None:
        """What the column `detail` holds: the detail, and whether it is final."""
        return self.detail + FINAL if self.detail is not None and self.final else self.detail


@frozen
class StoredResult(Done):
    """With the result itself."""

    line: str = field(default="", repr=False)
    """As in `results.jsonl`."""


def _keys(value: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(value)


@frozen(kw_only=True)
class Batch:
    """Calls that a provider makes together, and later."""

    id: str
    model: str
    provider_id: str
    status: str
    keys: tuple[tuple[str, int], ...] = field(default=(), converter=_keys)
    """Keys and numbers of its calls, in the order in which they were sent."""

    @classmethod
    def id_of(cls, number: int, calls_before: int) -> str:
        """The id of a new batch: the `number`th of its journal, whose last reply is `calls_before` when it is made."""
        return f"karenina-{number:06}-{calls_before}-{uuid.uuid4().hex}"

    @property
    def calls_before(self) -> int:
        """The journal's last reply when it was made: one from before to any of its calls is to be replaced."""
        told = ID.match(self.id)
        return int(told[1]) if told else 0


def journal_of(path: str | Path) -> Path:
    """The journal of a run directory, or the file itself."""
    path = Path(path)
    return path / JOURNAL if path.is_dir() else path


def run_number(run_id: str) -> int:
    """What every row says about whose it is: a part of another run's file that got in is noticed."""
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
            with told(path):
                check_kind(path, found.connection)
                meta = _meta(found.connection)
            run_id = meta.get("run_id")
            if run_id is None:
                raise damaged(path, "it does not say of which run it is")
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
            found = self._fetch(statement, (after,))
            for columns in found:
                if (row := self._checked(table, columns)) is not None:
                    yield row
            if len(found) < AT_A_TIME:
                return
            after = found[-1][0]

    def every(self, table: Table) -> Iterator[Row]:
        """Rows of a small table, whatever their ids are."""
        found = (self._checked(table, columns) for columns in self._fetch(_select(table), ()))
        return (row for row in found if row is not None)

    def query(self, statement: str, *values: Any) -> list[Any]:
        """The rows of any other question to the database."""
        return self._fetch(statement, values)

    def call(self, key: str, nth: int) -> Row | None:
        """The latest reply to a call."""
        wanted = {"key": key, "nth": nth}
        return self._row(CALLS, wanted)

    def done(self, task: str) -> Done | None:
        """How a task ended, if it did."""
        row = self._row(RESULTS, {"task": task})
        return None if row is None else Done(*done_of(row))

    def result(self, task: str) -> StoredResult | None:
        """A task's result, if it has one."""
        row = self._row(RESULTS, {"task": task})
        return None if row is None else self._result(row)

    def results(self) -> Iterator[StoredResult]:
        """Results in the order of the plan, one after the other: they need not fit into memory."""
        with told(self.path):
            found = self._connected().execute("SELECT id FROM results ORDER BY position, id")
            order = array("q", (id_ for (id_,) in found))
        for begin in range(0, len(order), AT_A_TIME):
            ids = order[begin : begin + AT_A_TIME]
            statement = f"{_select(RESULTS)} WHERE id IN ({','.join('?' * len(ids))})"
            rows = {columns[0]: columns for columns in self._fetch(statement, tuple(ids))}
            for columns in (rows[id_] for id_ in ids if id_ in rows):
                if (row := self._checked(RESULTS, columns)) and (result := self._result(row)):
                    yield result

    def ends(self, after: int = 0) -> Iterator[Done]:
        """How tasks ended, in the order in which they did; only results after that row."""
        return (Done(*done_of(row)) for row in self.rows(RESULTS, after))

    def outcomes(self) -> dict[str, int]:
        """`{outcome: number of tasks}`, sorted."""
        return dict(sorted(Counter(done.outcome for done in self.ends()).items()))

    def ledger(self) -> Ledger:
        """What the calls took, counted anew."""
        ledger = Ledger()
        for name in ("calls", "failures"):
            for row in self.rows(TABLES[name]):
                ledger.add(name, row.facts)
        return ledger

    def batches(self) -> list[Batch]:
        """In the order in which they were made."""
        return sorted((_batch(row) for row in self.every(BATCHES)), key=lambda batch: batch.id)

    def near(self, table: str) -> Places:
        """Places of the table's rows, those that are not in the journal yet included."""
        if table not in self._places:
            self._places[table] = Places(table, int(self.meta.get(f"{table}_indexed", "0")))
            self._seen[table] = self._places[table].upto
            self._version = -1
        (version,) = self._fetch("PRAGMA data_version", ())[0]
        if version != self._version:
            for name in self._places:
                self._look_on(name)
            self._version = version
        return self._places[table]

    def candidates(self, table: Table, ids: list[int], wanted: dict[str, Any]) -> Row | None:
        """The first of these rows that is sound and says what is wanted."""
        for id_ in ids:
            for columns in self._fetch(f"{_select(table)} WHERE id = ?", (id_,)):
                row = self._checked(table, columns)
                if row is not None and all(row[name] == value for name, value in wanted.items()):
                    return row
        return None

    def find(self, number: int, places: Places) -> list[int]:
        try:
            return places.find(number, self._connected())
        except sqlite3.Error as error:
            raise damaged(self.path, error) from error

    def _row(self, table: Table, wanted: dict[str, Any]) -> Row | None:
        places = self.near(table.name)
        return self.candidates(table, self.find(prefix(table.name, wanted), places), wanted)

    def _look_on(self, table: str) -> None:
        """Take in rows that were not there when the journal was opened."""
        for row in self.rows(TABLES[table], self._seen[table]):
            assert isinstance(row.id, int)
            self._places[table].add(prefix(table, row.facts), row.id)
            self._seen[table] = row.id

    def _result(self, row: Row) -> StoredResult | None:
        try:
            return StoredResult(*done_of(row), self.bodies.unpacked(row.body))
        except ValueError:
            self.damaged["results"] += 1
            return None

    def _checked(self, table: Table, columns: tuple[Any, ...]) -> Row | None:
        row = row_of(table, columns)
        if row is None or row.run != self._run or not (self.bodies.can_unpack(row.body) or self._learnt(row.body)):
            self.damaged[table.name] += 1
            return None
        return row

    def _learnt(self, body: bytes) -> bool:
        """Whether the dictionary of a body came after the journal was opened."""
        with told(self.path):
            self.meta |= _meta(self._connected())
        self._learn()
        return self.bodies.can_unpack(body)

    def _learn(self) -> None:
        for name, text in self.meta.items():
            if name.startswith(DICTIONARY):
                self.bodies.learn(name.removeprefix(DICTIONARY), text)

    def _fetch(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with told(self.path):
            return self._connected().execute(statement, values).fetchall()

    def _connected(self) -> sqlite3.Connection:
        """The connection; another one where somebody has begun to write since the file was opened."""
        if self._opened.alone is not None and stamp(self.path) != self._opened.alone:
            self._opened.close()
            self._opened = opened(self.path)
            self._version = -1
        return self._opened.connection


def done_of(row: Row) -> tuple[str, int, str, str, str | None, bool]:
    """The fields of `Done`."""
    detail = row["detail"]
    told = None if detail is None else detail.removesuffix(FINAL)
    return row["task"], row["position"], row["result_id"], row["outcome"], told, told != detail


def _batch(row: Row) -> Batch:
    return Batch(
        id=str(row.id),
        model=row["model"],
        provider_id=row["provider_id"],
        status=row["status"],
        keys=tuple((key, nth) for key, nth in json.loads(row["keys"])),
    )


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
