"""Keeping what an agent left in its workspace: all of it, or the files that are new or were changed."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen
from karenina_calls.files.bounded import json_bounded, read_bounded
from karenina_calls.files.folders import Entry, Limits, contents, copy_tree, is_shared, remove_tree

from karenina_core.errors import WorkspaceError, one_line

MANIFEST = "manifest.jsonl"
WORKSPACES = "workspaces"
"""The folder of a run directory that holds the manifest and the kept workspaces."""
EXCLUDED = (
    *(".venv/", "venv/", "__pycache__/", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/"),
    *(".hypothesis/", ".tox/", ".nox/", ".cache/", ".ipynb_checkpoints/", "node_modules/", "*.pyc"),
)
"""Never kept. A name that ends in `/` is a folder anywhere, or at its path where it has one; others are globs."""
LONGEST_NAME, MOST_ERRORS = 80, 100
"""Characters of the name of a file that is made of an id, two of which fit into the 255 bytes of a name on usual file
systems, and errors of one capture that are kept; chosen."""
Snapshot = Mapping[str, tuple[str, int, str]]
"""Files and links by path: kind, size and SHA-256 of a file; kind, 0 and target of a link."""


@frozen(kw_only=True)
class CaptureRow:
    """One line of the manifest: what became of one result's workspace."""

    question_id: str
    result_id: str
    run_name: str
    replicate: int
    answering: str
    parsing: str
    capture_mode: Literal["none", "full", "produced"]
    """With `none`, the row is of a result whose stages have kept files."""
    status: Literal["captured", "captured_with_errors", "skipped"] = "captured"
    skip_reason: str | None = None
    destination: str | None = None
    """Relative to the folder of the manifest; None where nothing is kept."""
    copied_file_count: int = 0
    copy_errors: Sequence[str] = field(default=())


def safe_name(text: str) -> str:
    """A file name out of any text: letters, digits, `-`, `_` and `.` stay, at most `LONGEST_NAME` of them."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in text)
    return kept[:LONGEST_NAME].strip("_.-") or "unknown"


def wanted(patterns: Sequence[str] = ()) -> Callable[[Entry], bool]:
    """Whether something is kept: what no pattern excludes, and what is not of judges."""
    folders = [p.strip("/") for p in (*EXCLUDED, *patterns) if p.endswith("/")]
    files = [p for p in (*EXCLUDED, *patterns) if not p.endswith("/")]

    def keep(entry: Entry) -> bool:
        if not is_shared(entry):
            return False
        if entry.kind == "folder":
            return not any(fnmatch.fnmatchcase(entry.path if "/" in p else entry.name, p) for p in folders)
        return not any(fnmatch.fnmatchcase(name, p) for p in files for name in (entry.path, entry.name))

    return keep


def snapshot(folder: Path, limits: Limits, patterns: Sequence[str] = ()) -> Snapshot:
    """What the files in a folder are now. Raises WorkspaceError and OSError."""
    return {entry.path: _look(entry) for entry in contents(folder, limits, wanted(patterns)) if entry.kind != "folder"}


def _look(entry: Entry) -> tuple[str, int, str]:
    if entry.kind == "link":
        return ("link", 0, os.readlink(entry.name, dir_fd=entry.handle))
    if entry.kind == "other":
        return ("other", 0, "")
    with open(entry.open(), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return ("file", os.fstat(file.fileno()).st_size, digest)


def capture(
    workspace: Path, folder: Path, row: CaptureRow, limits: Limits, *, before: Snapshot | None, patterns: Sequence[str]
) -> CaptureRow:
    """Copy a workspace into a folder of `folder`, as a whole or not at all. Returns the row of what became of it.

    With a snapshot from `before`, only files and links that are new or were changed since. Raises nothing: what goes
    wrong is in the row.
    """
    name = _name_of(row)
    making: Path | None = None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder))
        keep = wanted(patterns)

        def is_chosen(entry: Entry) -> bool:
            unchanged = before is not None and entry.kind != "folder" and before.get(entry.path) == _look(entry)
            return keep(entry) and not unchanged

        copied = copy_tree(workspace, making, limits, wanted=is_chosen)
        making.rename(folder / name)
    except (OSError, WorkspaceError) as error:
        if making is not None:
            with suppress(OSError):  # the row has the first error, which is the reason
                remove_tree(making)
        return evolve(row, status="skipped", skip_reason=problem_of(error))
    if before is not None:  # folders that hold nothing new were not produced
        for place, _, _ in os.walk(folder / name, topdown=False):
            if place != str(folder / name) and not os.listdir(place):
                os.rmdir(place)
    return evolve(
        row,
        status="captured_with_errors" if copied.left_out else "captured",
        destination=name,
        copied_file_count=copied.files,
        copy_errors=tuple(copied.left_out[:MOST_ERRORS]),
    )


def with_files(folder: Path, row: CaptureRow, files: Mapping[str, str]) -> CaptureRow:
    """Write texts by their paths into the folder of a row. Returns the row with them, and with what went wrong.

    The paths lie beneath `.karenina`, which no capture has. Why there is no capture becomes an error of the row.
    """
    place = folder / _name_of(row)
    errors = [*row.copy_errors, *([row.skip_reason] if row.skip_reason else [])]
    count = 0
    for path, text in files.items():
        try:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text, "utf-8", errors="replace", newline="")
            count += 1
        except OSError as error:
            errors.append(f"{path} cannot be written: {one_line(error)}")
    if not count and row.destination is None:
        return evolve(row, status="skipped", skip_reason="; ".join(errors))
    return evolve(
        row,
        status="captured_with_errors" if errors else "captured",
        skip_reason=None,
        destination=place.name,
        copied_file_count=row.copied_file_count + count,
        copy_errors=tuple(errors),
    )


def _name_of(row: CaptureRow) -> str:
    return f"{safe_name(row.question_id)}__{safe_name(row.result_id)}"


def problem_of(error: Exception) -> str:
    """What an OSError or a WorkspaceError says, on one line."""
    return str(error) if isinstance(error, WorkspaceError) else one_line(error)


def append_row(folder: Path, row: CaptureRow) -> None:
    """Add a line to the manifest of the folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(row), ensure_ascii=False) + "\n"
    with (folder / MANIFEST).open("ab") as file:
        file.write(line.encode("utf-8", "replace"))


def captures(run_dir: Path | None) -> dict[str, Mapping[str, Any]]:
    """The rows of a run's manifest by result; the last one of each counts."""
    if run_dir is None:
        return {}
    try:
        lines = read_bounded(run_dir / WORKSPACES / MANIFEST).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    rows: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        with suppress(ValueError):  # a run that was killed may leave half a line
            row = json_bounded(line)
            if isinstance(row, Mapping):
                rows[str(row.get("result_id"))] = row
    return rows
