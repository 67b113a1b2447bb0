"""The format sqlite: a database that anything can query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from karenina_core import VerificationResult

from ..sinks.sqlite import read_file, write_file


class SqliteFile:
    """The tables and views of the sinks sqlite and postgres."""

    name = "sqlite"
    suffixes = (".sqlite", ".sqlite3", ".db")

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        write_file(results, path, manifest)

    def read(self, path: Path) -> Iterator[VerificationResult]:
        """The results of a database. Raises BenchmarkError where it has none."""
        return read_file(path)
