"""Things that a plugin brings as a class or an instance, and that say what keeps them from working.

What embedders and search tools have in common: they are made without work, `problem()` is asked before a run, and then
they are called by many items at once, from any event loop, until somebody cancels them.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeAlias

from attrs import frozen

from ..errors import one_line
from .audit import HEAVY, watching
from .blocking import LONGEST_TURN, watched_loop
from .checks import Check, Fault, expecting
from .lines import file_of, line_at, line_of_attribute, line_of_error, line_of_function, line_of_waiting
from .loops import LONGEST_CANCELLATION, StillRunning, in_loop, within
from .probes import construction_events, importable

__all__ = [
    "CONSTRUCTION",
    "LONGEST_CALL",
    "STATE",
    "Looks",
    "Made",
    "cancelled",
    "checks_of",
    "in_two_loops",
    "problem_now",
    "turns",
]

WATCHED = (*HEAVY, "onnxruntime", "safetensors", "sentence_transformers", "tensorflow", "tokenizers", "transformers")
LONGEST_PROBLEM = 1.0
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

    def look(self, look: Callable[[Made], Fault | None]) -> Fault | None:
        """The outcome of a look, which is a fault where it ends with an exception."""
        try:
            return look(self)
        except StillRunning as late:
            return Fault(str(late), self.line(), "end in time")
        except self.errors as error:
            line = line_of_error(error, None) or self.line()
            return Fault(f"it raised {one_line(error)}", line, "make it work here, or say in problem() why not", error)
        except Exception as error:  # a stranger's code may raise anything; that is what is looked for
            line = line_of_error(error, None) or self.line()
            return Fault(f"it raised {one_line(error)}", line, f"raise {self.allowed}", error)

    @property
    def allowed(self) -> str:
        return " or ".join(error.__name__ for error in self.errors)

    def line(self, method: str = "") -> str:
        """Where a method begins: by default the one that does its work."""
        if inspect.isroutine(self.thing):
            return line_of_function(self.thing)
        cls = self.thing if isinstance(self.thing, type) else type(self.thing)
        return line_of_attribute(cls, method or self.method)

    def events(self, method: str = "", *, files: bool = False) -> Mapping[str, str]:
        """`{what happened: line}` while it was made, or while a method without arguments ran.

        In a fresh interpreter where the class can be imported there: here much is imported already.
        """
        if isinstance(self.thing, type) and (name := importable(self.thing)) and self._can_be_sent():
            return construction_events(name, self.arguments, WATCHED, method=method, files=files)
        act = getattr(self.fresh(), method) if method else self.fresh
        with watching(WATCHED, files=files) as seen:
            act()
        return {what: line_at(*where) for what, where in seen.items()}

    def _can_be_sent(self) -> bool:
        return all(type(argument) in (str, type(None)) or importable(type(argument)) for argument in self.arguments)


def problem_now(made: Made) -> Any:
    """What `problem()` says; a text where it or the making of it fails, which checks of their own tell."""
    try:
        asked = getattr(made.fresh(), "problem", None)
        return asked() if callable(asked) else None
    except Exception as error:  # a stranger's code may raise anything
        return one_line(error)


def _light_construction(made: Made) -> Fault | None:
    for what, line in made.events(files=True).items():
        return Fault(f"making it {what}", line, f"do it at the first call of {made.method}")
    return None


def _problem(made: Made) -> Fault | None:
    line = made.line("problem")
    thing = made.fresh()
    started = time.monotonic()
    said: list[object] = [thing.problem()]
    seconds = time.monotonic() - started
    said.append(thing.problem())
    for answer in said:
        if answer is not None and not (isinstance(answer, str) and answer.strip()):
            return Fault(f"problem() returned {answer!r}", line, "return None, or what is wrong and what to do")
    if said[0] != said[1]:
        return Fault(f"problem() said {said[0]!r} and then {said[1]!r}", line, "let it look, and change nothing")
    if seconds > LONGEST_PROBLEM:
        return Fault(f"problem() took {seconds:.1f} s", line, "look up what is there instead of loading it")
    return None


def _light_problem(made: Made) -> Fault | None:
    for what, line in made.events("problem").items():
        return Fault(f"problem() {what}", line, f"look up what is there; load it at the first call of {made.method}")
    return None


Looks: TypeAlias = dict[str, tuple[str, Callable[[Made], Fault | None]]]
CONSTRUCTION: Looks = {"light_construction": ("To make one loads nothing and opens nothing.", _light_construction)}
STATE: Looks = {
    "problem": ("problem() is None or a text, at once, and the same when asked again.", _problem),
    "light_problem": ("problem() imports nothing heavy and asks nobody.", _light_problem),
}


def checks_of(made: Made, looks: Looks, absent: Looks, expected_failures: Mapping[str, str] | None) -> list[Check]:
    """The checks, see `expecting`. Raises ValueError."""
    checks = [Check(made.name, name, promise, partial(made.look, look)) for name, (promise, look) in looks.items()]
    return expecting(checks, expected_failures, absent)


def cancelled(made: Made, call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Fault | None:
    """Cancel `call(thing)` early and later; afterwards another call must work."""

    async def run(seconds: float) -> tuple[str, str]:
        thing = made.fresh()
        work = call(thing)
        told = await _ended(work, seconds, file_of(thing if inspect.isroutine(thing) else type(thing)))
        if not told[0]:
            await within(call(thing), LONGEST_CALL)
        return told

    for seconds in BEGINNINGS:
        problem, line = in_loop(run(seconds))
        if problem:
            remedy = "let asyncio.CancelledError through; release what is held in finally"
            return Fault(f"a call was cancelled, and {problem}", line or made.line(), remedy)
    return None


async def _ended(work: Coroutine[Any, Any, Any], seconds: float, file: str | None) -> tuple[str, str]:
    """What was wrong about how a cancelled call ended, and the line at which it waited."""
    task = asyncio.ensure_future(work)
    await asyncio.wait({task}, timeout=seconds)
    if task.done():
        task.result()
        return "", ""
    line = line_of_waiting(work, file)
    task.cancel()
    await asyncio.wait({task}, timeout=LONGEST_CANCELLATION)
    if not task.done():
        return f"it went on for more than {LONGEST_CANCELLATION:g} s", line
    if not task.cancelled():
        return f"it ended with {task.exception() or task.result()!r} instead of CancelledError", line
    return "", ""


def in_two_loops(made: Made, call: Callable[[Any], Awaitable[Any]]) -> Fault | None:
    """Two calls at once in one event loop, and then, of the same thing, in another one."""
    thing = made.fresh()

    async def both() -> None:
        await within(asyncio.gather(call(thing), call(thing)), LONGEST_CALL)

    in_loop(both())
    try:
        in_loop(both())
    except Exception as error:  # a stranger's code may raise anything; that is what is looked for
        remedy = "keep nothing that belongs to an event loop: make locks, sessions and tasks for each call"
        line = line_of_error(error, None) or made.line()
        return Fault(f"in a second event loop it raised {one_line(error)}", line, remedy, error)
    return None


def turns(made: Made, call: Callable[[Any], Awaitable[Any]]) -> Fault | None:
    """Look whether the event loop goes on during a first call and the next one."""

    async def both() -> None:
        thing = made.fresh()
        await call(thing)
        await call(thing)

    _, held = in_loop(within(watched_loop(both()), LONGEST_CALL))
    if held is None:
        return None
    problem = f"nothing else had its turn for {LONGEST_TURN:g} s or longer"
    return Fault(problem, held.line or made.line(), "do it in a thread: await asyncio.to_thread(...)")
