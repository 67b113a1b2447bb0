"""Running the stages of one item: never halting early, always with a result."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from types import CoroutineType
from typing import Any

from attrs import evolve, frozen

from ..errors import ContractError, ErrorKind, KareninaError, one_line, place_of
from ..log import get_logger
from ..plugin.application import Karenina
from ..ports.call_origin import StageLimit, current_limit, current_stage
from ..ports.threads import in_own_thread
from ..values.outcome import nothing_scored
from ..values.result import TrailEntry, VerificationResult
from .artifact_keys import CoreKeys
from .assemble import bare_result, ended
from .context import VerificationContext
from .declaration import Usual, usual
from .stage import Skip, Stage

Step = Callable[[VerificationContext], Awaitable[None] | None]
Verify = Callable[[VerificationContext], Coroutine[Any, Any, VerificationResult]]
log = get_logger("karenina.pipeline")


@frozen
class _Prepared:
    stage: Stage
    step: Step
    named: tuple[str, str]
    usual: Usual


class Engine:
    """The stages of one plan, wrapped by middleware once, ready to run any number of items."""

    def __init__(self, stages: Sequence[Stage], app: Karenina | None = None) -> None:
        self._prepared = [_Prepared(s, _step(s, app), (s.name, getattr(s, "version", "1")), usual(s)) for s in stages]
        self._verify: Verify = self._all
        for plugin, around in reversed(app.middleware("karenina_wrap_item") if app else []):
            self._verify = partial(_around_item, plugin, around, self._verify)

    def run(self, context: VerificationContext) -> Coroutine[Any, Any, VerificationResult]:
        """Run every stage that wants to run. Only cancellation leaves without a result."""
        return self._verify(context)  # no coroutine of its own, which every item under way would hold

    async def _all(self, context: VerificationContext) -> VerificationResult:
        started, limit = time.perf_counter(), current_limit.get()
        for prepared in self._prepared:
            context.trail.append(await self._one(prepared, context, limit))
        states = {} if context.evaluates_template else context.result_fields.get("trait_states", {})
        if context.error is None and (failure := nothing_scored(states)):
            context.mark_error(failure[1], kind=failure[0])
        result = context.get_artifact(CoreKeys.FINAL_RESULT)
        if not isinstance(result, VerificationResult):
            if context.error is None:
                context.mark_error("no stage made a result", kind="stage")
            result = bare_result(context)
        metadata = ended(result.metadata, context, time.perf_counter() - started)
        return evolve(result, trail=tuple(context.trail), metadata=metadata)

    async def _one(self, prepared: _Prepared, context: VerificationContext, limit: StageLimit | None) -> TrailEntry:
        stage = prepared.stage
        started = time.perf_counter()
        before = context.begin(stage, prepared.usual)
        try:
            answer = stage.should_run(context)
            if not answer:
                reason = answer.reason if isinstance(answer, Skip) else "its should_run returned False"
                return TrailEntry(stage.name, "skipped", reason, time.perf_counter() - started)
            current_stage.set(prepared.named)
            work = prepared.step(context)
            if type(work) is CoroutineType or (work is not None and inspect.isawaitable(work)):
                await work
            if limit is not None and limit.why is not None:  # it has kept its cancellation to itself
                raise asyncio.CancelledError
        except BaseException as raised:  # also what some extension modules raise instead of an Exception
            error = (limit.cancelled_for() if limit is not None else None) or raised
            if stops_item(error):
                raise
            reason = self._failed(stage, context, error)
            return TrailEntry(stage.name, "failed", reason, time.perf_counter() - started)
        finally:
            set_meanwhile = context.end(before)
        if set_meanwhile is not None:
            return TrailEntry(stage.name, "failed", set_meanwhile, time.perf_counter() - started)
        return TrailEntry(stage.name, "ran", context.take_note(), time.perf_counter() - started)

    def _failed(self, stage: Stage, context: VerificationContext, error: BaseException) -> str:
        expected = isinstance(error, KareninaError) and not isinstance(error, ContractError)
        line = one_line(error) if expected else f"{one_line(error)}{place_of(error, type(stage).__module__)}"
        log.info("a stage failed", stage=stage.name, item=context.question_id, error=line, exc_info=error)
        text = str(error) if expected and str(error) else line
        context.mark_error(f"{stage.name}: {text}", kind=error_kind(error), stage=stage.name)
        return line


def error_kind(error: BaseException) -> ErrorKind:
    """The kind of an error: its own where it is one of karenina's, `stage` for everything else."""
    if isinstance(error, KareninaError):
        return error.kind
    return "cancelled" if isinstance(error, asyncio.CancelledError) else "stage"


def stops_item(error: BaseException) -> bool:
    """Whether the item itself is to end, because it was cancelled or the user wants out.

    Anything else is a failure of the code that was running, which may also let the cancellation of a task of its own
    through. To be asked in the task that the error was raised in.
    """
    if isinstance(error, KeyboardInterrupt):  # signals reach the main thread only: elsewhere it is the stage's doing
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, GeneratorExit) or (isinstance(error, asyncio.CancelledError) and _is_cancelling())


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _step(stage: Stage, app: Karenina | None) -> Step:
    """The stage's work inside the middleware."""
    step: Step = partial(_in_thread, stage) if stage.blocking else stage.execute
    wrappers = app.middleware("karenina_wrap_stage", f" for {stage.name}", stage=stage) if app else []
    if wrappers:
        step = partial(_awaited, step)
    for _, around in reversed(wrappers):
        step = partial(_around, around, step)
    return step


async def _around(around: Callable[..., Awaitable[None]], step: Step, context: VerificationContext) -> None:
    await around(context, partial(step, context))


async def _awaited(step: Step, context: VerificationContext) -> None:
    """What a wrapper waits for, also where the stage has a plain function."""
    work = step(context)
    if work is not None and inspect.isawaitable(work):
        await work


async def _around_item(
    plugin: str, around: Callable[..., Awaitable[None]], verify: Verify, context: VerificationContext
) -> VerificationResult:
    """The item's result, whatever the wrapper does with the item."""
    work: list[VerificationResult | None] = []  # empty: not begun; None: not done

    async def proceed() -> VerificationResult:
        if not work:
            work.append(None)
            work[0] = await verify(context)
        if work[0] is None:
            raise RuntimeError("the item is not done yet; await proceed() once")
        return work[0]

    try:
        await around(context.task, proceed)
    except BaseException as raised:
        limit = current_limit.get()
        error = (limit.cancelled_for() if limit is not None else None) or raised
        if stops_item(error):
            raise
        log.warning("an item's middleware failed", plugin=plugin, item=context.question_id, error=one_line(error))
    done = work[0] if work else None
    if done is not None:
        return done
    if _is_cancelling():  # which the wrapper has kept to itself
        raise asyncio.CancelledError
    if not work:
        return await verify(context)
    context.mark_error(f"the middleware of plugin {plugin!r} ended the item: it did not wait for it", kind="plugin")
    return evolve(bare_result(context), trail=tuple(context.trail))


async def _in_thread(stage: Stage, context: VerificationContext) -> None:
    """A thread that holds up nothing, not even the end of the program, where it does not end."""
    work = (await in_own_thread(lambda: stage.execute(context), f"karenina-{stage.name}")).result()
    if work is not None and inspect.isawaitable(work):
        await work
