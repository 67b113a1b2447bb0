"""The sinks csv and parquet: files that are written when the run ends."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from karenina_core import VerificationResult
from karenina_core.errors import PluginError
from karenina_core.run.exports import export_results
from karenina_core.run.sinks import RunInfo
from karenina_core.run.stored import stored_results

from ..columns import RESULT, Row
from ..formats.csv_file import CsvFile, merge_rows, read_rows, write_rows
from ..formats.parquet_file import ParquetFile
from ..jsonl import JsonLines
from ..records import portable_record, refuse, result_of

__all__ = ["TableSink", "csv_sink", "parquet_sink"]

Write = Callable[[Iterable[VerificationResult], Path, Mapping[str, Any]], None]
Told = tuple[Any, ...]
TOLD = ("result_id", "outcome", "timestamp", "raw_llm_response")
"""Cells that tell a result from another one of the same id."""


class TableSink:
    """Keeps results as JSON lines beside the file, `FILE.partial.jsonl`, and writes the file when it is closed.

    Which columns there are is known only then. After a crash the lines are there, readable, and the next run with the
    same target goes on with them. What is in the file already stays in it.
    """

    def __init__(self, path: Path, rows: Callable[[Path], Iterator[Told]], added: Callable[[Path], Write]) -> None:
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
            self._known = await asyncio.to_thread(self._in_the_file)
            self._lines = JsonLines(str(self._lines_path))
            await self._lines.open(run)
        except BaseException:
            if self._lines_path.stat().st_size == 0:
                self._lines_path.unlink()
            self._release()
            raise

    async def write(self, result: VerificationResult) -> None:
        """Raises PluginError where another result of this id is there."""
        if self._lines is None or self._run is None:
            return
        if result.metadata.result_id not in self._known:
            await self._lines.write(result)
            return
        written = result_of(portable_record(result, self._run.secrets))
        if self._known[result.metadata.result_id] != hash(_told(written)):
            refuse(written)

    async def close(self, summary: Mapping[str, Any]) -> None:
        if self._lines is None:
            return
        lines, self._lines = self._lines, None
        try:
            await lines.close(summary)
            await asyncio.to_thread(self._finish)
        finally:
            self._release()

    def _in_the_file(self) -> dict[str, int]:
        return {told[0]: hash(told) for told in self._rows(self._path)} if self._path.exists() else {}

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _finish(self) -> None:
        new = stored_results(self._lines_path)
        file = _Writer(self._added(self._path))
        about = {"run_name": self._run.run_name} if self._run is not None else {}
        export_results(new, self._path, file, about)
        os.unlink(self._lines_path)


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


class _Writer:
    """A format that also writes what was there before."""

    name = "added"
    suffixes: tuple[str, ...] = ()

    def __init__(self, write: Write) -> None:
        self.write = write


def csv_sink(target: str = "") -> TableSink:
    """`csv:FILE`."""
    return TableSink(_path("csv", target), _csv_told, lambda path: partial(_csv_added, path))


def parquet_sink(target: str = "") -> TableSink:
    """`parquet:FILE`."""
    path = _path("parquet", target)
    ParquetFile().check()
    return TableSink(path, _parquet_told, lambda path: partial(_parquet_added, path))


def _path(name: str, target: str) -> Path:
    if not target:
        raise PluginError(f"it needs a file: {name}:FILE")
    return Path(target)


def _told(result: VerificationResult) -> Told:
    row = Row(result)
    return tuple(RESULT.column(name).written(row) for name in TOLD)


def _csv_told(path: Path) -> Iterator[Told]:
    return (tuple(row[name] for name in TOLD) for row in read_rows(path))


def _parquet_told(path: Path) -> Iterator[Told]:
    return map(_told, ParquetFile().read(path))


def _csv_added(before: Path, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]) -> None:
    if not before.exists():
        CsvFile().write(results, path, manifest)
        return
    new = path.with_name(f"{path.name}.new")
    try:
        write_rows(results, new, manifest, start=sum(1 for _ in read_rows(before)))
        with path.open("w", encoding="utf-8", newline="") as file:
            merge_rows([before, new], file)
    finally:
        new.unlink(missing_ok=True)


def _parquet_added(
    before: Path, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]
) -> None:
    ParquetFile().write(_Both(before, results) if before.exists() else results, path, manifest)


class _Both:
    """What is in a file, and then more."""

    def __init__(self, before: Path, more: Iterable[VerificationResult]) -> None:
        self._before = before
        self._more = more

    def __iter__(self) -> Iterator[VerificationResult]:
        yield from ParquetFile().read(self._before)
        yield from self._more
