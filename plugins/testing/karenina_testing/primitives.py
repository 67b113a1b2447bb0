"""Does a verification primitive decide the same way every time, and raise nothing but what it may?"""

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any

from attrs import evolve, frozen
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_template.language.primitives.base import VerificationPrimitive, primitive_from_spec, to_spec
from karenina_template.language.primitives.text import TracePrimitive

from karenina_core.errors import ConfigError, TemplateError, one_line

from .checks import (
    Check,
    Fault,
    FindFaults,
    Promises,
    Raised,
    attempt,
    difference,
    expecting,
    first_fault,
    promise_checks,
    snapshot,
)
from .examples import every, smallest
from .strategies.values import ODD_TEXTS
from .watch.source_lines import file_of, line_of_attribute, line_of_error

ALLOWED = (TypeError, ValueError)


@frozen
class Strange:
    """A value of a class that no primitive knows."""


SECONDS = 5.0
"""CPU time for one comparison; chosen. Such a comparison takes milliseconds."""
LONG = "The half-life of osimertinib is 48 hours, and its target EGFR T790M. " * 3_000
"""About 200 kB, as the longest answers are."""
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    10**400,
    0.0,
    1e308,
    float("nan"),
    float("inf"),
    b"x",
    Strange(),
    [[]],
)
TEXTS = ("", "a", "A", "gout", "Gout ", "1", "1.0", "1e3", "2024-05-31", "May 31, 2024", "yes", "42 mg", *ODD_TEXTS)
DATES = (date(2024, 5, 31), datetime(2024, 5, 31, 18, 0))
NUMBERS = st.integers(-1000, 1000) | st.floats(-1e6, 1e6) | st.sampled_from([1, 10, 100, 0.5])
TEXT = st.sampled_from(TEXTS) | st.text(max_size=12)
PLAIN = NUMBERS | TEXT | st.sampled_from(DATES)
NESTED = (
    st.lists(PLAIN, max_size=4) | st.dictionaries(st.text(max_size=4), PLAIN, max_size=3) | st.sets(TEXT, max_size=3)
)
VALUES = PLAIN | NESTED | st.sampled_from(ODD)
Pair = tuple[Any, Any]
"""An extracted value, and the expected one."""


@frozen
class Case:
    """A primitive and two values to compare."""

    primitive: Any
    pair: Pair

    @property
    def methods(self) -> Sequence[str]:
        """What compares values."""
        return ("check_trace",) if isinstance(self.primitive, TracePrimitive) else ("check", "score", "remark")

    def outcome(self, method: str = "", primitive: Any = None) -> Any:
        """What a method gives for the two values, or for a trace, or Raised; by default the one that decides."""
        method = method or self.methods[0]
        return attempt(getattr(primitive or self.primitive, method), *self.pair[: 1 if method == "check_trace" else 2])

    def fault(self, problem: str, remedy: str, method: str = "") -> Fault:
        return Fault(problem, line_of_attribute(type(self.primitive), method or self.methods[0]), remedy)


@frozen(slots=False)
class Subject:
    """Some primitives of one class, and pairs of values."""

    cls: type
    examples: tuple[Any, ...]
    given: tuple[Pair, ...]
    max_examples: int

    @property
    def reads_traces(self) -> bool:
        return isinstance(self.cls, type) and issubclass(self.cls, TracePrimitive)

    @property
    def pairs(self) -> SearchStrategy[Pair]:
        """Values of which many are alike: without such pairs, hardly anything would be compared."""
        if self.reads_traces:
            return st.tuples(TEXT, st.booleans()) | st.sampled_from([("", True), *self.given])
        known = [value for pair in self.given for value in pair]
        values = VALUES | st.sampled_from(known) if known else VALUES
        same = values.map(lambda value: (value, copy.copy(value)))
        beside = st.sampled_from(self.given) if self.given else same
        return beside | same | st.tuples(values, values) | st.tuples(NUMBERS, NUMBERS) | st.tuples(TEXT, TEXT)

    @cached_property
    def drawn(self) -> list[Pair]:
        return [*self.given, *every(self.pairs, self.max_examples)]

    def fault(self, problem: str, remedy: str, method: str = "") -> Fault:
        method = method or ("check_trace" if self.reads_traces else "check")
        return Fault(problem, line_of_attribute(self.cls, method), remedy)


