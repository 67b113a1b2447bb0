"""Benchmarks as JSON-LD files. Here is only a quick look at a file; the modules that do the work are imported later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from karenina_core import hookimpl

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina
    from karenina_core.values.benchmark import BenchmarkData

__all__ = ["karenina_load_benchmark", "karenina_save_benchmark"]

SUFFIXES = (".jsonld", ".json")
MARKS = (b'"DataFeed"', b'"dataFeedElement"')


@hookimpl
def karenina_load_benchmark(path: Path, data: bytes, app: Karenina) -> BenchmarkData | None:
    """Read a JSON-LD benchmark; None for other files. Executes nothing.

    A `.jsonld` file is always taken. Any other file is taken when it contains a data feed.
    Raises BenchmarkError with every problem of the file.
    """
    if path.suffix.lower() != ".jsonld" and not any(mark in data for mark in MARKS):
        return None
    from .files import load

    return load(path, data, app)


@hookimpl
def karenina_save_benchmark(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes | None:
    """The content of a `.jsonld` or `.json` file; None for other suffixes.

    Raises BenchmarkError when the benchmark holds something that such a file cannot hold.
    """
    if path.suffix.lower() not in SUFFIXES:
        return None
    from .files import save

    return save(benchmark, path, app)
