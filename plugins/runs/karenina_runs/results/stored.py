"""Results as JSON, one line each: how they are written, and read one after the other: they need not fit into memory."""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar, overload

from attrs import define, field, frozen
from karenina_calls.files.bounded import MOST_BYTES, read_json

from karenina_core.errors import BenchmarkError, ConfigError, RunDirectoryError
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.convert import structure
from karenina_core.values.result import MetadataPart, VerificationResult

from ..files.run_files import MANIFEST, RESULTS
from .exports import suffix_format

MOST_KEPT = 256
"""So few results are read once; of more, each is read whenever it is asked for. Chosen."""
LINES = ".jsonl"
MOST_PARTS = 16
"""Passes over the hashes of all lines, each of which holds its share of them in memory. Chosen."""
TEXT = rb'"(?:[^"\\]|\\.)*"'
BEGINNING = re.compile(
    rb'\{"metadata":\{"question_id":' + TEXT + rb',"template_id":' + TEXT + rb',"result_id":"([0-9a-f]+)"'
)
"""How a line begins that karenina wrote: its id is known without reading the rest."""
METADATA, FIRST = b'{"metadata":', json.JSONDecoder()
"""What it begins with in any case, and what reads the value that follows."""
R = TypeVar("R")


@frozen(kw_only=True)
class StoredResults:
    """The results of a run directory or a file. Every iteration reads them again, unless they are few.

    Iterating raises BenchmarkError where something is not a result.
    """

    read: Callable[[], Iterator[VerificationResult]] = field(repr=False)
    lines: StoredSequence | None = field(default=None, repr=False)
    """Those of a file of JSON lines."""
    file: Path
    directory: Path
    notes: tuple[str, ...] = ()
    """What was left out."""
    manifest: Mapping[str, Any] = field(factory=dict, repr=False)
    """The run's `manifest.json`, empty where there is none."""

    def __iter__(self) -> Iterator[VerificationResult]:
        return self.read()

    def metadata(self) -> Iterator[MetadataPart]:
        """The metadata of each result; of a file of JSON lines without reading the rest of it."""
        if self.lines is not None:
            return self.lines.metadata()
        return (result.metadata for result in self)


def stored_results(path: str | Path, app: Karenina | None = None) -> StoredResults:
    """The results in a run directory, in a file of JSON lines, or in a file of any format that can be read.

    A file is taken for what its suffix says, and for JSON lines where no format has the suffix. Of several lines for
    one item the last one counts. Raises BenchmarkError where there is nothing to read, or a line is not a result.
    """
    path = Path(path)
    directory = path if path.is_dir() else path.parent
    file = path / RESULTS if path.is_dir() else path
    try:
        manifest = read_json(directory / MANIFEST)
    except (OSError, ValueError):
        manifest = {}
    manifest = manifest if isinstance(manifest, dict) else {}
    found = partial(StoredResults, file=file, directory=directory, manifest=manifest)
    if file.suffix != LINES and file.exists():
        with current(app) as used:
            format_ = suffix_format(used, file)
        if format_ is not None and format_.name != LINES.removeprefix("."):
            if not hasattr(format_, "read"):
                raise BenchmarkError(
                    f"{file}: files of the format {format_.name} do not hold whole results; give the run directory, or "
                    "a file of another format"
                )
            return found(read=partial(format_.read, file))
    journal = directory / "journal.sqlite"
    if path.is_dir() and journal.is_file() and (manifest.get("status") == "running" or not file.exists()):
        note = f"the run in {directory} is not finished; its results so far are read from its journal"
        return found(read=partial(_of_journal, journal), notes=(note,))
    try:
        if file.exists() and not file.is_file():
            raise BenchmarkError(f"the results {file} cannot be read: it is not a regular file")
        with file.open("rb") as lines:
            index, notes = line_index(file, lines)
    except OSError as error:
        raise BenchmarkError(
            f"the results {file} cannot be read: {error.strerror or error}; give a run directory or its {RESULTS}"
        ) from error
    sequence = StoredSequence(file, index)
    return found(read=sequence.lines, lines=sequence, notes=notes)


class LineIndex(NamedTuple):
    """Where the lines of results begin, and their numbers. Eight bytes each: a million results fit easily."""

    offsets: array[int]
    numbers: array[int]


def line_index(file: Path, lines: BinaryIO) -> tuple[LineIndex, tuple[str, ...]]:
    """Where each result is in an open file of JSON lines, and what was left out. Raises BenchmarkError."""
    index, hashes = LineIndex(array("q"), array("q")), array("q")
    notes: tuple[str, ...] = ()
    offset = 0
    for number, line in enumerate(iter(partial(lines.readline, MOST_BYTES + 1), b""), 1):
        if len(line) > MOST_BYTES:
            raise BenchmarkError(f"{file}, line {number} has more than {MOST_BYTES >> 20} MB: it is not a result")
        begins, offset = offset, offset + len(line)
        if not line.strip():
            continue
        try:
            identifier = _result_id(file, number, line)
        except BenchmarkError:
            if line.endswith(b"\n"):  # every whole line does; what follows the last one was cut off
                raise
            notes = (f"{file}, line {number} was cut off while it was written and is left out",)
            continue
        index.offsets.append(begins)
        index.numbers.append(number)
        hashes.append(hash(identifier))
    return _without_repetitions(file, lines, index, hashes), notes


def _result_id(file: Path, number: int, line: bytes) -> str:
    begins = BEGINNING.match(line) if line.endswith(b"}\n") else None
    return begins[1].decode("ascii") if begins else read_line(file, number, line).metadata.result_id