def primitive_checks(
    primitive: type,
    *,
    examples: Iterable[Any] = (),
    pairs: Iterable[Pair] = (),
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int = 150,
) -> list[Check]:
    """One check for every promise of a verification primitive.

    `examples` are primitives of the class; without any, one is made without parameters. `pairs` are values
    `(extracted, expected)` that it can compare, beside random numbers, texts, dates and lists; for a primitive that
    reads traces, a text and True. Raises ConfigError where examples are needed.
    """
    made = tuple(examples)
    if not made and isinstance(primitive, type):
        alone = attempt(primitive)
        if isinstance(alone, Raised):
            raise ConfigError(f"give its checks examples=[{primitive.__name__}(...)]: {one_line(alone.error)}")
        made = (alone,)
    name = getattr(primitive, "__name__", repr(primitive))
    subject = Subject(primitive, made, tuple(pairs), max_examples)
    base = isinstance(primitive, type) and issubclass(primitive, VerificationPrimitive)
    left_out = COMPARED if subject.reads_traces else ()
    promises = {name: PROMISES[name] for name in (PROMISES if base else ("derived",)) if name not in left_out}
    checks = promise_checks(f"primitive {name}", subject, promises, Fault.raised)
    return expecting(checks, expected_failures, PROMISES)


PROMISES: Promises[Subject] = Promises()
ON_PAIRS: Promises[Case] = Promises()
COMPARED = ("score", "remark", "ground_truth", "placeholder")
"""What is promised of the comparison of two values, and not of what reads a trace."""


@PROMISES.add("derived", "It is a class that derives from VerificationPrimitive.")
def _derived(subject: Subject) -> Iterator[Fault]:
    if not (isinstance(subject.cls, type) and issubclass(subject.cls, VerificationPrimitive)):
        remedy = "derive it from karenina_core.templates.VerificationPrimitive, and register the class"
        yield Fault(f"it is {subject.cls!r}", "", remedy)


@PROMISES.add("frozen", "It cannot be changed, can be hashed, and survives pickling: other processes use it too.")
def _frozen(subject: Subject) -> Iterator[Fault]:
    remedy = "decorate the class with @attrs.frozen, and turn lists into tuples with a converter"
    for example in subject.examples:
        for name in getattr(type(example), "__attrs_attrs__", ()):
            if not isinstance(attempt(setattr, copy.copy(example), name.name, None), Raised):
                yield subject.fault(f"{example!r} can be given another {name.name}", remedy, name.name)
        if isinstance(hashed := attempt(hash, example), Raised):
            yield subject.fault(f"{example!r} cannot be hashed: {one_line(hashed.error)}", remedy)
        again = attempt(lambda value: pickle.loads(pickle.dumps(value)), example)
        if isinstance(again, Raised):
            yield subject.fault(f"{example!r} cannot be pickled: {one_line(again.error)}", remedy)
        elif again != example:
            yield subject.fault(f"{example!r}, pickled, is {again!r}", remedy)


@PROMISES.add("as_data", "Its parameters can be written as data and read back.")
def _as_data(subject: Subject) -> Iterator[Fault]:
    cls = subject.cls
    for example in subject.examples:
        try:
            written = json.dumps(to_spec(example), allow_nan=False)
            again = primitive_from_spec(json.loads(written), {cls.__name__: cls})
        except (TemplateError, *ALLOWED) as error:
            remedy = "make it a frozen attrs class whose parameters are plain data, or have converters that take them"
            yield subject.fault(f"{example!r} cannot be written as data and read back: {one_line(error)}", remedy)
            return
        if again != example:
            problem = f"{example!r} was written as {written} and read back as {again!r}"
            yield subject.fault(problem, "give its parameters converters that take what was written")


