"""Results item by item."""

from __future__ import annotations

from typing import Any

from ..columns.short import ALWAYS, SHORT, filled_columns, item_table, with_values
from ..frames import backend_package, to_frame
from .view import View


class ItemResults(View):
    """One row for every item."""

    table = SHORT

    def to_dataframe(self, *, columns: str = "short", backend: str = "pandas") -> Any:
        """A row for every item: `short` has what people look at first, `full` everything that is stored; columns
        without anything in them are left out, those of `short` that say who, what and how it ended are always there.

        In pandas lists and mappings are such; polars and pyarrow have lists of texts, and JSON for what is nested.
        Raises ValueError for an unknown choice or backend, PluginError where the backend is not installed.
        """
        table = item_table(columns)
        backend_package(backend)  # nothing is computed for what cannot be made
        found = filled_columns(table, self.results, ALWAYS)
        if backend == "pandas":
            found = with_values(found)
            return to_frame(found, table.rows(self.results, found), backend)
        return to_frame(found, table.written_rows(self.results, found), backend)