def _without_repetitions(file: Path, lines: BinaryIO, index: LineIndex, hashes: array[int]) -> LineIndex:
    """Each item once: where it comes first, and as its last line has it.

    Hashes that repeat are found part by part: a set of all of them takes ten times their memory.
    """
    offsets, numbers = index
    again: set[int] = set()
    parts = min(len(hashes) // 4096 + 1, MOST_PARTS)
    for part in range(parts):
        seen: set[int] = set()
        for value in hashes:
            if value % parts == part:
                (again if value in seen else seen).add(value)
    places: dict[str, list[int]] = {}
    for place in (place for place, value in enumerate(hashes) if value in again):
        lines.seek(offsets[place])
        places.setdefault(_result_id(file, numbers[place], lines.readline()), []).append(place)
    moved = {first: others[-1] for first, *others in places.values() if others}
    dropped = {place for _, *others in places.values() for place in others}
    if not dropped:
        return index
    kept = [moved.get(place, place) for place in range(len(offsets)) if place not in dropped]
    return LineIndex(array("q", (offsets[p] for p in kept)), array("q", (numbers[p] for p in kept)))


def read_line(file: Path, number: int, line: bytes) -> VerificationResult:
    """The result in a line. Raises BenchmarkError, which names it."""
    try:
        return structure(json.loads(line.decode("utf-8")), VerificationResult)
    except (ValueError, ConfigError, RecursionError) as error:
        raise BenchmarkError(
            f"{file}, line {number}: not a result: {error}; where that is a run directory, type: karenina doctor DIR"
        ) from error


def _metadata(file: Path, number: int, line: bytes) -> MetadataPart:
    """That of the result in a line, which begins with it where karenina wrote it. Raises BenchmarkError."""
    if line.startswith(METADATA):
        with suppress(ValueError, ConfigError, RecursionError):  # which the whole line explains
            found, _ = FIRST.raw_decode(line.decode("utf-8"), len(METADATA))
            return structure(found, MetadataPart)
    return read_line(file, number, line).metadata


def _of_journal(journal: Path) -> Iterator[VerificationResult]:
    """Results in the order of the plan. Raises BenchmarkError where the journal cannot be read."""
    from ..journal.reader import JournalReader  # SQLite is only needed here

    try:
        with JournalReader.open(journal) as reader:
            for number, found in enumerate(reader.results(), 1):
                yield read_line(journal, number, found.line.encode("utf-8"))
    except RunDirectoryError as error:
        raise BenchmarkError(str(error)) from error


@define(eq=False, repr=False)
class StoredSequence(Sequence[VerificationResult]):
    """The lines of a `results.jsonl`, or some of them.

    Whatever is asked for raises BenchmarkError where the file cannot be read, or is another one than it was at first.
    """

    _file: Path
    _index: LineIndex | None = None
    _places: Sequence[int] | None = None
    """Those of the lines in the index; None: all."""
    _state: tuple[int, ...] | None = None
    """That of the file when it was opened."""
    _read: tuple[VerificationResult, ...] | None = field(default=None, init=False)

    def some(self, places: Sequence[int]) -> StoredSequence:
        """Of these results those at these places, from 0."""
        known, mine = self._known()
        return StoredSequence(self._file, known, array("q", (mine[place] for place in places)), self._state)

    def __len__(self) -> int:
        return len(self._known()[1])

    @overload
    def __getitem__(self, index: int) -> VerificationResult: ...
    @overload
    def __getitem__(self, index: slice) -> StoredSequence: ...
    def __getitem__(self, index: int | slice) -> VerificationResult | StoredSequence:
        known, places = self._known()
        if isinstance(index, slice):
            return StoredSequence(self._file, known, places[index], self._state)
        if self._read is not None:
            return self._read[index]
        return next(self._read_lines(known, [places[index]], read_line))

    def __iter__(self) -> Iterator[VerificationResult]:
        if self._read is None and len(self) <= MOST_KEPT:
            self._read = tuple(self.lines())
        return iter(self._read) if self._read is not None else self.lines()

    def lines(self) -> Iterator[VerificationResult]:
        """One after the other: none is kept."""
        return self._read_lines(*self._known(), read_line)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list: what it holds cannot be hashed

    def __repr__(self) -> str:
        return f"<{len(self)} results in {self._file}>"

    def _known(self) -> tuple[LineIndex, Sequence[int]]:
        if self._index is None:
            with self._opened() as lines:
                self._index = line_index(self._file, lines)[0]
        if self._places is None:
            self._places = range(len(self._index.offsets))
        return self._index, self._places

    def metadata(self) -> Iterator[MetadataPart]:
        """That of each result, without reading the rest where it comes first."""
        return self._read_lines(*self._known(), _metadata)

    def _read_lines(
        self, known: LineIndex, places: Sequence[int], read: Callable[[Path, int, bytes], R]
    ) -> Iterator[R]:
        with self._opened() as lines:
            for place in places:
                if lines.tell() != (offset := known.offsets[place]):
                    lines.seek(offset)
                yield read(self._file, known.numbers[place], lines.readline())

    def _opened(self) -> BinaryIO:
        try:
            lines = self._file.open("rb")
        except OSError as error:
            what = f"the results {self._file} can no longer be read: {error.strerror}"
            raise BenchmarkError(f"{what}; a run's results are in its directory, so keep it") from error
        found = os.fstat(lines.fileno())
        state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._state is not None and state != self._state:
            lines.close()
            raise BenchmarkError(f"{self._file} has changed; load the results again")
        self._state = state
        return lines
