"""Reading a whole table once: what is in it, and whether that is all that was written."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from karenina_core.errors import plural

from ..files.run_lock import marked
from .index import prefix
from .ledger import Ledger
from .reader import JOURNAL, JournalReader
from .rows import PLACES, Table

__all__ = ["MARKED", "SAVED", "Scanned", "saved", "scanned"]

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
        told = []
        if changed := self.damaged - self.unreadable:
            verb = "is" if changed == 1 else "are"
            told.append(f"{plural(changed, 'row')} of the table {self.table} {verb} not what was written")
        if self.unreadable:
            told.append(f"{plural(self.unreadable, 'row')} of the table {self.table} cannot be read: no JSON")
        if self.missing:
            told.append(f"{plural(self.missing, 'row')} of the table {self.table} cannot be found")
        if self.unplaced:
            told.append(f"{plural(len(self.unplaced), 'row')} of the table {self.table} cannot be found by their keys")
        return told


def scanned(reader: JournalReader, table: Table, ledger: Ledger | None = None, *, bodies: bool = False) -> Scanned:
    """Read a table, with what its bodies say if asked for, which takes much longer. Its rows are counted in the ledger.
    Raises RunDirectoryError where it cannot be read."""
    before = reader.damaged[table.name]
    found = Scanned(table.name)
    if table.key != "INTEGER":
        found.rows = found.last = sum(1 for _ in reader.every(table))
    else:
        _read(reader, table, found, ledger, bodies=bodies and table.body)
    found.damaged = reader.damaged[table.name] - before + found.unreadable
    return found


def saved(meta: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """`{table: (the largest id that a row had had, how many rows were gone)}` of a journal that was saved."""
    told = ((name, meta[f"{name}{SAVED}"].split()) for name in MARKED if f"{name}{SAVED}" in meta)
    return {table: (int(last), int(gone)) for table, (last, gone) in told}


def _read(reader: JournalReader, table: Table, found: Scanned, ledger: Ledger | None, *, bodies: bool) -> None:
    name = table.name
    found.indexed = int(reader.meta.get(f"{name}_indexed", "0"))
    for row in reader.rows(table):
        assert isinstance(row.id, int)
        if bodies and not reader.bodies.is_readable(row.body):
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
    before, found.gone = saved(reader.meta).get(name, (0, 0))
    found.last = max(last, before, marked(reader.path.parent).get(name, 0) if of_run else 0)
    if name in PLACES:
        there = set(reader.query(f"SELECT prefix, id FROM {PLACES[name]}"))
        found.unplaced = set(found.indexed_places) - there
