"""Where a run's results go, and what is made there before the first call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ..ports.client import Model
from ..secrets import redactor
from .directory import RunDirectory, secrets_of_run
from .extension_rows import Extension
from .gateway import Gateway
from .items import Prepared
from .keeping import Keeper, unread
from .repairs import Repair
from .reuse import Sources, followed
from .schedule import Schedule
from .workspace_sources import unkept_traces
from .workspaces import Workspaces

__all__ = ["Destination", "directory_of", "keeper_of", "notes_of", "schedule_of", "workspaces_of"]


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
    again: frozenset[str] | None = None
    """Not None: `run_dir` is that of a run which is gone on with, and items that ended in an error of these kinds are
    tried again."""
    judged_again: bool = False
    """Replies of `reuse` that judges gave for results which ended in an error, because they could not be read, are not
    taken over."""
    repair: Repair | None = None
    """What is made anew of the run that is gone on with."""
    forked_from: Mapping[str, Any] | None = None
    """The run from which this one goes on in a directory of its own, for the manifest."""
    extends: Extension | None = None
    """The finished run whose results are part of this one."""


def directory_of(path: Path, prepared: Prepared, destination: Destination, answerers: Iterable[Model]) -> RunDirectory:
    if destination.again is not None:
        return RunDirectory.reopen(path, prepared, answerers)
    facts: dict[str, Any] = {"reuse": [str(folder.absolute()) for folder in followed(destination.reuse).there]}
    if destination.forked_from is not None:
        facts["forked_from"] = dict(destination.forked_from)
    if destination.extends is not None:
        facts["extends"] = destination.extends.told()
    return RunDirectory.create(path, prepared, destination.source, answerers, destination.sinks, **facts)


def keeper_of(directory: RunDirectory, prepared: Prepared, sources: Sources, destination: Destination) -> Keeper:
    """What a failure leaves behind, others may write to again."""
    about: dict[str, Any] = {"secrets": secrets_of_run(prepared), "sources": sources.readers, "lock": directory.lock}
    if destination.again is not None:
        about |= {"again": destination.again, "repair": destination.repair}
    try:
        spoilt = {source.run_id: unread(source) for source in sources.readers if destination.judged_again}
        keeper = Keeper.open(directory.path, prepared.run_name, run_id=directory.run_id, **about)
        for run_id, results in spoilt.items():
            keeper.journal.ask_again(results, run_id)
        return keeper
    except BaseException:
        try:
            if destination.again is None:
                directory.update(status="failed")
        finally:
            directory.release()
        raise


def schedule_of(prepared: Prepared, keeper: Keeper | None, gateway: Gateway) -> Schedule:
    is_done = keeper.is_done if keeper is not None else lambda generation: False
    return Schedule(prepared, prepared.config.task_ordering, is_done, lambda: not gateway.exhausted)


def workspaces_of(prepared: Prepared, run_dir: Path | None) -> Workspaces:
    redact = redactor(secrets_of_run(prepared))
    root, name = prepared.workspace_root, prepared.run_name
    return Workspaces(root, prepared.config, name, run_dir, prepared.has_tools, redact)


def notes_of(prepared: Prepared, destination: Destination) -> list[str]:
    if destination.run_dir is not None:
        return []
    questions, rubrics = prepared.questions, prepared.rubrics
    return unkept_traces(prepared.workspace_root, prepared.config, questions, rubrics, tools=prepared.uses_tools)
