"""The sinks csv and parquet: files that are written when the run ends."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

from attrs import define, frozen
from karenina_runs.results.exports import export_results
from karenina_runs.results.sinks import RunInfo
from karenina_runs.results.stored import stored_results

from karenina_core import VerificationResult
from karenina_core.errors import PluginError

from ..columns.item_columns import RESULT
from ..columns.table import Row
from ..formats.csv_file import CsvFile, merge_rows, read_rows, write_rows
from ..formats.parquet_file import ParquetFile
from ..jsonl import JsonLines
from ..records import portable_record, refuse, result_of

Write = Callable[[Iterable[VerificationResult], Path, Mapping[str, Any]], None]
Identity = tuple[Any, ...]
Again = Collection[str]
"""Ids of results in the file whose places others take."""
IDENTIFYING = ("result_id", "outcome", "timestamp", "raw_llm_response")
"""Cells that distinguish a result from another one of the same id."""


class TableSink:
    """Keeps results as JSON lines beside the file, `FILE.partial.jsonl`, and writes the file when it is closed.

    Which columns there are is known only then. After a crash the lines are there, readable, and the next run with the
    same target continues with them. What is in the file already stays, but for results that a resumed run replaces.
    """

    def __init__(self, path: Path, rows: Callable[[Path], Iterator[Identity]], added: Callable[..., None]) -> None:
        self._path = path
        self._rows = rows
        self._added = added
        self._lines_path = path.with_name(f"{path.name}.partial.jsonl")
        self._lines: JsonLines | None = None
        self._claim: IO[bytes] | None = None
        self._known: dict[str, int] = {}
        """What is in the file, as a hash, by the id of the result."""
        self._run: RunInfo | None = None

    async def open(self, run: RunInfo) -> None:
        """Raises PluginError where another run writes to the file, BenchmarkError where it is no such file."""
        self._run = run
        self._claim = _claimed(self._lines_path)
        try:
            if self._path.exists():
                self._known = await asyncio.to_thread(lambda: {row[0]: hash(row) for row in self._rows(self._path)})
            self._lines = JsonLines(str(self._lines_path))
            await self._lines.open(run)
        except BaseException:
            if self._lines_path.stat().st_size == 0:
                self._lines_path.unlink()
            self._release()
            raise

    async def write(self, result: VerificationResult) -> None:
        """Raises PluginError where another result of this id is there and the run was not resumed."""
        if self._lines is None or self._run is None:
            return
        identifier = result.metadata.result_id
        if identifier not in self._known or identifier in self._lines.ids:
            await self._lines.write(result)
            return
        written = result_of(portable_record(result, self._run.secrets))
        if self._known[identifier] == hash(_identity(written)):
            return
        if not self._run.resumed:
            refuse(written)
        await self._lines.write(result)

    async def close(self, summary: Mapping[str, Any]) -> None:
        if self._lines is None:
            return
        lines, self._lines = self._lines, None
        try:
            await lines.close(summary)
            again = frozenset(lines.ids) & self._known.keys()
            file = _Writer(partial(self._added, self._path, again))
            about = {"run_name": self._run.run_name} if self._run is not None else {}

            def finish() -> None:
                export_results(stored_results(self._lines_path), self._path, file, about)
                os.unlink(self._lines_path)

            await asyncio.to_thread(finish)
        finally:
            self._release()

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None


def _claimed(path: Path) -> IO[bytes]:
    """The file, open and claimed until it is closed, whatever ends this process.

    Raises PluginError where another run has it.
    """
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                return path.open("ab")  # a file system without locks
            raise PluginError(f"another run is writing to {path}; give each run a file of its own") from None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # the other run ended in between, and took it away


@define
class _Writer:
    """A format that also writes what was there before."""

    write: Write
    name: str = "added"
    suffixes: tuple[str, ...] = ()


@frozen
class _Results:
    """Results that can be read several times, as those of a file can."""

    read: Callable[[], Iterator[VerificationResult]]

    def __iter__(self) -> Iterator[VerificationResult]:
        return self.read()


def csv_sink(target: str = "") -> TableSink:
    """`csv:FILE`."""
    cells = itemgetter(*IDENTIFYING)
    return TableSink(_path("csv", target), lambda path: map(cells, read_rows(path)), _csv_added)


def parquet_sink(target: str = "") -> TableSink:
    """`parquet:FILE`."""
    path = _path("parquet", target)
    ParquetFile().check()
    return TableSink(path, lambda path: map(_identity, ParquetFile().read(path)), _parquet_added)


def _path(name: str, target: str) -> Path:
    if not target:
        raise PluginError(f"it needs a file: {name}:FILE")
    return Path(target)


def _identity(result: VerificationResult) -> Identity:
    row = Row(result)
    return tuple(RESULT.column(name).written(row) for name in IDENTIFYING)


def _csv_added(
    before: Path, again: Again, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]
) -> None:
    if not before.exists():
        CsvFile("full").write(results, path, manifest)
        return
    new, instead = (path.with_name(f"{path.name}.{name}") for name in ("new", "instead"))

    def some(inside: bool) -> Iterator[VerificationResult]:
        return (result for result in results if (result.metadata.result_id in again) == inside)

    try:
        start = sum(1 for _ in read_rows(before))
        write_rows(_Results(lambda: some(inside=False)), new, manifest, start=start)
        write_rows(_Results(lambda: some(inside=True)), instead, manifest)
        with path.open("w", encoding="utf-8", newline="") as file:
            merge_rows([before, new], file, instead)
    finally:
        new.unlink(missing_ok=True)
        instead.unlink(missing_ok=True)


def _parquet_added(
    before: Path, again: Again, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]
) -> None:
    found = (result for result in results if result.metadata.result_id in again) if again else ()
    instead = {result.metadata.result_id: result for result in found}

    def both() -> Iterator[VerificationResult]:
        for result in ParquetFile().read(before):
            yield instead.get(result.metadata.result_id, result)
        yield from (result for result in results if result.metadata.result_id not in instead)

    ParquetFile().write(_Results(both) if before.exists() else results, path, manifest)
