"""The journal of a run: every reply that was paid for and every result, safe from the moment it is acknowledged."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from ..errors import PortError, RunDirectoryError
from ..log import redactor
from ..ports.metered import CallFacts, StoredCall, StoredReply
from ..prompts.tasks import PromptTask
from .journal_bodies import DICTIONARY, Bodies
from .journal_commits import Commits
from .journal_ledger import Ledger
from .journal_opening import Found, make, mixed, taken_up
from .journal_places import prefix
from .journal_reader import JOURNAL, Batch, Done, JournalReader, run_number
from .journal_rows import (
    BATCHES,
    CALLS,
    COPIES,
    FAILURES,
    META,
    RESULTS,
    Row,
    Table,
    call_facts,
    cleaner,
    encode,
    facts_of,
    failure_facts,
    sealed,
)
from .journal_writer import WINDOW, Entry, no_longer
from .owner import RunLock
from .places import check_place

__all__ = ["Journal"]

CROWD = 8192
"""Rows that may wait to be written before nobody may ask any more: what comes in faster stays outside."""
Name = tuple[str, int]
ENCODE = json.JSONEncoder(separators=(",", ":"), default=str).encode
"""Whatever an adapter put into a reply: what was paid for is kept."""


@define(eq=False)
class Journal:
    """A call store (see `CallStore`), and the store of results. One process writes to it, and one event loop.

    What `put`, `put_result` and `put_batch` return from is on the disk. When something cannot be written, they and
    `take` raise RunDirectoryError from then on, those that wait at that moment included.
    """

    path: Path
    run_id: str
    ledger: Ledger
    """What the calls took: of all that is committed."""
    notes: tuple[str, ...]
    """What was found to be damaged when it was opened."""
    reader: JournalReader
    """For everything that is only read."""
    _lock: RunLock = field(kw_only=True)
    _owns_lock: bool = field(kw_only=True)
    _commits: Commits = field(kw_only=True)
    _last: dict[str, int] = field(kw_only=True)
    _redact: Callable[[str], str] = field(kw_only=True)
    _clean: Callable[[str], str] = field(kw_only=True)
    _sources: Sequence[JournalReader] = field(kw_only=True)
    _run: int = field(kw_only=True)
    _afresh: Callable[[StoredCall], bool] = lambda call: False
    _afresh_upto: int = 0
    _again: dict[str, Collection[str]] = field(factory=dict)
    """By run: results whose judges are asked once more."""
    _again_upto: int = 0
    _asking: dict[Name, list[asyncio.Future[None]]] = field(factory=dict)
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
        lock, owns = (lock, False) if lock is not None else (RunLock(folder), True)
        path = folder / JOURNAL
        check_place(folder)
        if not lock.held:
            lock.acquire()
        try:
            journal = cls._opened(path, run_id, secrets, sources, (lock, owns))
        except BaseException as error:
            if owns:
                lock.release()
            if isinstance(error, sqlite3.Error | OSError) and not isinstance(error, RunDirectoryError):
                raise no_longer(path, error) from error
            raise
        return journal

    @classmethod
    def _opened(
        cls,
        path: Path,
        run_id: str | None,
        secrets: Iterable[str],
        sources: Sequence[JournalReader],
        lock: tuple[RunLock, bool],
    ) -> Journal:
        if path.exists():
            connection, found = taken_up(path)
        else:
            connection, found = make(path, run_id), Found()
        try:
            reader = JournalReader.open(path)
            if run_id is not None and reader.run_id != run_id:
                reader.close()
                raise mixed(reader.run_id, run_id, path)
        except BaseException:
            connection.close()
            raise
        redact = redactor(secrets)
        last = {name: found.last.get(name, 0) for name in ("calls", "failures", "results")}
        journal = cls(
            path,
            reader.run_id,
            found.ledger,
            found.notes,
            reader,
            lock=lock[0],
            owns_lock=lock[1],
            commits=Commits(path, run_number(reader.run_id), found.places, lambda: journal._give_up()),
            last=last,
            redact=redact,
            clean=cleaner(redact),
            sources=tuple(sources),
            run=run_number(reader.run_id),
        )
        journal._commits.start(connection, last, lock[0])
        for name, (places, upto) in found.afresh.items():
            journal._commits.index(name, places, upto, afresh=True)
        return journal

    # Calls

    def ask_again(self, results: Collection[str], run_id: str | None = None) -> None:
        """What judges have said so far for these results, of this run or of one of the sources, is asked for once more,
        whoever wants it."""
        self._again[run_id or self.run_id] = results
        if run_id is None:
            self._again_upto = self._last["calls"]

    def ask_afresh(self, which: Callable[[StoredCall], bool], upto: int) -> None:
        """Calls of which `which` is true are asked for although their replies are here, up to that row, or in other
        runs. A later reply is taken."""
        self._afresh, self._afresh_upto = which, upto

    async def take(self, call: StoredCall) -> StoredReply | None:
        name = (call.key, call.nth)
        loop = asyncio.get_running_loop()
        while True:
            self._commits.check()
            if (others := self._asking.get(name)) is not None:
                others.append(turn := loop.create_future())
                await turn
            elif self._commits.waiting > CROWD:
                await asyncio.sleep(WINDOW)
            else:
                break
        afresh = self._afresh(call)
        row = self._own(CALLS, {"key": call.key, "nth": call.nth})
        if row is not None and not (afresh and int(row.id) <= self._afresh_upto):
            reply = _reply(row, self.reader.bodies)
            if int(row.id) > self._again_upto or not self._is_asked_again(row, reply, self.run_id):
                return reply
        self._asking[name] = []
        try:
            if row is None and not afresh and (found := self._of_others(call)) is not None:
                return await self._taken_over(call, *found)
        except BaseException:  # nobody may wait for what nobody asks
            self._free(name)
            raise
        return None

    async def put(self, call: StoredCall, outcome: Mapping[str, Any], facts: CallFacts) -> None:
        try:
            self._commits.check()
            body = self._packed(call.request.task, _line(call, outcome))
            row = call_facts(call, facts, self._clean, time.time())
        except BaseException:
            self._free((call.key, call.nth))
            raise
        await self._call(call, row, body)

    def failed(self, call: StoredCall, error: BaseException, facts: CallFacts) -> None:
        if facts.made and self._commits.failure is None:
            came = error.raw if isinstance(error, PortError) and error.kind == "bad_response" else None
            body = self._packed("failures", encode(came)) if came else b""
            row = self._sealed(FAILURES, failure_facts(call, error, facts, self._clean, time.time()), body)

            def settled(failure: RunDirectoryError | None) -> None:
                if failure is None:
                    self.ledger.failed(_told(FAILURES, row))

            self._commits.submit(Entry("failures", row, settled))
        self._free((call.key, call.nth))

    def _of_others(self, call: StoredCall) -> tuple[Row, StoredReply, JournalReader] | None:
        for source in self._sources:
            if (row := source.call(call.key, call.nth)) is not None:
                reply = _reply(row, source.bodies)
                return None if self._is_asked_again(row, reply, source.run_id) else (row, reply, source)
        return None

    def _is_asked_again(self, row: Row, reply: StoredReply, run_id: str) -> bool:
        results = self._again.get(run_id, ())
        return row["result_id"] in results and (row["task"] != PromptTask.GENERATION or "error" in reply.outcome)

    async def _taken_over(self, call: StoredCall, row: Row, reply: StoredReply, source: JournalReader) -> StoredReply:
        facts = call_facts(call, reply.facts, self._clean, time.time(), source.run_id)
        await self._call(call, facts, self._packed(call.request.task, source.bodies.unpacked(row.body)))
        return reply

    async def _call(self, call: StoredCall, facts: Sequence[Any], body: bytes) -> None:
        row, name = self._sealed(CALLS, facts, body), (call.key, call.nth)

        def settled(failure: BaseException | None) -> None:
            if failure is None:
                told = _told(CALLS, row)
                self.ledger.called(told)
                self._commits.placed(CALLS, told, row[0])
            self._free(name)

        await self._commits.committed("calls", row, settled)

    # Results

    async def put_result(self, done: Done, line: str) -> None:
        """Keep a task's result, `line` being its line in `results.jsonl`. It replaces one that the task had."""
        self._commits.check()
        before, revision = self._ending.get(done.task, (None, 0))
        if before is None and (old := self._own(RESULTS, {"task": done.task})) is not None:
            before, revision = int(old.id), old["revision"] + 1
        facts = (
            self._clean(done.task),
            done.position,
            self._clean(done.result_id),
            self._clean(done.outcome),
            None if done.detail is None else self._clean(done.detail),
            revision,
            time.time(),
        )
        row = self._sealed(RESULTS, facts, self._packed("results", line))
        self._ending[done.task] = (row[0], revision + 1)

        def settled(failure: BaseException | None) -> None:
            if self._ending.get(done.task) == (row[0], revision + 1):
                del self._ending[done.task]
            if failure is None:
                self._commits.placed(RESULTS, _told(RESULTS, row), row[0])

        await self._commits.committed("results", row, settled, before)

    def done(self, task: str) -> Done | None:
        """How a task ended, if it did. Raises RunDirectoryError."""
        row = self._own(RESULTS, {"task": task})
        return None if row is None else Done(task, row["position"], row["result_id"], row["outcome"], row["detail"])

    # Batches

    async def put_batch(self, batch: Batch) -> None:
        """Keep what is known of a batch. It replaces what was known before."""
        self._commits.check()
        told = map(self._clean, (batch.id, batch.model, batch.provider_id, batch.status, encode(batch.keys)))
        id_, *facts = told
        row = sealed(BATCHES, id_, self._run, (*facts, time.time()))
        await self._commits.committed("batches", row, _nothing)

    # The end

    async def aclose(self) -> None:
        """Write what waits and put everything into one file. Raises RunDirectoryError where that cannot be done, which
        costs nothing that was acknowledged."""
        self._closing()
        failure = await asyncio.to_thread(self._commits.stop)
        await asyncio.sleep(0)  # what the writer has told the loop comes first
        self._closed(failure)

    def close(self) -> None:
        """The same where no event loop runs."""
        self._closing()
        self._closed(self._commits.stop())

    def _closing(self) -> None:
        self._commits.close()
        self.reader.close()  # the last connection to be closed is that which may put everything into one file

    def _closed(self, failure: RunDirectoryError | None) -> None:
        if self._owns_lock:
            self._lock.release()
        if failure is not None:
            raise failure

    # Writing

    def _own(self, table: Table, wanted: dict[str, Any]) -> Row | None:
        ids = self.reader.find(prefix(table.name, wanted), self._commits.places[table.name])
        return self.reader.candidates(table, ids, wanted) if ids else None

    def _sealed(self, table: Table, facts: Sequence[Any], body: bytes = b"") -> tuple[Any, ...]:
        self._last[table.name] += 1
        return sealed(table, self._last[table.name], self._run, facts, body)

    def _packed(self, kind: str, text: str) -> bytes:
        """A body without secrets. Its dictionary, where it is a new one, is written before it, or with it."""
        text, kind = self._redact(text), self._clean(kind)
        body = self.reader.bodies.packed(kind, text)
        if (dictionary := self.reader.bodies.sample(kind, text)) is not None:
            name = f"{DICTIONARY}{kind}"
            self._commits.submit(
                Entry("copies", sealed(COPIES, name, self._run, (dictionary, 1)), lambda failure: None)
            )
            self._commits.submit(Entry("meta", sealed(META, name, self._run, (dictionary,)), lambda failure: None))
        return body

    def _give_up(self) -> None:
        for name in list(self._asking):
            self._free(name)

    def _free(self, name: Name) -> None:
        for turn in self._asking.pop(name, ()):
            if not turn.done():
                turn.set_result(None)


def _nothing(failure: RunDirectoryError | None) -> None:
    """Nobody waits for this row, and nothing follows from it."""


def _told(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    """What a row says."""
    return dict(zip(table.facts, row[2:], strict=False))


def _line(call: StoredCall, outcome: Mapping[str, Any]) -> str:
    """The call's line in a recording, where the version of a stage is no part of the key."""
    request = call.request
    told = ENCODE(outcome)
    return f'{{"format":1,"key":"{request.key}",{request.canonical[1:-1]},{told[1:]}'


def _reply(row: Row, bodies: Bodies) -> StoredReply:
    line = json.loads(bodies.unpacked(row.body))
    return StoredReply({name: line[name] for name in ("reply", "error") if name in line}, facts_of(row))
