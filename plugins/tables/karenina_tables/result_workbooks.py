"""The format xlsx of results: a workbook for people, one row an item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from karenina_results.columns.short import filled_columns, item_table
from karenina_results.formats.csv_file import joined_texts

from karenina_core import VerificationResult, hookimpl

from .sheets import MOST_ROWS
from .workbooks import MOST_CHARACTERS, openpyxl_module, write_workbook

CUT = " [cut]"
"""What follows a text that no cell can hold."""
ROOM = 25_000
"""Characters of a text that are kept then. Chosen: with what has to be escaped they mostly fit."""


class XlsxFile:
    """The same columns as in a CSV file. Texts that are too long for a cell are cut; nothing is ever a formula."""

    name = "xlsx"
    suffixes = (".xlsx",)

    def __init__(self, columns: str = "short") -> None:
        """Raises ValueError where there is no such choice."""
        self.columns = columns
        item_table(columns)

    def check(self) -> None:
        """Raises PluginError where openpyxl is missing."""
        openpyxl_module()

    def with_columns(self, columns: str) -> XlsxFile:
        """The same with other columns."""
        return XlsxFile(columns)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        table = item_table(self.columns)
        columns = filled_columns(table, results)
        names = [column.name for column in columns]
        rows = [
            {name: _cell(value) for name, value in zip(names, row, strict=True)}
            for row in table.written_rows(results, columns)
        ]
        if len(rows) >= MOST_ROWS:
            raise OSError(0, f"a sheet holds fewer than {MOST_ROWS} rows; use .csv or .parquet")
        path.write_bytes(write_workbook(names, rows, [{}] * (len(rows) + 1), "results", hidden=""))


def _cell(value: Any) -> Any:
    text = joined_texts(value) if isinstance(value, list) else value
    return f"{text[:ROOM]}{CUT}" if isinstance(text, str) and len(text) > MOST_CHARACTERS - len(CUT) else text


@hookimpl
def karenina_register_formats(registry: Any) -> None:
    registry.add(XlsxFile)
