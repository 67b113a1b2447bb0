"""What a run keeps in its directory, what it has before its first call, what it repeats, and what it writes at its end.

Paid calls and results are in the journal, and `results.jsonl` is made of it. `Continuation` is a run that begins, with
nothing. A distribution that continues runs in another way derives a class from it, and declares by an entry point of
the group `karenina.continuations` what makes one of a run directory: `repair = "my_package.repairs:begun"`. A manifest
names those that have begun, in `continuations`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
from collections.abc import Callable, Collection, Generator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, evolve, field, frozen
from karenina_calls.ports.item_calls import current_item

from karenina_core.errors import RunDirectoryError, one_line
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.values.convert import structure
from karenina_core.values.result import VerificationResult

from ..files.atomic_files import replacing
from ..files.run_files import RESULTS
from ..files.run_lock import RunLock
from ..journal.journal import Journal
from ..journal.reader import Done, JournalReader, StoredResult, journal_of
from ..kinds import declared
from ..plan.items import Generation, Item, Prepared
from ..results.lines import portable_record

RETRYABLE = frozenset({"rate_limited", "timeout", "connection", "server", "auth", "budget", "cancelled"})
"""Transient errors, and those of a key, which whoever resumes the run has mended. The budget is that of the run:
an agent that used up its own would do so again."""
UNREADABLE = "judge"
KINDS = "karenina.continuations"
CONTINUATIONS = "continuations"


def is_final(done: Done, again: Collection[str]) -> bool:
    """Whether a result is no error of one of the kinds that are tried again."""
    return done.outcome != "error" or (done.column or "") not in again


@define(eq=False)
class RunWriter:
    """The journal of one run, by its items."""

    folder: Path
    journal: Journal
    run_name: str
    secrets: Collection[str] = field(repr=False)
    again: frozenset[str]
    """Kinds of errors with which an item is not done."""
    replaced: set[str]
    """Tasks whose results are made again whatever they are, and have not been, or with transient errors."""
    _closes: bool = field(default=False, init=False)

    async def keep(self, item: Item, result: VerificationResult, kept: Callable[[Done], None] | None = None) -> None:
        """Returns when the result is on the disk; see `Journal.put_result`. Raises RunDirectoryError."""
        about = result.metadata
        asked = current_item.get()
        final = about.outcome_detail == "budget" and asked is not None and not asked.kept_out
        done = Done(self.task(item), item.position, about.result_id, about.outcome, about.outcome_detail, final)
        await self.journal.put_result(done, portable_record(result, self.secrets), kept)
        if is_final(done, RETRYABLE):  # else its failed calls are made again, and the earlier ones are not reused
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
        f"the result {found.result_id} cannot be read back ({one_line(error)}); remove it from the journal with "
        "karenina doctor DIR --replace, and make it again with karenina resume DIR: what was paid for is kept"
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


@frozen
class Progress:
    """The progress of a continuation, to be shown."""

    kind: str
    facts: Mapping[str, Any]
    text: str


@frozen
class Rest:
    """An item of which a part is there, and its answer."""

    item: Item
    """With what is still to be evaluated."""
    answer: CachedAnswer | None
    completed: Any = field(repr=False)
    """`(VerificationResult) -> VerificationResult`: both parts in one."""


@frozen(kw_only=True)
class Continuation:
    """That of a run that begins and, with `reopens`, of one that is resumed."""

    kind: ClassVar[str] = ""
    """The name of its entry point."""
    replaces: ClassVar[bool] = False
    """Whether results that are final are made again."""
    shares_answers: bool = False
    """Whether an answer that is there is read by judges of it that are added, whatever their order."""
    reopens: bool = False
    """Whether the run directory is there already."""
    again: frozenset[str] = RETRYABLE
    """Kinds of errors with which an item is run again."""

    @property
    def has_results(self) -> bool:
        """Whether results are there before the first call."""
        return self.reopens

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the configuration, those that hold for it in place of the run's own."""
        return {}

    def resumed(self, prepared: Prepared, before: Continuation) -> Continuation:
        """This one when its run is resumed; `before` is what it continues. Raises ConfigError."""
        return evolve(self, reopens=True, again=before.again)

    def remaining(self, reader: JournalReader) -> set[str]:
        """Tasks whose results are to be replaced, whatever they are. Raises RunDirectoryError."""
        return set()

    def progress(self, remaining: int) -> Progress | None:
        """Where so many tasks remain; None: it is not shown."""
        return None

    def facts(self, *, done: bool = False) -> dict[str, Any]:
        """What the manifest has of it from the beginning on, and when `done`: all earlier results are taken over."""
        return {}

    def configured(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The configuration of the run for the manifest. Raises RunDirectoryError."""
        return facts

    def replaced(self, journal: Journal) -> set[str]:
        """Have the journal ask again what is to be asked again. Returns what `remaining` does."""
        return set()

    async def take_over(self, writer: RunWriter, prepared: Prepared) -> None:
        """Keep results of other runs that are as they would be in this one. Raises RunDirectoryError."""

    def rest(self, writer: RunWriter, prepared: Prepared) -> Generator[Rest] | None:
        """What is done before anything else; None: nothing. Raises RunDirectoryError."""
        return None

    def answer(self, writer: RunWriter, item: Item) -> CachedAnswer | None:
        """What judges of an item read whose result is replaced; None: it is asked for again. Raises
        RunDirectoryError."""
        return None

    def notes(self, writer: RunWriter) -> tuple[str, ...]:
        """What is left of it."""
        return ()

    def ended(self, folder: Path) -> None:
        """The run has come to an end. Raises RunDirectoryError."""

    def failed(self, folder: Path) -> None:
        """The run has failed: where nothing was done, nothing has begun."""


def begun(folder: Path, manifest: Mapping[str, Any]) -> list[Continuation]:
    """What has begun in the run of this folder, in this order. Raises RunDirectoryError where it cannot be read, or the
    distribution that does it is not installed."""
    names = manifest.get(CONTINUATIONS, ())
    kinds = declared(KINDS) if names else {}
    if missing := [name for name in names if name not in kinds]:
        raise RunDirectoryError(f"{folder} was continued by {missing[0]!r}; install the distribution that does this")
    found = (kinds[name]()(folder, manifest) for name in names)
    return [continuation for continuation in found if continuation is not None]


def settings_of(manifest: Mapping[str, Any], there: list[Continuation]) -> Mapping[str, Any]:
    """The manifest with the settings with which the run is resumed."""
    config = dict(manifest["config"])
    for continuation in there:
        config |= continuation.settings
    return {**manifest, "config": config}
