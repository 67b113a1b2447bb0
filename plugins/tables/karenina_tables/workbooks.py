"""Sheets as .xlsx files, by openpyxl. Formulas are read as the values that were computed last; none is ever written.

Before openpyxl sees a file, its parts are counted and measured, and cells are read as a stream, with bounds: neither a
small file that unpacks to a huge one nor a cell in the last row of a sheet takes memory or time.
"""

from __future__ import annotations

import importlib
import io
import math
import posixpath
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from attrs import evolve

from karenina_core.errors import BenchmarkError, PluginError, did_you_mean, one_line

from .cells import Cell, Percent, text_of
from .sheets import MOST_ROWS, MOST_TITLES, Note, Sheet, letters, sheet_of

MOST_PARTS = 1_000  # files of the archive; chosen: there is one for each sheet
MOST_UNPACKED = 64 * 1024 * 1024
"""Bytes; chosen: 100,000 questions of 500 characters fit."""
PIECE = 4_000
"""Characters of a long text in one cell: written as escapes of seven characters, too, they fit."""
MOST_CELLS = 10_000_000
"""Chosen: 200,000 questions with 50 columns."""
MOST_RATIO = 200
"""Unpacked to packed. Chosen: sheets that repeat one row over and over have about 100, bombs have 1000 and more."""
MOST_CHARACTERS = 32_767
"""Of a cell, by the format."""
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff\ud800-\udfff]|_(?=x[0-9A-Fa-f]{4}_)")
"""What XML cannot hold or would change, and what looks like the way in which the format writes it."""
UNTITLED = re.compile(r"[\\*?:/\[\]\x00-\x1f\ufffe\uffff\ud800-\udfff]")
LONGEST_TITLE = 31
"""What the name of a sheet cannot hold, and how long it may be, by the format."""
ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def openpyxl_module(name: str = "openpyxl") -> Any:
    """Raises PluginError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise PluginError(
            "openpyxl is needed for .xlsx files; type: pip install 'karenina-tables[xlsx]', or use .csv"
        ) from error


def read_workbook(
    data: bytes, label: str, wanted: str | None, hidden: str = "", named: Callable[[Sequence[Cell]], bool] = bool
) -> Sheet:
    """The sheet of this name; without one the first that has names of columns as `named` knows them, else the first.
    `hidden` is a column that may go on in others.

    Raises BenchmarkError for anything that is no such file.
    """
    openpyxl = openpyxl_module()
    _measured(data, label)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of validation rules and the like, which are not read
            book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
            names = [sheet.title for sheet in book.worksheets]
            name = wanted
            if wanted is None:
                name = next((one for one in names if any(map(named, _records(book[one], MOST_TITLES)))), *names[:1])
            records = [] if name not in names else [*_records(book[name])]
        notes = _notes(data, str(name)) if name in names else {}
    except Exception as error:  # openpyxl and the parsers beneath it raise anything for a broken file
        if isinstance(error, BenchmarkError):
            raise
        raise BenchmarkError(
            f"{label} cannot be read as a workbook: {one_line(error)}; save it again as .xlsx"
        ) from error
    if name not in names:
        there = ", ".join(map(repr, names)) or "none"
        raise BenchmarkError(f"{label} has no sheet {wanted!r}{did_you_mean(str(wanted), names)}; available: {there}")
    about = f"{label}, sheet {name!r}"
    return _joined(sheet_of(about, records, notes, named=named, facts={"sheet": name}), hidden)


def _joined(sheet: Sheet, column: str) -> Sheet:
    """The sheet with the pieces of a column (`x`, `x 2`, `x 3`) in one."""
    pieces = [name for name in sheet.columns if name.startswith(f"{column} ") and name[len(column) + 1 :].isdecimal()]
    if column not in sheet.columns or not pieces:
        return sheet
    rows = []
    for row in sheet.rows:
        whole = "".join(text_of(row.cells.get(name)) for name in (column, *pieces))
        kept = {name: cell for name, cell in row.cells.items() if name not in pieces}
        rows.append(evolve(row, cells={**kept, column: whole} if whole else kept))
    return evolve(sheet, columns=[name for name in sheet.columns if name not in pieces], rows=rows)


def _split(rows: Sequence[Mapping[str, Cell]], column: str) -> Iterator[dict[str, Cell]]:
    """The rows with the column in pieces."""
    for row in rows:
        text = text_of(row.get(column))
        pieces = [text[place : place + PIECE] for place in range(0, len(text), PIECE)]
        yield {**row, **{_piece(column, number): piece for number, piece in enumerate(pieces, 1)}}


def _piece(column: str, number: int) -> str:
    return column if number == 1 else f"{column} {number}"


def _measured(data: bytes, label: str) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, ValueError, RuntimeError, OSError, EOFError) as error:
        raise BenchmarkError(f"{label} is not a workbook: {one_line(error)}; save it as .xlsx") from None
    unpacked = sum(part.file_size for part in parts)
    if len(parts) > MOST_PARTS or unpacked > MOST_UNPACKED or unpacked > MOST_RATIO * max(len(data), 10_000):
        raise BenchmarkError(
            f"{label} would unpack to {len(parts)} parts of {unpacked} bytes, too much for a sheet; split it, "
            "or save it as .csv"
        )


def _records(sheet: Any, most: int = MOST_ROWS) -> Iterator[list[Cell]]:
    sheet.reset_dimensions()  # what the file says of its own size may be wrong
    cells = 0
    for row in sheet.iter_rows(max_row=most + 1):
        cells += len(row)
        if cells > MOST_CELLS:
            raise BenchmarkError(f"sheet {sheet.title!r} has more than {MOST_CELLS} cells; delete what is not needed")
        yield [_value(cell) for cell in row]


def _value(cell: Any) -> Cell:
    value = cell.value
    if isinstance(value, str):
        return _unescaped(value)
    in_percent = type(value) in (int, float) and cell.number_format.rstrip().endswith("%")
    return Percent(value) if in_percent else value


def _unescaped(text: str) -> str:
    return ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _notes(data: bytes, name: str) -> dict[tuple[int, int], Note]:
    """The notes at the cells of a sheet, by row and column. openpyxl has them only where it holds a whole workbook."""
    found: dict[tuple[int, int], Note] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        book = "xl/workbook.xml"
        if book not in packed.namelist():
            return found
        sheets = {node.get("name"): node.get(RELATION) for node in _nodes(packed, book, "sheet")}
        path = next((target for id_, _, target in _relations(packed, book) if id_ == sheets.get(name)), "")
        for _, kind, target in _relations(packed, path):
            if not kind.endswith("/comments") or target not in packed.namelist():
                continue
            authors = [_unescaped("".join(node.itertext())) for node in _nodes(packed, target, "author")]
            for node in _nodes(packed, target, "comment"):
                row, column = _place(node.get("ref", ""))
                who = int(node.get("authorId", "0"))
                text = "".join(part.text or "" for part in node.iter() if part.tag.rpartition("}")[2] == "t")
                found[row, column] = (_unescaped(text), authors[who] if who < len(authors) else "")
    return found


def _relations(packed: zipfile.ZipFile, part: str) -> Iterator[tuple[str | None, str, str]]:
    """Id, type and target of what a part refers to."""
    folder, _, file = part.rpartition("/")
    path = f"{folder}/_rels/{file}.rels"
    if path in packed.namelist():
        for node in _nodes(packed, path, "Relationship"):
            target = node.get("Target", "")
            place = target[1:] if target.startswith("/") else posixpath.normpath(f"{folder}/{target}")
            yield node.get("Id"), node.get("Type", ""), place


def _nodes(packed: zipfile.ZipFile, part: str, tag: str) -> list[Any]:
    root = ElementTree.fromstring(packed.read(part))
    return [node for node in root.iter() if node.tag.rpartition("}")[2] == tag]


def _place(reference: str) -> tuple[int, int]:
    match = re.fullmatch(r"([A-Z]{1,3})(\d{1,7})", reference)
    if match is None:
        raise ValueError(f"{reference!r} is not a cell")
    place = 0
    for letter in match[1]:
        place = place * 26 + ord(letter) - ord("A") + 1
    return int(match[2]), place - 1


def write_workbook(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Cell]],
    notes: Sequence[Mapping[str, Note]],
    name: str,
    hidden: str,
    above: Sequence[Sequence[Cell]] = (),
) -> bytes:
    """`notes` are those at the names of columns and then those of each row. The column `hidden` is not shown, and goes
    on in others where a cell cannot hold it. `above` are rows without columns over their names.

    Raises ValueError for a text that is too long for a cell.
    """
    openpyxl = openpyxl_module()
    comment = openpyxl_module("openpyxl.comments").Comment
    if hidden in columns:
        rows = list(_split(rows, hidden))
        pieces = dict.fromkeys(name for row in rows for name in row if name.startswith(f"{hidden} "))
        columns = [*columns, *sorted(pieces.keys() - set(columns), key=lambda name: (len(name), name))]
    bold, top = openpyxl.styles.Font(bold=True), openpyxl.styles.Alignment(wrap_text=True, vertical="top")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = UNTITLED.sub(" ", name).strip("' ")[:LONGEST_TITLE] or "questions"
    header = len(above) + 1
    sheet.freeze_panes = f"A{header + 1}"
    records = (*above, columns, *([row.get(column) for column in columns] for row in rows))
    for number, record in enumerate(records, 1):
        for place, value in enumerate(record):
            if value is not None:
                cell = sheet.cell(number, place + 1)
                cell.alignment = top
                _fill(cell, value, columns[place] if place < len(columns) else letters(place))
                if number == header:
                    cell.font = bold
    for number, said in enumerate(notes, header):
        for column, (text, author) in said.items():
            sheet.cell(number, columns.index(column) + 1).comment = comment(_escaped(text), _escaped(author))
    for place, column in enumerate(columns, 1):
        letter = openpyxl.utils.get_column_letter(place)
        longest = max((len(text_of(row.get(column))) for row in rows), default=0)
        sheet.column_dimensions[letter].width = min(max(longest, len(column), 8), 60) + 2
        sheet.column_dimensions[letter].hidden = column.partition(" ")[0] == hidden
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _fill(cell: Any, value: Cell, column: str) -> None:
    if not isinstance(value, str | list | dict):
        cell.value = value
        if isinstance(value, Percent):
            decimals = len(value.shown.partition(".")[2])
            cell.number_format = f"0.{'0' * decimals}%" if decimals else "0%"
        if cell.data_type == "n" and (isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))):
            cell._value = repr(float(value) if isinstance(value, float) else value)  # openpyxl would write 16 digits
        return
    text = _escaped(text_of(value))
    if len(text) > MOST_CHARACTERS:
        raise ValueError(
            f"column {column!r}: a cell of a workbook holds {MOST_CHARACTERS} characters; use .csv or .jsonl"
        )
    cell.value = ""
    cell._value, cell.data_type = text, "s"  # by `value` it would become a formula or an error where it looks like one
    cell.quotePrefix = text[:1] in ("=", "+", "-", "@", "'")


def _escaped(text: str) -> str:
    return UNFIT.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
