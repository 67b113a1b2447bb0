"""Ending a run early, first without losing a call that is under way, then at once; and synchronous twins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from attrs import define, field
from karenina_calls.limits.limiter import Gateway

from karenina_core.errors import plural
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.result import VerificationResult

P = ParamSpec("P")
T = TypeVar("T")

A_MOMENT = 0.25
"""Seconds for what needs no more calls: reading the last replies, checking them, keeping the results. Chosen: a user
who has pressed Ctrl-C does not notice them."""


class Counted(Protocol):
    """What a run under way counts."""

    def snapshot(self) -> Any:
        """See `karenina_runs.execute.progress.Snapshot`. Only in the loop of the run."""


OF_WHAT_MODELS_SAY = frozenset({"judge", "content_filter"})
"""Kinds of errors that are about what a model has said, and of which the next item knows nothing."""
SLACK = 1e-9
"""Shares of the items that differ by less are the same."""


@define(eq=False)
class RunControl:
    """Ends a run early, and says how far it is, from the loop in which it runs."""

    most_errors: float | None = None
    """With more items that end in an error, nothing more is asked."""
    counted: Counted | None = field(default=None, init=False)
    """None before the first item begins."""
    _wanted: asyncio.Event = field(factory=asyncio.Event, init=False)

    def drain(self) -> None:
        """No new call begins; those under way are waited for and kept; then the run ends as one that was cancelled."""
        self._wanted.set()

    @property
    def draining(self) -> bool:
        return self._wanted.is_set()

    def why_stopped(self, result: VerificationResult, errors: int, *, fail_fast: bool) -> str:
        """Why nothing more is to be asked after this result; `errors` of the run so far, this one included."""
        about = result.metadata
        if about.outcome != "error":
            return ""
        if fail_fast and about.outcome_detail not in OF_WHAT_MODELS_SAY:
            where = f"{about.question_id}, answered by {about.answering_model}"
            return f"fail_fast: an item ended in an error ({where}: {about.outcome_detail}: {about.error})"
        if self.most_errors is not None and errors > self.most_errors + SLACK:
            return f"max_errors: {plural(errors, 'item')} ended in an error, at most {self.most_errors:g} may"
        return ""

    async def until_drained(self, work: Coroutine[Any, Any, None], gateway: Gateway) -> None:
        """Await the work. Raises what it raises, and CancelledError where it was drained before it was done."""
        task = asyncio.ensure_future(work)
        watch = asyncio.ensure_future(self._drained(task, gateway))
        try:
            await task
        finally:
            watch.cancel()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _drained(self, task: asyncio.Future[None], gateway: Gateway) -> None:
        await self._wanted.wait()
        gateway.drain()
        await gateway.quiet()
        await asyncio.wait({task}, timeout=A_MOMENT)
        task.cancel()


def synchronous(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The twin for synchronous callers of a coroutine function that takes an `app`: with the same parameters."""

    @wraps(function)
    def run(*args: P.args, **options: P.kwargs) -> T:
        app = options["app"] = current(cast(Karenina | None, options.get("app")))
        return app.run(function(*args, **options))

    run.__name__ = function.__name__.removeprefix("a")
    run.__qualname__ = f"{function.__qualname__.removesuffix(function.__name__)}{run.__name__}"
    run.__doc__ = f"The same for synchronous callers; works inside notebooks. See `{function.__name__}`."
    return run
