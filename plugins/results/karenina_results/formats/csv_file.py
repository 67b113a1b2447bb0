"""The format csv: one row an item, for spreadsheets and statistics programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from karenina_core import VerificationResult
from karenina_core.errors import BenchmarkError

from ..columns.item_columns import RESULT
from ..columns.short import ALWAYS, SHORT, filled_columns, item_table
from ..columns.table import CellType, Column, Table
from .about import export_columns

CELL = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",\r\n]*))(,|\r\n|\n|\r|\Z)')
ACTIVE = re.compile("[\\s\0\ufeff\u200b-\u200f\u2060]*[=+\\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""How texts begin that a spreadsheet program might take for a formula or a command."""
INERT = "'"
LIST = "; "
ID, PLACE = "result_id", "result_index"
Raw = tuple[bool, str]
"""A cell as written in the file: whether it is a text in quotation marks, and the text."""


class CsvFile:
    """One row an item. `short`: what people look at first, without columns that no result fills. `full`: the columns of
    whole results, and when and of which run they were written. Those of each trait are in both.

    It does not hold whole results: `read_rows` gives back its rows.
    """

    name = "csv"
    suffixes = (".csv",)

    def __init__(self, columns: str = "short") -> None:
        """Raises ValueError where there is no such choice."""
        self.columns = columns
        item_table(columns)

    def with_columns(self, columns: str) -> CsvFile:
        """The same with other columns."""
        return CsvFile(columns)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        if self.columns == "full":
            write_rows(results, path, manifest)
        else:
            _write(SHORT, filled_columns(SHORT, results), results, path)


def write_rows(
    results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any], *, start: int = 0
) -> None:
    """Write all columns; `start` is the index of the first result."""
    _write(RESULT, (*RESULT.columns_for(results), *export_columns(manifest)), results, path, start)


