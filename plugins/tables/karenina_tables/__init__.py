"""Benchmarks as tables: .csv, .tsv, .xlsx and .jsonl. What does the work is imported for such a file only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karenina_core import hookimpl

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina
    from karenina_core.values.benchmark import BenchmarkData

SUFFIXES = (".csv", ".tsv", ".xlsx", ".jsonl")


@hookimpl
def karenina_load_benchmark(path: Path, data: bytes, app: Karenina, options: Mapping[str, Any]) -> BenchmarkData | None:
    """Read a table of questions; None for other suffixes. Executes nothing, formulas included.

    `options`: `columns` says what columns are (`{"Frage": "question"}`), `sheet` names one of a workbook.
    Raises BenchmarkError with every problem, each with its sheet, row and column.
    """
    if path.suffix.lower() not in SUFFIXES:
        return None
    from .benchmarks import load

    return load(path, data, app, options)


@hookimpl
def karenina_save_benchmark(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes | None:
    """The content of a table; None for other suffixes. Raises BenchmarkError where a table cannot hold it."""
    if path.suffix.lower() not in SUFFIXES:
        return None
    from .saving import save

    return save(benchmark, path, app)
