"""What a check is, running many of them, and where two values differ.

import pytest
from karenina_core.testing import stage_checks

@pytest.mark.parametrize("check", stage_checks(MyStage))
def test_my_stage_keeps_its_promises(check):
    check.run()
"""

from __future__ import annotations

import copy
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, TypeVar

import attrs
from attrs import evolve, field, frozen

from karenina_core.errors import did_you_mean, one_line

from .watch.source_lines import line_of_error

S = TypeVar("S")
T = TypeVar("T")


class BrokenPromise(AssertionError):
    """A check failed; the message says whose, which promise, what happened, where, and what to change."""


@frozen
class Fault:
    """What is wrong."""

    problem: str
    line: str = ""
    """`path:number: source`: the place, or nothing where no line can be named."""
    remedy: str = ""
    """What to change."""
    cause: BaseException | None = field(default=None, eq=False, repr=False)
    """The exception that showed it; its traceback is shown too."""
    given: str = ""
    """The smallest input that shows it, where inputs are made at random."""

    @classmethod
    def raised(
        cls, error: BaseException, remedy: str = "", *, by: str = "it", line: str = "", file: Any = None
    ) -> Fault:
        """That foreign code raised; `line` is shown where the error came through no line of such code."""
        return cls(f"{by} raised {one_line(error)}", line_of_error(error, file) or line, remedy, error)

    def __str__(self) -> str:
        given, line = f"  with {self.given}" if self.given else "", f"  {self.line}" if self.line else ""
        return "\n".join(part for part in (self.problem, given, line, self.remedy) if part)


@frozen
class Check:
    """One promise about one subject, and how to find out whether it is kept."""

    subject: str
    """What is examined, as it is called in messages: `stage WordCount`."""
    name: str
    promise: str
    """One sentence."""
    find_fault: Callable[[], Fault | None] = field(eq=False, repr=False)
    expected_failure: str | None = None
    """Why the promise is known to be broken. A check that is expected to fail must fail."""
    prepare: Callable[[], object] = field(default=bool, eq=False, repr=False)
    """Make what it examines; otherwise `find_fault` does so. It takes long where that is random."""

    @property
    def __name__(self) -> str:
        """pytest calls parametrized cases by it."""
        return self.name

    def run(self) -> None:
        """Raises BrokenPromise (an AssertionError), also where an expected failure does not happen."""
        fault = self.find_fault()
        if self.expected_failure is None and fault is not None:
            raise BrokenPromise(f"{self.subject} breaks {self.name}: {self.promise}\n{fault}") from fault.cause
        if self.expected_failure is not None and fault is None:
            raise BrokenPromise(
                f"{self.subject} keeps {self.name}, which was expected to fail ({self.expected_failure}); remove "
                f"{self.name!r} from expected_failures"
            )


FindFaults = Callable[[S], Iterator[Fault]]
"""Examines something and yields what is wrong. It is closed after the first fault."""
Promise = tuple[str, FindFaults[S]]
"""One sentence, and how it is examined whether it is kept."""


class Promises(dict[str, tuple[str, FindFaults[S]]]):
    """Name of a check -> its promise."""

    def add(self, name: str, promise: str) -> Callable[[FindFaults[S]], FindFaults[S]]:
        """Decorate the function that examines a promise."""

        def added(find_faults: FindFaults[S]) -> FindFaults[S]:
            self[name] = (promise, find_faults)
            return find_faults

        return added


@frozen
class Raised:
    """That foreign code raised something."""

    error: Exception | SystemExit


def attempt(call: Callable[..., T], *arguments: Any) -> T | Raised:
    """Call foreign code: what it returns, or what it raised."""
    try:
        return call(*arguments)
    except (Exception, SystemExit) as error:  # a plugin may raise anything: that is what the checks look for
        return Raised(error)


async def attempt_async(work: Awaitable[T]) -> T | Raised:
    """Await foreign code: what it returns, or what it raised. Cancellation goes through."""
    try:
        return await work
    except (Exception, SystemExit) as error:  # as in `attempt`
        return Raised(error)


def shown(text: str) -> str:
    """A text as it is named in a fault: whole, or how it begins and how long it is."""
    return repr(text) if len(text) <= 40 else f"{text[:20]!r}... of {len(text)} characters"


def first_fault(find_faults: FindFaults[S], thing: S) -> Fault | None:
    """The first fault that is found. Raises what examining raises."""
    faults = find_faults(thing)
    try:
        return next(faults, None)
    finally:
        if close := getattr(faults, "close", None):
            close()


