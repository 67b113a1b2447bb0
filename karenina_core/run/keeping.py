"""What a run keeps in its directory: paid calls and results in the journal, and `results.jsonl` made of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path

from attrs import define, evolve, field

from ..errors import RunDirectoryError
from ..model.convert import structure
from ..model.result import VerificationResult
from ..pipeline.cached_answer import CachedAnswer
from .answers import answer_of
from .directory import RESULTS, replacing
from .journal import Journal
from .journal_reader import Done, JournalReader, StoredResult
from .owner import RunLock
from .prepare import Generation, Item
from .records import portable_record
from .repairs import Mode, Repair, remaining

__all__ = ["PASSING", "Keeper", "read_back", "stands", "write_results"]

PASSING = frozenset({"rate_limited", "timeout", "connection", "server", "budget", "cancelled"})
"""Errors that may be gone when the item is tried again."""
UNREADABLE = "judge"


@define(eq=False)
class Keeper:
    """The journal of one run, by its items."""

    folder: Path
    journal: Journal
    run_name: str
    secrets: Collection[str] = field(default=(), repr=False)
    again: frozenset[str] = PASSING
    """Kinds of errors with which an item is not done."""
    repair: Repair | None = None
    unrepaired: set[str] = field(factory=set)
    """Tasks of the repair that have their results of before."""

    @classmethod
    def open(
        cls,
        folder: Path,
        run_name: str,
        *,
        run_id: str,
        secrets: Collection[str] = (),
        sources: Sequence[JournalReader] = (),
        again: frozenset[str] = PASSING,
        repair: Repair | None = None,
        lock: RunLock | None = None,
    ) -> Keeper:
        """Nobody else can write to the folder from now on; `lock` is the caller's. Raises RunDirectoryError."""
        journal = Journal.open(folder, run_id=run_id, secrets=secrets, sources=sources, lock=lock)
        if UNREADABLE in again:
            journal.ask_again()
        if repair is None:
            return cls(folder, journal, run_name, secrets, again)
        journal.ask_afresh(lambda call: call.result_id in repair.tasks, repair.calls_before)
        return cls(folder, journal, run_name, secrets, again, repair, remaining(repair, journal.reader))

    async def keep(self, item: Item, result: VerificationResult) -> None:
        """Returns when the result is on the disk. Raises RunDirectoryError."""
        about = result.metadata
        done = Done(self.task(item), item.position, about.result_id, about.outcome, about.outcome_detail)
        await self.journal.put_result(done, portable_record(result, self.secrets))
        self.unrepaired.discard(done.task)

    def is_done(self, generation: Generation) -> bool:
        """Whether all its items have results that stand. Raises RunDirectoryError."""
        return all(map(self.has_result, generation.items))

    def has_result(self, item: Item) -> bool:
        """Whether the item has a result that stands: any outcome, and any error that would come again."""
        done = self.journal.done(self.task(item))
        return done is not None and self.stands(done)

    def stands(self, done: Done) -> bool:
        """Whether a result is neither tried again nor still to be repaired."""
        return stands(done, self.again) and done.task not in self.unrepaired

    def is_repaired_by(self, mode: Mode, item: Item) -> bool:
        """Whether an item is still to be made anew, in this way."""
        return self.repair is not None and self.repair.mode == mode and self.task(item) in self.unrepaired

    def own_answer(self, item: Item) -> CachedAnswer:
        """The answer of an item that is judged again, with what it took. Raises RunDirectoryError where it is gone."""
        stored = self.stored(item)
        if stored is None or (answer := answer_of(stored)) is None:
            raise RunDirectoryError(f"the answer of {self.task(item)} is gone from {self.journal.path}")
        calls = {task: {**row, "cached": bool(row.get("cached"))} for task, row in answer.usage_metadata.items()}
        return evolve(answer, usage_metadata=calls)

    def stored(self, item: Item) -> VerificationResult | None:
        """The result that is there. Raises RunDirectoryError."""
        found = self.journal.reader.result(self.task(item))
        return None if found is None else read_back(found)

    async def aclose(self) -> None:
        """Write `results.jsonl`, and let others have the folder. Raises RunDirectoryError."""
        try:
            await self.journal.aclose()
        except RunDirectoryError:  # what was first says how to go on
            with contextlib.suppress(RunDirectoryError):
                await asyncio.to_thread(write_results, self.folder)
            raise
        await asyncio.to_thread(write_results, self.folder)

    def task(self, item: Item) -> str:
        """The name of an item in the journal."""
        return item.task.result_id(self.run_name)


def stands(done: Done, again: Collection[str]) -> bool:
    """Whether a result is not one of those that are tried again: errors of these kinds."""
    return done.outcome != "error" or (done.detail or "") not in again


def read_back(found: StoredResult) -> VerificationResult:
    """The result as it was. Raises RunDirectoryError."""
    try:
        return structure(json.loads(found.line), VerificationResult)
    except (ValueError, RecursionError) as error:  # a ConfigError is one, too
        raise RunDirectoryError(f"the result {found.result_id} cannot be read back: {error}") from error


def write_results(folder: Path) -> None:
    """Make `results.jsonl` of the journal: a line for every item that has a result, in the order of the plan.

    Whatever happens, there is the file of before or the whole new one. Raises RunDirectoryError.
    """
    try:
        with replacing(folder / RESULTS) as file, JournalReader.open(folder) as reader:
            for found in reader.results():
                file.write(found.line.encode("utf-8"))
                file.write(b"\n")
    except RunDirectoryError:
        raise
    except OSError as error:
        raise RunDirectoryError(
            f"{folder / RESULTS} cannot be written: {error.strerror}; nothing is lost: every result is in the journal. "
            f"Free space, then type: karenina resume {folder}"
        ) from error
