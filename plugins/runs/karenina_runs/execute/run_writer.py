"""What a run keeps in its directory: paid calls and results in the journal, and `results.jsonl` made of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Callable, Collection
from itertools import zip_longest
from pathlib import Path

from attrs import define, field
from karenina_calls.ports.item_calls import current_item

from karenina_core.errors import RunDirectoryError, one_line
from karenina_core.values.convert import structure
from karenina_core.values.result import VerificationResult

from ..files.atomic_files import replacing
from ..files.run_files import RESULTS
from ..files.run_lock import RunLock
from ..journal.journal import Journal
from ..journal.reader import Done, JournalReader, StoredResult, journal_of
from ..plan.items import Generation, Item
from ..results.stored import portable_record

PASSING = frozenset({"rate_limited", "timeout", "connection", "server", "budget", "cancelled"})
"""Errors that may be gone when the item is tried again. The budget is that of the run: an agent that used up its own
would do so again."""
UNREADABLE = "judge"


def is_final(done: Done, again: Collection[str]) -> bool:
    """Whether a result is no error of one of the kinds that are tried again."""
    return done.outcome != "error" or (done.column or "") not in again


@define(eq=False)
class Keeper:
    """The journal of one run, by its items."""

    folder: Path
    journal: Journal
    run_name: str
    secrets: Collection[str] = field(repr=False)
    again: frozenset[str]
    """Kinds of errors with which an item is not done."""
    replaced: set[str]
    """Tasks whose results are made again whatever they are, and have not been, or with errors that may be gone."""
    _closes: bool = field(default=False, init=False)

    async def keep(self, item: Item, result: VerificationResult, kept: Callable[[Done], None] | None = None) -> None:
        """Returns when the result is on the disk; see `Journal.put_result`. Raises RunDirectoryError."""
        about = result.metadata
        asked = current_item.get()
        final = about.outcome_detail == "budget" and asked is not None and not asked.kept_out
        done = Done(self.task(item), item.position, about.result_id, about.outcome, about.outcome_detail, final)
        await self.journal.put_result(done, portable_record(result, self.secrets), kept)
        if is_final(done, PASSING):  # else its failed calls are made again, and the earlier ones are not reused
            self.replaced.discard(done.task)

    def is_done(self, generation: Generation) -> bool:
        """Whether all its items have final results. Raises RunDirectoryError."""
        return all(map(self.has_result, generation.items))

    def has_result(self, item: Item) -> bool:
        """Whether the item has a final result: any outcome, and any error that would come again."""
        done = self.journal.done(self.task(item))
        return done is not None and self.is_final(done)

    def is_final(self, done: Done) -> bool:
        """Whether a result is neither tried again nor still to be replaced."""
        return is_final(done, self.again) and done.task not in self.replaced

    def is_replaced(self, item: Item) -> bool:
        """Whether the result of an item is still to be replaced."""
        return bool(self.replaced) and self.task(item) in self.replaced

    def stored(self, item: Item) -> VerificationResult | None:
        """The result that is there. Raises RunDirectoryError."""
        found = self.journal.reader.result(self.task(item))
        return None if found is None else read_back(found)

    async def aclose(self) -> None:
        """Write `results.jsonl`, and let others have the folder. Raises RunDirectoryError."""
        self._closes = True
        try:
            await self.journal.aclose()
        except RunDirectoryError:  # the first error says how to continue
            with contextlib.suppress(RunDirectoryError):
                await asyncio.to_thread(write_results, self.folder)
            raise
        await asyncio.to_thread(write_results, self.folder)

    def close(self) -> None:
        """Stop writing where something went wrong before `aclose`; nothing else otherwise. Raises RunDirectoryError."""
        if not self._closes:
            self._closes = True
            self.journal.close()

    def task(self, item: Item) -> str:
        """The name of an item in the journal."""
        return item.task.result_id(self.run_name)


def unread(reader: JournalReader) -> frozenset[str]:
    """Tasks that ended in the error of a judge whose replies could not be read. Raises RunDirectoryError."""
    return frozenset(end.task for end in reader.ends() if (end.outcome, end.detail) == ("error", UNREADABLE))


def read_back(found: StoredResult) -> VerificationResult:
    """The result of a journal. Raises RunDirectoryError."""
    try:
        return structure(json.loads(found.line), VerificationResult)
    except (ValueError, RecursionError) as error:  # a ConfigError is one, too
        raise unreadable(found, error) from error


def unreadable(found: StoredResult, error: Exception) -> RunDirectoryError:
    """What to do where a result in the journal is no result."""
    return RunDirectoryError(
        f"the result {found.result_id} cannot be read back ({one_line(error)}); take it out of the journal with "
        "karenina doctor DIR --replace, and have it made again with karenina resume DIR: what was paid for is kept"
    )


def write_results(folder: Path) -> None:
    """Make `results.jsonl` of the journal: a line for every item that has a result, in the order of the plan.

    Whatever happens, there is the old file or the whole new one. Raises RunDirectoryError.
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
            f"Free space, then type: karenina resume {shlex.quote(str(folder))}"
        ) from error


def write_missing_results(folder: Path) -> None:
    """Make `results.jsonl` of a finished run once more where it is gone or says something else than the journal.

    Results that the journal cannot give any more are no reason to. Raises RunDirectoryError.
    """
    if not journal_of(folder).is_file():
        return
    try:
        with (folder / RESULTS).open("rb") as there, JournalReader.open(folder) as reader:
            lines = (f"{found.line}\n".encode() for found in reader.results())
            if all(line == old for line, old in zip_longest(lines, there)) or reader.damaged["results"] > 0:
                return
    except FileNotFoundError:
        pass
    with RunLock(folder):
        write_results(folder)
