"""A sheet: named columns and rows of cells, whatever file it is in; and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from attrs import Factory, field, frozen

from karenina_core.errors import BenchmarkError

from .cells import Cell, as_json, is_blank, text_of

MOST_ROWS = 200_000  # as MOST_COLUMNS
MOST_COLUMNS = 1_000
"""Chosen: far above what people fill in, and a broken file of as many is refused within seconds."""
MOST_TITLES = 20
"""Rows above the names of columns; chosen: a title, a date and a few lines of explanation."""
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
    named: Callable[[Sequence[Cell]], bool] = bool,
    facts: Mapping[str, Any] | None = None,
    textual: bool = False,
) -> Sheet:
    """The sheet whose columns are named by the first record for which `named` says so, else by the very first one.
    What is above is kept in the facts, as `above`. `notes` are by row and column, from 1 and 0 on; `header` is the
    number of the first record.

    Raises BenchmarkError for too many cells, and for columns with content that have no name or share one.
    """
    problems, rows, columns = Problems(label), [], dict[int, str]()
    unnamed: dict[int, list[int]] = {}
    above, records = _titles(iter(records), named)
    header += len(above)
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
            unnamed.setdefault(place, []).append(number)
        cells = {name: cell for place, name in columns.items() if (cell := record_cell(record, place)) is not None}
        if filled:
            said = {name: found for place, name in columns.items() if (found := (notes or {}).get((number, place)))}
            rows.append(Row(number, cells, said))
    names = list(columns.values())
    if not names:
        problems.add(header, None, "names no columns; write their names into this row")
    for place, numbers in sorted(unnamed.items()) if names else ():
        more = f" (and {len(numbers) - 1} more rows)" if numbers[1:] else ""
        column = letters(place)
        problems.add(numbers[0], None, f"the cell in column {column}{more} is in a column without a name; give it one")
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        problems.add(header, name, "occurs twice; rename one")
    problems.check()
    heads = {name: found for place, name in columns.items() if (found := (notes or {}).get((header, place)))}
    about = {**(facts or {}), **({"above": above} if above else {})}
    return Sheet(label=label, columns=tuple(names), rows=rows, notes=heads, facts=about, textual=textual)


def _titles(
    records: Iterator[Sequence[Cell]], named: Callable[[Sequence[Cell]], bool]
) -> tuple[list[list[Any]], Iterator[Sequence[Cell]]]:
    """The records above the names of columns, as JSON, and the others."""
    first = list(islice(records, MOST_TITLES + 1))
    place = next((place for place, record in enumerate(first) if named(record)), None)
    if place is None:  # a title stands alone in its row
        several = (place for place, record in enumerate(first) if sum(not is_blank(cell) for cell in record) > 1)
        place = next(several, 0)
    return [list(map(as_json, record)) for record in first[:place]], chain(first[place:], records)


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
