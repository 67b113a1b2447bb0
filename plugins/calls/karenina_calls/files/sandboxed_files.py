"""Files beneath one folder, for callers who may ask for anything: no path leads out, whatever changes meanwhile.

Every folder of a path is opened by its name alone, relative to the one before, and never through a symbolic link. So
there is no moment between a check and the use of what was checked: what is used is what was opened. Only folders and
ordinary files with one name are touched. A file with a second name (a hard link) may live outside as well.

A folder that another process moves out of the root while it is open stays open.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import Event
from time import monotonic
from typing import Literal

from attrs import define, field, frozen

from karenina_core.errors import ConfigError

from .sandboxed_names import HIDDEN, MOST_DEEP, Names, Refused, is_hidden, names_of, quoted

Kind = Literal["file", "folder", "link", "pipe", "socket", "device", "other"]

KINDS: tuple[tuple[int, Kind], ...] = (
    (stat.S_IFREG, "file"),
    (stat.S_IFDIR, "folder"),
    (stat.S_IFLNK, "link"),
    (stat.S_IFIFO, "pipe"),
    (stat.S_IFSOCK, "socket"),
    (stat.S_IFCHR, "device"),
    (stat.S_IFBLK, "device"),
)
CALLED = {
    "file": "a file",
    "folder": "a folder",
    "link": "a symbolic link, which is never followed",
    "pipe": "a pipe",
    "socket": "a socket",
    "device": "a device",
    "other": "no ordinary file",
}


@frozen
class Entry:
    """What a name refers to, without following it."""

    names: Names
    kind: Kind
    size: int
    """In bytes; says something about files only."""
    links: int
    """How many names the file has."""
    mode: int


@frozen
class Confined:
    """A folder that may be worked in."""

    path: str
    identity: tuple[int, int]
    """Device and number of the folder, so that no other one can take its place."""
    visible: tuple[Names, ...] = ()
    """What is shown of hidden folders."""

    def shows(self, names: Names) -> bool:
        """Whether this is no hidden thing, or one that is to be seen, or a folder on the way to such a one."""
        if not any(is_hidden(name) for name in names):
            return True
        return any(names[: len(one)] == one or one[: len(names)] == names for one in self.visible)


@define
class Bounds:
    """How much a walk may take: entries of folders, and seconds from now."""

    entries: int
    seconds: float
    reached: str = ""
    """Which bound ended the walk, in words."""
    unread: int = 0
    """Folders that could not be looked into."""
    stopped: Event = field(factory=Event, kw_only=True)
    """Set when no caller waits any more."""
    _end: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = monotonic() + self.seconds

    def one_more(self) -> bool:
        if self.entries <= 0:
            self.reached = "there are too many files"
            return False
        self.entries -= 1
        return self.in_time()

    def in_time(self) -> bool:
        if monotonic() < self._end and not self.stopped.is_set():
            return True
        self.reached = f"it took longer than {self.seconds:g} s"
        return False


def confined(root: Path, visible_hidden: frozenset[str] = frozenset()) -> Confined:
    """The folder `root`, as it is now. Of hidden folders only the paths in `visible_hidden` are shown.

    Raises ConfigError where it is no folder, and on systems that cannot open files relative to a folder.
    """
    if not {os.open, os.stat, os.mkdir, os.unlink, os.rename} <= os.supports_dir_fd or not hasattr(os, "O_NOFOLLOW"):
        raise ConfigError("this system cannot keep file tools within a folder: run this on Linux or macOS")
    try:
        path = Path(root).resolve(strict=True)
        descriptor = os.open(path, _folder_flags())
    except OSError as error:
        raise ConfigError(f"workspace {str(root)!r}: {error.strerror}; name a folder that exists") from error
    try:
        return Confined(str(path), _identity(descriptor), tuple(map(names_of, sorted(visible_hidden))))
    except Refused as error:
        raise ConfigError(f"visible_hidden: {error}") from error
    finally:
        os.close(descriptor)


@contextmanager
def open_folder(place: Confined, names: Names, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder; with `make`, folders that are missing are made. Raises Refused or OSError."""
    if not place.shows(names):
        raise Refused(f"{quoted(names)} is no part of the work: use other files")
    here = _open_root(place)
    try:
        for depth in range(1, len(names) + 1):
            above, here = here, _open_below(here, names[:depth], make=make)
            os.close(above)
        yield here
    finally:
        os.close(here)


