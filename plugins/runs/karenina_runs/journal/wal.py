"""SQLite's write-ahead log, as far as damage in it has to be distinguished from a crash.

SQLite takes everything up to the first frame that is not sound, and silently drops the rest. After a crash that is
right. A transaction is flushed before it is acknowledged, and before the next one begins: when the power fails, of
one transaction, the last, any parts are on the disk, its end among them or not. What follows the end of a transaction
says, then, that the transaction was flushed; where a frame before that is not sound, something else has changed it.

So damage is found where, behind it, the end of a transaction and then one more frame are sound. A frame of which the
checksum is hit makes the next one unsound, too. In the last transaction, then, damage is never found; in the last but
one, unless it makes the last frame unsound; in the last but two, unless it does so and the only frame of the last but
one, too; and in all before, always.

Damage that is not found looks like a failure of the power. There `run.lock` shows whether numbered rows are missing;
see `RunLock`. Batches have no numbers: the log is copied into the database, and emptied, before they are acknowledged,
if no process reads for as long as a connection waits. The format is that of
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER = 32  # bytes; https://sqlite.org/fileformat.html#the_write_ahead_log
FRAME = 24
MAGIC = 0x377F0682
"""The lowest bit says that the checksums are of big-endian numbers."""


class Frame(NamedTuple):
    """One page as one transaction left it."""

    page: int
    """Its number, from 1."""
    commits: bool
    """Whether it is the last of its transaction."""
    sound: bool
    """Whether it is what was written, given what the log says of the frame before."""
    data: bytes


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def log_damage(path: Path) -> str | None:
    """What is wrong with the log of a database, in a few words; None where a crash explains it or nothing is."""
    try:
        data = log_of(path).read_bytes() if log_of(path).is_file() else b""
    except OSError:
        return None
    if len(data) <= HEADER:
        return None
    if _start(data) is None:
        return "the beginning of its write-ahead log is not what was written"
    bad, ended = None, False
    for number, frame in enumerate(frames(data)):
        if bad is None:
            bad = None if frame.sound else number
        elif frame.sound and ended:
            return f"frame {bad} of its write-ahead log is not what was written, and other transactions follow its own"
        elif frame.sound:
            ended = frame.commits
    return None


def frames(data: bytes) -> Iterator[Frame]:
    """All frames of the log's present round, sound or not. Nothing where its header cannot be read."""
    start = _start(data)
    if start is None:
        return
    size, salts, before, swap = start
    for begin in range(HEADER, len(data) - FRAME - size + 1, FRAME + size):
        page, pages, *numbers = struct.unpack_from(">6I", data, begin)
        body = data[begin + FRAME : begin + FRAME + size]
        checksum = (numbers[2], numbers[3])
        if (numbers[0], numbers[1]) == salts:
            yield Frame(page, pages > 0, _checksum(data[begin : begin + 8] + body, before, swap) == checksum, body)
        else:  # of the round before, or a damaged frame: the next ones show which
            yield Frame(0, False, False, b"")
        before = checksum


def _start(data: bytes) -> tuple[int, tuple[int, int], tuple[int, int], bool] | None:
    """`(page size, salts, checksum, whether numbers are to be swapped)` of the log's header."""
    if len(data) < HEADER:
        return None
    magic, _, size, _, salt1, salt2, sum1, sum2 = struct.unpack_from(">8I", data)
    if magic & ~1 != MAGIC or size < 512 or size & (size - 1):
        return None
    swap = bool(magic & 1) != (sys.byteorder == "big")
    if _checksum(data[:24], (0, 0), swap) != (sum1, sum2):
        return None
    return size, (salt1, salt2), (sum1, sum2), swap


def _checksum(data: bytes, before: tuple[int, int], swap: bool) -> tuple[int, int]:
    numbers = array("I", data)
    if swap:
        numbers.byteswap()
    first, second = before
    pairs = iter(numbers)
    for one, two in zip(pairs, pairs, strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
