"""Which pages of memory a template writes to, and having them copied before it is served.

A fork shares every page with its parent, and the kernel copies a page when either writes to it first. Loading a
template writes to some 1,600 of 7,000 pages, as reference counts lie beside all objects, and each is a fault of its
own: together they take longer than all else that loading does. They are nearly the same pages for every template. So
the server looks once which they are, and a worker asks for its copies of them in one call while no one waits for it.
"""

from __future__ import annotations

import os
import resource
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from .lockdown import Libc

PROCESS_MADVISE, MADV_POPULATE_WRITE = 440, 23
"""The same numbers on both architectures. Kernels before 6.13 give this advice to no process by that call."""
MOST_RANGES = 1024
"""Ranges of memory that one call takes: UIO_MAXIOV of the kernel."""
PRESENT, OWN = 1 << 63, 1 << 56
"""Bits of an entry of /proc/PID/pagemap: there is such a page; nothing else maps it."""
PAGE = resource.getpagesize()
RANGE = struct.Struct("@PN")
"""`struct iovec`: where it begins, and how many bytes it has."""


def pages_written(work: Callable[[], object]) -> bytes:
    """The ranges of this process's memory that `work` writes to, as an array of `struct iovec`, found by doing it in a
    fork; nothing where the kernel does not say.
    """
    reading, writing = os.pipe()
    try:
        areas = list(_writable())
        pid = os.fork()
        if pid == 0:
            try:
                work()
                pages = [page for begin, end in areas for page in _own(begin, end)]
                os.write(writing, _ranges(pages))  # fewer bytes than a pipe holds
            finally:
                os._exit(0)
        os.close(writing)
        found = b""
        while part := os.read(reading, 1 << 16):
            found += part
        os.waitpid(pid, 0)
        return found
    except OSError:
        return b""
    finally:
        os.close(reading)


def copy_pages(libc: Libc, ranges: bytes) -> None:
    """Have copies of shared pages, in this process. Does nothing where the kernel has no such call."""
    if not ranges:
        return
    with suppress(OSError):
        this = os.pidfd_open(os.getpid())
        try:
            libc.syscall(PROCESS_MADVISE, this, ranges, len(ranges) // RANGE.size, MADV_POPULATE_WRITE, 0)
        finally:
            os.close(this)


def _writable() -> Iterator[tuple[int, int]]:
    with open("/proc/self/maps") as file:
        for line in file:
            where, rights, *_ = line.split()
            if rights == "rw-p":
                begin, _, end = where.partition("-")
                yield int(begin, 16), int(end, 16)


def _own(begin: int, end: int) -> Iterator[int]:
    """The numbers of the pages between two addresses that no other process maps."""
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        file.seek(begin // PAGE * 8)
        entries = array("Q", file.read((end - begin) // PAGE * 8))
    for place, entry in enumerate(entries):
        if entry & PRESENT and entry & OWN:
            yield begin // PAGE + place


def _ranges(pages: Sequence[int]) -> bytes:
    """As few ranges as one call takes: small gaps between pages are taken along where there are more."""
    gap = 0
    while True:
        found: list[list[int]] = []
        for page in pages:
            if found and page - found[-1][1] <= gap:
                found[-1][1] = page + 1
            else:
                found.append([page, page + 1])
        if len(found) <= MOST_RANGES:
            return b"".join(RANGE.pack(begin * PAGE, (end - begin) * PAGE) for begin, end in found)
        gap += 1
