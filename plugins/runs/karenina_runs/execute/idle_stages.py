"""Time-outs of stages: code that waits for something that does not come holds no item up for ever.

What is asked of models, embedders and search tools has time limits of its own, and may wait for a place, for a provider
that refuses, or for a batch: none of that is counted here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field
from karenina_calls.ports.item_calls import ItemCalls

from karenina_core.errors import KareninaError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.orchestrator import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.ports.asker import StageLimit, current_limit
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

LOOKS = 8
"""Looks within the limit: a stage is ended up to an eighth of the limit late, and the looks of a run with the default
limit are 75 s apart. Looks are counted and not seconds: where the event loop is held up, or the machine sleeps, no look
takes place, and no stage is ended for it."""


@define(eq=False)
class _Watched:
    context: VerificationContext
    plan: StageOrchestrator
    limit: StageLimit = field(factory=StageLimit)
    task: asyncio.Task[Any] | None = field(factory=asyncio.current_task)
    progress: tuple[object, ...] = ()
    idle: int = 0
    """Looks since there was progress."""


@define(eq=False)
class IdleStages:
    """The items of a run that are under way, and the stages of which nothing has been seen for long."""

    limit: float
    """Seconds; 0: none."""
    app: Karenina
    items: dict[ItemCalls, _Watched] = field(factory=dict)

    async def run(self, item: ItemCalls, context: VerificationContext, plan: StageOrchestrator) -> VerificationResult:
        """Run the stages of one item, in a task that is its own."""
        self.items[item] = watched = _Watched(context, plan)
        current_limit.set(watched.limit)
        try:
            return await plan.ready().run(context)
        finally:
            del self.items[item]

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(self.limit / LOOKS)
            for item, watched in list(self.items.items()):
                progress = (item.begun, item.ended, *watched.context.progress)
                if progress != watched.progress or item.begun != item.ended:
                    watched.progress, watched.idle = progress, 0
                    continue
                watched.idle += 1
                if watched.idle >= LOOKS and watched.task is not None:
                    watched.limit.cancel(watched.task, KareninaError(self._why(watched)))

    def _why(self, watched: _Watched) -> str:
        what = f"ended after {self.limit:g} s without progress and without a call under way"
        stage = watched.context.progress[0]
        if stage is None:  # middleware, whose plugin is named anyway
            return f"{what}; stage_idle_timeout gives it more time"
        plugin = watched.plan.owner(stage.name)
        found = next((info.distribution for info in self.app.plugins if info.name == plugin), None)
        owner = f"{found or 'no distribution'} (plugin {plugin})"
        return f"{what}; it is a stage of {owner}, stage_idle_timeout gives it more time"

    def running(self, loop: asyncio.AbstractEventLoop) -> str:
        """The stage that is running in this event loop, from any thread; empty where that is not known."""
        task = asyncio.current_task(loop)
        found = (watched.context.progress[0] for watched in list(self.items.values()) if watched.task is task)
        return next((stage.name for stage in found if stage is not None), "")


@asynccontextmanager
async def watched_stages(config: VerificationConfig, app: Karenina) -> AsyncIterator[IdleStages]:
    """Within it, stages of its items that make no progress for `stage_idle_timeout` are ended."""
    stages = IdleStages(config.stage_idle_timeout or 0.0, app)
    watching = asyncio.ensure_future(stages.watch()) if stages.limit else None
    try:
        yield stages
    finally:
        if watching is not None:
            watching.cancel()
