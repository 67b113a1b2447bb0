"""A run in this thread, with the signals that end it early."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..run.control import RunControl
from ..run.results import VerificationResultSet
from ..run.standing import Standing
from .exits import Interrupted
from .progress import Progress

__all__ = ["carried_out", "line_to_go_on", "resume_line"]

DRAINING = "interrupted: waiting for the calls that are under way; interrupt once more to end at once"
Work = Callable[[RunControl], Coroutine[Any, Any, VerificationResultSet]]


def carried_out(work: Work, progress: Progress, directory: Path) -> VerificationResultSet:
    """Await `work(control)` and show its progress. `directory` is where it keeps what is done.

    The first SIGINT or SIGTERM drains the run: what is asked already is waited for and kept. The second one ends it at
    once, a third one the process. Raises Interrupted where work is left.
    """
    try:
        with progress, asyncio.Runner() as runner:
            return runner.run(_attended(work))
    except (KeyboardInterrupt, asyncio.CancelledError):
        told = f"interrupted: {progress.done} of {progress.total} items are done"
        if directory.exists():
            told += f", kept in {directory}\nTo go on, type: {resume_line(directory)}"
        raise Interrupted(told) from None


def resume_line(directory: Path, used_up: str = "") -> str:
    """What to type to go on with a run. `used_up` is the setting of a budget that has to be higher."""
    more = f" --{used_up.replace('_', '-')} MORE" if used_up else ""
    return f"karenina resume {shlex.quote(str(directory))}{more}"


def line_to_go_on(found: Standing, directory: Path) -> str:
    """The same, for a run that is so far."""
    return resume_line(directory, found.used_up) + (" --trust" if found.trusted else "")


async def _attended(work: Work) -> VerificationResultSet:
    task = asyncio.current_task()
    assert task is not None  # this is a coroutine
    loop, control = asyncio.get_running_loop(), RunControl()

    def interrupted() -> None:
        if control.draining:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            task.cancel()
        else:
            control.drain()
            with suppress(OSError, ValueError):  # nobody reads stderr any more
                print(DRAINING, file=sys.stderr, flush=True)  # not past a bar that is shown, as `note` does

    with suppress(RuntimeError, ValueError):  # only Unix has it (which the first says, too), only in the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
    return await work(control)
