"""The format jsonl: what a run directory holds, every result once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from karenina_runs.results.stored import stored_results

from karenina_core import VerificationResult

from ..records import portable_record


class JsonLinesFile:
    """One result a line, and nothing else."""

    name = "jsonl"
    suffixes = (".jsonl",)

    def write(self, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{portable_record(result)}\n" for result in results)

    def read(self, path: Path) -> Iterator[VerificationResult]:
        """The results of a file. Raises BenchmarkError naming the line that is none."""
        return iter(stored_results(path))
