"""What to type to go on with a run, or to spend no more on it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .directory import read_manifest
from .standing import Standing

__all__ = ["line_to_cancel", "line_to_fork", "line_to_go_on", "line_to_score_again"]


def line_to_go_on(found: Standing, folder: Path) -> str:
    """The line with every option without which it would be refused: the budget that is used up, what was given to the
    run and is not in its directory, and that its code is trusted. Raises ConfigError."""
    more = [f"--{found.used_up.replace('_', '-')} MORE"] if found.used_up else []
    return _line("resume", found, folder, more)


def line_to_score_again(found: Standing, folder: Path) -> str:
    """The line that has the judges of results without a score asked again. Raises ConfigError."""
    return _line("repair", found, folder, ["--unscored"])


def line_to_fork(found: Standing, folder: Path) -> str:
    """The line that begins another run with what this one has. Raises ConfigError."""
    return _line("resume", found, folder, ["--fork NEWDIR"])


def _line(command: str, found: Standing, folder: Path, options: Sequence[str]) -> str:
    trust = ["--trust"] if found.trusted else []
    source = read_manifest(folder)["benchmark"].get("path")
    moved = ["--benchmark FILE"] if source and not Path(source).exists() else []
    given = [*options, *moved, *_given_again(folder), *trust]
    return " ".join([f"karenina {command}", shlex.quote(str(folder)), *given])


def line_to_cancel(folder: Path) -> str:
    """The line that has the batches of a run cancelled. Raises ConfigError."""
    options = (option for option in _given_again(folder) if not option.startswith("--sink"))
    return " ".join(["karenina batches", shlex.quote(str(folder)), "--cancel", *options])


def _given_again(folder: Path) -> list[str]:
    """Options for what was not written, as the manifest has them: at the end of each hint that names one."""
    hints = (row["hint"].partition(": --") for row in read_manifest(folder).get("not_written", ()))
    return list(dict.fromkeys(f"--{option}" for _, is_named, option in hints if is_named))
