"""A sheet: named columns and rows of cells, whatever file it is in; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import Factory, field, frozen

from karenina_core.errors import BenchmarkError

from .cells import Cell, is_blank, text_of

MOST_ROWS = 200_000  # as MOST_COLUMNS
MOST_COLUMNS = 1_000
"""Chosen: far above what people fill in, and a broken file of as many is refused within seconds."""
SHOWN = 20
"""Problems that an error lists; chosen: they fit on a screen."""
Note = tuple[str, str]
"""The text of a note at a cell, and who wrote it."""


@frozen
class Row:
    """The cells of a row by column. Those without content are left out."""

    number: int
    """As spreadsheet programs count: the names of the columns are in row 1."""
    cells: Mapping[str, Cell]
    notes: Mapping[str, Note] = Factory(dict)


@frozen(kw_only=True)
class Sheet:
    """The rows of a table with content."""

    label: str
    """The file and, in a workbook, the sheet: for messages."""
    columns: Sequence[str] = ()
    rows: Sequence[Row] = ()
    notes: Mapping[str, Note] = Factory(dict)
    """At the names of columns."""
    facts: Mapping[str, Any] = Factory(dict)
    """What is to be the same when the sheet is written again: the delimiter, the name of the sheet."""
    textual: bool = False
    """Whether every cell is a text."""


@frozen
class Problems:
    """What is wrong with a sheet, collected."""

    label: str
    found: list[str] = field(factory=list)

    def add(self, row: int | None, column: str | None, message: str) -> None:
        place = [self.label, *([f"row {row}"] if row else []), *([f"column {column!r}"] if column else [])]
        self.found.append(f"{', '.join(place)}: {message}")

    def check(self) -> None:
        """Raises BenchmarkError where there are some."""
        if self.found:
            more = len(self.found) - SHOWN
            rest = [f"... and {more} more problems"] if more > 0 else []
            raise BenchmarkError("\n".join([*self.found[:SHOWN], *rest]))


def sheet_of(
    label: str,
    records: Iterable[Sequence[Cell]],
    notes: Mapping[tuple[int, int], Note] | None = None,
    *,
    header: int = 1,
    **about: Any,
) -> Sheet:
    """The sheet whose first record names the columns. `notes` are by row and column, from 1 and 0 on; `header`
    is the number of the first record.

    Raises BenchmarkError for too many cells, and for columns with content that have no name or share one.
    """
    problems, rows, columns = Problems(label), [], dict[int, str]()
    for number, record in enumerate(records, header):
        if len(record) > MOST_COLUMNS and any(not is_blank(cell) for cell in record[MOST_COLUMNS:]):
            raise BenchmarkError(f"{label}, row {number} has more than {MOST_COLUMNS} columns; delete some")
        filled = {place: cell for place, cell in enumerate(record[:MOST_COLUMNS]) if not is_blank(cell)}
        if filled and number > MOST_ROWS:
            raise BenchmarkError(f"{label} has more than {MOST_ROWS} rows; split it")
        if number == header:
            columns = {place: text_of(cell) for place, cell in filled.items()}
            continue
        for place in filled.keys() - columns.keys():
            problems.add(
                number, None, f"the cell in column {letters(place)} is in a column without a name; give it one"
            )
        cells = {name: cell for place, name in columns.items() if (cell := record_cell(record, place)) is not None}
        if filled:
            said = {name: found for place, name in columns.items() if (found := (notes or {}).get((number, place)))}
            rows.append(Row(number, cells, said))
    names = list(columns.values())
    if not names:
        problems.add(1, None, "names no columns; write their names into the first row")
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.add(1, name, "occurs twice; rename one")
    problems.check()
    heads = {name: found for place, name in columns.items() if (found := (notes or {}).get((1, place)))}
    return Sheet(label=label, columns=tuple(names), rows=rows, notes=heads, **about)


def record_cell(record: Sequence[Cell], place: int) -> Cell:
    cell = record[place] if place < len(record) else None
    return None if cell == "" else cell


def letters(place: int) -> str:
    """What spreadsheet programs call the column at this place, from 0 on."""
    text, place = "", place + 1
    while place:
        place, rest = divmod(place - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
