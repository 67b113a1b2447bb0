"""Who asks: set by the engine and by evaluators, read by whatever records the calls of an item; and how the stage that
runs is ended from outside."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from attrs import define

from ..errors import KareninaError


@define(eq=False)
class StageLimit:
    """What ends a stage of one item, or its middleware, that makes no progress."""

    why: KareninaError | None = None
    cancellations: int = 0
    """How often that was asked of its task."""

    def cancel(self, task: asyncio.Task[Any], why: KareninaError) -> None:
        """End the stage, or the middleware, that makes no progress in the item's task."""
        self.why = why
        self.cancellations += 1
        task.cancel()

    def cancelled_for(self) -> KareninaError | None:
        """Why the code that has just ended was to be ended, asked once, in the item's task; the next code may run.

        None where nothing has ended it, and where the whole item is cancelled as well.
        """
        why, self.why = self.why, None
        task = asyncio.current_task()
        if why is None or task is None:
            return None
        while self.cancellations:
            self.cancellations -= 1
            task.uncancel()
        return None if task.cancelling() else why


current_stage: ContextVar[tuple[str, str]] = ContextVar("karenina_stage", default=("", "1"))
"""The name and the version of the stage that runs."""
current_trait: ContextVar[str] = ContextVar("karenina_trait", default="")
"""The name of the trait that is scored."""
current_limit: ContextVar[StageLimit | None] = ContextVar("karenina_stage_limit", default=None)
"""That of the item whose stages run; None where nothing ends them."""
