"""Saving what is in a damaged journal: its rows are written to a new one, whatever the pages above them say.

A row that proves to be what was written, by its checksum, is one, wherever it lies. The format of pages, cells and
records is that of https://www.sqlite.org/fileformat2.html#b_tree_pages
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, field, frozen

from karenina_core.errors import RunDirectoryError

from ..files.atomic_files import flush_folder
from ..files.run_lock import RunLock, marked
from .check import MARKED, SAVED, insert, make_tables, saved
from .compression import DICTIONARY, LARGEST, Bodies
from .reader import JOURNAL, run_number
from .rows import COPIES, META, PAGE, PLACES, TABLES, Row, Table, prefix, row_of, sealed
from .wal import frames, log_of

SCHEMA_PAGE = 1
"""The first one, with the definitions of the tables: no row of a table is there."""
PAGE_HEADER = 8  # bytes; https://sqlite.org/fileformat.html, as those below
LOCAL = PAGE - 35
"""Bytes of a record up to which all of it lies in the cell."""
LEAST = (PAGE - 12) * 32 // 255 - 23
"""Bytes of a longer record that lie in the cell at least."""
WHOLE = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value, by its type in a record, where it is neither a text nor bytes."""
BY_COLUMNS = {len(table.columns): table for table in TABLES.values()}
Pages = Callable[[int], bytes]


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
        with suppress(OSError):
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
        raise RunDirectoryError(f"nothing in {path} can be read; put a copy of the file back, or start a new run")
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


@define(eq=False)
class _File:
    """Pages by their numbers, from 1: as the log has them, or as the file itself does."""

    file: BinaryIO
    pages: int
    changed: dict[int, bytes]

    def written(self, number: int) -> bytes:
        if not SCHEMA_PAGE < number <= self.pages:
            return b""
        self.file.seek((number - 1) * PAGE)
        return self.file.read(PAGE)

    def latest(self, number: int) -> bytes:
        return self.changed.get(number) or self.written(number)


def rows_on_pages(path: Path) -> Iterator[tuple[Table, Row]]:
    """Every row that can be read in a journal and its log, the later copies of a page after the earlier ones.

    A row can occur several times, and rows that were replaced can occur. Raises OSError.
    """
    log = log_of(path)
    images = [frame for frame in frames(log.read_bytes() if log.is_file() else b"") if frame.page > SCHEMA_PAGE]
    with path.open("rb") as opened:
        file = _File(opened, path.stat().st_size // PAGE + 1, {frame.page: frame.data for frame in images})
        for number in range(SCHEMA_PAGE + 1, file.pages + 1):
            yield from _rows(file.written(number).ljust(PAGE, b"\0"), (file.latest, file.written))
        for frame in images:
            yield from _rows(frame.data.ljust(PAGE, b"\0"), (file.latest, file.written))


def _rows(page: bytes, pages: tuple[Pages, ...]) -> Iterator[tuple[Table, Row]]:
    """Rows of a page, if it is one that has any: what its header says may be wrong."""
    at = PAGE_HEADER
    content = PAGE
    while at + 2 <= content:
        (pointer,) = struct.unpack_from(">H", page, at)
        at += 2
        if at <= pointer < PAGE and (found := _row(page, pointer, pages)) is not None:
            content = min(content, pointer)
            yield found


def _row(page: bytes, at: int, pages: tuple[Pages, ...]) -> tuple[Table, Row] | None:
    with suppress(IndexError, ValueError, struct.error):
        size, at = _number(page, at)
        id_, at = _number(page, at)
        if not 0 < size <= LARGEST:
            return None
        local = size
        if size > LOCAL:  # bytes in the cell of a record that continues elsewhere
            local = LEAST + (size - LEAST) % (PAGE - 4)
            local = local if local <= LOCAL else LEAST
        if at + local > PAGE:
            return None
        types = _types(page[at : at + local])
        if (table := BY_COLUMNS.get(len(types))) is None or sum(map(_length, types)) > size:
            return None
        for get in pages:
            record = page[at : at + local]
            with suppress(IndexError, ValueError, struct.error):  # what one of them has of it may be another's
                if size > local:
                    record += _overflow(struct.unpack_from(">I", page, at + local)[0], size - local, get)
                if (row := row_of(table, _columns(table, id_, record))) is not None:
                    return table, row
    return None


def _overflow(number: int, size: int, page: Pages) -> bytes:
    found = b""
    for _ in range(size // (PAGE - 4) + 1):
        if len(found) >= size or not number:
            break
        data = page(number)
        (number,) = struct.unpack_from(">I", data)
        found += data[4:]
    return found[:size]


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64) if value >> 63 else value, at + 9


def _types(record: bytes) -> list[int]:
    end, at = _number(record, 0)
    found = []
    while at < end <= len(record):
        kind, at = _number(record, at)
        if kind < 0 or kind in (10, 11):
            raise ValueError("there is no such type")
        found.append(kind)
    return found


def _length(kind: int) -> int:
    """Bytes of a value of this type."""
    return WHOLE[kind] if kind < 12 else (kind - 12) // 2


def _columns(table: Table, id_: int, record: bytes) -> list[Any]:
    """The values of a record, as SQLite would give them."""
    at, _ = _number(record, 0)
    columns: list[Any] = []
    for kind in _types(record):
        data, at = record[at : at + _length(kind)], at + _length(kind)
        if kind == 0:
            columns.append(None)
        elif kind == 7:
            columns.append(struct.unpack(">d", data)[0])
        elif kind in (8, 9):
            columns.append(kind - 8)
        elif kind < 12:
            columns.append(int.from_bytes(data, "big", signed=True))
        else:
            columns.append(data.decode("utf-8") if kind % 2 else data)
    if table.key == "INTEGER":
        columns[0] = id_
    kinds = ("", "", *table.facts.values())
    return [
        float(value) if kind == "REAL" and isinstance(value, int) else value
        for value, kind in zip(columns, (*kinds, *[""] * len(columns)), strict=False)
    ]
