"""What is in an open file, for a model to read: some lines, those with a text in them, or what kind of data it is."""

from __future__ import annotations

import codecs
import os
from bisect import bisect_right
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import accumulate
from operator import or_

from attrs import define, field

from .sandboxed_files import Bounds
from .sandboxed_names import Names, Refused, plain

MOST_LINES = 2000
"""Lines that are read out at once: about 30 characters each are `MOST_TEXT`."""
MOST_TEXT = 60_000
"""Bytes that are read out at once: below `tool_calls.MOST_CHARACTERS`, so that an answer is not cut a second time."""
PIECE = 1 << 16
"""Bytes of one line that are looked at together: what is done with them at once holds up other threads for little."""
BEGINNING = 8192
"""Bytes at the beginning that distinguish text from other data; git looks at 8,000."""
AROUND = 150
"""Characters shown before and after what was searched for."""
KINDS = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "data compressed with gzip"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"\xff\xfe", "text in UTF-16"),
    (b"\xfe\xff", "text in UTF-16"),
)


def is_binary(file: int) -> bool:
    """Whether the file of this descriptor is no text: there is a NUL at its beginning."""
    return b"\0" in os.pread(file, BEGINNING, 0)


def kind_of(file: int) -> str:
    """What the beginning of a file looks like, in words."""
    beginning = os.pread(file, 16, 0)
    known = (words for magic, words in KINDS if beginning.startswith(magic))
    return next(known, f"it begins with {beginning.hex(' ')}")


def read_lines(file: int, start: int, count: int, bounds: Bounds) -> str:
    """`count` lines from line `start` on (from 1), as far as MOST_TEXT bytes go; a note says what is left out.

    What is not UTF-8 becomes U+FFFD. A file that is read as a whole has no note, unless it is empty. Raises Refused
    where the file has fewer lines.
    """
    kept: list[bytes] = []
    size = 0
    number = 0
    notes: list[str] = []
    for number, piece in _pieces(file, bounds):
        if number < start:
            continue
        if number >= start + count or (kept and size + len(piece) > MOST_TEXT):
            notes.append(f"[it goes on: read from start_line {number}]")
            break
        kept.append(piece[:MOST_TEXT])
        size += len(piece)
        if size > MOST_TEXT:
            notes.append(f"[line {number} is cut, the next is {number + 1}; search_files shows what is around a text]")
            break
    if bounds.reached:
        notes.append(f"[not all was read, because {bounds.reached}]")
    if not kept and not notes:
        if number:
            raise Refused(f"the file has {number} lines: give a smaller start_line")
        return "[the file is empty]"
    decoder, data = codecs.getincrementaldecoder("utf-8"), b"".join(kept)
    try:
        text = decoder("strict").decode(data, final=not notes)
    except UnicodeDecodeError:
        text = decoder("replace").decode(data, final=not notes)
        notes.append("[some of it is not UTF-8, and shown as U+FFFD]")
    end = "\n" if notes and text and not text.endswith("\n") else ""
    return f"{text}{end}{chr(10).join(notes)}"


def _pieces(file: int, bounds: Bounds) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; a very long line comes in several pieces of the same number."""
    number = 1
    with open(file, "rb", closefd=False) as stream:
        while bounds.in_time() and (piece := stream.readline(PIECE)):
            yield number, piece
            number += piece.endswith(b"\n")


@define
class Search:
    """A text that is searched for, and what was found."""

    text: str
    ignore_case: bool
    most: int
    lines: list[str] = field(factory=list)
    more: bool = False
    """Whether there is more than what may be found."""
    files: int = 0
    """Text files that were searched."""
    binary: int = 0
    unread: int = 0
    _size: int = 0
    _folded: str = field(init=False, default="")

    def __attrs_post_init__(self) -> None:
        self._folded = self._as_compared(self.text)

    @property
    def overlap(self) -> int:
        """So many characters at the end of a piece may be the beginning of the text."""
        return len(self._folded)

    def _as_compared(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text

    def place_in(self, piece: str) -> int | None:
        """Where the text begins in a piece of a line; None where it is not there.

        No regular expression: its search for a plain text may take the square of the time, and holds up all threads.
        """
        compared = self._as_compared(piece)
        found = compared.find(self._folded)
        if found < 0:
            return None
        if len(compared) == len(piece):
            return found
        # Folding makes some characters longer, none shorter: the last beginning of the piece that is not too long.
        return bisect_right(range(1, len(piece) + 1), found, key=lambda end: len(piece[:end].casefold()))

    def take(self, names: Names, number: int, line: str, place: int) -> None:
        if len(self.lines) == self.most or self._size > MOST_TEXT:
            self.more = True
            return
        line = line.rstrip("\r\n")
        first, last = max(0, place - AROUND), place + len(self.text) + AROUND
        part = f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"
        self.lines.append(f"{plain(names)}:{number}: {part}")
        self._size += len(self.lines[-1])

    def notes(self) -> list[str]:
        """What was left out, in words."""
        notes = [f"[{self.binary} binary files were not searched]"] if self.binary else []
        return [*notes, f"[{self.unread} files could not be searched]"] if self.unread else notes


def search_lines(file: int, names: Names, search: Search, bounds: Bounds) -> None:
    """Take every line that has the text, once, until there is more than may be found."""
    if is_binary(file):
        search.binary += 1
        return
    search.files += 1
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    line, before, taken = 0, "", 0
    for number, piece in _pieces(file, bounds):
        before = before if number == line else ""
        line = number
        window = before + decoder.decode(piece)
        if taken != number and (place := search.place_in(window)) is not None:
            search.take(names, number, window, place)
            taken = number
            if search.more:
                return
        before = window[-search.overlap :]


def matches_glob(names: Names, glob: str) -> bool:
    """Whether a path fits: `*` and `?` match parts of a name, `**` any number of folders. Without a `/`, the
    last name alone has to fit."""
    patterns = [pattern for pattern in glob.split("/") if pattern != "."] if "/" in glob else ["**", glob]
    fits = [True, *(False for _ in names)]  # for each number of names, whether the patterns so far fit them
    for pattern in patterns:
        if pattern == "**":
            fits = list(accumulate(fits, or_))
        else:
            fits = [False, *(fit and fnmatchcase(name, pattern) for fit, name in zip(fits, names, strict=False))]
    return fits[-1]
