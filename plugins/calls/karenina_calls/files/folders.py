"""Folders as data: what is in them, copies of them, and their removal.

The walk goes from folder to folder by open handles and follows no link, so that nothing that is changed meanwhile can
lead it out of the folder that it began in.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Literal

from attrs import define, field, frozen

from karenina_core.errors import WorkspaceError

from .sandboxed_names import is_hidden

FICLONE = 0x40049409
"""Linux: the new file shares the blocks of the old one until either is written to."""
MOST_LEVELS = 64
"""Folders in folders. Every level holds an open file, and many systems allow 256 or 1024 of them to a process."""
Kind = Literal["file", "folder", "link", "other"]
KINDS: Mapping[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


@frozen(kw_only=True)
class Limits:
    """What a folder may hold."""

    max_bytes: int
    max_files: int
    """Entries of every kind, folders included."""
    subject: str | None = None
    """The name of the folder in messages that are read when it is gone."""


@frozen(kw_only=True)
class Entry:
    """One thing in a folder. It can be opened while the walk is at it."""

    path: str
    """Relative to the folder that is walked, with `/`."""
    name: str
    kind: Kind
    size: int
    mode: int
    modified_ns: int
    handle: int
    """Of the open folder that it is in."""

    def open(self) -> int:
        """A handle to read the file. Raises OSError where it has become anything but a file."""
        found = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.handle)
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            raise OSError(f"{self.path} is no longer a file")
        return found


@define(eq=False)
class Copied:
    """What a copy took over, and what it left out."""

    files: int = 0
    bytes: int = 0
    left_out: list[str] = field(factory=list)
    """Why, one text per entry."""


Wanted = Callable[[Entry], bool]


def contents(root: Path, limits: Limits, wanted: Wanted = lambda entry: True) -> Iterator[Entry]:
    """Everything in a folder, each folder before what is in it, names in order. What is not wanted is not entered.

    Raises WorkspaceError where there is more than the limits allow, OSError where something cannot be read.
    """
    count = size = 0
    subject, remedy = (limits.subject, "raise") if limits.subject else (root, "take some out, or raise")
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for entry in _walked(top, "", wanted, 1):
            count, size = count + 1, size + entry.size
            if count > limits.max_files:
                raise WorkspaceError(
                    f"{subject} has more than {limits.max_files} files and folders; {remedy} workspace_max_files"
                )
            if size > limits.max_bytes:
                raise WorkspaceError(f"{subject} has more than {limits.max_bytes} bytes; {remedy} workspace_max_bytes")
            yield entry
    finally:
        os.close(top)


def _walked(handle: int, prefix: str, wanted: Wanted, level: int) -> Iterator[Entry]:
    if level > MOST_LEVELS:
        raise WorkspaceError(f"{prefix[:80]}... lies deeper than {MOST_LEVELS} folders; make the tree flatter")
    with os.scandir(handle) as listed:
        names = sorted(item.name for item in listed)
    for name in names:
        try:
            facts = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:  # gone since it was listed
            continue
        kind = KINDS.get(stat.S_IFMT(facts.st_mode), "other")
        entry = Entry(
            path=prefix + name,
            name=name,
            kind=kind,
            size=facts.st_size if kind == "file" else 0,
            mode=facts.st_mode & 0o777,
            modified_ns=facts.st_mtime_ns,
            handle=handle,
        )
        if not wanted(entry):
            continue
        yield entry
        if entry.kind == "folder":
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            try:
                yield from _walked(inner, f"{entry.path}/", wanted, level + 1)
            finally:
                os.close(inner)


def is_shared(entry: Entry) -> bool:
    """Whether something belongs to the work in a folder. What judges write, traces of answers, goes into no copy."""
    return "/" in entry.path or not is_hidden(entry.name)


def link_target(root: Path, entry: Entry) -> str | None:
    """Where a link leads, relative to the link; None where that is outside of `root`."""
    target = os.readlink(entry.name, dir_fd=entry.handle)
    inside = Path(os.path.realpath(root))
    folder = Path(os.path.realpath(root / entry.path).removesuffix("/"))
    if folder != inside and inside not in folder.parents:
        return None
    if not os.path.isabs(target):
        # The text itself must stay inside as well: by way of another folder it would mean something else in a copy.
        plain = os.path.normpath(os.path.join(os.path.dirname(entry.path), target))
        return None if plain == ".." or plain.startswith("../") else target
    return os.path.relpath(folder, Path(os.path.realpath((root / entry.path).parent)))


def copy_tree(
    source: Path,
    target: Path,
    limits: Limits,
    *,
    wanted: Wanted = lambda entry: True,
    stopped: Callable[[], bool] = lambda: False,
) -> Copied:
    """Copy what is in `source` into the empty folder `target`: files, folders, and links that stay inside.

    Links that lead out and what is neither file, folder nor link are left out and reported. Rights of others than the
    owner are not copied; its owner can read and write everything in the copy. Raises WorkspaceError and OSError.
    """
    copied = Copied()
    for entry in contents(source, limits, wanted):
        if stopped():
            raise WorkspaceError("the copy was interrupted")
        place = target / entry.path
        if entry.kind == "folder":
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif entry.kind == "link":
            leads = link_target(source, entry)
            if leads is None:
                copied.left_out.append(f"{entry.path} is a link that leads out of the workspace")
                continue
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.symlink_to(leads)
            copied.files += 1
        elif entry.kind == "file":
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            copied.bytes += copy_file(entry, place, limits.max_bytes - copied.bytes)
            copied.files += 1
        else:
            copied.left_out.append(f"{entry.path} is neither a file nor a folder nor a link")
    return copied


def copy_file(entry: Entry, place: Path, most: int) -> int:
    """Copy one file to a place where nothing is, sharing its blocks where the file system can. Returns its size.

    Raises WorkspaceError where it has grown to more than `most` bytes.
    """
    read = entry.open()
    with open(read, "rb") as source:
        made = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600 | (entry.mode & 0o100))
        with open(made, "wb") as target:
            if not _cloned(source.fileno(), target.fileno()):
                size = os.fstat(source.fileno()).st_size
                if size > most:
                    raise WorkspaceError(f"{entry.path} grew while it was copied; raise workspace_max_bytes")
                _copied_bytes(source, target, size)
    os.utime(place, ns=(entry.modified_ns, entry.modified_ns), follow_symlinks=False)
    return place.lstat().st_size


def _copied_bytes(source: BinaryIO, target: BinaryIO, left: int) -> None:
    """Copy as many bytes as the file had: one that is still being written to has an end."""
    while left > 0 and (found := source.read(min(left, 1024 * 1024))):
        target.write(found)
        left -= len(found)


def _cloned(source: int, target: int) -> bool:
    try:
        import fcntl

        fcntl.ioctl(target, FICLONE, source)
    except (ImportError, OSError):  # another system, or a file system that cannot
        return False
    return True


def remove_tree(folder: Path) -> None:
    """Take a folder away with all that is in it, however deep and whatever its rights. Follows no link.

    Folders inside are moved up and emptied one by one, so that depth costs neither handles nor stack. Raises OSError.
    """
    try:
        top = _opened(str(folder), None)
    except FileNotFoundError:
        return
    try:
        while names := _listed(top):
            for name in names:
                _take_away(top, name)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _take_away(top: int, name: str) -> None:
    """Empty one entry of the folder into the folder itself, and take it away."""
    try:
        inner = _opened(name, top)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=top)
        return
    try:
        for child in _listed(inner):
            if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                os.close(_opened(child, inner))  # gives the right to move it
                os.rename(child, f".emptied-{token_hex(16)}", src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _listed(handle: int) -> list[str]:
    with os.scandir(handle) as found:
        return [item.name for item in found]


def _opened(name: str, within: int | None) -> int:
    """A handle of a folder that its owner may read and change from now on. A link is a NotADirectoryError."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        found = os.open(name, flags, dir_fd=within)
    except PermissionError:
        bare = os.open(name, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)
        try:
            os.chmod(f"/proc/self/fd/{bare}", 0o700)
        finally:
            os.close(bare)
        found = os.open(name, flags, dir_fd=within)
    os.fchmod(found, 0o700)
    return found
