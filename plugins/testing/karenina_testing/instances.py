"""Things that a plugin brings as a class or an instance, and that report what keeps them from working.

What embedders and search tools have in common: they are made without work, `problem()` is asked before a run, and then
they are called by many items at once, from any event loop, until they are cancelled.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import frozen

from karenina_core.errors import one_line

from .checks import Fault, Promises, Raised, attempt
from .watch.audit import HEAVY, construction_events
from .watch.loops import LONGEST_TURN, StillRunning, cancel, in_loop, watched_loop, within
from .watch.source_lines import file_of, line_of_attribute, line_of_function, line_of_waiting

WATCHED = (*HEAVY, "onnxruntime", "safetensors", "sentence_transformers", "tensorflow", "tokenizers", "transformers")
LONGEST_PROBLEM = 1.0  # seconds; `karenina plan` asks each plugin, and a person waits
LONGEST_CALL = 120.0
"""A first call may load a model."""
BEGINNINGS = (0.0, 0.05)
"""After how many seconds a call is cancelled."""


@frozen(eq=False)
class Made:
    """A class and the arguments that it is made with, or an instance."""

    kind: str
    thing: Any
    arguments: tuple[Any, ...]
    method: str
    """The coroutine function that does its work."""
    errors: tuple[type[Exception], ...]
    """What a call may raise."""

    @property
    def name(self) -> str:
        named = self.thing if hasattr(self.thing, "__name__") else type(self.thing)
        return f"{self.kind} {named.__name__}"

    def fresh(self) -> Any:
        """A new one of a class; the same one where an instance was given."""
        return self.thing(*self.arguments) if isinstance(self.thing, type) else self.thing

    def fault_of(self, error: BaseException) -> Fault:
        """What it means that a check of it ended with this."""
        if isinstance(error, StillRunning):
            return Fault(str(error), self.line(), "end in time")
        remedy = f"raise {' or '.join(allowed.__name__ for allowed in self.errors)}"
        if isinstance(error, self.errors):
            remedy = "make it work here, or report in problem() why not"
        return Fault.raised(error, remedy, line=self.line())

    def line(self, method: str = "") -> str:
        """Where a method begins: by default the one that does its work."""
        if inspect.isroutine(self.thing):
            return line_of_function(self.thing)
        cls = self.thing if isinstance(self.thing, type) else type(self.thing)
        return line_of_attribute(cls, method or self.method)

    def fault(self, problem: str, remedy: str = "", method: str = "") -> Fault:
        """A fault of a method; by default of the one that does its work."""
        return Fault(problem, self.line(method), remedy)

    def events(self, method: str = "", *, files: bool = False) -> Mapping[str, str]:
        """`{what happened: line}` while it was made, or while a method without arguments ran.

        In a fresh interpreter where the class can be imported there: here much is imported already.
        """
        factory = self.thing if isinstance(self.thing, type) else None
        return construction_events(factory, self.arguments, WATCHED, self.fresh, method=method, files=files)


def arguments_of(thing: Any, settings: Any, *first: Any) -> tuple[Any, ...]:
    """What an application makes a class with: settings only where it takes one argument more."""
    takes = isinstance(thing, type) and settings is not None and len(inspect.signature(thing).parameters) > len(first)
    return (*first, settings) if takes else first


def problem_now(made: Made) -> Any:
    """What `problem()` returns; a text where it or the making of it fails, which checks of their own report."""
    outcome = attempt(lambda: getattr(made.fresh(), "problem", lambda: None)())
    return one_line(outcome.error) if isinstance(outcome, Raised) else outcome


CONSTRUCTION: Promises[Made] = Promises()


@CONSTRUCTION.add("light_construction", "To make one loads nothing and opens nothing.")
def _light_construction(made: Made) -> Iterator[Fault]:
    for what, line in made.events(files=True).items():
        yield Fault(f"making it {what}", line, f"do it at the first call of {made.method}")


STATE: Promises[Made] = Promises()


@STATE.add("problem", "problem() is None or a text, at once, and the same when asked again.")
def _problem(made: Made) -> Iterator[Fault]:
    line = made.line("problem")
    thing = made.fresh()
    started = time.monotonic()
    answers: list[object] = [thing.problem()]
    seconds = time.monotonic() - started
    answers.append(thing.problem())
    for answer in answers:
        if answer is not None and not (isinstance(answer, str) and answer.strip()):
            yield Fault(f"problem() returned {answer!r}", line, "return None, or what is wrong and what to do")
    if answers[0] != answers[1]:
        yield Fault(
            f"problem() returned {answers[0]!r} and then {answers[1]!r}", line, "let it look, and change nothing"
        )
    if seconds > LONGEST_PROBLEM:
        yield Fault(f"problem() took {seconds:.1f} s", line, "look up what is installed instead of loading it")


@STATE.add("light_problem", "problem() imports nothing heavy and makes no request.")
def _light_problem(made: Made) -> Iterator[Fault]:
    for what, line in made.events("problem").items():
        yield Fault(f"problem() {what}", line, f"look up what is there; load it at the first call of {made.method}")


def cancelled(made: Made, call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Iterator[Fault]:
    """Cancel `call(thing)` early and later; afterwards another call must work."""

    async def run(seconds: float) -> tuple[str, str]:
        thing = made.fresh()
        work = call(thing)
        task = asyncio.ensure_future(work)
        await asyncio.wait({task}, timeout=seconds)
        problem = line = ""
        if task.done():
            task.result()
        else:
            line = line_of_waiting(work, file_of(thing if inspect.isroutine(thing) else type(thing)))
            problem = await cancel(task)
        if not problem:
            await within(call(thing), LONGEST_CALL)
        return problem, line

    for seconds in BEGINNINGS:
        problem, line = in_loop(run(seconds))
        if problem:
            remedy = "let asyncio.CancelledError through; release what is held in finally"
            yield Fault(f"a call was cancelled, and {problem}", line or made.line(), remedy)


def in_two_loops(made: Made, call: Callable[[Any], Awaitable[Any]]) -> Iterator[Fault]:
    """Two calls at once in one event loop, and then, of the same thing, in another one."""
    thing = made.fresh()

    async def both() -> None:
        await within(asyncio.gather(call(thing), call(thing)), LONGEST_CALL)

    in_loop(both())
    outcome = attempt(lambda: in_loop(both()))
    if isinstance(outcome, Raised):
        remedy = "keep nothing that belongs to an event loop: make locks, sessions and tasks for each call"
        yield Fault.raised(outcome.error, remedy, by="in a second event loop it", line=made.line())


def turns(made: Made, call: Callable[[Any], Awaitable[Any]]) -> Iterator[Fault]:
    """Look whether the event loop goes on during a first call and the next one."""

    async def both() -> None:
        thing = made.fresh()
        await call(thing)
        await call(thing)

    _, held = in_loop(within(watched_loop(both()), LONGEST_CALL))
    if held is not None:
        problem = f"nothing else had its turn for {LONGEST_TURN:g} s or longer"
        yield Fault(problem, held or made.line(), "do it in a thread: await asyncio.to_thread(...)")


def call_promises(call: Callable[[Any], Coroutine[Any, Any, Any]], what: str, works: str) -> Promises[Made]:
    """What is promised of every call; `what` and `works` are the words for it."""
    return Promises(
        loops=("It can be used from one event loop after another.", partial(in_two_loops, call=call)),
        cancellation=(f"A cancelled {what} ends at once, and the next one works.", partial(cancelled, call=call)),
        event_loop=(f"Others go on while it {works}.", partial(turns, call=call)),
    )
