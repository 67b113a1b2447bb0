"""Connections to a journal for those who only read."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from karenina_core.errors import RunDirectoryError

from ..files.run_lock import owner_of
from .rows import APPLICATION, VERSION
from .wal import log_of


class Opened(NamedTuple):
    """A connection."""

    connection: sqlite3.Connection
    close: Callable[[], None]
    alone: tuple[int, ...] | None
    """The `stamp` of a file that no process wrote to when it was opened. It is read without any lock, which is right
    as long as it has this stamp."""


def stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when a process begins to write; None where one writes, or a log is left."""
    if os.path.exists(log_of(path)) and os.path.getsize(log_of(path)):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def damaged(path: Path, error: object) -> RunDirectoryError:
    """What a journal that cannot be read means for the user."""
    see = f"karenina doctor {shlex.quote(str(path.parent))}"
    return RunDirectoryError(f"{path} is damaged ({error}); see what can be saved: {see}")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns sqlite3.Error into RunDirectoryError."""
    try:
        yield
    except sqlite3.Error as error:
        raise damaged(path, error) from error


def check_kind(path: Path, connection: sqlite3.Connection) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION:
        raise RunDirectoryError(f"{path} is not a journal of karenina; name a run directory")
    if version > VERSION:
        raise RunDirectoryError(
            f"{path} was written by a newer karenina (its schema is {version}, this program reads {VERSION}); update it"
        )


def opened(path: Path) -> Opened:
    """A connection, and what closes it.

    Where no process writes and no log is left, the file is all there is: it is read without any lock, which works in a
    folder that cannot be written. A log that a crash left behind is read, too; where SQLite would have to write for
    that and cannot, a copy is read.
    """
    if not path.is_file():
        raise RunDirectoryError(f"there is no journal {path}; name a run directory")
    try:
        owner = owner_of(path.parent)  # a connection of this process that writes has a log
        is_free = owner is None or (owner == os.getpid() and not log_of(path).exists())
        alone = stamp(path) if is_free else None
        if alone is not None:
            return _connect(path, "mode=ro&immutable=1", alone)
        try:
            return _connect(path, "mode=ro")
        except sqlite3.OperationalError:
            return _copied(path)
    except (sqlite3.Error, OSError) as error:
        raise damaged(path, error) from error


def _connect(path: Path, how: str, alone: tuple[int, ...] | None = None) -> Opened:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, check_same_thread=False)
    # What is damaged need not be a text any more: then the checksum of its row shows it.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except UnicodeDecodeError as error:  # SQLite quotes what it cannot read, and that need not be a text
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    except BaseException:
        connection.close()
        raise
    return Opened(connection, connection.close, alone)


def _copied(path: Path) -> Opened:
    with contextlib.ExitStack() as copying:
        made = tempfile.TemporaryDirectory(prefix="karenina-journal-", ignore_cleanup_errors=True)
        folder = Path(copying.enter_context(made))
        for file in filter(Path.exists, (path, log_of(path))):
            shutil.copyfile(file, folder / file.name)
        copy = _connect(folder / path.name, "mode=rw")
        copying.callback(copy.close)
        return copy._replace(close=copying.pop_all().close)
