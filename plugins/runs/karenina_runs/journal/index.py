"""Where in a journal the rows of a key are.

Keys are digests: an index by them is written to all over with every commit. So the places of recent rows are kept in
memory, and written in one go when there are many. Opening a journal reads those that were not written yet.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from attrs import define, field

from .rows import PLACES

AT_MOST = 8192
"""Places that are kept in memory before they are written; chosen."""


def prefix(table: str, facts: Mapping[str, Any]) -> int:
    """A number of 60 bits that rows of one key share, and hardly any others."""
    text = f"{facts['key']} {facts['nth']}" if table == "calls" else facts["task"]
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 4


@define(eq=False)
class Places:
    """Of one table. `upto` is the id of the last row whose place is in the journal itself."""

    table: str
    upto: int = 0
    _recent: dict[int, list[int]] = field(factory=dict)
    _leaving: dict[int, list[int]] = field(factory=dict)
    _count: int = 0
    _last: int = 0

    def add(self, number: int, id_: int) -> None:
        """A row that is committed."""
        self._recent.setdefault(number, []).append(id_)
        self._count += 1
        self._last = max(self._last, id_)

    def find(self, number: int, connection: sqlite3.Connection) -> list[int]:
        """Ids of rows that may be those of the key, the latest first. Raises sqlite3.Error."""
        found = {*self._recent.get(number, ()), *self._leaving.get(number, ())}
        if self.upto:  # of a run that has just begun, all places are in memory
            rows = connection.execute(f"SELECT id FROM {PLACES[self.table]} WHERE prefix = ?", (number,)).fetchall()
            found.update(id_ for (id_,) in rows)
        return sorted(found, reverse=True)

    def leave(self, at_least: int = AT_MOST) -> tuple[str, int] | None:
        """`(places as JSON, up to which row)` when there are so many that they are to be written now."""
        if self._leaving or self._count < at_least or not self._count:
            return None
        self._leaving, self._recent, self._count = self._recent, {}, 0
        return as_json((number, id_) for number, ids in self._leaving.items() for id_ in ids), self._last

    def left(self, upto: int) -> None:
        """They are in the journal."""
        self._leaving, self.upto = {}, upto


def as_json(pairs: Iterable[tuple[int, int]]) -> str:
    return json.dumps(sorted(pairs), separators=(",", ":"))
