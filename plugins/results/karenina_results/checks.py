"""What the conformance checks of the sinks are given: how to read back what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from karenina_core import VerificationResult, VerificationResultSet

from .formats.csv_file import read_rows
from .formats.parquet_file import ParquetFile
from .sinks.sqlite import read_file

Stored = Iterable[VerificationResult | str]


def _where_there_is_a_file(read: Callable[[Path], Stored], target: str) -> Stored:
    return read(Path(target)) if Path(target).exists() else ()


def _ids(path: Path) -> list[str]:
    return [row["result_id"] for row in read_rows(path)]


JSONL: dict[str, Any] = {"jsonl": {"read_back": VerificationResultSet.load}}
SINKS: dict[str, Any] = {
    "csv": {"read_back": partial(_where_there_is_a_file, _ids)},
    "parquet": {"read_back": partial(_where_there_is_a_file, ParquetFile().read)},
    "postgres": "it needs a server: the tests of this package start one",
    "sqlite": {"read_back": partial(_where_there_is_a_file, read_file)},
}
