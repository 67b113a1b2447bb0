"""Paths beneath a folder, as a model writes and reads them."""

from __future__ import annotations

import json
import os
import unicodedata

Names = tuple[str, ...]
"""A path beneath the root, name by name; empty for the root itself."""

HIDDEN = ".karenina"
"""What is called so, or begins so with another dot, is the program's own."""
MOST_DEEP = 32
"""Names in a path: half of the levels that a copy of a folder may have."""
LONGEST_NAME = 255
"""Bytes: NAME_MAX of Linux."""
LONGEST_PATH = 4096
"""Bytes: PATH_MAX of Linux."""


class Refused(Exception):
    """What was asked for is not given. The message is for the caller, and says what to do instead."""


def names_of(path: str) -> Names:
    """The names of a relative path with `/` between them; `.` is the root. Raises Refused for anything that leads out
    of it, and for what no file can be called."""
    if not path or "\0" in path:
        raise Refused("the path is empty or has a NUL in it: give a path such as 'notes.txt', or '.' for all")
    if path.startswith("/"):
        raise Refused(f"{quoted(path)} is absolute: give a path relative to the workspace, such as 'notes.txt'")
    names = tuple(name for name in path.removesuffix("/").split("/") if name != ".")
    if ".." in names:
        raise Refused(f"{quoted(path)} has '..' in it: nothing outside the workspace can be reached; leave it out")
    if "" in names:
        raise Refused(f"{quoted(path)} has an empty name in it: write one '/' between names")
    try:
        longest = max((len(os.fsencode(name)) for name in names), default=0)
    except UnicodeEncodeError:
        raise Refused(f"{quoted(path)} has characters that no file name has: leave them out") from None
    if longest > LONGEST_NAME or len(os.fsencode(path)) > LONGEST_PATH or len(names) > MOST_DEEP:
        limits = f"names of {LONGEST_NAME} bytes, paths of {LONGEST_PATH} and {MOST_DEEP} folders"
        raise Refused(f"the path {quoted(path)} is too long: at most {limits}")
    return names


def quoted(path: str | Names) -> str:
    """A path in JSON's notation, so on one line and as a model can give it back; at most its first 300 characters."""
    text = path if isinstance(path, str) else "/".join(path) or "."
    return json.dumps(text[:300], ensure_ascii=not text.isprintable())


def plain(names: Names) -> str:
    """A path as it is, or in JSON's notation where that would not be one line of printed letters."""
    path = "/".join(names)
    return path if path.isprintable() else json.dumps(path)


def is_hidden(name: str) -> bool:
    """Whether a name is the program's own. Some file systems take other letters for the same: capitals, compatible
    forms, and such that are not seen."""
    seen = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    folded = unicodedata.normalize("NFKC", seen).casefold()
    return folded == HIDDEN or folded.startswith(f"{HIDDEN}.")
