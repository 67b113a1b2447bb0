"""Progress of a run on stderr: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from karenina_core.log import configure
from karenina_core.values.result import VerificationResult

from .output import note

SECONDS = 5.0
"""Seconds between two lines, where there is no bar; chosen."""
STEPS = 10
"""Lines of a run that is too quick for lines by time."""


class Progress:
    """Counts finished items and shows the count. It never raises: a run continues without it."""

    def __init__(self, total: int, *, quiet: bool = False, done: int = 0, errors: int = 0) -> None:
        """`done` and `errors` are those of before."""
        self.total = total
        self.done = done
        self.errors = errors
        self._quiet = quiet
        self._started = self._last = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
            self._task = self._bar.add_task(self._description(), total=self.total, completed=self.done)
            self._bar.start()
        configure()  # the log follows stderr, which a bar replaces while it is shown
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        configure()

    def advance(self, result: VerificationResult) -> None:
        """One item more."""
        self.done += 1
        self.errors += result.metadata.outcome == "error"
        if self._quiet:
            return
        now = time.monotonic()
        step = self.done * STEPS // self.total > (self.done - 1) * STEPS // self.total
        try:
            if self._bar is not None:
                self._bar.update(self._task, completed=self.done, description=self._description())
            elif step or now - self._last >= SECONDS:
                self._last = now
                note(f"{self.done}/{self.total} {self._description()}, {now - self._started:.1f} s")
        except (OSError, ValueError):  # stderr is closed
            self._quiet = True

    def _description(self) -> str:
        return f"items, {self.errors} with errors" if self.errors else "items"
