"""The folder of a run: its files by name, and where it can lie: on a local file system that can be written."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from karenina_core.errors import RunDirectoryError

MANIFEST = "manifest.json"
CONTINUED_BY = "continue.json"
"""In a folder with a journal that is not of a run: the command, as a JSON text, that continues what it keeps."""
RESULTS = "results.jsonl"
MOUNTS = Path("/proc/self/mountinfo")
SHARED = re.compile(
    r"(?:nfs\d*|cifs|smb\w*|ncpfs?|9p|afs|autofs|coda|ceph|lustre|glusterfs|gpfs|beegfs\w*|orangefs|pvfs2|ocfs2|gfs2"
    r"|davfs\w*|vboxsf|vmhgfs|fuse(?!blk$|ctl$).*)"
)
"""Types of file systems that other machines may have open too, or that answer through a program. SQLite's write-ahead
log needs memory that all who have the file open share, and locks that hold for all of them."""
PROBE = 64 * 1024
"""Bytes that must fit before a run begins; chosen."""


class Place(NamedTuple):
    """Where a folder lies."""

    mount: str
    """The mount point; empty where it is unknown."""
    kind: str
    """The type of its file system; empty where it is unknown."""

    @property
    def suitable(self) -> bool:
        """Unknown types count as suitable."""
        return not SHARED.fullmatch(self.kind)


def place_of(folder: Path, mounts: Path = MOUNTS) -> Place:
    """Where the folder lies, or would lie if it were made. `mounts` is a file in the form of Linux's `mountinfo`."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:  # not Linux
        return Place("", "")
    path = folder.resolve()
    above = {str(path), *map(str, path.parents)}
    found = Place("", "")
    for line in lines:  # of two mounts at one point the later one is on top
        fields, _, rest = line.partition(" - ")
        point = fields.split(" ")[4] if fields.count(" ") >= 4 else ""
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), point)  # white space and backslashes
        if point in above and len(point) >= len(found.mount):
            found = Place(point, rest.split(" ")[0])
    return found


def check_place(folder: Path, mounts: Path = MOUNTS) -> None:
    """Try whether a run can be kept in this folder, which exists.

    Raises RunDirectoryError where other machines may write there too, or a small file cannot be written.
    """
    place = place_of(folder, mounts)
    if not place.suitable:
        raise RunDirectoryError(
            f"{folder} is on a network file system ({place.kind} at {place.mount}), where a crash could lose what was "
            "paid for; start it in a local folder (--out DIR) and copy that when it is done"
        )
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise RunDirectoryError(
            f"the run directory {folder} cannot be written: {error.strerror}; free space, or start a run in "
            "another directory (--out DIR)"
        ) from error
