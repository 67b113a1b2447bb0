"""Whether a journal is what was written: nothing in it is changed, and nothing is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from karenina_core.errors import ConfigError, RunDirectoryError, one_line

from ..files.run_lock import marked
from .reader import JOURNAL, JournalReader, journal_of
from .rows import SCHEMA, TABLES
from .scan import scanned
from .wal import log_damage, log_of

__all__ = ["Health", "check"]


@frozen(kw_only=True)
class Health:
    """What a check found."""

    path: Path
    run_id: str | None = None
    rows: dict[str, int]
    """Sound rows, by table."""
    problems: tuple[str, ...] = ()
    """What is wrong; empty where everything is as it was written."""

    @property
    def sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "journal": str(self.path),
            "run_id": self.run_id,
            "sound": self.sound,
            "rows": self.rows,
            "problems": list(self.problems),
        }


def check(path: str | Path) -> Health:
    """Read all of a run directory's journal, or of this file. Nothing is written, and nothing that is in the file
    raises; ConfigError where there is none."""
    path = journal_of(path)
    if not path.is_file():
        raise _none(path)
    rows: dict[str, int] = {}
    found = []
    run_id = None
    if harm := log_damage(path):
        found.append(harm)
    try:
        with JournalReader.open(path) as reader:
            run_id = reader.run_id
            found += _of_database(reader)
            for name, table in TABLES.items():
                table_found = scanned(reader, table, bodies=True)
                rows[name] = table_found.rows
                found += table_found.problems()
    except RunDirectoryError as error:
        found.append(one_line(error.__cause__) if error.__cause__ is not None else str(error))
    except (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError) as error:
        found.append(one_line(error))
    return Health(path=path, run_id=run_id, rows=rows, problems=tuple(dict.fromkeys(found)))


def _none(path: Path) -> ConfigError:
    """What it means that there is no journal."""
    if path.name == JOURNAL and (log_of(path).exists() or any(marked(path.parent).values())):
        return ConfigError(f"{path} is gone, and what was paid for was in it; put the file back")
    return ConfigError(
        f"there is no journal {path}: the folder is no run directory, or nothing was asked in it yet; check the path"
    )


def _of_database(reader: JournalReader) -> Iterator[str]:
    for (told,) in reader.query("PRAGMA integrity_check(20)"):
        if told != "ok":
            yield " ".join(str(told).split())
    schema = {sql for (sql,) in reader.query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    if schema != set(SCHEMA):
        yield "its tables are not those of a journal"
    with reader.path.open("rb") as file:
        header = file.read(100)
    if header[18:24] != b"\x02\x02\x00\x40\x20\x20" or header[44:48] != b"\0\0\0\4" or any(header[72:92]):
        yield "its header is not what was written"
