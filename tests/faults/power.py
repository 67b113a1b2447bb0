"""What is left of SQLite's files when the power fails: what was flushed, and any part of what was written since.

Writes and flushes are seen where SQLite makes them: in this process, the functions of its own files are replaced.
Loaded by path; no test is in here.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECTOR = 512
POINTER, INT, LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
OPEN = ctypes.CFUNCTYPE(INT, POINTER, POINTER, POINTER, INT, POINTER)
WRITE = ctypes.CFUNCTYPE(INT, POINTER, POINTER, INT, LONG)
TRUNCATE = ctypes.CFUNCTYPE(INT, POINTER, LONG)
SYNC = ctypes.CFUNCTYPE(INT, POINTER, INT)
CLOSE = ctypes.CFUNCTYPE(INT, POINTER)
OTHERS = ("size", "lock", "unlock", "reserved", "control", "sector", "device", "map", "shm_lock", "barrier", "unmap")


class Methods(ctypes.Structure):
    """SQLite's `sqlite3_io_methods`."""

    _fields_ = [
        ("version", INT),
        *((name, POINTER) for name in ("close", "read", "write", "truncate", "sync", *OTHERS, "fetch", "unfetch")),
    ]


class FileSystem(ctypes.Structure):
    """The beginning of SQLite's `sqlite3_vfs`."""

    _fields_ = [
        ("version", INT),
        ("file_size", INT),
        ("longest", INT),
        *((name, POINTER) for name in ("next", "name", "data", "open")),
    ]


class Kept:
    """A file as it is on the disk, and what was written since it was flushed: `(offset, bytes)`, or a new length."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flushed = path.read_bytes() if path.exists() else b""
        self.since: list[tuple[int, bytes | None]] = []
        self.flushes = 0

    def flush(self) -> None:
        self.flushed, self.since = self.path.read_bytes(), []
        self.flushes += 1

    def after_a_loss(self, chance: random.Random, part: float) -> bytes:
        """`part`: of the sectors that were written since, that have reached the disk, in any order. What was written
        to one sector is there or not as a whole."""
        found = bytearray(self.flushed)
        reached: dict[int, bool] = {}
        for offset, data in self.since:
            if data is None:
                if chance.random() < part:
                    del found[offset:]
                continue
            at, end = offset, offset + len(data)
            while at < end:
                sector = at // SECTOR
                upto = min(end, (sector + 1) * SECTOR)
                if reached.setdefault(sector, chance.random() < part):
                    found.extend(bytes(max(0, at - len(found))))
                    found[at:upto] = data[at - offset : upto - offset]
                at = upto
        return bytes(found)


class Disk:
    """Files that SQLite has opened in a folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, Kept] = {}
        self.before_flush: Callable[[str], None] = lambda name: None
        """Told the name of a file that is about to be flushed."""
        self._turn = threading.Lock()  # the state of all files is that of one moment
        self._references: list[Any] = []

    def after_a_loss(self, folder: Path, chance: random.Random, part: float) -> None:
        """Write the files as they would be after the power has failed now."""
        with self._turn:
            for name, kept in self.files.items():
                if kept.path.exists() and not name.endswith("-shm"):
                    (folder / name).write_bytes(kept.after_a_loss(chance, part))

    def opened(self, name: str, handle: int) -> None:
        path = Path(name)
        if path.parent != self.folder:
            return
        address = ctypes.cast(handle, ctypes.POINTER(POINTER))
        genuine = Methods.from_address(address[0])
        if (kept := self.files.get(path.name)) is None:
            kept = self.files[path.name] = Kept(path)
        own = Methods.from_buffer_copy(genuine)
        own.write, own.truncate, own.sync = (
            self._address(made)
            for made in (self._write(genuine, kept), self._cut(genuine, kept), self._sync(genuine, kept))
        )
        self._references.append(own)
        address[0] = ctypes.addressof(own)

    def _address(self, function: Any) -> int | None:
        self._references.append(function)
        return ctypes.cast(function, POINTER).value

    def _write(self, genuine: Methods, kept: Kept) -> Any:
        write = WRITE(genuine.write)

        def wrote(handle: int, data: int, amount: int, offset: int) -> int:
            with self._turn:
                kept.since.append((offset, ctypes.string_at(data, amount)))
                return int(write(handle, data, amount, offset))

        return WRITE(wrote)

    def _cut(self, genuine: Methods, kept: Kept) -> Any:
        truncate = TRUNCATE(genuine.truncate)

        def cut(handle: int, length: int) -> int:
            with self._turn:
                kept.since.append((length, None))
                return int(truncate(handle, length))

        return TRUNCATE(cut)

    def _sync(self, genuine: Methods, kept: Kept) -> Any:
        sync = SYNC(genuine.sync)

        def flushed(handle: int, how: int) -> int:
            self.before_flush(kept.path.name)
            with self._turn:
                code = int(sync(handle, how))
                kept.flush()
            return code

        return SYNC(flushed)


@contextmanager
def watched_disk(folder: Path) -> Iterator[Disk]:
    """A folder's disk, as long as the block runs. What was opened in it has to be closed in it."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(FileSystem)
    system = library.sqlite3_vfs_find(None).contents
    genuine, disk = system.open, Disk(folder.resolve())
    call = OPEN(genuine)

    def opened(vfs: int, name: int | None, handle: int, flags: int, out: int | None) -> int:
        code = int(call(vfs, name, handle, flags, out))
        if code == 0 and name:
            disk.opened(ctypes.string_at(name).decode(), handle)
        return code

    replaced = OPEN(opened)
    system.open = ctypes.cast(replaced, POINTER).value
    try:
        yield disk
    finally:
        system.open = genuine
