"""The right to write to a run directory: one process at a time has it."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from weakref import WeakSet

from karenina_core.errors import RunDirectoryError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment] # the module is missing there, and asked for before it is used

CAN_LOCK = fcntl is not None
"""Without locks of the operating system, it could not be known whether a process that was killed still writes."""
LOCK = "run.lock"
WAITS, A_MOMENT = 5, 0.03
"""How often, and after how many seconds, the lock is tried again; chosen: `owner_of` holds it for a moment, too."""
NAME = 32
"""Bytes of its first line, which names the process."""


class RunLock:
    """The right to write to a run directory, from `acquire` to `release` or the end of the process, however it ends.

    The operating system holds it for the process: nothing is left behind by a process that was killed, and one that is
    merely stopped keeps it. `run.lock` names the process, and says how much the journal held when it was last written:
    a loss at its end would look like a crash otherwise.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK
        self._handle: int | None = None

    @property
    def held(self) -> bool:
        return self._handle is not None

    def acquire(self) -> RunLock:
        """Raises RunDirectoryError where another process has it, which is named, the file cannot be written, or the
        system has no such locks."""
        if not CAN_LOCK:
            raise RunDirectoryError(
                f"{self.path.parent} cannot be written on this system, which has no locks that end with their process; "
                "run this on Linux or macOS (on Windows: in WSL)"
            )
        handle = None
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
            waits = WAITS
            while not _lock(handle):
                if not waits:
                    pid = _pid(handle)
                    who = f"process {pid}" if pid else "another process"
                    raise RunDirectoryError(
                        f"{self.path.parent} is being written by {who}; wait until it ends, or stop it "
                        f"(kill -TERM {pid or 'PID'}), and run the same command again"
                    )
                waits -= 1
                time.sleep(A_MOMENT)
            _name(handle, str(os.getpid()))
        except OSError as error:
            if handle is not None:
                os.close(handle)
            if isinstance(error, RunDirectoryError):
                raise
            remedy = "make the folder writable" if handle is None else "free space"
            raise RunDirectoryError(
                f"{self.path} cannot be written: {error.strerror}; {remedy}, or start a run in another directory "
                "(--out DIR)"
            ) from error
        self._handle = handle
        _held.add(self)
        return self

    def mark(self, rows: Mapping[str, int]) -> None:
        """The journal holds at least this: the largest id of each table. Not flushed: what is older says less, and is
        true too. Raises OSError."""
        if self._handle is not None:
            text = " ".join(f"{name}={last}" for name, last in sorted(rows.items()))
            os.pwrite(self._handle, f"{text}\n".encode("ascii"), NAME)

    def check(self) -> None:
        """Raises OSError where `run.lock` was removed: another process may have the right to write by now."""
        if self._handle is None:
            return
        try:
            there = os.stat(self.path).st_ino == os.fstat(self._handle).st_ino
        except FileNotFoundError:
            there = False
        if not there:
            raise OSError(errno.ESTALE, f"{self.path.name} was removed, and another process may write here now")

    def release(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            try:
                _name(handle, "")
            except OSError:  # a reader finds that no process holds the lock
                pass
            finally:
                fcntl.flock(handle, fcntl.LOCK_UN)  # also of copies that a child has not closed yet
                os.close(handle)

    def __enter__(self) -> RunLock:
        return self if self.held else self.acquire()

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.release()


_held: WeakSet[RunLock] = WeakSet()


def _forget_all() -> None:
    """In a child that was forked: it shares the locks until it closes its copies, and might outlive this process."""
    for lock in _held:
        if lock._handle is not None:
            os.close(lock._handle)
            lock._handle = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def marked(folder: Path) -> dict[str, int]:
    """What the journal held at least when it was last written; empty where that is not known."""
    try:
        text = (folder / LOCK).read_bytes()[NAME:].decode("ascii", "replace").split("\n")[0]
    except OSError:
        return {}
    pairs = (pair.partition("=") for pair in text.split())
    return {name: int(last) for name, _, last in pairs if last.isdigit()}


def owner_of(folder: Path) -> int | None:
    """The id of the process that writes to a run directory; None where none does; 0 where its id is not known. Nothing
    is written."""
    if not CAN_LOCK:  # then no process can write
        return None
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        return None if _lock(handle, shared=True) else _pid(handle) or 0
    finally:
        os.close(handle)


def _lock(handle: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _name(handle: int, owner: str) -> None:
    os.pwrite(handle, f"{owner:<{NAME - 1}}\n".encode("ascii"), 0)


def _pid(handle: int) -> int | None:
    text = os.pread(handle, NAME, 0).decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None
