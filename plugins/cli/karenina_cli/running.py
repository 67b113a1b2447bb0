"""A run in this thread, with the signals that end it early."""

from __future__ import annotations

import asyncio
import atexit
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from karenina_calls.files.process_cleanup import end_children
from karenina_runs.execute.control import RunControl
from karenina_runs.folder.status import cancel_command, read_status, resume_command
from karenina_runs.results.results import VerificationResultSet

from karenina_core.errors import ConfigError, RunDirectoryError, plural

from .exits import INTERRUPTED, Interrupted
from .output import note
from .progress import Progress

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds that the event loop has to answer the second signal, so that the process has ended two seconds after it. No
turn of the loop should take a tenth of that: searches for patterns have threads of their own."""
ENDING = 1.5
"""Seconds that all that is under way has to end after the loop has answered it, which takes tenths of one; what does
not, be it a task that is not to be cancelled, a thread or a program, is ended with the process."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def answered_signals(interrupted: Callable[[], None], message: str) -> Iterator[None]:
    """Call `interrupted` in the running event loop for each signal.

    Where the loop has not answered the second one for `PATIENCE` seconds, because a template's code does not end, or
    the process has not ended `ENDING` seconds after it has, it kills the programs that it has started, writes
    `message` to stderr and exits at once: what a run has acknowledged is on the disk. This needs Python to run the
    handlers of signals, as it does between two lines of Python and within `re`, not in C code that keeps the
    interpreter to itself. Without effect on Windows, and in a thread other than the main one.
    """
    came = 0

    def counted(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came == 2:
            signal.signal(signal.SIGALRM, unanswered)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def unanswered(number: int, frame: FrameType | None) -> None:
        end_children()
        os.write(2, f"{message}\n".encode(errors="replace"))  # stderr may be locked by what was interrupted
        os._exit(INTERRUPTED)

    def answered() -> None:
        if came >= 2:
            signal.setitimer(signal.ITIMER_REAL, ENDING)
        interrupted()

    loop, installed = asyncio.get_running_loop(), False
    with suppress(RuntimeError, ValueError):  # only Unix has it, only in the main thread
        for number in SIGNALS:
            loop.add_signal_handler(number, answered)  # wakes the loop up, whichever thread gets the signal
            signal.signal(number, counted)
        atexit.unregister(_end_timer)
        atexit.register(_end_timer)
        installed = True
    try:
        yield
    finally:
        if installed and came < 2:  # else what waits for threads, after this, has to end too
            signal.setitimer(signal.ITIMER_REAL, 0)


def _end_timer() -> None:
    """All threads have ended. What follows resets the handlers of signals: then the timer would end the process as a
    signal does, and not with its exit code."""
    signal.setitimer(signal.ITIMER_REAL, 0)


def default_signals() -> None:
    """From now on a signal ends the process, as in any other program. In the event loop's thread."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.remove_signal_handler(number)


DRAINING = "interrupted: waiting for the calls in flight; interrupt again to end at once"
Work = Callable[..., Coroutine[Any, Any, VerificationResultSet]]


def carried_out(
    work: Work, progress: Progress, directory: Path, most_errors: float | None = None
) -> VerificationResultSet:
    """Await `work(on_result=..., control=...)`, show its progress, and print which sinks have failed. `directory` is
    where it keeps what is done. With more than `most_errors` items that end in an error, it asks nothing more.

    The first SIGINT or SIGTERM drains the run: what is asked already is waited for and kept. The second one ends it at
    once, and the process where the run does not answer; a third one ends the process. Raises Interrupted where work is
    left.
    """
    try:
        with progress, asyncio.Runner() as runner:
            begun, line = partial(work, on_result=progress.advance), f"karenina resume {shlex.quote(str(directory))}"
            results = runner.run(attended(begun, progress, directory, RunControl(most_errors), line))
    except (KeyboardInterrupt, asyncio.CancelledError):
        summary = f"interrupted: {progress.done} of {progress.total} items are done"
        try:
            found = read_status(directory)
        except (ConfigError, RunDirectoryError):  # it was interrupted before it began
            raise Interrupted(summary) from None
        lines = [f"{summary}, kept in {directory}"]
        lines += [f"left at the provider: {batch_text(batch)}" for batch in found.batches]
        if found.batches:
            lines.append(f"To cancel them, type: {cancel_command(directory)}")
        raise Interrupted("\n".join([*lines, f"To continue, type: {resume_command(found, directory)}"])) from None
    for sink, failure in results.sink_failures.items():
        note(f"Error: the sink {sink!r} failed and was closed; results are missing there: {failure}")
    return results


def batch_text(batch: Mapping[str, Any]) -> str:
    """A batch as `read_status` has it."""
    name = batch["provider_id"] or "not yet known to the provider"
    return f"{name}: {plural(batch['calls'], 'call')} of {batch['model']}, {batch['status']}"


async def attended(
    work: Callable[..., Coroutine[Any, Any, T]],
    progress: Progress,
    directory: Path,
    control: RunControl,
    continued: str,
) -> T:
    """Await `work(control=...)`, and show its progress. The first signal drains it, the second one ends it at once.
    `continued` is what to type to continue it, for a process that does not answer."""
    task = asyncio.current_task()
    assert task is not None  # this is a coroutine

    def interrupted() -> None:
        if control.draining:
            default_signals()
            task.cancel()
        else:
            control.drain()
            with suppress(OSError, ValueError):  # stderr is closed
                print(DRAINING, file=sys.stderr, flush=True)  # not past a bar that is shown, as `note` does

    ended = f"interrupted: the run did not answer, so its process was ended; finished items are kept in {directory}"
    with answered_signals(interrupted, f"{ended}\nTo continue, type: {continued}"):
        async with progress.shown(control):
            return await work(control=control)
