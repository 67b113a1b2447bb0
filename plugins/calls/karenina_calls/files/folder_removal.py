"""Taking folders away, whatever is in them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["remove_tree"]


def remove_tree(folder: Path) -> None:
    """Take a folder away with all that is in it, however deep and whatever its rights. Follows no link.

    Folders inside are moved up and emptied one by one, so that depth costs neither handles nor stack. Raises OSError.
    """
    try:
        top = _opened(str(folder), None)
    except FileNotFoundError:
        return
    number = 0
    try:
        while names := _listed(top):
            for name in names:
                number = _taken_away(top, name, number)
    finally:
        os.close(top)
    with suppress(FileNotFoundError):
        folder.rmdir()


def _taken_away(top: int, name: str, number: int) -> int:
    """Empty one entry of the folder into the folder itself, and take it away."""
    try:
        inner = _opened(name, top)
    except FileNotFoundError:
        return number
    except NotADirectoryError:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=top)
        return number
    try:
        for child in _listed(inner):
            if stat.S_ISDIR(os.stat(child, dir_fd=inner, follow_symlinks=False).st_mode):
                os.close(_opened(child, inner))  # gives the right to move it
                moved, number = _free_name(top, number)
                os.rename(child, moved, src_dir_fd=inner, dst_dir_fd=top)
            else:
                os.unlink(child, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return number


def _free_name(top: int, number: int) -> tuple[str, int]:
    while True:
        number += 1
        name = f".emptied-{number}"
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name, number


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
