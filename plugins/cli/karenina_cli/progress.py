"""The progress of a run on stderr: some lines that are drawn again on a terminal, a line every few seconds else."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from karenina_runs.execute.control import RunControl
from karenina_runs.execute.progress import progress_line, progress_lines, time_left

from .output import note, printable

SECONDS = 5.0
"""Seconds between two lines, where nothing can be drawn again; chosen."""
TICK = 0.25
"""Seconds between two drawings on a terminal; chosen: it looks smooth, and takes no time."""


class Progress:
    """Counts finished items and shows the count. It never raises: a run continues without it."""

    def __init__(
        self,
        total: int,
        *,
        quiet: bool = False,
        done: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """So many were `done` before."""
        self.total = total
        self.done = self.before = done
        self._quiet = quiet
        self._clock = clock
        self._started = self._last = clock()
        self._control: RunControl | None = None
        self._live: Any = None
        self._said = ""

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, markup=False, highlight=False, emoji=False)
            self._live = Live(console=console, transient=True, redirect_stdout=False, auto_refresh=False)
            self._live.start()
            self.tick()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self.tick()  # a short run has ended between two of them
            self._live.stop()
        elif not self._quiet and self.done > self.before:
            with suppress(OSError, ValueError):  # stderr is closed
                self._note()

    @asynccontextmanager
    async def shown(self, control: RunControl | None = None) -> AsyncIterator[None]:
        """Show it again and again while the run goes on in this event loop."""
        self._control = control
        task = asyncio.create_task(self._ticking())
        try:
            yield
        finally:
            task.cancel()

    async def _ticking(self) -> None:
        while not self._quiet:
            self.tick()
            await asyncio.sleep(TICK)

    def advance(self, _: object) -> None:
        """One item more, whatever became of it."""
        self.done += 1

    def tick(self) -> None:
        """Show how far it is now, where it is time to."""
        try:
            if self._live is not None:
                from rich.text import Text

                lines = self.lines(self._live.console.width)
                self._live.update(Text(printable("\n".join(lines)), no_wrap=True, overflow="ellipsis"), refresh=True)
            elif self._clock() - self._last >= SECONDS:
                self._last = self._clock()
                self._note()
        except (OSError, ValueError):  # stderr is closed
            self._quiet = True

    def lines(self, width: int) -> list[str]:
        """What a terminal of so many columns shows."""
        seconds, left = self._times()
        return progress_lines(self._snapshot(), self.done, self.total, seconds=seconds, left=left, width=width)

    def _note(self) -> None:
        seconds, left = self._times()
        line = progress_line(self._snapshot(), self.done, self.total, seconds=seconds, left=left)
        if line != self._said:
            self._said = line
            note(line)

    def _times(self) -> tuple[float, float | None]:
        seconds = self._clock() - self._started
        return seconds, time_left(self.done, self.before, self.total, seconds)

    def _snapshot(self) -> Any:
        counted = self._control.counted if self._control is not None else None
        return counted.snapshot() if counted is not None else None
