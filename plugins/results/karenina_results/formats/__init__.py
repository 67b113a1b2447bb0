"""The file formats json, jsonl, csv, parquet, sqlite and junit."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

__all__ = ["karenina_register_formats"]


@hookimpl
def karenina_register_formats(registry: Any) -> None:
    registry.add("karenina_results.formats.json_file:JsonFile", name="json")
    registry.add("karenina_results.jsonl:JsonLinesFile", name="jsonl")
    registry.add("karenina_results.formats.csv_file:CsvFile", name="csv")
    registry.add("karenina_results.formats.parquet_file:ParquetFile", name="parquet")
    registry.add("karenina_results.sinks.sqlite:SqliteFile", name="sqlite")
    registry.add("karenina_results.formats.junit_file:JunitFile", name="junit")
