"""A run in this thread, with the signals that end it early."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from karenina_runs.execute.control import RunControl
from karenina_runs.folder.status import cancel_command, resume_command, standing
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError, RunDirectoryError, plural

from .exits import Interrupted
from .output import note
from .progress import Progress
from .signals import answered_signals, default_signals

DRAINING = "interrupted: waiting for the calls that are under way; interrupt once more to end at once"
Work = Callable[..., Coroutine[Any, Any, VerificationResultSet]]


def carried_out(work: Work, progress: Progress, directory: Path) -> VerificationResultSet:
    """Await `work(on_result=..., control=...)`, show its progress, and print which sinks have failed. `directory` is
    where it keeps what is done.

    The first SIGINT or SIGTERM drains the run: what is asked already is waited for and kept. The second one ends it at
    once, and the process where the run does not answer; a third one ends the process. Raises Interrupted where work is
    left.
    """
    try:
        with progress, asyncio.Runner() as runner:
            results = runner.run(_attended(partial(work, on_result=progress.advance), directory))
    except (KeyboardInterrupt, asyncio.CancelledError):
        summary = f"interrupted: {progress.done} of {progress.total} items are done"
        try:
            found = standing(directory)
        except (ConfigError, RunDirectoryError):  # it was interrupted before it began
            raise Interrupted(summary) from None
        lines = [f"{summary}, kept in {directory}"]
        lines += [f"left at the provider: {batch_text(batch)}" for batch in found.batches]
        if found.batches:
            lines.append(f"To have them cancelled, type: {cancel_command(directory)}")
        raise Interrupted("\n".join([*lines, f"To continue, type: {resume_command(found, directory)}"])) from None
    for sink, failure in results.sink_failures.items():
        note(f"Error: the sink {sink!r} failed and was closed; results are missing there: {failure}")
    return results


def batch_text(batch: Mapping[str, Any]) -> str:
    """A batch as `standing` has it."""
    name = batch["provider_id"] or "not known at the provider yet"
    return f"{name}: {plural(batch['calls'], 'call')} of {batch['model']}, {batch['status']}"


async def _attended(work: Work, directory: Path) -> VerificationResultSet:
    task = asyncio.current_task()
    assert task is not None  # this is a coroutine
    control = RunControl()

    def interrupted() -> None:
        if control.draining:
            default_signals()
            task.cancel()
        else:
            control.drain()
            with suppress(OSError, ValueError):  # stderr is closed
                print(DRAINING, file=sys.stderr, flush=True)  # not past a bar that is shown, as `note` does

    ended = f"interrupted: the run did not answer, so its process was ended; what is done is kept in {directory}"
    continued = f"To continue, type: karenina resume {shlex.quote(str(directory))}"
    with answered_signals(interrupted, f"{ended}\n{continued}"):
        return await work(control=control)
