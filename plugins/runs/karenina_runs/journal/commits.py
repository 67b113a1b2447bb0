"""Between the event loop and the thread that writes a journal."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field

from karenina_core.errors import RunDirectoryError

from ..files.run_lock import RunLock
from .index import AT_MOST, Places, prefix
from .rows import META, PLACES, Table, sealed
from .writer import Entry, Indexed, Writer

SHORT = 0.0005
"""Seconds that a thread computes on while another one wants its turn: a tenth of Python's own; chosen."""
_before: list[float] = []


@contextmanager
def short_turns() -> Iterator[None]:
    """The thread that writes a journal comes back from SQLite several times for each commit, and waits for a turn each
    time: with Python's own setting a commit takes many times as long while items are worked on. The last of several
    sets what was set before.
    """
    _before.append(sys.getswitchinterval())
    sys.setswitchinterval(min(SHORT, _before[-1]))
    try:
        yield
    finally:
        first = _before[0]
        _before.pop()
        if not _before:
            sys.setswitchinterval(first)


@define(eq=False)
class Commits:
    """Hands rows to the writer, and wakes those who wait when theirs are committed, or never will be."""

    path: Path
    run: int
    places: dict[str, Places]
    """Where committed rows are."""
    on_failure: Callable[[], None]
    seal: Callable[[Entry], Sequence[Entry]]
    """See `Writer.seal`."""
    failure: RunDirectoryError | None = None
    """Nothing can be written any more."""
    waiting: int = 0
    """Rows that are neither committed nor refused yet."""
    _writer: Writer | None = None
    _turns: ExitStack = field(factory=ExitStack, repr=False)
    _loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)

    def start(self, connection: sqlite3.Connection, last: Mapping[str, int], lock: RunLock) -> None:
        """`last` is the last row of every table; `lock` is marked with it after every commit."""
        self.places |= {name: Places(name) for name in PLACES if name not in self.places}
        self._writer = Writer(self.path, self._deliver, lock.mark, dict(last), check=lock.check, seal=self.seal)
        self._writer.start(connection)
        self._turns.enter_context(short_turns())

    def check(self) -> None:
        """Raises RunDirectoryError where nothing can be written any more."""
        if self.failure is not None:
            raise self.failure

    async def committed(
        self,
        table: str,
        row: Sequence[Any],
        settled: Callable[[RunDirectoryError | None], None],
        replaces: int | None = None,
        text: tuple[str, str] | None = None,
    ) -> None:
        """Write a row. `settled` is called in any case, also when the caller is cancelled. Raises RunDirectoryError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def then(failure: RunDirectoryError | None) -> None:
            settled(failure)
            if future.done():  # its caller was cancelled
                return
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)

        self.submit(Entry(table, row, then, replaces, text))
        await future

    def submit(self, entry: Entry | Indexed) -> None:
        """Write a row without waiting for it."""
        assert self._writer is not None
        self._loop = asyncio.get_running_loop()
        self.waiting += 1
        self._writer.submit(entry)

    def placed(self, table: Table, facts: Mapping[str, Any], id_: int) -> None:
        """A row is committed, and can be found from now on."""
        self.places[table.name].add(prefix(table.name, facts), id_)

    def index(self, name: str, places: str, upto: int, *, replaces_all: bool = False) -> None:
        """Write the places of rows, up to the row with this id."""
        assert self._writer is not None
        row = sealed(META, f"{name}_indexed", self.run, (str(upto),))
        self.waiting += 1
        self._writer.submit(Indexed(name, places, Entry("meta", row, partial(self._left, name, upto)), replaces_all))

    def leave(self, at_least: int) -> None:
        """Write the places that are in memory where there are as many."""
        if self.failure is not None:
            return
        for name, places in self.places.items():
            if (leaving := places.leave(at_least)) is not None:
                self.index(name, *leaving)

    def close(self) -> None:
        """Take nothing more."""
        self.leave(1)
        self.failure = self.failure or RunDirectoryError(f"{self.path} is closed; open it again")

    def stop(self) -> RunDirectoryError | None:
        """Wait until everything is written. Returns the failure, if there was one."""
        try:
            return None if self._writer is None else self._writer.stop()
        finally:
            self._turns.close()

    def _left(self, name: str, upto: int, failure: BaseException | None) -> None:
        if failure is None:
            self.places[name].left(upto)

    def _deliver(self, entries: list[Entry], failure: RunDirectoryError | None) -> None:
        """In the writer's thread."""
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._settled, entries, failure)
        except RuntimeError:  # the loop is closed: no task waits any more
            pass

    def _settled(self, entries: list[Entry], failure: RunDirectoryError | None) -> None:
        self.waiting -= len(entries)
        self.failure = self.failure or failure
        for entry in entries:
            entry.then(failure)
        if failure is None:
            self.leave(AT_MOST)
        else:
            self.on_failure()