@contextmanager
def open_parent(place: Confined, names: Names, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder that the last name is in. Raises Refused or OSError."""
    if not names:
        raise Refused("'.' is the workspace itself: give the path of a file")
    if not place.shows(names):
        raise Refused(f"{quoted(names)} is no part of the work: use other files")
    with open_folder(place, names[:-1], make=make) as folder:
        yield folder


@contextmanager
def open_file(folder: int, names: Names) -> Iterator[int]:
    """A descriptor for reading the file of the last name in the folder. Raises Refused or OSError."""
    _refuse_special(look(folder, names))  # opening a pipe or a device may have an effect already
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(names[-1], flags, dir_fd=folder)
    try:
        _refuse_special(_entry(names, os.fstat(descriptor)))
        yield descriptor
    finally:
        os.close(descriptor)


def look(folder: int, names: Names) -> Entry:
    """What the last name refers to in the folder. Raises OSError."""
    return _entry(names, os.stat(names[-1], dir_fd=folder, follow_symlinks=False))


def replace_file(folder: int, names: Names, data: bytes) -> bool:
    """Write a file, all of it or nothing; whether there was one before. Raises Refused or OSError.

    The name is given to the new file at once. Whatever has the name at that moment loses it and is not written to.
    """
    mode = None
    with suppress(FileNotFoundError):
        entry = look(folder, names)
        _refuse_special(entry)
        mode = entry.mode & 0o777
        if not mode & stat.S_IWUSR:
            raise Refused(f"{quoted(names)} is write-protected: write another file")
    temporary = f"{HIDDEN}.{token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if mode is not None:
                os.fchmod(file.fileno(), mode)
        os.replace(temporary, names[-1], src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return mode is not None


def walk(place: Confined, names: Names, bounds: Bounds, *, deep: bool) -> Generator[tuple[int, Entry], None, None]:
    """What is in a folder, by name, and with `deep` in the folders beneath; each with a descriptor of the folder that
    it is in, which is good until the next one is asked for. Raises Refused or OSError where the first folder cannot be
    read; others that cannot are left out."""
    with open_folder(place, names) as folder:
        yield from _walk_from(place, folder, names, bounds, deep=deep)


def _walk_from(
    place: Confined, folder: int, names: Names, bounds: Bounds, *, deep: bool
) -> Generator[tuple[int, Entry], None, None]:
    for entry in _entries(place, folder, names, bounds):
        yield folder, entry
        if deep and entry.kind == "folder" and not bounds.reached:
            try:
                below = _open_below(folder, entry.names) if len(entry.names) < MOST_DEEP else None
            except (Refused, OSError):
                below = None
            if below is None:
                bounds.unread += 1
                continue
            try:
                yield from _walk_from(place, below, entry.names, bounds, deep=True)
            finally:
                os.close(below)


def _entries(place: Confined, folder: int, names: Names, bounds: Bounds) -> list[Entry]:
    entries = []
    with os.scandir(folder) as found:
        for one in found:
            if not place.shows((*names, one.name)):
                continue
            if not bounds.one_more():
                break
            with suppress(FileNotFoundError):
                entries.append(_entry((*names, one.name), one.stat(follow_symlinks=False)))
    return sorted(entries, key=lambda entry: entry.names)


def _folder_flags() -> int:
    return os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _open_root(place: Confined) -> int:
    try:
        descriptor = os.open(place.path, _folder_flags())
    except OSError as error:
        raise Refused(f"the workspace is gone ({error.strerror}): finish without it") from error
    if _identity(descriptor) == place.identity:
        return descriptor
    os.close(descriptor)
    raise Refused("the workspace was exchanged for another folder: finish without it")


def _open_below(folder: int, names: Names, *, make: bool = False) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(names[-1], dir_fd=folder)
    try:
        return os.open(names[-1], _folder_flags(), dir_fd=folder)
    except FileNotFoundError:
        raise Refused(f"there is no folder {quoted(names)}: list_files says what there is") from None
    except OSError:
        entry = look(folder, names)
        if entry.kind == "folder":
            raise
        raise Refused(f"{quoted(names)} is {CALLED[entry.kind]}, no folder: give the path of another one") from None


def _entry(names: Names, status: os.stat_result) -> Entry:
    kinds = (kind for code, kind in KINDS if stat.S_IFMT(status.st_mode) == code)
    return Entry(names, next(kinds, "other"), status.st_size, status.st_nlink, status.st_mode)


def _refuse_special(entry: Entry) -> None:
    if entry.kind == "folder":
        raise Refused(f"{quoted(entry.names)} is a folder: list_files says what is in it")
    if entry.kind != "file":
        raise Refused(f"{quoted(entry.names)} is {CALLED[entry.kind]}: use an ordinary file")
    if entry.links > 1:
        raise Refused(f"{quoted(entry.names)} is a hard link, the same file may be elsewhere too: use another one")
