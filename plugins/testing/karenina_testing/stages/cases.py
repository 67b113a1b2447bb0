"""Running one stage on one item, alone: twice, cancelled, and after an error."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

from attrs import field, frozen

from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.stage import Stage

from ..checks import Fault, Raised, attempt, attempt_async
from ..compare import difference, snapshot
from ..watch.loops import cancel, in_loop
from ..watch.source_lines import executing, line_of_attribute, line_of_waiting
from .inputs import StageInput, WatchedContext

MakeContext = Callable[[StageInput], VerificationContext]
LONGEST_RUN = 5.0
MOST_STEPS = 8


@frozen(eq=False)
class Run:
    """What one stage did with one item."""

    given: StageInput
    """Its own copy of the item, as the stage left it."""
    context: WatchedContext
    before: dict[str, Any] = field(repr=False)
    answer: object = True
    """What should_run answered."""
    error: BaseException | None = None
    asking: bool = False
    """Whether the error came from should_run."""

    @property
    def finished(self) -> bool:
        """Whether the stage ran to its end without raising and without setting an error."""
        return bool(self.answer) and self.error is None and self.context.error == self.before["error"]

    @property
    def outcome(self) -> dict[str, Any]:
        """What anyone can see of the run afterwards."""
        raised = None if self.error is None else type(self.error).__name__
        return {**state(self.context), "raised": raised, "ran": bool(self.answer)}


@frozen
class Cancelled:
    """What became of a run that was cancelled."""

    how: str
    """Empty where the cancellation went through."""
    line: str
    """Where the stage was waiting."""


def state(context: VerificationContext) -> dict[str, Any]:
    """Everything that a stage can change in a context."""
    return {
        "artifacts": dict(context._artifacts),
        "result fields": dict(context.result_fields),
        "effects": list(context.effects),
        "error": context.error,
        "warnings": list(context.warnings),
    }


class Trial:
    """One stage and one item. Every run has a copy of the item; they share the stage, as the items of a run do."""

    def __init__(self, stage: Stage, given: StageInput, make_context: MakeContext, file: str | None) -> None:
        self.stage = stage
        self.given = given
        self._make_context = make_context
        self._file = file

    @cached_property
    def first(self) -> Run:
        return in_loop(self._run())

    @cached_property
    def second(self) -> Run:
        return in_loop(self._run())

    @cached_property
    def changed(self) -> str | None:
        """What the first run changed in the item that it was given."""
        return difference(self.given, self.first.given)

    @property
    def changing_line(self) -> str:
        """The first line after which the item was no longer as it was given."""
        given = snapshot(self.given)
        found: list[str] = []

        def executed(_: str, line: str) -> None:
            if not found and difference(self.given, given) is not None:
                found.append(line)

        with executing(self._file, executed):
            in_loop(self._run(given))
        return found[0] if found else ""

    @property
    def last_line(self) -> str:
        """The line with which execute ended."""
        lines: list[str] = []
        with executing(self._file, lambda name, line: lines.append(line) if name == "execute" else None):
            in_loop(self._run())
        return lines[-1] if lines else ""

    def asked(self, given: StageInput) -> tuple[Any, str | None, WatchedContext]:
        """What should_run answers to an item, and what it changed by being asked."""
        context = self._context(given)
        before = snapshot(state(context))
        with context.acting(self.stage):
            answer = self.stage.should_run(context)
            again = self.stage.should_run(context)
        if bool(answer) != bool(again):
            return answer, f"asked twice, it answered {answer!r} and then {again!r}", context
        return answer, difference(before, state(context)), context

    def fault(self, problem: str, method: str, remedy: str = "") -> Fault:
        """A fault of a method of the stage."""
        return Fault(problem, line_of_attribute(type(self.stage), method), remedy)

    @cached_property
    def rerun(self) -> Run:
        """A run after others were cancelled."""
        return in_loop(self._run())

    def _context(self, given: StageInput) -> WatchedContext:
        context = self._make_context(given)
        if not isinstance(context, WatchedContext):
            raise TypeError("make_context must return given.context(...), perhaps with other arguments")
        return context

    async def _run(self, given: StageInput | None = None) -> Run:
        given = snapshot(self.given) if given is None else given
        context = self._context(given)
        before = snapshot(state(context))
        with context.acting(self.stage):
            answer = attempt(self.stage.should_run, context)
        if isinstance(answer, Raised):
            return Run(given, context, before, True, answer.error, asking=True)
        if not answer:
            return Run(given, context, before, answer)
        with context.acting(self.stage):
            task = asyncio.ensure_future(attempt_async(self._executed(context)))
            await asyncio.wait({task}, timeout=LONGEST_RUN)
        raised: BaseException | None = None
        if not task.done():
            task.cancel()
            raised = TimeoutError(f"execute took more than {LONGEST_RUN:g} s, with models that answer at once")
        elif task.cancelled():
            raised = RuntimeError("execute raised CancelledError though it was not cancelled")
        elif outcome := task.result():
            raised = outcome.error
        return Run(given, context, before, answer, raised)

    async def _executed(self, context: WatchedContext) -> None:
        stage = self.stage
        work = await asyncio.to_thread(stage.execute, context) if stage.blocking else stage.execute(context)
        if inspect.isawaitable(work):
            await work

    async def cancelled(self, steps: int) -> Cancelled | None:
        """Cancel a run after that many turns of the event loop; None where it had ended by then."""
        context = self._context(snapshot(self.given))
        with context.acting(self.stage):
            if not self.stage.should_run(context):
                return None
            work = attempt_async(self._executed(context))
            task = asyncio.ensure_future(work)
            for _ in range(steps):
                await asyncio.sleep(0)
            if task.done():
                return None
            line = line_of_waiting(work, self._file)
            how = await cancel(task)
        return Cancelled(how, line)
