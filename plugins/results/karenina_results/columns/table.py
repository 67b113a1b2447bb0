"""Cells, columns and tables: how results become rows. DataFrames, CSV and Parquet all read them here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve, field, frozen, has
from karenina_runs.results.lines import plain

from karenina_core import VerificationResult

CellType = Literal["text", "whole", "number", "boolean", "json", "texts", "value"]
"""What the cells of a column hold, each None where there is nothing to hold:

- `text`: a text that UTF-8 can hold.
- `whole`: a whole number of 64 bits.
- `number`: a finite floating point number.
- `boolean`: True or False.
- `json`: JSON text of something nested.
- `texts`: a list of texts.
- `value`: what was found, of whatever type. Where a column has one type (polars, pyarrow, CSV, Parquet) it is JSON
  text, which says exactly what it was; in pandas it is the Python value.
"""
LARGEST = 2**63
"""Whole numbers from -LARGEST up to it, itself left out, have 64 bits."""


def as_json(value: Any) -> str:
    """JSON text that is always writable: numbers without a value are null, lone surrogates are escaped, and what is
    nested too deeply or is too large a number is a text that says so."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_other)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps(value := plain(value, []), ensure_ascii=False, allow_nan=False)
    return text if _writable(text) else json.dumps(plain(value, []))


def cell(type_: CellType, value: Any) -> Any:
    """The value as a cell; None where it is of another kind than the column, so that one odd item spoils no column.

    Texts come out of everything: what is no text becomes JSON. Nothing else is converted, except that a whole number
    is a number too.
    """
    if value is None:
        return None
    if type_ == "text":
        text = value if isinstance(value, str) else as_json(value)
        return text if _writable(text) else text.encode("utf-8", "replace").decode("utf-8")
    if type_ == "json":
        return as_json(value)
    if type_ == "texts":
        return [cell("text", entry) for entry in value] if isinstance(value, list | tuple) else None
    if type_ == "value":
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if type_ == "whole":
        return value if isinstance(value, int) and -LARGEST <= value < LARGEST else None
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def written(type_: CellType, value: Any) -> Any:
    """The value as a cell of a place where a column has one type: like `cell`, but what is a `value` is JSON text."""
    found = cell(type_, value)
    return as_json(found) if type_ == "value" and found is not None else found