@PROMISES.add("reached", "It can compare some values, and some of them pass; otherwise the other checks saw little.")
def _reached(subject: Subject) -> Iterator[Fault]:
    outcomes = [Case(example, pair).outcome() for example in subject.examples for pair in subject.drawn]
    compared = [outcome for outcome in outcomes if not isinstance(outcome, Raised)]
    if not any(compared):
        what = "passed" if compared else "could be compared"
        reasons = {one_line(outcome.error, 80) for outcome in outcomes if isinstance(outcome, Raised)}
        said = f" ({'; '.join(sorted(reasons)[:3])})" if reasons else ""
        problem = f"of {len(outcomes)} pairs of values none {what}{said}"
        yield subject.fault(problem, "give its checks values that pass: pairs=[(extracted, expected)]")


@ON_PAIRS.add("errors", "It raises nothing but TypeError and ValueError for values that it cannot compare.")
def _errors(case: Case) -> Iterator[Fault]:
    for method in case.methods:
        yield from _raised(case, method, case.outcome(method))
    yield from _raised(case, "check_ground_truth", attempt(case.primitive.check_ground_truth, case.pair[1]))


def _raised(case: Case, method: str, outcome: Any) -> Iterator[Fault]:
    if isinstance(outcome, Raised) and not isinstance(outcome.error, ALLOWED):
        cls = type(case.primitive)
        line = line_of_error(outcome.error, file_of(cls)) or line_of_attribute(cls, method)
        problem = f"{method} raised {one_line(outcome.error)}"
        yield Fault(problem, line, "return False, or raise TypeError or ValueError", outcome.error)


@ON_PAIRS.add("bool", "check returns True or False, and nothing that only counts as one of them.")
def _bool(case: Case) -> Iterator[Fault]:
    outcome = case.outcome()
    if not isinstance(outcome, Raised | bool):
        yield case.fault(f"{case.methods[0]} returned {outcome!r}", "write `return bool(...)`")


@ON_PAIRS.add("repeatable", "Equal values are decided equally, also by an equal primitive.")
def _repeatable(case: Case) -> Iterator[Fault]:
    other = copy.copy(case.primitive)
    for method in case.methods:
        first, *others = (_shown(case.outcome(method, by)) for by in (case.primitive, case.primitive, other))
        if differs := next((again for again in others if again != first), None):
            remedy = "depend on the two values and the parameters alone: no clock, no random numbers, no memory"
            yield case.fault(f"{method} gave {first}, and then {differs}", remedy, method)


def _shown(outcome: Any) -> str:
    return f"{type(outcome.error).__name__}" if isinstance(outcome, Raised) else repr(outcome)


@ON_PAIRS.add("score", "score is a number from 0 to 1 that agrees with check.")
def _score(case: Case) -> Iterator[Fault]:
    passed, score = case.outcome(), case.outcome("score")
    if isinstance(passed, Raised) or isinstance(score, Raised):
        if isinstance(passed, Raised) != isinstance(score, Raised):
            said = f"check gave {_shown(passed)} and score {_shown(score)}"
            yield case.fault(said, "let both refuse the same values", "score")
        return
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        yield case.fault(f"score returned {score!r}", "return a number from 0 to 1", "score")
    elif (passed and score == 0) or (not passed and score == 1):
        said = f"check said {passed} and score {score!r}"
        yield case.fault(said, "let what passes have more than 0, and what fails less than 1", "score")


@ON_PAIRS.add("remark", "remark is a sentence or None.")
def _remark(case: Case) -> Iterator[Fault]:
    outcome = case.outcome("remark")
    if not isinstance(outcome, Raised | str | None) or outcome == "":
        yield case.fault(f"remark returned {outcome!r}", "return a sentence, or None", "remark")


