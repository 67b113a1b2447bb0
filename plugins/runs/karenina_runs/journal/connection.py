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

__all__ = ["Opened", "check_kind", "damaged", "opened", "stamp", "told"]


class Opened(NamedTuple):
    """A connection."""

    connection: sqlite3.Connection
    close: Callable[[], None]
    alone: tuple[int, ...] | None
    """The `stamp` of a file that nobody wrote to when it was opened. It is read without any lock, which is right as
    long as it has this stamp."""


def stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when somebody begins to write; None where somebody does, or a log is left."""
    if os.path.exists(log_of(path)) and os.path.getsize(log_of(path)):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


def damaged(path: Path, error: object) -> RunDirectoryError:
    """What a journal that cannot be read means for the user."""
    see = f"karenina doctor {shlex.quote(str(path.parent))}"
    return RunDirectoryError(f"{path} is damaged ({error}); see what can be saved: {see}")


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise damaged(path, error) from error


def check_kind(path: Path, connection: sqlite3.Connection) -> None:
    (kind,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if kind != APPLICATION:
        raise RunDirectoryError(f"{path} is no journal of karenina; name a run directory")
    if version > VERSION:
        raise RunDirectoryError(
            f"{path} was written by a newer karenina (its schema is {version}, this program reads {VERSION}); update it"
        )


def opened(path: Path) -> Opened:
    """A connection, and what closes it.

    Where nobody writes and no log is left, the file is all there is: it is read without any lock, which works in a
    folder that cannot be written. A log that a crash left behind is read along; where SQLite would have to write for
    it and cannot, a copy is read.
    """
    if not path.is_file():
        raise RunDirectoryError(f"there is no journal {path}; name a run directory")
    try:
        alone = stamp(path) if _nobody_writes(path) else None
        if alone is not None:
            return Opened(*_connect(path, "mode=ro&immutable=1"), alone)
        try:
            return Opened(*_connect(path, "mode=ro"), None)
        except sqlite3.OperationalError:
            return Opened(*_copied(path, log_of(path)), None)
    except (sqlite3.Error, OSError) as error:
        raise damaged(path, error) from error


def _nobody_writes(path: Path) -> bool:
    """Also where this process has the folder, and has closed the journal: a connection that writes has a log."""
    owner = owner_of(path.parent)
    return owner is None or (owner == os.getpid() and not log_of(path).exists())


def _text(raw: bytes) -> str:
    """Also where what is damaged is no text any more: then the checksum of its row tells."""
    return raw.decode("utf-8", "replace")


def _connect(path: Path, how: str) -> tuple[sqlite3.Connection, Callable[[], None]]:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, check_same_thread=False)
    connection.text_factory = _text
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except UnicodeDecodeError as error:  # SQLite quotes what it cannot read, and that need not be a text
        connection.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    except BaseException:
        connection.close()
        raise
    return connection, connection.close


def _copied(path: Path, log: Path) -> tuple[sqlite3.Connection, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="karenina-journal-"))
    try:
        for file in (path, log):
            if file.exists():
                shutil.copyfile(file, folder / file.name)
        connection, close = _connect(folder / path.name, "mode=rw")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise

    def closed() -> None:
        close()
        shutil.rmtree(folder, ignore_errors=True)

    return connection, closed
