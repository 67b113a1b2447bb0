"""Where a run's results go, and what is made there before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen
from karenina_calls.ports.client import Model

from ..folder.directory import RunDirectory, secrets_of_run
from ..folder.reuse import Sources, followed
from ..plan.items import Prepared
from .continuation import Continuation
from .run_writer import Keeper, unread


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _paths(given: str | Path | Iterable[str | Path]) -> tuple[Path, ...]:
    return (Path(given),) if isinstance(given, str | Path) else tuple(map(Path, given))


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
    facts: dict[str, Any] = {"reuse": [str(folder.absolute()) for folder in followed(destination.reuse).there]}
    if destination.forked_from is not None:
        facts["forked_from"] = dict(destination.forked_from)
    facts |= destination.continuation.facts()
    return RunDirectory.create(path, prepared, destination.source, answerers, destination.sinks, **facts)


def keeper_of(directory: RunDirectory, prepared: Prepared, sources: Sources, destination: Destination) -> Keeper:
    """Where it cannot be opened, the directory is released."""
    about: dict[str, Any] = {"secrets": secrets_of_run(prepared), "sources": sources.readers, "lock": directory.lock}
    about |= {"again": destination.continuation.again, "replaced": destination.continuation.replaced}
    try:
        spoilt = {source.run_id: unread(source) for source in sources.readers if destination.judged_again}
        keeper = Keeper.open(directory.path, prepared.run_name, run_id=directory.run_id, **about)
        for run_id, results in spoilt.items():
            keeper.journal.ask_again(results, run_id)
        return keeper
    except BaseException:
        try:
            if not destination.continuation.reopens:
                directory.update(status="failed")
        finally:
            directory.release()
        raise
