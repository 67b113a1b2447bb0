"""Where a run's results go: what is made there before the first call, the state of the run, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import Factory, define, field, frozen
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.client import Model

from karenina_core.errors import RunDirectoryError, one_line, plural
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.result import VerificationResult

from ..folder.directory import RunDirectory
from ..folder.reuse import Sources, followed
from ..journal.journal import Journal
from ..journal.reader import Done
from ..plan.items import Item, Prepared
from ..results.sinks import Sinks
from ..summaries.canaries import remarks as remarks_on
from ..summaries.summary import Tally, spent
from .continuation import UNREADABLE, Continuation, RunWriter, read_back, unread
from .senders import Senders
from .surroundings import Surroundings


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _paths(given: str | Path | Iterable[str | Path]) -> tuple[Path, ...]:
    return tuple(map(Path, (given,) if isinstance(given, str | Path) else given))


@frozen(kw_only=True)
class Destination:
    """Where a run's results go. Without a directory they are only returned. One sink or directory is a list of one."""

    run_dir: Path | None = None
    sinks: Sequence[str] = field(default=(), converter=_texts)
    """`name:target` of sinks beside the run directory's own."""
    source: Path | None = None
    """The benchmark's file, for the manifest."""
    reuse: Sequence[Path] = field(default=(), converter=_paths)
    """Directories of other runs: what was asked there, or in the runs that those were given, is not asked again, and
    its replies are kept here too."""
    judged_again: bool = False
    """Replies of `reuse` that judges gave for results which ended in an error, because they could not be read, are not
    taken over."""
    continuation: Continuation = field(factory=Continuation)
    """What is there already."""
    forked_from: Mapping[str, Any] | None = None
    """The run that this one continues in a directory of its own, for the manifest."""


def directory_of(path: Path, prepared: Prepared, destination: Destination, answerers: Iterable[Model]) -> RunDirectory:
    if destination.continuation.reopens:
        return RunDirectory.reopen(path, prepared, answerers)
    facts: dict[str, Any] = {"reuse": [str(folder.absolute()) for folder in followed(destination.reuse)[0]]}
    if destination.forked_from is not None:
        facts["forked_from"] = dict(destination.forked_from)
    facts |= destination.continuation.facts()
    return RunDirectory.create(path, prepared, destination.source, answerers, destination.sinks, **facts)


def writer_of(directory: RunDirectory, prepared: Prepared, sources: Sources, destination: Destination) -> RunWriter:
    """The journal of the run, with marks at the calls that are made again. Raises RunDirectoryError."""
    continuation, path, secrets = destination.continuation, directory.path, prepared.secrets
    about: dict[str, Any] = {"secrets": secrets, "sources": sources.readers, "lock": directory.lock}
    try:
        spoilt = {source.run_id: unread(source) for source in sources.readers if destination.judged_again}
        journal = Journal.open(path, run_id=directory.run_id, **about)
        replaced = continuation.replaced(journal)
        if UNREADABLE in continuation.again:
            journal.ask_again(unread(journal.reader) - replaced)
        for run_id, results in spoilt.items():
            journal.ask_again(results, run_id)
        return RunWriter(path, journal, prepared.run_name, secrets, continuation.again, replaced)
    except BaseException:
        if not continuation.reopens:
            directory.update(status="failed")
        raise


