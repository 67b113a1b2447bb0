"""Sheets as text files: .csv, .tsv and .jsonl."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from karenina_calls.files.bounded import MOST_BYTES, json_bounded

from karenina_core.errors import BenchmarkError

from .cells import Cell, text_of
from .sheets import MOST_TITLES, Sheet, sheet_of

DELIMITERS = (",", ";", "\t", "|")
WESTERN, MARKED = "cp1252", "utf-8-sig"
"""What programs of Western Europe write that write no Unicode, and UTF-8 with the mark by which they know it."""
UNPRINTED = re.compile(r"[\0-\x08\x0e-\x1f\x7f]")
INERT = "'"
ACTIVE = re.compile(r"'*[\s\0\ufeff\u200b-\u200f\u2060]*[=+\-@\uff1d\uff0b\uff0d\uff20]|'*[\t\r\n]")
"""How texts begin that a spreadsheet program might take for a formula or a command."""
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?", re.ASCII)


def read_delimited(data: bytes, label: str, suffix: str, named: Callable[[Sequence[Cell]], bool] = bool) -> Sheet:
    """The sheet in a file of separated values. Raises BenchmarkError."""
    text, encoding = _decoded(data, label)
    csv.field_size_limit(MOST_BYTES)
    delimiter = "\t" if suffix == ".tsv" else max(DELIMITERS, key=lambda mark: _columns(text, mark, named))
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            records.append([_read(cell) for cell in record])
    except csv.Error as error:
        what = "put quotation marks around cells that hold quotation marks, delimiters or line breaks"
        raise BenchmarkError(f"{label}, row {len(records) + 1}: {error}; {what}") from None
    facts = {"delimiter": delimiter, "lines": "\r\n" if "\r\n" in text else "\n", "encoding": encoding}
    return sheet_of(label, records, named=named, facts=facts, textual=True)


def _columns(text: str, delimiter: str, named: Callable[[Sequence[Cell]], bool]) -> tuple[bool, int]:
    """Whether there are names of columns with this delimiter, and how many, else of how many cells the first row is."""
    try:
        first = list(
            islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), MOST_TITLES + 1)
        )
    except csv.Error:
        return False, 0
    return max(
        ((True, len(record)) for record in first if named(record)), default=(False, len(first[0]) if first else 0)
    )


def _decoded(data: bytes, label: str, other: str | None = WESTERN) -> tuple[str, str]:
    """The text, and the encoding to write it in again. `other` is what a file may be in that is not Unicode."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    marked = wide or data.startswith(codecs.BOM_UTF8)
    try:
        return data.decode("utf-16" if wide else "utf-8-sig"), MARKED if marked else "utf-8"
    except UnicodeDecodeError as error:
        place = error.start
    with suppress(UnicodeDecodeError):
        if other and not marked and UNPRINTED.search(text := data.decode(other)) is None:
            return text, other
    raise BenchmarkError(f"{label}: not UTF-8 at byte {place}; save it as 'CSV UTF-8', or as .xlsx")


def _read(cell: str) -> str:
    return cell[1:] if cell.startswith(INERT) and ACTIVE.match(cell) else cell


def _written(cell: Cell) -> str:
    """No text begins like a formula: it gets an apostrophe, as does one that would lose its own."""
    text = text_of(cell)
    return INERT + text if ACTIVE.match(text) and not NUMBER.fullmatch(text) else text


def write_delimited(
    records: Iterable[Sequence[Cell]], delimiter: str, lines: str, encoding: str | None = None
) -> bytes:
    """In this encoding as far as it has all letters. Without one, UTF-8, marked as such where spreadsheet programs
    would take it for something else.

    Raises UnicodeEncodeError for lone surrogates.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=lines)
    writer.writerows(map(_written, record) for record in records)
    text = out.getvalue()
    if encoding == WESTERN:
        with suppress(UnicodeEncodeError):
            return text.encode(WESTERN)
    plain = encoding == "utf-8" or (encoding is None and text.isascii())
    return text.encode("utf-8" if plain else MARKED)


def read_lines(data: bytes, label: str) -> Sheet:
    """The sheet in a file of JSON objects, one a line: their keys are columns. Raises BenchmarkError."""
    found: list[dict[str, Cell]] = []
    for number, line in enumerate(_decoded(data, label, None)[0].split("\n"), 1):
        if not line.strip():
            found.append({})
            continue
        try:
            value = json_bounded(line)
            json.dumps(value, allow_nan=False)
        except ValueError as error:
            raise BenchmarkError(f"{label}, row {number}: not JSON: {error}") from None
        if not isinstance(value, dict):
            raise BenchmarkError(f'{label}, row {number}: a row is one JSON object, {{"question": "...", ...}}')
        found.append(value)
    columns = list(dict.fromkeys(key for row in found for key in row))
    return sheet_of(label, [columns, *([row.get(column) for column in columns] for row in found)], header=0)


def write_lines(columns: Sequence[str], rows: Sequence[Mapping[str, Cell]]) -> bytes:
    """The first line names all columns; in others, those without content are left out."""
    out = []
    for number, row in enumerate(rows):
        cells = {name: _member(row.get(name)) for name in columns}
        line = {name: cell for name, cell in cells.items() if cell is not None or number == 0}
        out.append(f"{json.dumps(line, allow_nan=False)}\n")
    return "".join(out).encode("ascii")


def _member(cell: Cell) -> Cell:
    return cell if cell is None or isinstance(cell, dict | list | str | bool | int | float) else text_of(cell)
