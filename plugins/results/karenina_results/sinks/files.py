"""The sinks csv and parquet: files that are written when the run ends."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from karenina_runs.results.exports import export_results
from karenina_runs.results.sinks import RunInfo
from karenina_runs.results.stored import stored_results

from karenina_core import VerificationResult
from karenina_core.errors import PluginError

from ..columns.table import Row
from ..columns.whole import RESULT
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

    def __init__(
        self, path: Path, rows: Callable[[Path], Iterator[Identity]], added: Callable[[Path, Again], Write]
    ) -> None:
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
            file = _Writer(self._added(self._path, frozenset(lines.ids) & self._known.keys()))
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


class _Writer:
    """A format that also writes what was there before."""

    name = "added"
    suffixes: tuple[str, ...] = ()

    def __init__(self, write: Write) -> None:
        self.write = write


def csv_sink(target: str = "") -> TableSink:
    """`csv:FILE`."""
    return TableSink(_path("csv", target), _csv_identities, lambda path, again: partial(_csv_added, path, again))


def parquet_sink(target: str = "") -> TableSink:
    """`parquet:FILE`."""
    path = _path("parquet", target)
    ParquetFile().check()
    return TableSink(path, _parquet_identities, lambda path, again: partial(_parquet_added, path, again))


def _path(name: str, target: str) -> Path:
    if not target:
        raise PluginError(f"it needs a file: {name}:FILE")
    return Path(target)


def _identity(result: VerificationResult) -> Identity:
    row = Row(result)
    return tuple(RESULT.column(name).written(row) for name in IDENTIFYING)


def _csv_identities(path: Path) -> Iterator[Identity]:
    return (tuple(row[name] for name in IDENTIFYING) for row in read_rows(path))


def _parquet_identities(path: Path) -> Iterator[Identity]:
    return map(_identity, ParquetFile().read(path))


def _csv_added(
    before: Path, again: Again, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]
) -> None:
    if not before.exists():
        CsvFile().write(results, path, manifest)
        return
    new, instead = (path.with_name(f"{path.name}.{name}") for name in ("new", "instead"))
    try:
        write_rows(_Some(results, again, inside=False), new, manifest, start=sum(1 for _ in read_rows(before)))
        write_rows(_Some(results, again, inside=True), instead, manifest)
        with path.open("w", encoding="utf-8", newline="") as file:
            merge_rows([before, new], file, instead)
    finally:
        new.unlink(missing_ok=True)
        instead.unlink(missing_ok=True)


def _parquet_added(
    before: Path, again: Again, results: Iterable[VerificationResult], path: Path, manifest: Mapping[str, Any]
) -> None:
    ParquetFile().write(_Both(before, again, results) if before.exists() else results, path, manifest)


class _Some:
    """Those of the results that have one of these ids, or none of them."""

    def __init__(self, results: Iterable[VerificationResult], ids: Again, *, inside: bool) -> None:
        self._results = results
        self._ids = ids
        self._inside = inside

    def __iter__(self) -> Iterator[VerificationResult]:
        return (result for result in self._results if (result.metadata.result_id in self._ids) == self._inside)


class _Both:
    """What is in a file, some of it replaced, and then more."""

    def __init__(self, before: Path, again: Again, more: Iterable[VerificationResult]) -> None:
        self._before = before
        self._more = more
        found = (result for result in more if result.metadata.result_id in again) if again else ()
        self._instead = {result.metadata.result_id: result for result in found}

    def __iter__(self) -> Iterator[VerificationResult]:
        for result in ParquetFile().read(self._before):
            yield self._instead.get(result.metadata.result_id, result)
        for result in self._more:
            if result.metadata.result_id not in self._instead:
                yield result