@define(eq=False, kw_only=True)
class RunState:
    """What a run has, and what it has done."""

    prepared: Prepared
    answerers: Mapping[ModelIdentity, Model]
    sinks: Sinks
    surroundings: Surroundings
    senders: Senders
    gateway: Gateway = field(default=Factory(lambda run: run.senders.gateway, takes_self=True), init=False)
    continuation: Continuation = field(factory=Continuation)
    writer: RunWriter | None = None
    """Of the run directory."""
    sources: Sources = field(factory=Sources)
    tally: Tally = field(default=Factory(lambda run: Tally(run.prepared.planned), takes_self=True), init=False)
    stale: set[str] = field(factory=set, init=False)
    """Tasks whose earlier results are to be replaced, and are not yet."""
    in_doubt: list[tuple[Item, VerificationResult, list[Done]]] = field(factory=list, init=False)
    """Results that were being kept when the run was ended at once; the list has those that are on the disk."""
    canaries: Mapping[str, Any] | None = field(default=None, init=False)
    """What became of them; see `CanaryTally.document`."""
    unfinished: int = field(default=0, init=False)
    """Items that lack something because nothing may be asked any more, or a model of theirs is not."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Of the checks, the tool servers, the senders, and what is left to be done."""
        remarks = (remark for model in self.answerers.values() for remark in model.remarks)
        kept = self.continuation.notes(self.writer) if self.writer is not None else ()
        left = [*self.gateway.left_undone, *self.gateway.advice, *kept]
        if self.unfinished:
            left.insert(0, f"left until the run is resumed: {plural(self.unfinished, 'item')}")
        settings = (*self.prepared.notes, *self.surroundings.notes)
        return tuple(
            dict.fromkeys(
                (*remarks_on(self.canaries), *settings, *self.sources.notes, *remarks, *self.senders.notes, *left)
            )
        )

    @property
    def ledger(self) -> dict[str, Any] | None:
        """What the calls took; None where nothing keeps them."""
        return self.writer.journal.ledger.to_dict() if self.writer is not None else None

    def summary(self, run_dir: Path | None) -> dict[str, Any]:
        about: dict[str, Any] = {"run_dir": run_dir, "left_out": self.prepared.left_out, "ledger": self.ledger}
        return {**self.tally.document(notes=self.notes, **about), "canaries": self.canaries}


async def end(run: RunState, directory: RunDirectory | None, status: str, failure: BaseException | None) -> None:
    """Close the sinks, and write to the directory how the run ended, whatever goes wrong before. `failure` is what it
    failed with. Raises RunDirectoryError."""
    run.surroundings.close()
    run.gateway.close()
    summary: dict[str, Any] = {}
    run_dir: Path | None = directory.path if directory else None
    try:
        if run.writer is not None:
            for task in sorted(run.stale):  # those that were not tried again keep their results
                if (stored := run.writer.journal.reader.result(task)) is not None:
                    run.tally.add(read_back(stored), stored.position)
        summary = run.summary(run_dir)
    finally:
        try:
            await asyncio.shield(_closed(run, run_dir, summary))
        except BaseException as error:  # `results.jsonl` may not be there: whoever reads the run takes the journal
            status = "interrupted" if status == "completed" else status
            failure = failure or error
            raise
        finally:  # also when a second interrupt does not wait for the sinks
            try:
                if directory is not None:
                    facts = {"summary": summary, "ledger": run.ledger or {}, "sink_failures": run.sinks.failures}
                    directory.ended(status, failure, facts, lanes=run.gateway.history(), notes=run.notes)
            except RunDirectoryError:
                if not isinstance(failure, RunDirectoryError):  # it says more about the same
                    raise
            finally:  # observers get the end also where the run directory cannot be written
                run.prepared.app.observe("karenina_run_finished", summary=summary, status=status)


async def _closed(run: RunState, run_dir: Path | None, summary: dict[str, Any]) -> None:
    try:
        await run.senders.aclose()
        if run.writer is not None:
            await run.writer.aclose()
            late = [(item, result, done) for item, result, kept in run.in_doubt for done in kept]
            for item, result, done in late:  # results that came to the disk when the run was ending
                run.stale.discard(done.task)
                run.tally.add(result, item.position)
            summary |= run.summary(run_dir) if late else spent(run.ledger)  # the last failures are counted now
    finally:
        await run.sinks.close(summary)


def one_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first of errors of one type, with the others as notes, however many items happened to meet it; else all.

    A full disk or a broken `on_result` fails each item that is at work at that moment: how many there are is chance.
    """
    first, *others = _leaves(group)
    if any(type(other) is not type(first) for other in others):
        return group.derive([first, *others]).with_traceback(group.__traceback__)
    for line in dict.fromkeys(one_line(other) for other in others):
        if line != one_line(first):
            first.add_note(f"and in another item: {line}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
