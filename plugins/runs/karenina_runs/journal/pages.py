"""Rows as they lie on the pages of a file, whatever the pages above them say.

A row that proves to be what was written, by its checksum, is one, wherever it lies. The format of pages, cells and
records is that of https://www.sqlite.org/fileformat2.html#b_tree_pages
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define

from .rows import PAGE, TABLES, Row, Table, row_of
from .wal import frames, log_of

SCHEMA_PAGE = 1
"""The first one, with the definitions of the tables: no row of a table is there."""
PAGE_HEADER = 8
LOCAL = PAGE - 35
"""Bytes of a record up to which all of it lies in the cell."""
LEAST = (PAGE - 12) * 32 // 255 - 23
"""Bytes of a longer record that lie in the cell at least."""
LARGEST = 1 << 30
WHOLE = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8, 8: 0, 9: 0}
"""Bytes of a value, by its type in a record, where it is neither a text nor bytes."""
BY_COLUMNS = {len(table.columns): table for table in TABLES.values()}
Pages = Callable[[int], bytes]


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
    images = [frame for frame in frames(log.read_bytes() if log.exists() else b"") if frame.page > SCHEMA_PAGE]
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
        if at <= pointer and (found := _row(page, pointer, pages)) is not None:
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
