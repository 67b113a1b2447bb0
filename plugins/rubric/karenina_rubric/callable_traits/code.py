"""The functions of callable traits: loaded once, called in a thread within a time limit, values read as scores."""

from __future__ import annotations

import ast
import asyncio
import inspect
import math
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from attrs import field, frozen, validators
from karenina_calls.ports.text import sanitize
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.traits import CallableRubricTrait

from karenina_core.errors import one_line, shortened
from karenina_core.ports.threads import Ended, in_own_thread

Place = object
"""A call that has a place; any object, by its identity. It may have one in several `Places`."""
MOST_CALLS = 8
"""Calls of one function at the same time, with those that were given up on. Chosen, not measured."""
ENTRY = "evaluate"
MOST_SHOWN = 80  # characters: a line


class Places:
    """So many calls may run; others wait until one has ended.

    A call that was given up on keeps its place until it ends. Where only such calls are left, other calls do not wait
    for them.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lock = threading.Lock()
        self._taken: set[Place] = set()
        self._left: set[Place] = set()
        self._waiting: deque[tuple[Place, Future[bool]]] = deque()

    @property
    def unused(self) -> bool:
        with self._lock:
            return not self._taken and not self._waiting

    async def take(self, place: Place) -> bool:
        """Wait for a place; to be given back with `end`. False: calls that were given up on hold all of them."""
        turn: Future[bool] = Future()
        with self._lock:
            self._waiting.append((place, turn))
            self._settle()
        try:
            return await asyncio.wrap_future(turn)
        except BaseException:  # this task was cancelled: perhaps just after it was given the place
            with self._lock:
                turn.cancel()
            self.end(place)
            raise

    def leave(self, place: Place) -> None:
        """No caller waits for the result of the call any more."""
        with self._lock:
            if place in self._taken:  # else it has ended meanwhile
                self._left.add(place)
                self._settle()

    def end(self, place: Place) -> None:
        """The call has ended."""
        with self._lock:
            self._taken.discard(place)
            self._left.discard(place)
            self._settle()

    def _settle(self) -> None:
        """Let those in who can come in; send away all where there is nothing to wait for. Holds the lock."""
        while self._waiting and (len(self._taken) < self.most or len(self._left) >= self.most):
            place, turn = self._waiting.popleft()
            if not turn.set_running_or_notify_cancel():
                continue
            free = len(self._taken) < self.most
            if free:
                self._taken.add(place)
            turn.set_result(free)


PROCESS = Places(64)
"""For the calls of all functions of this process: endless ones must not fill it with threads. Chosen, not measured."""


@frozen(kw_only=True)
class CallableSettings:
    """`[plugins.trait-callable]`"""

    seconds: float = field(default=10.0, validator=validators.gt(0))
    """How long the function of a trait may take for one text. It cannot be stopped, only abandoned."""
    load_seconds: float = field(default=60.0, validator=validators.gt(0))
    """How long loading the code of a trait from a file may take, with the packages that it imports. It is done once;
    every item waits for it."""


@frozen
class Loaded:
    """What loading came to: a function, or why there is none."""

    function: Callable[[str], Any] | None = None
    failure: str = ""


class Code:
    """The function of a trait. Shared by all items, and made for one trait or for several with the same code."""

    def __init__(self, load: Callable[[], Any] | None = None, function: Callable[[str], Any] | None = None) -> None:
        """`function`, or what loads it: that is called once, in a thread of its own."""
        self._places = Places(MOST_CALLS)
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Future[Loaded] = Future()
        self._loading: Place | None = None
        self._deadline = 0.0
        self._users = 0
        if function is not None:
            self._loaded.set_result(Loaded(function))

    @property
    def unused(self) -> bool:
        """Whether it can be dropped: no caller waits for it, and nothing of it runs."""
        with self._lock:
            loads = self._loading is not None and not self._loaded.done()
            return self._users == 0 and not loads and self._places.unused

    async def score(self, trait: CallableRubricTrait, text: str, limits: CallableSettings) -> TraitScore:
        """What the function says about a text, within that time. Raises nothing for what the function does."""
        with self._lock:
            self._users += 1
        try:
            loaded = await self._function(limits.load_seconds)
            if loaded.function is None:
                return TraitScore(state="error", reason=loaded.failure)
            return await self._scored(trait, text, loaded.function, limits.seconds)
        finally:
            with self._lock:
                self._users -= 1

    async def _function(self, seconds: float) -> Loaded:
        """The same for every item: others wait while it is loaded, until its time is up."""
        if self._loaded.done():
            return self._loaded.result()
        if self._loading is None:
            place = Place()
            if not (await PROCESS.take(place) and self._begin(place, seconds)):
                PROCESS.end(place)
            if self._loading is None and not self._loaded.done():
                return Loaded(failure=_unfinished(PROCESS))
        try:
            async with asyncio.timeout(max(0.0, self._deadline - time.monotonic())):
                return await asyncio.wrap_future(self._loaded)
        except TimeoutError:
            what = f"its code was not loaded within {seconds:g} s; give it more time with"
            return self._settle(Loaded(failure=f"{what} [plugins.trait-callable] load_seconds"))
        finally:
            if self._loading is not None and self._users == 1:  # no other caller waits for it
                PROCESS.leave(self._loading)

    def _begin(self, place: Place, seconds: float) -> bool:
        """Load the function, unless another item does."""

        def work() -> None:
            try:
                assert self._load is not None
                self._settle(Loaded(self._load()))
            except BaseException as error:  # unpickling runs third-party code
                advice = "save the benchmark again, where its packages are installed, with this version of Python"
                self._settle(Loaded(failure=f"its code cannot be loaded: {one_line(error)}; {advice}"))
            finally:
                PROCESS.end(place)

        with self._lock:
            if self._loading is not None:
                return False
            self._loaded.set_running_or_notify_cancel()  # no waiting item can cancel it for the others
            self._deadline = time.monotonic() + seconds
            try:
                threading.Thread(target=work, name="karenina-trait-load", daemon=True).start()
            except RuntimeError as error:
                self._loaded.set_result(Loaded(failure=f"its code cannot be loaded: {one_line(error)}"))
                return False
            self._loading = place
            return True

    def _settle(self, loaded: Loaded) -> Loaded:
        """The first outcome counts: a function that is loaded too late is not used."""
        with self._lock:
            if not self._loaded.done():
                self._loaded.set_result(loaded)
        return self._loaded.result()

    async def _scored(
        self, trait: CallableRubricTrait, text: str, function: Callable[[str], Any], seconds: float
    ) -> TraitScore:
        place = Place()

        def call() -> TraitScore:
            try:
                return score_of(trait, function(text))
            except BaseException as error:  # SystemExit too is about this trait alone
                return TraitScore(state="error", reason=f"its function raised {one_line(error)}")
            finally:
                self._end(place)

        if not await self._places.take(place):
            return TraitScore(state="error", reason=_unfinished(self._places, "its function"))
        try:
            allowed = await PROCESS.take(place)
        except BaseException:
            self._end(place)
            raise
        if not allowed:
            self._end(place)
            return TraitScore(state="error", reason=_unfinished(PROCESS))
        try:
            async with asyncio.timeout(seconds):
                ended: Ended[TraitScore] = await in_own_thread(call, f"karenina-trait-{trait.name}")
        except RuntimeError as error:  # there is no thread
            self._end(place)
            return TraitScore(state="error", reason=f"its function could not be called: {one_line(error)}")
        except BaseException as error:
            self._places.leave(place)
            PROCESS.leave(place)
            if not isinstance(error, TimeoutError):
                raise
            what = f"its function took longer than {seconds:g} s; make it faster, or give it more time with"
            return TraitScore(state="error", reason=f"{what} [plugins.trait-callable] seconds")
        return ended.value or TraitScore(state="error", reason=f"its thread was ended: {ended.error!r:.200}")

    def _end(self, place: Place) -> None:
        self._places.end(place)
        PROCESS.end(place)


def _unfinished(places: Places, of: str = "functions of callable traits") -> str:
    return f"{places.most} earlier calls of {of} have not ended yet; it is called again when one has"


def load_function(code: bytes) -> Callable[[str], Any]:
    """The function in the code of a trait: a pickle, or the source text of a function `evaluate(text)`.

    This RUNS the code, whatever it is. Raises what it raises, and ValueError where there is no function in it.
    """
    try:
        source = ast.parse(code.decode("utf-8"))
    except (UnicodeDecodeError, SyntaxError, ValueError, RecursionError, MemoryError):
        source = None  # a pickle is never source: it ends with a full stop
    if source is None:
        function = pickle.loads(code)
    else:
        names: dict[str, Any] = {"__name__": "karenina_callable_trait"}
        exec(compile(source, "<callable trait>", "exec"), names)
        if ENTRY not in names:
            raise ValueError(f"its source defines no function {ENTRY}(text)")
        function = names[ENTRY]
    if not callable(function):
        raise ValueError(f"it holds {type(function).__name__} instead of a function")
    return function  # type: ignore[no-any-return]  # whatever the code made


def score_of(trait: CallableRubricTrait, value: Any) -> TraitScore:
    """The score that a value is. One of the wrong type is an error; one that the trait's scale does not have, invalid.

    True is no number. Numbers are kept as they are: neither rounded nor moved into the scale.
    """
    if trait.kind == "boolean":
        fits = type(value) is bool
        return TraitScore(value=value is not trait.invert_result) if fits else _unfit(trait, value)
    if trait.kind == "literal":
        if not isinstance(value, str):
            return _unfit(trait, value)
        text, _ = sanitize(str(value))
        index, known = trait.get_class_index(text), trait.get_class_names()
        if index < 0:
            what = f"its function returned {_shown(text)}, which is not one of: {', '.join(known)}"
            return TraitScore(state="invalid", reason=what, label=text)
        return TraitScore(value=index, label=known[index], details={"label": known[index]})
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _unfit(trait, value)
    number = float(value) if isinstance(value, float) else int(value)
    if trait.validate_score(number):
        return TraitScore(value=number)
    finite = isinstance(number, int) or math.isfinite(number)
    what = f"not between {trait.min_score} and {trait.max_score}" if finite else "not a number on a scale"
    return TraitScore(state="invalid", reason=f"its function returned {_shown(number)}, which is {what}")


WANTED: Mapping[object, str] = {"boolean": "True or False", "literal": "the name of a class"}


def _unfit(trait: CallableRubricTrait, value: Any) -> TraitScore:
    if inspect.iscoroutine(value):
        value.close()  # else Python warns that it was never awaited
    return unfit(trait, "" if value is None else _shown(value), type(value).__name__)


def unfit(trait: CallableRubricTrait, shown: str, kind: str) -> TraitScore:
    """The score of a trait whose function returned something of the wrong type; nothing is shown of None."""
    what = f"{shortened(shown, MOST_SHOWN)} ({kind})" if shown else "nothing"
    wanted = WANTED.get(trait.kind, "a number")
    return TraitScore(state="error", reason=f"its function returned {what}; it must return {wanted}")


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:  # a third-party class; and Python writes no number of thousands of digits
        return f"something ({type(value).__name__}) that cannot be shown"
    return shortened(shown, MOST_SHOWN)