def _writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _other(value: Any) -> Any:
    """What JSON has no form for: sets are lists, mappings are objects, everything else is its text."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return dict(value) if isinstance(value, Mapping) else str(value)


@frozen
class Row:
    """What one row is read from: a result, its place in the set, and what of the result the row is about."""

    result: VerificationResult
    index: int = 0
    item: Any = None


@frozen
class Column:
    """One column: its name, the type of its cells, and how a cell is read."""

    name: str
    type: CellType
    read: Callable[[Row], Any] = field(repr=False)
    about: str = ""
    """What the cells say, where the name does not."""
    per_result: bool = True
    """Whether all rows of a result have the same cell: it can then be read of a row that has no `item`."""

    def cell(self, row: Row) -> Any:
        """The cell as a Python value."""
        return cell(self.type, self.read(row))

    def written(self, row: Row) -> Any:
        """The cell where a column has one type: a `value` is JSON text."""
        return written(self.type, self.read(row))


def at(path: str) -> Callable[[Row], Any]:
    """Reads a field of the result, such as `template.verify_result`; None where something on the way is missing."""
    steps = path.split(".")
    return lambda row: _found(row.result, steps)


def of_item(path: str) -> Callable[[Row], Any]:
    """The same of what the row is about, such as `trait.scale.min`; an empty path is the whole of it."""
    steps = path.split(".") if path else []
    return lambda row: _found(row.item, steps)


def _found(value: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if has(type(value)):
            value = getattr(value, step)
        elif isinstance(value, Mapping):
            value = value.get(step)
        else:
            return None
    return value


def named(path: str, inner: str = "", *, key: str = "name") -> Callable[[Row], Any]:
    """Reads what a mapping of the result says about a name, or `inner` of that; the item has the name at `key`."""
    mapping, name = at(path), of_item(key)

    def read(row: Row) -> Any:
        values = mapping(row)
        value = values.get(name(row)) if isinstance(values, Mapping) else None
        return _found(value, [inner]) if inner else value

    return read


def stored(part: str, type_: CellType, *names: str, about: str = "") -> tuple[Column, ...]:
    """Columns of one type that are called as the fields of a part of the result which they show."""
    return tuple(Column(name, type_, at(f"{part}.{name}"), about) for name in names)


def own(name: str, type_: CellType, read: Callable[[Row], Any], about: str = "") -> Column:
    """A column whose cell depends on what of the result a row is about."""
    return Column(name, type_, read, about, per_result=False)


Found = tuple[Hashable, Column]
"""A column that only some results have, and what distinguishes it from others that would have the same name."""


@frozen
class Table:
    """A kind of table over results."""

    name: str
    columns: tuple[Column, ...]
    """Those that every table of the kind has, in order."""
    items: Callable[[VerificationResult], Iterable[Any]] = field(default=lambda result: (None,), repr=False)
    """What a result has rows about, one row each."""
    more: Callable[[VerificationResult], Iterable[Found]] = field(default=lambda result: (), repr=False)
    """The columns that a result has beside the fixed ones."""
    more_after: str | None = None
    """The fixed column that they follow; None: at the end."""

    def columns_for(self, results: Iterable[VerificationResult]) -> tuple[Column, ...]:
        """The columns of a table of these results, which are read once.

        Columns that only some results have are in alphabetical order; of two with one name, the second gets a number.
        """
        found: dict[Hashable, Column] = {}
        for result in results:
            for key, column in self.more(result):
                found.setdefault(key, column)
        names = {column.name for column in self.columns}
        more = []
        for _, column in sorted(found.items(), key=lambda pair: (pair[1].name, repr(pair[0]))):
            plain = name = cell("text", column.name)
            number = 1
            while name in names:
                number += 1
                name = f"{plain}_{number}"
            names.add(name)
            more.append(evolve(column, name=name))
        place = len(self.columns)
        if self.more_after is not None:
            place = [column.name for column in self.columns].index(self.more_after) + 1
        return (*self.columns[:place], *more, *self.columns[place:])

    def sources(self, results: Iterable[VerificationResult], start: int = 0) -> Iterator[Row]:
        """What the rows are read from, result by result; `start` is the index of the first result."""
        for index, result in enumerate(results, start):
            for item in self.items(result):
                yield Row(result, index, item)

    def written_rows(
        self, results: Iterable[VerificationResult], columns: Sequence[Column], start: int = 0
    ) -> Iterator[tuple[Any, ...]]:
        """Rows for a place where a column has one type, one after the other: nothing is kept in memory."""
        return self._rows(results, columns, start, written)

    def rows(
        self, results: Iterable[VerificationResult], columns: Sequence[Column], start: int = 0
    ) -> Iterator[tuple[Any, ...]]:
        """Rows of Python values, one after the other."""
        return self._rows(results, columns, start, cell)

    def _rows(
        self,
        results: Iterable[VerificationResult],
        columns: Sequence[Column],
        start: int,
        convert: Callable[[CellType, Any], Any],
    ) -> Iterator[tuple[Any, ...]]:
        """Cells that all rows of a result have in common are read once."""
        for index, result in enumerate(results, start):
            shared: list[Any] | None = None
            for item in self.items(result):
                row = Row(result, index, item)
                if shared is None:
                    shared = [convert(c.type, c.read(row)) if c.per_result else None for c in columns]
                yield tuple(
                    value if c.per_result else convert(c.type, c.read(row))
                    for c, value in zip(columns, shared, strict=True)
                )

    def column(self, name: str) -> Column:
        """The fixed column of this name. Raises KeyError."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)
