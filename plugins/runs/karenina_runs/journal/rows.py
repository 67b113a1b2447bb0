"""The journal's tables, its rows, and where in the file the rows of a key are.

A row has a checksum over all of it, and a body that is JSON on one line. Keys are digests: an index by them is written
to all over with every commit. So the places of recent rows are kept in memory, and written in one go when there are
many. Opening a journal reads those that were not written yet.
"""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from attrs import define, field, frozen
from karenina_calls.ports.stored_calls import CallFacts, StoredCall, StoredReply

from karenina_core.errors import PortError, one_line
from karenina_core.log import get_logger
from karenina_core.values.message import UsageMetadata

from .compression import Bodies

APPLICATION = 0x4B52_4E4A
"""SQLite's `application_id` of a journal."""
VERSION = 1
"""SQLite's `user_version`: of this schema."""
PAGE = 4096
"""Bytes of a page: SQLite's own default."""
LARGEST = 1 << 63
"""SQLite's integers have a sign and 64 bits."""
AT_MOST = 8192
"""Places that are kept in memory before they are written; chosen."""
Value = str | int | float | bytes | None
encode = json.JSONEncoder(separators=(",", ":")).encode
ENCODE = json.JSONEncoder(separators=(",", ":"), default=str).encode
"""Whatever an adapter put into a reply: what was paid for is kept."""
DECODE = json.JSONDecoder().raw_decode
"""The fastest way to see that a text is JSON: a quarter of the time that it takes to compress 20 KB of English."""
log = get_logger("karenina.run")


@frozen
class Table:
    """One table. Between its id and its checksum are the run's number and its facts; a body comes last."""

    name: str
    facts: Mapping[str, str]
    """Columns and their types."""
    body: bool = False
    key: str = "INTEGER"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("id", "run", *self.facts, "crc", *(("body",) if self.body else ()))

    @property
    def definition(self) -> str:
        facts = "".join(f", {name} {kind}" for name, kind in self.facts.items())
        body = ", body BLOB" if self.body else ""
        return f"CREATE TABLE {self.name}(id {self.key} PRIMARY KEY, run INTEGER{facts}, crc INTEGER{body})"


ASKED = {
    "key": "TEXT",
    "nth": "INTEGER",
    **dict.fromkeys(("kind", "model", "task", "stage", "stage_version", "trait", "question_id", "result_id"), "TEXT"),
    **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), "INTEGER"),
    "cost_usd": "REAL",
    **dict.fromkeys(("cache_read_tokens", "cache_creation_tokens"), "INTEGER"),
    "usage_model": "TEXT",
    **dict.fromkeys(("usage_unavailable", "attempts"), "INTEGER"),
    "retries": "TEXT",
    "seconds": "REAL",
    "at": "REAL",
    "estimated_tokens": "INTEGER",
    "estimated_usd": "REAL",
}
CALLS = Table("calls", {**ASKED, "reused_from": "TEXT"}, body=True)
"""Replies. The body is the call's line in a recording."""
FAILURES = Table("failures", {**ASKED, "error": "TEXT", "status": "INTEGER", "message": "TEXT"}, body=True)
"""Attempts that failed. The body is the call's line in a recording where the failure is of a kind that is not tried
again: what was asked, and what came back instead of a reply."""
RESULTS = Table(
    "results",
    {"task": "TEXT", "position": "INTEGER", "result_id": "TEXT", "outcome": "TEXT", "detail": "TEXT"}
    | {"revision": "INTEGER", "at": "REAL"},
    body=True,
)
"""Results, one for each task. The revision counts those that it replaced. The body is its line in `results.jsonl`."""
BATCHES = Table(
    "batches",
    {"model": "TEXT", "provider_id": "TEXT", "status": "TEXT", "keys": "TEXT", "at": "REAL"},
    key="TEXT",
)
META = Table("meta", {"value": "TEXT"}, key="TEXT")
"""What holds for the journal as a whole."""
COPIES = Table("copies", {"value": "TEXT", "copy": "INTEGER"}, key="TEXT")
"""Those rows of `meta` without which others could not be read, once more: on other pages."""
TABLES = {table.name: table for table in (CALLS, FAILURES, RESULTS, BATCHES, META, COPIES)}
PLACES = {"calls": "call_places", "results": "result_places"}
"""Where the rows of a table are, by a number that is made of their keys."""
SCHEMA = (
    *(table.definition for table in TABLES.values()),
    *(
        f"CREATE TABLE {name}(prefix INTEGER, id INTEGER, PRIMARY KEY(prefix, id)) WITHOUT ROWID"
        for name in PLACES.values()
    ),
)


@frozen
class Row:
    """One row that has proved to be what was written."""

    id: int | str
    run: int
    facts: Mapping[str, Any]
    body: bytes = b""

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


def sealed(table: Table, id_: int | str, run: int, facts: Sequence[Value], body: bytes = b"") -> tuple[Value, ...]:
    """The row as the table has it, its checksum included."""
    row = (id_, run, *facts, _checksum(table, (id_, run, *facts), body))
    return (*row, body) if table.body else row


def row_of(table: Table, columns: Sequence[Any]) -> Row | None:
    """The row in these columns; None where it is not what was written."""
    facts, crc = columns[: len(table.facts) + 2], columns[len(table.facts) + 2]
    body = columns[-1] if table.body else b""
    try:
        if type(body) is not bytes or crc != _checksum(table, facts, body):
            return None
    except (TypeError, ValueError):  # what was a text is bytes now
        return None
    return Row(facts[0], facts[1], dict(zip(table.facts, facts[2:], strict=True)), body)