def _write(
    table: Table, columns: Sequence[Column], results: Iterable[VerificationResult], path: Path, start: int = 0
) -> None:
    """Write a file of RFC 4180 in UTF-8.

    Nothing is an empty cell, an empty text is `""`. A text that a spreadsheet program might run gets an apostrophe.
    """
    types = [column.type for column in columns]
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(_line(_text(column.name) for column in columns))
        for row in table.written_rows(results, columns, start):
            file.write(_line(_written(type_, value) for type_, value in zip(types, row, strict=True)))


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that `write_rows` wrote, `{column: cell}`, each cell as `Table.written_rows` gives it.

    Raises BenchmarkError where it is another file.
    """
    header = _header(path)
    rows = _records(path)
    next(rows)
    for number, cells in enumerate(rows, 1):
        if len(cells) != len(header):
            raise BenchmarkError(f"{path}, row {number}: {len(cells)} cells, but there are {len(header)} columns")
        try:
            yield {name: _read(type_, cell) for (name, type_), cell in zip(header, cells, strict=True)}
        except (ValueError, RecursionError) as error:
            raise BenchmarkError(f"{path}, row {number}: {error}") from error


def merge_rows(parts: Sequence[Path], target: IO[str], instead: Path | None = None) -> None:
    """Write the rows of several files, one after the other, under the columns of all of them.

    Rows of the file `instead` take the places of those of the same results.
    """
    files = [*parts, instead] if instead else parts
    fixed = [column.name for column in RESULT.columns]
    last = [column.name for column in export_columns({})]
    more = sorted({_name(cell) for file in files for cell in next(_records(file))} - {*fixed, *last})
    place = fixed.index(RESULT.more_after) + 1 if RESULT.more_after else len(fixed)
    names = [*fixed[:place], *more, *fixed[place:], *last]
    others = {_name(row[ID]): row for row in _raw_rows(instead)} if instead else {}
    target.write(_line(map(_text, names)))
    for part in parts:
        for row in _raw_rows(part):
            if (other := others.get(_name(row[ID]))) is not None:
                row = {**other, PLACE: row[PLACE]}
            cells = (row.get(name, (False, "")) for name in names)
            target.write(_line(_quoted(text) if quoted else text for quoted, text in cells))


def _raw_rows(file: Path) -> Iterator[dict[str, Raw]]:
    """The cells of every row, by the names of their columns."""
    records = _records(file)
    names = [_name(cell) for cell in next(records)]
    return (dict(zip(names, cells, strict=True)) for cells in records)


# Cells


def _line(cells: Iterable[str]) -> str:
    return ",".join(cells) + "\r\n"


def _quoted(text: str) -> str:
    """Always in quotation marks: a program that takes semicolons for separators must not split it either."""
    return '"{}"'.format(text.replace('"', '""'))


def _text(text: str) -> str:
    """No text begins like a formula; one that begins with an apostrophe of its own gets another one."""
    return _quoted(f"{INERT}{text}" if text.startswith(INERT) or ACTIVE.match(text) else text)


def _written(type_: CellType, value: Any) -> str:
    if value is None:
        return ""
    if type_ == "text":
        return _text(value)
    if type_ == "texts":
        return _text(joined_texts(value))
    if type_ in ("json", "value"):
        return _quoted(value)  # begins with a bracket, a quotation mark, a letter, or is a number
    return json.dumps(value)


def _name(cell: Raw) -> str:
    return cell[1].removeprefix(INERT)


def _read(type_: CellType, cell: Raw) -> Any:
    quoted, text = cell
    if not quoted and not text:
        return None
    if type_ == "text":
        return text.removeprefix(INERT)
    if type_ == "texts":
        return split_texts(text.removeprefix(INERT))
    return text if type_ in ("json", "value") else json.loads(text)


def joined_texts(texts: Sequence[str]) -> str:
    """`a; b`, as people write lists into a cell; JSON where that would not be read as the same."""
    text = LIST.join(texts)
    return text if split_texts(text) == list(texts) else json.dumps(list(texts), ensure_ascii=False)


def split_texts(text: str) -> list[str]:
    """What `joined_texts` was given."""
    if text.startswith("["):
        with suppress(ValueError):
            found = json.loads(text)
            return [str(entry) for entry in found] if isinstance(found, list) else [text]
    return text.split(LIST) if text else []


# Records


def _header(path: str | Path) -> list[tuple[str, CellType]]:
    """Names and types of the columns."""
    tables = {"short": chain(SHORT.columns), "full": chain(RESULT.columns, export_columns({}))}
    try:
        names = [_name(cell) for cell in next(_records(path))]
    except StopIteration:
        raise BenchmarkError(f"{path} is empty; export the run again: karenina export DIR -o FILE") from None
    missing = {
        choice: [column.name for column in needed if column.name not in names]
        for choice, needed in (("full", RESULT.columns), ("short", ALWAYS))
    }
    choice = next((choice for choice, absent in missing.items() if not absent), None)
    if choice is None:
        what = f"is not a table of results: it has no column {missing['short'][0]!r}"
        raise BenchmarkError(f"{path} {what}; write a new one: karenina export DIR -o FILE")
    known: dict[str, CellType] = {column.name: column.type for column in tables[choice]}
    return [(name, known.get(name, "value")) for name in names]


def _cells(row: str, path: str | Path) -> list[Raw]:
    cells: list[Raw] = []
    place, end = 0, ","
    while end == ",":
        found = CELL.match(row, place)  # not `finditer`: from each mark of a row that is none it would look to the end
        if found is None:
            raise BenchmarkError(f"{path} cannot be read: there is a quotation mark within a cell without them")
        quoted, plain, end = found.groups()
        cells.append((True, quoted.replace('""', '"')) if quoted is not None else (False, plain))
        place = found.end()
    return cells


def _records(path: str | Path) -> Iterator[list[Raw]]:
    """The cells of every record. One that a crash cut off is left out."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            text, marks = [], 0
            for line in file:
                text.append(line)
                marks += line.count('"')
                if marks % 2 == 0 and line.endswith(("\n", "\r")):  # else the row continues within quotation marks
                    yield _cells("".join(text), path)
                    text, marks = [], 0
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path} cannot be read: {error}") from error
