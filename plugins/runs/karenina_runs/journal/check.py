"""Reading a whole journal: what is in it, whether it is what was written, and whether anything is missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from karenina_core.errors import ConfigError, RunDirectoryError, one_line, plural

from ..files.run_lock import marked
from .ledger import Ledger
from .reader import JOURNAL, JournalReader, journal_of
from .rows import PLACES, SCHEMA, TABLES, Table, prefix
from .wal import log_damage, log_of

MARKED = ("calls", "failures", "results")
"""Tables whose largest ids `run.lock` knows."""
SAVED = "_saved"
"""What follows the name of one of these tables in the id of the row of `meta` that says what was gone from it when the
journal was saved; see `saved`. Ids of other rows may end so, too."""


@define(eq=False)
class Scanned:
    """One table."""

    table: str
    rows: int = 0
    """Those that are sound."""
    damaged: int = 0
    replaced: int = 0
    """Rows that others replaced."""
    gone: int = 0
    """Rows that could not be saved when the journal was."""
    last: int = 0
    """The largest id there is, or was when the journal was last written."""
    indexed: int = 0
    """Up to this id, the places of rows are in the journal."""
    recent: list[tuple[int, int]] = field(factory=list)
    """Places of the rows after that."""
    unreadable: int = 0
    """Those whose bodies are no JSON; they are among the damaged."""
    unplaced: set[tuple[int, int]] = field(factory=set)
    """Places that should be in the journal and are not."""
    indexed_places: list[tuple[int, int]] = field(factory=list)

    @property
    def missing(self) -> int:
        """Rows that left no trace. Ids have no other gaps."""
        return max(0, self.last - self.rows - self.damaged - self.replaced - self.gone)

    def problems(self) -> list[str]:
        found = []
        if changed := self.damaged - self.unreadable:
            verb = "is" if changed == 1 else "are"
            found.append(f"{plural(changed, 'row')} of the table {self.table} {verb} not what was written")
        if self.unreadable:
            found.append(f"{plural(self.unreadable, 'row')} of the table {self.table} cannot be read: no JSON")
        if self.missing:
            found.append(f"{plural(self.missing, 'row')} of the table {self.table} cannot be found")
        if self.unplaced:
            found.append(f"{plural(len(self.unplaced), 'row')} of the table {self.table} cannot be found by their keys")
        return found


def scanned(reader: JournalReader, table: Table, ledger: Ledger | None = None, *, bodies: bool = False) -> Scanned:
    """Read a table; with `bodies`, also whether these are JSON, which takes much longer. Its rows are counted in the
    ledger. Raises RunDirectoryError where it cannot be read."""
    name, before = table.name, reader.damaged[table.name]
    found = Scanned(name)
    if table.key != "INTEGER":
        found.rows = found.last = sum(1 for _ in reader.every(table))
        found.damaged = reader.damaged[name] - before
        return found
    found.indexed = int(reader.meta.get(f"{name}_indexed", "0"))
    for row in reader.rows(table):
        assert isinstance(row.id, int)
        if bodies and table.body and not reader.bodies.is_readable(row.body):
            found.unreadable += 1
        else:
            found.rows += 1
        found.replaced += row.facts.get("revision", 0)
        if ledger is not None:
            ledger.add(name, row.facts)
        if name in PLACES:
            place = (prefix(name, row.facts), row.id)
            (found.indexed_places if row.id <= found.indexed else found.recent).append(place)
    ((last,),) = reader.query(f"SELECT coalesce(max(id), 0) FROM {name}")
    of_run = reader.path.name == JOURNAL  # and no copy, and none that was saved
    last_saved, found.gone = saved(reader.meta).get(name, (0, 0))
    found.last = max(last, last_saved, marked(reader.path.parent).get(name, 0) if of_run else 0)
    if name in PLACES:
        there = set(reader.query(f"SELECT prefix, id FROM {PLACES[name]}"))
        found.unplaced = set(found.indexed_places) - there
    found.damaged = reader.damaged[name] - before + found.unreadable
    return found


def saved(meta: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """`{table: (the largest id that a row had had, how many rows were gone)}` of a journal that was saved."""
    found = ((name, meta[f"{name}{SAVED}"].split()) for name in MARKED if f"{name}{SAVED}" in meta)
    return {table: (int(last), int(gone)) for table, (last, gone) in found}


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
        if path.name == JOURNAL and (log_of(path).exists() or any(marked(path.parent).values())):
            raise ConfigError(f"{path} is gone, and what was paid for was in it; put the file back")
        raise ConfigError(
            f"there is no journal {path}: the folder is no run directory, or no model was called in it yet; check the "
            "path"
        )
    rows: dict[str, int] = {}
    damage = log_damage(path)
    found = [] if damage is None else [damage]
    run_id = None
    try:
        with JournalReader.open(path) as reader:
            run_id = reader.run_id
            checks = (str(text) for (text,) in reader.query("PRAGMA integrity_check(20)"))
            found += [" ".join(text.split()) for text in checks if text != "ok"]
            if {sql for (sql,) in reader.query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")} != set(SCHEMA):
                found.append("its tables are not those of a journal")
            with path.open("rb") as file:
                header = file.read(100)
            if header[18:24] != b"\x02\x02\x00\x40\x20\x20" or header[44:48] != b"\0\0\0\4" or any(header[72:92]):
                found.append("its header is not what was written")
            for name, table in TABLES.items():
                table_found = scanned(reader, table, bodies=True)
                rows[name] = table_found.rows
                found += table_found.problems()
    except RunDirectoryError as error:
        found.append(one_line(error.__cause__) if error.__cause__ is not None else str(error))
    except (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError) as error:
        found.append(one_line(error))
    return Health(path=path, run_id=run_id, rows=rows, problems=tuple(dict.fromkeys(found)))