def _checksum(table: Table, facts: Sequence[Value], body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(encode((table.name, *facts)).encode("ascii")))


def cleaner(redact: Callable[[str], str]) -> Callable[[str], str]:
    """A function that makes a label fit to be written: without secrets, and without what is no text."""

    @lru_cache(maxsize=256)  # labels of a run are few, but for those of questions and items, which are soon done
    def clean(text: str) -> str:
        text = redact(text)
        return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")

    return clean


def call_facts(
    call: StoredCall, facts: CallFacts, clean: Callable[[str], str], at: float, reused_from: str | None = None
) -> tuple[Value, ...]:
    """What a row of `calls` says between the run's number and its checksum."""
    return (*_asked(call, facts, clean, at), None if reused_from is None else clean(reused_from))


def failure_facts(
    call: StoredCall, error: BaseException, facts: CallFacts, clean: Callable[[str], str], at: float
) -> tuple[Value, ...]:
    """What a row of `failures` says."""
    kind, status = getattr(error, "kind", None), None
    if isinstance(error, PortError):
        status = whole(error.status)
    elif not isinstance(error, Exception):
        kind = "cancelled"
    message = clean(one_line(error))
    return (*_asked(call, facts, clean, at), clean(str(kind or "stage")), status, message)


def line_of(call: StoredCall, outcome: Mapping[str, Any]) -> str:
    """The call's line in a recording, where the version of a stage is no part of the key."""
    request = call.request
    text = ENCODE(outcome)
    return f'{{"format":1,"key":"{request.key}",{request.canonical[1:-1]},{text[1:]}'


def parsed(text: str) -> str:
    """The text of a body, which is nothing or JSON. Anything else is kept as a text of JSON, and counts as damaged."""
    try:
        if not text or DECODE(text)[1] == len(text):
            return text
        problem = "more than one document"
    except (ValueError, RecursionError) as error:
        problem = one_line(error)
    log.error("what was to be kept is not JSON; please report it", problem=problem)
    return ENCODE({"unreadable": text})


def reply_of(row: Row, bodies: Bodies) -> StoredReply | None:
    """None where what was kept cannot be read: it is asked for again."""
    try:
        line = json.loads(bodies.unpacked(row.body))
        outcome = {name: line[name] for name in ("reply", "error", "removed") if name in line}
    except (ValueError, TypeError, RecursionError):
        return None
    if "reply" not in outcome and "error" not in outcome:
        return None
    usage = UsageMetadata(
        row["input_tokens"],
        row["output_tokens"],
        row["total_tokens"],
        row["cost_usd"],
        row["cache_read_tokens"],
        row["cache_creation_tokens"],
        row["usage_model"],
    )
    facts = CallFacts(
        usage=usage,
        usage_unavailable=bool(row["usage_unavailable"]),
        seconds=row["seconds"],
        attempts=row["attempts"],
        retries=json.loads(row["retries"]) if row["retries"] else {},
        estimated_tokens=row["estimated_tokens"],
        estimated_usd=row["estimated_usd"],
    )
    return StoredReply(outcome, facts)


def _asked(call: StoredCall, facts: CallFacts, clean: Callable[[str], str], at: float) -> tuple[Value, ...]:
    usage, request = facts.usage, call.request
    return (
        call.key,
        call.nth,
        request.kind,
        *map(clean, (request.recipient, request.task, call.stage, call.stage_version, call.trait)),
        *map(clean, (call.question_id, call.result_id)),
        *[whole(tokens) or 0 for tokens in (usage.input_tokens, usage.output_tokens, usage.total_tokens)],
        _real(usage.cost_usd),
        whole(usage.cache_read_tokens),
        whole(usage.cache_creation_tokens),
        None if usage.model is None else clean(str(usage.model)),
        int(facts.usage_unavailable),
        whole(facts.attempts),
        clean(encode(dict(facts.retries))) if facts.retries else "",
        _real(facts.seconds) or 0.0,
        at,
        whole(facts.estimated_tokens),
        _real(facts.estimated_usd),
    )


def whole(number: Any) -> int | None:
    """A number that SQLite can hold; None where it is none."""
    if number is None or (type(number) is int and -LARGEST <= number < LARGEST):
        return number
    if not isinstance(number, int | float) or (isinstance(number, float) and not math.isfinite(number)):
        return None
    return max(-LARGEST, min(LARGEST - 1, int(number)))


def _real(number: Any) -> float | None:
    """None where the number is none, or no finite one."""
    if number is None:
        return None
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def prefix(table: str, facts: Mapping[str, Any]) -> int:
    """A number of 60 bits that rows of one key share, and hardly any others."""
    return _number(f"{facts['key']} {facts['nth']}" if table == "calls" else facts["task"])


@lru_cache(maxsize=256)  # a row is looked for before it is written, and then placed
def _number(text: str) -> int:
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

    def find(self, number: int, connect: Callable[[], sqlite3.Connection]) -> list[int]:
        """Ids of rows that may be those of the key, the latest first. Raises what `connect` does, and sqlite3.Error."""
        if not self.upto and number not in self._recent and number not in self._leaving:
            return []
        found = {*self._recent.get(number, ()), *self._leaving.get(number, ())}
        if self.upto:  # of a run that has just begun, all places are in memory
            rows = connect().execute(f"SELECT id FROM {PLACES[self.table]} WHERE prefix = ?", (number,)).fetchall()
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
