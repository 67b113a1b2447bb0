"""The progress of a run in a notebook, by the display of IPython: nothing else has to be installed."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from html import escape
from secrets import token_hex
from typing import Any

from .progress import Snapshot, progress_lines, time_left

EVERY = 0.5
"""Seconds between two updates; chosen: each is a message to the browser."""
WIDTH = 100
"""Characters of a line of facts; chosen."""


def notebook_display() -> Any | None:
    """What publishes pictures and HTML in a notebook, as IPython has it; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or getattr(shell, "kernel", None) is None:  # that of a terminal has none
        return None
    return shell.display_pub


@asynccontextmanager
async def shown_in_notebook(snapshot: Callable[[], Snapshot], total: int) -> AsyncIterator[None]:
    """In a notebook, show how far the run of so many items is as long as this is open, and how it ended."""
    display = notebook_display()
    if display is None:
        yield
        return
    started, before = time.monotonic(), sum(snapshot().outcomes.values())

    def bundle() -> dict[str, str]:
        found, seconds = snapshot(), time.monotonic() - started
        done = sum(found.outcomes.values())
        left = time_left(done, before, total, seconds)
        lines = progress_lines(found, done, total, seconds=seconds, left=left, width=WIDTH)
        return {"text/plain": "\n".join(lines), "text/html": as_html(lines, done, total)}

    place = {"display_id": token_hex(8)}

    def publish(*, update: bool) -> None:
        display.publish(data=bundle(), metadata={}, transient=place, update=update)

    publish(update=False)

    async def ticking() -> None:
        while True:
            await asyncio.sleep(EVERY)
            publish(update=True)

    task = asyncio.create_task(ticking())
    try:
        yield
    finally:
        task.cancel()
        publish(update=True)


def as_html(lines: list[str], done: int, total: int) -> str:
    """A bar of the browser, and the texts."""
    head, *facts = lines
    text = "<br>".join(escape(line) for line in (head.lstrip("━─ "), *facts))
    return f'<progress value="{done}" max="{total}" style="width: 24em"></progress><br>{text}'
