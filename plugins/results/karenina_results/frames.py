"""Rows become a DataFrame of pandas or polars, or a table of pyarrow. Each package is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

from attrs import evolve

from karenina_core import VerificationResult
from karenina_core.errors import PluginError, did_you_mean
from karenina_core.plugin.registry import is_installed

from .columns.table import Column, Table

Backend = Literal["pandas", "polars", "pyarrow"]
Rows = Iterable[Sequence[Any]]

BACKENDS = get_args(Backend)
PANDAS = {
    "text": "string",
    "json": "string",
    "texts": "object",
    "whole": "Int64",
    "number": "Float64",
    "boolean": "boolean",
    "value": "object",
}
"""These types keep a missing value distinct from every other one, and turn no whole number into a floating one."""
POLARS = {"text": "String", "json": "String", "value": "String", "whole": "Int64", "number": "Float64"}
LISTS = frozenset({"keywords", "warnings", "answering_mcp_servers"})
"""Columns whose JSON is a list of texts: in a frame they are lists, to be exploded."""
ARROW = {"text": "string", "json": "string", "value": "string", "whole": "int64", "number": "float64"}


def backend_package(name: str) -> Any:
    """The package of a backend. Raises ValueError for an unknown one, PluginError where it is not installed."""
    if name not in BACKENDS:
        raise ValueError(
            f"there is no backend {name!r}{did_you_mean(name, BACKENDS)}; available: {', '.join(BACKENDS)}"
        )
    if not is_installed(name):
        what = f"pip install 'karenina-results[{name}]'"
        raise PluginError(f"the package {name!r} is not installed; install it with: {what}")
    return importlib.import_module(name)


def frame(table: Table, results: Sequence[VerificationResult], backend: str = "pandas") -> Any:
    """The results as a table of this kind: a DataFrame of pandas or polars, or a `pyarrow.Table`.

    Raises ValueError for an unknown backend, PluginError where its package is not installed.
    """
    backend_package(backend)  # nothing is computed for what cannot be made
    columns = [evolve(c, type="texts") if c.name in LISTS else c for c in table.columns_for(results)]
    rows = table.rows if backend == "pandas" else table.written_rows
    return to_frame(columns, rows(results, columns), backend)


def to_frame(columns: Sequence[Column], rows: Rows, backend: str = "pandas") -> Any:
    """Rows of cells as `Table.rows` (pandas) or `Table.written_rows` (polars, pyarrow) gives them.

    Raises like `frame`.
    """
    package = backend_package(backend)
    cells: list[list[Any]] = [[] for _ in columns]
    for row in rows:
        for values, value in zip(cells, row, strict=True):
            values.append(value)
    filled = list(zip(columns, cells, strict=True))
    if backend == "pandas":
        series = {column.name: package.Series(values, dtype=PANDAS[column.type]) for column, values in filled}
        return package.DataFrame(series, columns=[column.name for column in columns])
    if backend == "polars":
        types = {column.type: getattr(package, POLARS.get(column.type, "Boolean")) for column in columns}
        types["texts"] = package.List(package.String)
        return package.DataFrame([package.Series(c.name, values, dtype=types[c.type]) for c, values in filled])
    schema = arrow_schema(columns)
    arrays = [package.array(values, type=known.type) for values, known in zip(cells, schema, strict=True)]
    return package.Table.from_arrays(arrays, schema=schema)


def arrow_schema(columns: Sequence[Column]) -> Any:
    """The `pyarrow.Schema` of columns. The metadata of a field names its type of cells, `json` and `value` among them.

    Raises PluginError where pyarrow is not installed.
    """
    pyarrow = backend_package("pyarrow")
    return pyarrow.schema(
        [pyarrow.field(c.name, _arrow_type(pyarrow, c.type), metadata={"karenina": c.type}) for c in columns]
    )


def _arrow_type(pyarrow: Any, type_: str) -> Any:
    return pyarrow.list_(pyarrow.string()) if type_ == "texts" else getattr(pyarrow, ARROW.get(type_, "bool_"))()
