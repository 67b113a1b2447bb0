"""The journal of a run: every reply that was paid for and every result, safe from the moment it is acknowledged."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import define, field
from karenina_calls.ports.stored_calls import CallFacts, StoredCall, StoredReply
from karenina_calls.records.refusals import Refusals
from karenina_calls.records.requests import Request, error_to
from karenina_calls.secrets.redaction import redactor
from karenina_vocabulary.tasks import EMBEDDING, SEARCH, PromptTask

from karenina_core.errors import RETRYABLE, PortError, RunDirectoryError

from ..files.run_files import check_place
from ..files.run_lock import RunLock
from .check import MARKED, make, reopened
from .compression import DICTIONARY
from .in_flight import Flights
from .ledger import Ledger
from .reader import JOURNAL, Batch, Done, JournalReader, run_number
from .rows import (
    BATCHES,
    CALLS,
    COPIES,
    FAILURES,
    META,
    RESULTS,
    TABLES,
    Row,
    Table,
    call_facts,
    cleaner,
    encode,
    failure_facts,
    line_of,
    parsed,
    reply_of,
    sealed,
)
from .writer import WINDOW, Commits, Entry, no_longer

REFUSED = "refused:"
"""Prefix of the ids of rows of `meta` that name a schema which a model refuses: so that a reply is found whoever the
provider is by then. The channel, a colon, and the key of model and schema follow."""
CROWD = 8192
"""Rows that may wait to be written while calls are still made; chosen. More calls wait until rows are written."""


@define(eq=False)
class KeptRefusals(Refusals):
    """Those of a journal, and those of the runs from which it takes replies over."""

    _kept: set[str] = field(factory=set)
    """Ids of the rows that are in this journal, or on their way to it."""

    @classmethod
    def found_in(cls, meta: Mapping[str, str], sources: Iterable[Mapping[str, str]]) -> KeptRefusals:
        """From the rows of `meta` of the journal, and of its sources."""
        found = cls()
        for name in (name for rows in (meta, *sources) for name in rows if name.startswith(REFUSED)):
            channel, _, key = name.removeprefix(REFUSED).partition(":")
            found.learn(key, [channel])
        found._kept = {name for name in meta if name.startswith(REFUSED)}
        return found

    def rows(self, call: StoredCall) -> Iterator[str]:
        """The ids of rows that have to be in the journal before the reply to this call, and are not there."""
        if not call.refused or not isinstance(call.request, Request):
            return
        key = self.key(call.request.model, call.request.schema or {})
        self.learn(key, call.refused)
        for channel in call.refused:
            name = f"{REFUSED}{channel}:{key}"
            if name not in self._kept:
                self._kept.add(name)
                yield name


@define(eq=False)
class Journal:
    """A call store (see `CallStore`), and the store of results. One process writes to it, and one event loop.

    What `put`, `put_result` and `put_batch` return from is on the disk. When something cannot be written, they and
    `take` raise RunDirectoryError from then on, those that wait at that moment included.
    """

    ledger: Ledger
    """What the calls took: of all that is committed."""
    notes: tuple[str, ...]
    """Damage that was found when it was opened."""
    reader: JournalReader
    """For everything that is only read."""
    refusals: KeptRefusals
    _owned: ExitStack = field(kw_only=True)
    """Closed at the end: the connection, and the lock where it is the journal's own."""
    _commits: Commits = field(kw_only=True)
    _last: dict[str, int] = field(kw_only=True)
    _redact: Callable[[str], str] = field(kw_only=True)
    _clean: Callable[[str], str] = field(kw_only=True)
    _sources: Sequence[JournalReader] = field(kw_only=True)
    _is_repeated: Callable[[StoredCall], bool] = lambda call: False
    _repeated_upto: int = 0
    _again: dict[str, Collection[str]] = field(factory=dict)
    """By run: results whose judges are asked once more."""
    _again_upto: int = 0
    _flights: Flights = field(factory=Flights)
    _ending: dict[str, tuple[int, int]] = field(factory=dict)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        run_id: str | None = None,
        secrets: Iterable[str] = (),
        sources: Sequence[JournalReader] = (),
        lock: RunLock | None = None,
    ) -> Journal:
        """The journal of a run directory, which is made where there is none.

        `run_id` is that of a new journal, and must be that of one that is there. `secrets` are never written.
        `sources` are journals of other runs: replies that they hold are taken over. `lock` is held by the caller, who
        also releases it. Raises RunDirectoryError.
        """
        path, owned = folder / JOURNAL, ExitStack()
        check_place(folder)
        lock = lock or owned.enter_context(RunLock(folder))
        try:
            connection, found = reopened(path, run_id) if path.exists() else make(path, run_id)
            owned.callback(connection.close)
            reader, redact = JournalReader.open(path), redactor(secrets)
            last = {name: found.last.get(name, 0) for name in MARKED}
            journal = cls(
                found.ledger,
                found.notes,
                reader,
                KeptRefusals.found_in(reader.meta, [source.meta for source in sources]),
                owned=owned,
                commits=Commits(
                    path,
                    run_number(reader.run_id),
                    found.places,
                    on_failure=lambda: journal._flights.land_all(),
                    seal=lambda entry: journal._seal(entry),
                ),
                last=last,
                redact=redact,
                clean=cleaner(redact),
                sources=tuple(sources),
            )
            journal._commits.start(connection, last, lock)
            for name, (places, upto) in found.replaced.items():
                journal._commits.index(name, places, upto, replaces_all=True)
        except BaseException as error:
            owned.close()
            if isinstance(error, sqlite3.Error | OSError) and not isinstance(error, RunDirectoryError):
                raise no_longer(path, error) from error
            raise
        return journal

    # Calls

    def ask_again(self, results: Collection[str], run_id: str | None = None) -> None:
        """Replies of judges for these results, of this run or of one of the sources, are asked for once more, whichever
        item wants them."""
        self._again[run_id or self.reader.run_id] = results
        if run_id is None:
            self._again_upto = self._last["calls"]

    def repeat_calls(self, which: Callable[[StoredCall], bool], upto: int) -> None:
        """Calls of which `which` is true are made again although their replies are here, up to that row, or in other
        runs. A later reply is taken."""
        self._is_repeated, self._repeated_upto = which, upto

    async def take(self, call: StoredCall) -> StoredReply | None:
        name = (call.key, call.nth)
        self._commits.check()
        await self._flights.join(name, waits=not call.inside)
        try:
            self._commits.check()
            while self._commits.waiting > CROWD:
                await asyncio.sleep(WINDOW)
                self._commits.check()
            found = await self._kept(call)
        except BaseException:  # or others would wait for a call that is not made
            self._flights.left(name)
            raise
        if found is not None:
            self._flights.landed(name)
        return found

    async def _kept(self, call: StoredCall) -> StoredReply | None:
        """The reply that is here, or that another run has."""
        repeated = self._is_repeated(call)
        row = self._own(CALLS, {"key": call.key, "nth": call.nth})
        reply = None if row is None else reply_of(row, self.reader.bodies)
        if row is not None and reply is not None and not (repeated and int(row.id) <= self._repeated_upto):
            if int(row.id) <= self._again_upto and self._is_asked_again(row, reply, self.reader.run_id):
                return None
            self._refused(call)
            return reply
        if reply is not None or repeated:
            return None
        for source in self._sources:
            if (row := source.call(call.key, call.nth)) is not None:
                reply = reply_of(row, source.bodies)
                if reply is None or self._is_asked_again(row, reply, source.run_id):
                    return None
                facts = call_facts(call, reply.facts, self._clean, time.time(), source.run_id)
                await self._call(call, facts, source.bodies.unpacked(row.body))
                return reply
        return None

    async def put(self, call: StoredCall, outcome: Mapping[str, Any], facts: CallFacts) -> None:
        try:
            self._commits.check()
            line = line_of(call, outcome)
            row = call_facts(call, facts, self._clean, time.time())
        except BaseException:
            self._flights.failed((call.key, call.nth))
            raise
        await self._call(call, row, line)

    def failed(self, call: StoredCall, error: BaseException, facts: CallFacts) -> None:
        try:
            if facts.made and self._commits.failure is None:
                text = ""
                if isinstance(error, PortError) and error.kind not in RETRYABLE:  # others are tried again
                    text = line_of(call, {"error": error_to(error)})
                row = self._numbered(FAILURES, failure_facts(call, error, facts, self._clean, time.time()))

                def settled(failure: RunDirectoryError | None) -> None:
                    if failure is None:
                        self.ledger.add("failures", _facts(FAILURES, row))

                self._commits.submit(Entry("failures", row, settled, text=("failures", text)))
        finally:
            (self._flights.failed if facts.made else self._flights.left)((call.key, call.nth))

    def _is_asked_again(self, row: Row, reply: StoredReply, run_id: str) -> bool:
        results = self._again.get(run_id, ())
        from_judge = row["task"] not in (PromptTask.GENERATION, EMBEDDING, SEARCH)
        return row["result_id"] in results and (from_judge or "error" in reply.outcome)

    async def _call(self, call: StoredCall, facts: Sequence[Any], line: str) -> None:
        name, text = (call.key, call.nth), (self._clean(call.request.task), line)
        self._refused(call)  # the writer keeps the order: no reply is there without it
        row = self._numbered(CALLS, facts)  # after all that can fail: a number that no row has is one that is missing

        def settled(failure: BaseException | None) -> None:
            if failure is None:
                written = _facts(CALLS, row)
                self.ledger.add("calls", written)
                self._commits.placed(CALLS, written, row[0])
            self._flights.landed(name)

        await self._commits.committed("calls", row, settled, text=text)

    def _refused(self, call: StoredCall) -> None:
        """Keep on which channels the call's schema is refused."""
        for name in self.refusals.rows(call):
            row = sealed(META, name, self._commits.run, (self._clean(call.request.recipient),))
            self._commits.submit(Entry("meta", row))

    # Results

    async def put_result(self, done: Done, line: str, kept: Callable[[Done], None] | None = None) -> None:
        """Keep a task's result, `line` being its line in `results.jsonl`. It replaces one that the task had. `kept` is
        called when it is on the disk, also where the caller does not wait any more."""
        self._commits.check()
        before, revision = self._ending.get(done.task, (None, 0))
        if before is None and (old := self._own(RESULTS, {"task": done.task})) is not None:
            before, revision = int(old.id), old["revision"] + 1
        facts = (
            self._clean(done.task),
            done.position,
            self._clean(done.result_id),
            self._clean(done.outcome),
            None if done.column is None else self._clean(done.column),
            revision,
            time.time(),
        )
        row = self._numbered(RESULTS, facts)
        self._ending[done.task] = (row[0], revision + 1)

        def settled(failure: BaseException | None) -> None:
            if self._ending.get(done.task) == (row[0], revision + 1):
                del self._ending[done.task]
            if failure is None:
                self._commits.placed(RESULTS, _facts(RESULTS, row), row[0])
                if kept is not None:
                    kept(done)

        await self._commits.committed("results", row, settled, before, text=("results", line))

    def done(self, task: str) -> Done | None:
        """How a task ended, if it did. Raises RunDirectoryError."""
        row = self._own(RESULTS, {"task": task})
        return None if row is None else Done.of(row)

    # Batches

    @property
    def last_call(self) -> int:
        """The number of the last reply."""
        return self._last["calls"]

    async def put_batch(self, batch: Batch) -> None:
        """Keep what is known of a batch. It replaces what was known before."""
        self._commits.check()
        labels = (batch.id, batch.model, batch.provider_id, batch.status, encode(batch.keys))
        id_, *facts = map(self._clean, labels)
        row = sealed(BATCHES, id_, self._commits.run, (*facts, time.time()))
        await self._commits.committed("batches", row)

    # The end

    async def aclose(self) -> None:
        """Write what waits and put everything into one file. Raises RunDirectoryError where that cannot be done, which
        costs nothing that was acknowledged."""
        self._closing()
        failure = await asyncio.to_thread(self._commits.stop)
        await asyncio.sleep(0)  # callbacks of the writer come first
        self._closed(failure)

    def close(self) -> None:
        """The same where no event loop runs."""
        self._closing()
        self._closed(self._commits.stop())

    def _closing(self) -> None:
        self._commits.close()
        self.reader.close()  # the last connection to be closed is that which may put everything into one file

    def _closed(self, failure: RunDirectoryError | None) -> None:
        self._owned.close()
        if failure is not None:
            raise failure

    # Writing

    def _own(self, table: Table, wanted: dict[str, Any]) -> Row | None:
        return self.reader.row(table, wanted, self._commits.places[table.name])

    def _numbered(self, table: Table, facts: Sequence[Any]) -> tuple[Any, ...]:
        """The row but for its checksum and its body, which the writer adds."""
        self._last[table.name] += 1
        return (self._last[table.name], self._commits.run, *facts)

    def _seal(self, entry: Entry) -> list[Entry]:
        """In the writer's thread: the body without secrets, and the rows of its dictionary where that is a new one."""
        assert entry.text is not None
        kind, text = entry.text[0], parsed(self._redact(entry.text[1]))
        bodies, (id_, run, *facts) = self.reader.bodies, entry.row
        entry.row = sealed(TABLES[entry.table], id_, run, facts, bodies.packed(kind, text))
        if not text or (dictionary := bodies.sample(kind, text)) is None:
            return []
        name = f"{DICTIONARY}{kind}"
        return [
            Entry("copies", sealed(COPIES, name, run, (dictionary, 1))),
            Entry("meta", sealed(META, name, run, (dictionary,))),
        ]


def _facts(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(table.facts, row[2:], strict=False))
