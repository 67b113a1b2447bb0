"""SIGINT and SIGTERM of a run: the event loop answers them, and where it does not, the second one ends the process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from .exits import INTERRUPTED

PATIENCE = 5.0
"""Seconds that the event loop has to answer the second signal. What holds it up for so long will hardly end soon; the
longest turn that is expected in a run, a search for a pattern, takes two."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def answered_signals(interrupted: Callable[[], None], message: str) -> Iterator[None]:
    """Call `interrupted` in the running event loop for each signal.

    Where the loop has not answered the second one for `PATIENCE` seconds, because a template's code does not end, the
    process writes `message` to stderr and exits at once: what a run has acknowledged is on the disk. This needs
    Python to run the handlers of signals, as it does between two lines of Python and within `re`, not in C code that
    keeps the interpreter to itself. Without effect on Windows, and in a thread other than the main one.
    """
    came = 0

    def counted(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came == 2:
            signal.signal(signal.SIGALRM, unanswered)
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)

    def unanswered(number: int, frame: FrameType | None) -> None:
        os.write(2, f"{message}\n".encode(errors="replace"))  # stderr may be locked by what was interrupted
        os._exit(INTERRUPTED)

    def answered() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        interrupted()

    loop, installed = asyncio.get_running_loop(), False
    with suppress(RuntimeError, ValueError):  # only Unix has it, only in the main thread
        for number in SIGNALS:
            loop.add_signal_handler(number, answered)  # wakes the loop up, whichever thread gets the signal
            signal.signal(number, counted)
        installed = True
    try:
        yield
    finally:
        if installed:
            signal.setitimer(signal.ITIMER_REAL, 0)


def default_signals() -> None:
    """From now on a signal ends the process, as in any other program. In the event loop's thread."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.remove_signal_handler(number)