def promise_checks(
    subject: str, thing: S, promises: Mapping[str, Promise[S]], fault_of: Callable[[BaseException], Fault] | None = None
) -> list[Check]:
    """One check for every promise. What examining raises is a fault by `fault_of`; without that, it is raised on."""

    def run(find_faults: FindFaults[S]) -> Fault | None:
        if fault_of is None:
            return first_fault(find_faults, thing)
        outcome = attempt(first_fault, find_faults, thing)
        return fault_of(outcome.error) if isinstance(outcome, Raised) else outcome

    return [
        Check(subject, name, promise, partial(run, find_faults)) for name, (promise, find_faults) in promises.items()
    ]


def expecting(
    checks: Iterable[Check], expected_failures: Mapping[str, str] | None, absent: Iterable[str] = ()
) -> list[Check]:
    """The checks, some of them marked as expected to fail: `{name: reason}`.

    `absent` are the names of checks that could be among them, and are not made here. Raises ValueError for names that
    are neither.
    """
    checks = list(checks)
    expected = dict(expected_failures or {})
    known = list(dict.fromkeys([*(check.name for check in checks), *absent]))
    for name in expected:
        if name not in known:
            raise ValueError(f"no check is called {name!r}{did_you_mean(name, known)}; available: {', '.join(known)}")
    return [evolve(c, expected_failure=expected.get(c.name, c.expected_failure)) for c in checks]


def run_checks(checks: Sequence[Check]) -> None:
    """Run all of them. Raises one ExceptionGroup with everything that failed."""
    failures: list[Exception] = []
    for check in checks:
        try:
            check.run()
        except BrokenPromise as broken:
            failures.append(broken)
        except Exception as error:  # foreign code went wrong where no check looks for it; the others still run
            error.add_note(f"{check.subject}: while checking {check.name}: {check.promise}")
            failures.append(error)
    if failures:
        subject = checks[0].subject
        first = one_line(failures[0], 200)
        raise ExceptionGroup(f"{subject}: {len(failures)} of {len(checks)} checks failed; first: {first}", failures)


SHOWN = 60  # characters


def snapshot(value: Any) -> Any:
    """A deep copy; what cannot be copied stays the same object."""
    try:
        return copy.deepcopy(value)
    except TypeError:  # locks, sockets, generators
        return value


def difference(a: Any, b: Any, path: str = "", seen: set[tuple[int, int]] | None = None) -> str | None:
    """`path: this, not that` for the first difference of what is there now (`b`) from what was before (`a`), or None.

    Objects of classes that do not say what equality means are compared by their attributes. NaN equals NaN.
    """
    seen = set() if seen is None else seen  # pairs that are compared already: values may hold themselves
    if a is b or (id(a), id(b)) in seen:
        return None
    seen.add((id(a), id(b)))
    if type(a) is not type(b):
        return _unlike(a, b, path)
    if isinstance(a, float) and math.isnan(a) and math.isnan(b):
        return None
    if isinstance(a, Mapping):
        if a.keys() != b.keys():
            return _unlike(a, b, path)
        return _first([(f"{path}[{key!r}]", value, b[key]) for key, value in a.items()], seen)
    if isinstance(a, Sequence) and not isinstance(a, str | bytes | bytearray):
        if len(a) != len(b):
            return _unlike(a, b, path)
        pairs = [(f"{path}[{number}]", *pair) for number, pair in enumerate(zip(a, b, strict=True))]
        return _first(pairs, seen)
    names = _attributes(a)
    # The equality of attrs may leave out fields, and is not asked.
    has_equality = any("__eq__" in base.__dict__ for base in type(a).__mro__[:-1]) and not attrs.has(type(a))
    # Without attributes it is a class, a function or the like.
    if isinstance(a, Set) or has_equality or not names or set(names) != set(_attributes(b)):
        return None if a == b else _unlike(a, b, path)
    missing = object()
    return _first([(f"{path}.{name}", getattr(a, name, missing), getattr(b, name, missing)) for name in names], seen)


def _attributes(value: Any) -> list[str]:
    names = list(getattr(value, "__dict__", ()))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__weakref__", "__dict__")]


def _first(pairs: Sequence[tuple[str, Any, Any]], seen: set[tuple[int, int]]) -> str | None:
    for path, a, b in pairs:
        if found := difference(a, b, path, seen):
            return found
    return None


def _unlike(a: Any, b: Any, path: str) -> str:
    after, before = (text if len(text) <= SHOWN else text[: SHOWN - 1] + "…" for text in (repr(b), repr(a)))
    return f"{path or 'it'}: {after}, not {before}"
