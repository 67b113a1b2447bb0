"""What the sinks sqlite and postgres have in common: a store behind the protocol of sinks."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from karenina_runs.results.sinks import RunInfo

from karenina_core import VerificationResult
from karenina_core.log import get_logger

from .store import Store

log = get_logger("karenina.results")


class DatabaseSink(ABC):
    """Every result is committed when `write` returns. Databases are waited for in threads, never in the event loop.

    A lost connection is opened again a few times before the sink fails.
    """

    name: ClassVar[str]
    waits: ClassVar[Sequence[float]] = (0.0, 1.0, 5.0)
    """Seconds before each attempt to reconnect."""

    def __init__(self) -> None:
        self._store: Store | None = None
        self._run: RunInfo | None = None
        self._one_at_a_time = threading.Lock()
        """Held in the thread: where a write is cancelled, its thread continues."""

    @abstractmethod
    def connect(self, run: RunInfo) -> Store:
        """Open the database and prepare it."""

    def lost(self, store: Store) -> bool:
        """Whether the error is a lost connection."""
        return False

    async def open(self, run: RunInfo) -> None:
        self._run = run

        def begin() -> None:
            store = self.connect(run)
            try:
                store.begin_run(run.run_name, run.benchmark, run.items)
            except BaseException:
                store.close()
                raise
            self._store = store

        await self._in_thread(begin)

    async def write(self, result: VerificationResult) -> None:
        await self._in_thread(lambda: self._do(lambda store: store.add([result])))

    async def close(self, summary: Mapping[str, Any]) -> None:
        def end() -> None:
            try:
                name = self._run.run_name if self._run is not None else ""
                self._do(lambda store: store.end_run(name, summary))
            finally:
                store, self._store = self._store, None
                if store is not None:
                    store.close()

        await self._in_thread(end)

    async def _in_thread(self, task: Callable[[], None]) -> None:
        def alone() -> None:
            with self._one_at_a_time:
                task()

        await asyncio.to_thread(alone)

    def _do(self, task: Callable[[Store], None]) -> None:
        """Do it, again where the connection was lost: whatever is written twice is there once."""
        if self._store is None:
            return
        try:
            task(self._store)
        except Exception as error:
            if not self.lost(self._store):
                raise
            self._reconnect(error)
            task(self._store)

    def _reconnect(self, error: Exception) -> None:
        """Raises what the last attempt raised."""
        assert self._run is not None
        log.warning("the connection of a sink was lost; reconnecting", sink=self.name, error=type(error).__name__)
        for wait in self.waits:
            time.sleep(wait)
            try:
                self._store = self.connect(self._run)
            except Exception as again:
                error = again
            else:
                return
        raise error