@ON_PAIRS.add("ground_truth", "A ground truth that it accepts can be compared, and matches itself where it has to.")
def _ground_truth(case: Case) -> Iterator[Fault]:
    """Not of what is empty or NaN: where such a ground truth cannot pass, a template with it is refused."""
    primitive, truth = case.primitive, case.pair[1]
    if not primitive.uses_ground_truth or not primitive.matches_ground_truth:
        return
    if truth != truth or truth in ("", [], {}, set()):
        return
    if isinstance(attempt(primitive.check_ground_truth, truth), Raised):
        return
    outcome = attempt(primitive.check, copy.deepcopy(truth), truth)
    if isinstance(outcome, Raised) and isinstance(outcome.error, ALLOWED):
        said = f"check_ground_truth accepts it, and check raised {one_line(outcome.error)}"
        yield case.fault(said, "refuse in check_ground_truth what check cannot compare", "check_ground_truth")
    elif outcome is False:
        remedy = "let equal values pass, refuse this one in check_ground_truth, or say matches_ground_truth = False"
        yield case.fault("the ground truth itself does not pass", remedy)


@ON_PAIRS.add("placeholder", "Where it says that it ignores the ground truth, any other one gives the same.")
def _placeholder(case: Case) -> Iterator[Fault]:
    if case.primitive.uses_ground_truth:
        return
    first, second = _shown(case.outcome()), _shown(Case(case.primitive, (case.pair[0], "another")).outcome())
    if first != second:
        said = f"uses_ground_truth is False, and with another ground truth it gave {second}, not {first}"
        yield case.fault(said, "ignore `expected`, or say uses_ground_truth = True")


@ON_PAIRS.add("untouched", "It changes nothing that it is given.")
def _untouched(case: Case) -> Iterator[Fault]:
    before = snapshot((case.pair, case.primitive))
    for method in case.methods:
        case.outcome(method)
        if changed := difference(before, (case.pair, case.primitive)):
            yield case.fault(f"{method} changed something: {changed}", "copy a value before changing it", method)


@PROMISES.add("quick", "Long values take no longer than a moment, unless it says may_take_long.")
def _quick(subject: Subject) -> Iterator[Fault]:
    pairs = ((LONG, LONG), (LONG, "EGFR"), ("EGFR", LONG), ([LONG] * 20, [LONG] * 20), ("9" * 20_000, "9" * 20_000))
    for example in subject.examples:
        for pair in () if example.may_take_long else pairs:
            began = time.thread_time()
            Case(example, pair).outcome()
            if (spent := time.thread_time() - began) > SECONDS:
                problem = f"a comparison of long values took {spent:.0f} s of CPU time"
                yield subject.fault(problem, "bound it, or say may_take_long = True: then it gets a thread of its own")


def _on_pairs(find_faults: FindFaults[Case], subject: Subject) -> Iterator[Fault]:
    """The fault on the simplest pair that shows it."""
    for example in subject.examples:
        shows: Callable[[Pair], bool] = lambda pair: first_fault(find_faults, Case(example, pair)) is not None  # noqa: B023,E731
        for pair in subject.drawn:
            if fault := first_fault(find_faults, Case(example, pair)):
                found = smallest(subject.pairs, shows, pair)
                fault = first_fault(find_faults, Case(example, found)) or fault
                given = f"{example!r}, extracted={found[0]!r}, expected={found[1]!r}"
                yield evolve(fault, given=given if len(given) <= 400 else given[:399] + "…")
                return


def _bound(find_faults: FindFaults[Case]) -> FindFaults[Subject]:
    return lambda subject: _on_pairs(find_faults, subject)


PROMISES |= {name: (promise, _bound(find_faults)) for name, (promise, find_faults) in ON_PAIRS.items()}
