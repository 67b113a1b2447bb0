"""The format parquet: the columns of the format csv, typed, and every result as a whole."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_core import VerificationResult
from karenina_core.errors import BenchmarkError

from ..columns.item_columns import RESULT
from ..columns.table import Column
from ..frames import arrow_schema, backend_package
from ..records import portable_record, result_of
from .about import export_columns

WHOLE = "result"
"""The column with the JSON of the result: the others say parts of it."""
ROWS = 1_000  # with CHARACTERS
CHARACTERS = 8 << 20
"""What a row group holds at most: rows, or characters of JSON; chosen, as it is in memory while it is written."""


class ParquetFile:
    """One row an item. The column `result` has everything as JSON, so that nothing is lost."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def check(self) -> None:
        backend_package("pyarrow")

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        pyarrow = backend_package("pyarrow")
        whole = Column(WHOLE, "json", lambda row: None, "The whole result.")
        columns = (*RESULT.columns_for(results), *export_columns(manifest), whole)
        schema = arrow_schema(columns)
        with _parquet().ParquetWriter(path, schema, compression="zstd") as writer:
            for rows in _groups(results, columns[:-1]):
                cells = zip(*rows, strict=True)
                arrays = [pyarrow.array(list(values), field.type) for values, field in zip(cells, schema, strict=True)]
                writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=ROWS)

    def read(self, path: Path) -> Iterator[VerificationResult]:
        """The results of a file. Raises BenchmarkError where it has none, PluginError without pyarrow."""
        pyarrow = backend_package("pyarrow")
        try:
            with _parquet().ParquetFile(path, pre_buffer=False) as file:
                if WHOLE not in file.schema_arrow.names:
                    raise ValueError(f"it has no column {WHOLE!r}, so it holds no whole results")
                for batch in file.iter_batches(batch_size=100, columns=[WHOLE]):
                    for text in batch.column(0):
                        yield result_of(text.as_py())
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise BenchmarkError(f"{path} cannot be read: {error}") from error


def _parquet() -> Any:
    return importlib.import_module("pyarrow.parquet")


def _groups(results: Iterable[VerificationResult], columns: Sequence[Column]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows with the whole result at their end, as many at a time as a row group holds."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for index, result in enumerate(results):
        (source,) = RESULT.sources([result], index)
        text = portable_record(result)
        rows.append((*(column.written(source) for column in columns), text))
        size += len(text)
        if len(rows) >= ROWS or size >= CHARACTERS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
