"""The results of a run directory as a sequence: read when they are asked for, and not kept."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, overload

from ..errors import BenchmarkError
from ..model.result import VerificationResult
from .stored import LineIndex, line_index, read_line

__all__ = ["StoredSequence"]

MOST_KEPT = 256
"""So few results are read once; of more, each is read whenever it is asked for."""


class StoredSequence(Sequence[VerificationResult]):
    """The lines of a `results.jsonl`, or some of them.

    Whatever is asked for raises BenchmarkError where the file cannot be read, or is another one than it was at first.
    """

    def __init__(self, file: Path, places: Sequence[int] | None = None, of: StoredSequence | None = None) -> None:
        """`places`: those of the lines in the index, of all that `of` knows."""
        self._file = file
        self._places = places
        self._index: LineIndex | None = None if of is None else of._index
        self._state: tuple[int, ...] | None = None if of is None else of._state
        self._read: tuple[VerificationResult, ...] | None = None

    def some(self, places: Sequence[int]) -> StoredSequence:
        """Of these results those at these places, from 0."""
        mine = self._known()[1]
        return StoredSequence(self._file, array("q", (mine[place] for place in places)), self)

    def where(self, wanted: Callable[[VerificationResult], Any]) -> StoredSequence:
        """Those for which `wanted` is true; they are read once for that."""
        return self.some(array("q", (place for place, result in enumerate(self) if wanted(result))))

    def __len__(self) -> int:
        return len(self._known()[1])

    @overload
    def __getitem__(self, index: int) -> VerificationResult: ...
    @overload
    def __getitem__(self, index: slice) -> StoredSequence: ...
    def __getitem__(self, index: int | slice) -> VerificationResult | StoredSequence:
        known, places = self._known()
        if isinstance(index, slice):
            return StoredSequence(self._file, places[index], self)
        if self._read is not None:
            return self._read[index]
        place = places[index]
        with self._opened() as lines:
            return self._line(lines, known, place)

    def __iter__(self) -> Iterator[VerificationResult]:
        known, places = self._known()
        if self._read is None and len(places) <= MOST_KEPT:
            self._read = tuple(self._lines(known, places))
        return iter(self._read) if self._read is not None else self._lines(known, places)

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

    def _lines(self, known: LineIndex, places: Sequence[int]) -> Iterator[VerificationResult]:
        with self._opened() as lines:
            for place in places:
                yield self._line(lines, known, place)

    def _line(self, lines: BinaryIO, known: LineIndex, place: int) -> VerificationResult:
        if lines.tell() != (offset := known.offsets[place]):
            lines.seek(offset)
        return read_line(self._file, known.numbers[place], lines.readline())

    def _opened(self) -> BinaryIO:
        try:
            lines = self._file.open("rb")
        except OSError as error:
            what = f"the results {self._file} cannot be read any more: {error.strerror}"
            raise BenchmarkError(f"{what}; a run's results are in its directory, so keep it") from error
        found = os.fstat(lines.fileno())
        state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._state is not None and state != self._state:
            lines.close()
            raise BenchmarkError(f"{self._file} was changed since; load the results again")
        self._state = state
        return lines
