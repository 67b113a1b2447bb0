"""Callable traits: real functions and real pickles, and whatever a function does is the business of its trait alone."""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it brings no types
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_rubric.callable_traits.code import MOST_CALLS, PROCESS, CallableSettings, Places
from karenina_rubric.callable_traits.evaluator import MOST_KEPT, CallableEvaluator
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import (
    Benchmark,
    CallableRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    TraitCase,
    TraitScore,
    VerificationConfig,
)
from karenina_core.errors import ConfigError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.testing import ScriptedLLM, application

LAW = settings(database=None, deadline=None, derandomize=True)
CLASSES = {"Low": None, "High": "A lot"}
KINDS: Mapping[str, dict[str, Any]] = {
    "boolean": {"kind": "boolean"},
    "score": {"kind": "score", "min_score": 0, "max_score": 10},
    "literal": {"kind": "literal", "classes": CLASSES},
}


UNBOXED = application(installed={"trait-callable"})
"""Without a sandbox."""


def live(function: Callable[[str], Any], kind: str = "boolean", name: str = "t", **facts: Any) -> CallableRubricTrait:
    """A trait of a function of this program."""
    return CallableRubricTrait.from_callable(name, function, **{**KINDS[kind], **facts})


def filed(function: Any, kind: str = "boolean", name: str = "t", **facts: Any) -> CallableRubricTrait:
    """A trait as a file has it: bytes."""
    code = function if isinstance(function, bytes) else cloudpickle.dumps(function)
    return CallableRubricTrait(name=name, callable_code=code, **{**KINDS[kind], **facts})


def held(function: Callable[[str], Any], name: str = "t") -> CallableRubricTrait:
    """A trait of this program's function, also of one that no file can hold."""
    return evolve(filed(b"none", name=name), function=function)


def evaluate(
    *traits: CallableRubricTrait,
    text: str = "BCL2",
    policy: Any = "trusted",
    seconds: float = 5.0,
    load_seconds: float = 30.0,
    evaluator: CallableEvaluator | None = None,
    run_name: str | None = None,
) -> Mapping[str, TraitScore]:
    evaluator = evaluator or CallableEvaluator(CallableSettings(seconds=seconds, load_seconds=load_seconds))
    config = VerificationConfig(code_policy=policy)
    question = Question(question="Which?")
    context = VerificationContext(question=question, config=config, run_name=run_name, app=UNBOXED)

    async def scored() -> Mapping[str, TraitScore]:
        return await evaluator.evaluate(traits, TraitCase(context, EvaluationInput(text, True), asyncio.Semaphore(6)))

    return asyncio.run(scored())


def one(trait: CallableRubricTrait, **facts: Any) -> TraitScore:
    return evaluate(trait, **facts)[trait.name]


def returning(value: Any, kind: str, **facts: Any) -> TraitScore:
    return one(live(lambda text: value, kind, **facts))


# Scores


def test_the_function_gets_the_text_that_is_scored() -> None:
    assert one(live(lambda text: text == "a {b} %s\n"), text="a {b} %s\n").value is True


@pytest.mark.parametrize("make", [live, filed])
def test_closures_score_alike_from_memory_and_from_bytes(make: Any) -> None:
    wanted = {"BCL2", "MCL1"}
    assert one(make(lambda text: text in wanted)).value is True
    assert one(make(lambda text: sum(name in text for name in wanted) / 2, "score")).value == 0.5
    score = one(make(lambda text: "high" if len(text) > 3 else "low", "literal"))
    assert (score.value, score.label, score.details) == (1, "High", {"label": "High"})


def test_inverting_turns_a_boolean_around() -> None:
    assert [returning(value, "boolean", invert_result=True).value for value in (True, False)] == [False, True]
    assert [returning(value, "boolean").value for value in (True, False)] == [True, False]


@pytest.mark.parametrize("value", [0, 10, 3, 2.5, 4.0])
def test_a_number_of_the_scale_is_kept_as_it_is(value: float) -> None:
    score = returning(value, "score")
    assert (score.state, score.value, type(score.value)) == ("ok", value, type(value))


class Level(StrEnum):
    HIGH = "high"


class Odd(int):
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_subclasses_become_plain_data() -> None:
    assert type(returning(Odd(3), "score").value) is int
    score = returning(Level.HIGH, "literal")
    assert (score.value, type(score.label)) == (1, str)


@pytest.mark.parametrize("kind", ["boolean", "score", "literal"])
@pytest.mark.parametrize("value", [None, "yes", 1, 0, True, 0.5, [True], {"a": 1}, b"High", math.nan, object()])
def test_a_value_of_the_wrong_type_is_an_error_and_no_score(kind: str, value: Any) -> None:
    fits = {"boolean": bool, "score": (int, float), "literal": str}[kind]
    score = returning(value, kind)
    if isinstance(value, fits) and not (kind == "score" and value is True):  # type: ignore[arg-type]  # a type or some
        assert score.state in ("ok", "invalid")
    else:
        assert (score.state, score.value) == ("error", None)
        assert "it must return" in score.reason


def test_true_is_no_number() -> None:
    score = returning(True, "score")
    assert (score.state, score.value) == ("error", None)
    assert score.reason == "its function returned True (bool); it must return a number"


@pytest.mark.parametrize("value", [-1, 11, 10.001, math.nan, math.inf, -math.inf])
def test_a_number_off_the_scale_is_neither_moved_nor_rounded(value: float) -> None:
    score = returning(value, "score")
    assert (score.state, score.value) == ("invalid", None)
    assert "its function returned" in score.reason


def test_a_number_that_python_does_not_write_is_off_the_scale_too() -> None:
    score = returning(10**5000, "score")
    assert score.state == "invalid"
    assert score.reason == "its function returned something (int) that cannot be shown, which is not between 0 and 10"


def test_a_text_that_is_no_class_is_kept_as_the_label() -> None:
    score = returning("medium\ud800", "literal")
    assert (score.state, score.value, score.label) == ("invalid", None, "medium\ufffd")
    assert "not one of: Low, High" in score.reason


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["low", "HIGH"])
    | st.binary()
    | st.lists(st.integers(), max_size=2)
)


@LAW
@given(VALUES, st.sampled_from(sorted(KINDS)))
def test_there_is_a_score_exactly_where_the_value_fits_the_trait(value: Any, kind: str) -> None:
    trait = filed(b"none", kind)
    score = one(evolve(trait, function=lambda text: value))
    if kind == "literal":
        fits = isinstance(value, str) and value.strip().casefold() in ("low", "high")
    else:
        fits = trait.validate_score(value)
    assert (score.state == "ok") == fits
    assert (score.value is not None) == fits
    assert bool(score.reason) == (not fits)
    if fits and kind != "literal":
        assert score.value == value


def test_an_async_function_from_a_file_is_an_error_without_a_warning() -> None:
    async def late(text: str) -> bool:
        return True

    assert "it must return True or False" in one(filed(late)).reason


# Failures


def raising(error: Any) -> Callable[[str], Any]:
    def function(text: str) -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    "error", [ValueError("no\nwords"), SystemExit(3), KeyboardInterrupt(), StopIteration(), MemoryError()]
)
def test_whatever_a_function_raises_costs_its_own_trait_alone(error: BaseException) -> None:
    scores = evaluate(live(raising(error), name="bad"), live(lambda text: True, name="good"))
    assert (scores["good"].state, scores["good"].value) == ("ok", True)
    assert (scores["bad"].state, scores["bad"].value) == ("error", None)
    assert scores["bad"].reason.startswith(f"its function raised {type(error).__name__}")
    assert "\n" not in scores["bad"].reason


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Hung functions of a test end with it."""
    event = threading.Event()
    yield event
    event.set()


def test_a_function_that_hangs_costs_its_own_trait_alone(released: threading.Event) -> None:
    def hang(text: str) -> bool:
        while not released.is_set():
            time.sleep(0.005)
        return True

    begun = time.monotonic()
    hung = evolve(filed(b"none", name="hung"), function=hang)
    scores = evaluate(hung, live(lambda text: True, name="good"), seconds=0.1)
    assert time.monotonic() - begun < 2
    assert scores["good"].value is True
    assert (scores["hung"].state, scores["hung"].value) == ("error", None)
    assert "longer than 0.1 s" in scores["hung"].reason
    assert "[plugins.trait-callable] seconds" in scores["hung"].reason


def test_a_function_that_always_hangs_is_called_again_only_when_earlier_calls_have_ended(
    released: threading.Event,
) -> None:
    calls: list[str] = []

    def hang(text: str) -> bool:
        calls.append(text)
        return released.wait(120)

    trait = evolve(filed(b"none"), function=hang)
    evaluator = CallableEvaluator(CallableSettings(seconds=0.02))
    reasons = [one(trait, evaluator=evaluator).reason for _ in range(MOST_CALLS + 3)]
    assert len(calls) == MOST_CALLS
    assert all("longer than" in reason for reason in reasons[:MOST_CALLS])
    assert all(f"{MOST_CALLS} earlier calls" in reason for reason in reasons[MOST_CALLS:])
    released.set()
    deadline = time.monotonic() + 5
    while one(trait, evaluator=evaluator).state != "ok" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert one(trait, evaluator=evaluator).value is True


def is_there(words: str, text: str) -> bool:
    return words in text


async def item(evaluator: CallableEvaluator, *traits: CallableRubricTrait) -> Mapping[str, TraitScore]:
    config = VerificationConfig(code_policy="trusted")
    context = VerificationContext(question=Question(question="Which?"), config=config)
    return await evaluator.evaluate(traits, TraitCase(context, EvaluationInput("x", True), asyncio.Semaphore(1)))


@define
class Gauge:
    """A function that counts how often it runs at the same time."""

    seconds: float = 0.02
    now: int = 0
    most: int = 0
    lock: Any = field(factory=threading.Lock)

    def __call__(self, text: str) -> bool:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return True


def test_of_one_function_some_calls_run_at_once_and_the_others_wait_for_them() -> None:
    async def main() -> list[Any]:
        evaluator = CallableEvaluator(CallableSettings(seconds=5))
        return await asyncio.gather(*(item(evaluator, held(gauge)) for _ in range(30)))

    gauge = Gauge()
    assert [scores["t"].value for scores in asyncio.run(main())] == [True] * 30
    assert gauge.most == MOST_CALLS == 8
    assert PROCESS.unused


def test_of_one_item_some_functions_run_at_once() -> None:
    gauge = Gauge()
    traits = [held(partial(Gauge.__call__, gauge), f"t{n}") for n in range(12)]
    scores = asyncio.run(item(CallableEvaluator(), *traits))
    assert [score.value for score in scores.values()] == [True] * 12
    assert gauge.most == 4


def threads() -> int:
    return sum(thread.name.startswith("karenina-trait-") for thread in threading.enumerate())


def test_endless_functions_of_many_items_leave_few_threads_behind(released: threading.Event) -> None:
    """All items call at once: those that were not given up on yet count too."""

    async def main(count: int, trait: Callable[[int], CallableRubricTrait]) -> Any:
        return await asyncio.gather(*(item(evaluator, trait(n)) for n in range(count)))

    def hanging(n: int) -> CallableRubricTrait:
        return held(lambda text: released.wait(120))

    evaluator = CallableEvaluator(CallableSettings(seconds=0.1))
    one_function = hanging(0)
    reasons = [scores["t"].reason for scores in asyncio.run(main(50, lambda n: one_function))]
    assert threads() == MOST_CALLS
    assert sum("took longer than" in reason for reason in reasons) == MOST_CALLS
    assert sum(f"{MOST_CALLS} earlier calls of its function have not" in reason for reason in reasons) == 42
    reasons = [scores["t"].reason for scores in asyncio.run(main(100, hanging))]
    assert threads() == PROCESS.most == 64
    assert sum("64 earlier calls of functions of callable traits have not" in reason for reason in reasons) == 44
    assert "64 earlier calls" in asyncio.run(item(evaluator, filed(SOURCE)))["t"].reason
    released.set()
    deadline = time.monotonic() + 5
    while not PROCESS.unused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert asyncio.run(item(evaluator, live(sleepy)))["t"].state == "error"  # it takes longer than this
    assert one(live(lambda text: True)).value is True


def test_a_function_of_which_calls_hang_is_not_forgotten_for_others(released: threading.Event) -> None:
    calls: list[str] = []

    def hang(text: str) -> bool:
        calls.append(text)
        return released.wait(120)

    async def main() -> TraitScore:
        for _ in range(MOST_CALLS):
            await item(evaluator, trait)
        for n in range(MOST_KEPT + 20):
            await item(patient, held(partial(is_there, str(n))))
        return (await item(evaluator, trait))["t"]

    trait = held(hang)
    evaluator = CallableEvaluator(CallableSettings(seconds=0.02))
    patient = CallableEvaluator(CallableSettings(seconds=5))
    patient._codes = evaluator._codes
    assert "earlier calls of its function" in asyncio.run(main()).reason
    assert len(calls) == MOST_CALLS
    assert len(evaluator._codes) == MOST_KEPT


def test_a_cancelled_item_leaves_no_place_taken(released: threading.Event) -> None:
    calls: list[str] = []

    def hang(text: str) -> bool:
        calls.append(text)
        return released.wait(120)

    async def main() -> None:
        evaluator = CallableEvaluator()
        waiting = [asyncio.ensure_future(item(evaluator, trait)) for _ in range(20)]
        while len(calls) < MOST_CALLS:
            await asyncio.sleep(0.01)
        for one_ in waiting:
            one_.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert "earlier calls of its function" in (await item(evaluator, trait))["t"].reason
        released.set()
        while (await item(evaluator, trait))["t"].state != "ok" or not PROCESS.unused:
            await asyncio.sleep(0.01)

    trait = held(hang)
    asyncio.run(asyncio.wait_for(main(), 60))


def test_code_that_hangs_while_it_is_loaded_counts_as_calls_that_do() -> None:
    async def main() -> None:
        evaluator = CallableEvaluator(CallableSettings(load_seconds=0.05))
        sources = [b"import time; time.sleep(4)\ndef evaluate(text): return %d > 0" % n for n in range(70)]
        found = await asyncio.gather(*(item(evaluator, filed(source)) for source in sources))
        assert sum("was not loaded within" in scores["t"].reason for scores in found) == PROCESS.most
        begun = time.monotonic()
        assert "64 earlier calls" in (await item(evaluator, held(lambda text: True)))["t"].reason
        assert time.monotonic() - begun < 3  # the error comes at once, and does not wait for a place

    asyncio.run(asyncio.wait_for(main(), 60))
    deadline = time.monotonic() + 15
    while not PROCESS.unused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert PROCESS.unused


def test_a_place_that_is_given_to_a_task_just_as_it_is_cancelled_is_given_on() -> None:
    async def main() -> None:
        places = Places(1)
        assert await places.take("first")
        second, third = (asyncio.ensure_future(places.take(name)) for name in ("second", "third"))
        await asyncio.sleep(0.01)
        places.end("first")
        second.cancel()
        assert await asyncio.wait_for(third, 30)
        places.end("third")
        assert places.unused

    asyncio.run(main())


@LAW
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["take", "leave", "end", "cancel"])), max_size=40))
def test_places_are_never_more_than_there_are_and_none_is_lost(steps: list[tuple[int, str]]) -> None:
    async def main() -> None:
        places = Places(2)
        tasks: dict[int, asyncio.Task[bool]] = {}
        left: set[int] = set()
        for number, step in steps:
            task = tasks.get(number)
            has_one = task is not None and task.done() and not task.cancelled() and task.result()
            if step == "take" and (task is None or (task.done() and not has_one)):
                tasks[number] = asyncio.ensure_future(places.take(number))
            elif step == "leave" and has_one:
                places.leave(number)
                left.add(number)
            elif step == "end" and has_one:
                places.end(number)
                del tasks[number]
                left.discard(number)
            elif step == "cancel" and task is not None:
                task.cancel()
            for _ in range(6):
                await asyncio.sleep(0)
            states = [(n, t) for n, t in tasks.items() if not t.cancelled()]
            holding = {n for n, t in states if t.done() and t.result()}
            waiting = [n for n, t in states if not t.done()]
            assert len(holding) <= 2
            assert not waiting or (len(holding) == 2 and not holding <= left)
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        for number in tasks:
            places.end(number)
        assert places.unused

    asyncio.run(main())


def sleepy(text: str) -> bool:
    time.sleep(0.2)
    return True


def test_a_slow_function_holds_up_no_other_work() -> None:
    turns = 0

    async def ticking() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    async def scored() -> Any:
        ticks = asyncio.create_task(ticking())
        context = VerificationContext(question=Question(question="Which?"))
        case = TraitCase(context, EvaluationInput("x", True), asyncio.Semaphore(1))
        trait = live(sleepy)
        try:
            return await CallableEvaluator().evaluate([trait], case)
        finally:
            ticks.cancel()

    assert asyncio.run(scored())["t"].value is True
    assert turns > 10


# Code from files


class Unpickled:
    """Counts how often it is unpickled, and then is a function."""

    times = 0

    def __reduce__(self) -> Any:
        return counted, ()


def counted() -> Callable[[str], bool]:
    Unpickled.times += 1
    return lambda text: True


def refuse_to_load() -> Any:
    raise OSError("the disk is lost")


class Refusing:
    def __reduce__(self) -> Any:
        return refuse_to_load, ()


class Leaving:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


def test_code_is_loaded_once_for_all_items_and_traits_that_share_it() -> None:
    Unpickled.times = 0
    code = pickle.dumps(Unpickled())
    evaluator = CallableEvaluator()
    for _ in range(3):
        scores = evaluate(filed(code, name="a"), filed(code, name="b", invert_result=True), evaluator=evaluator)
        assert (scores["a"].value, scores["b"].value) == (True, False)
    assert Unpickled.times == 1


def test_code_that_cannot_be_loaded_is_an_error_of_its_trait_and_not_tried_again() -> None:
    evaluator = CallableEvaluator()
    for _ in range(2):
        scores = evaluate(
            filed(b"\x80\x05garbage", name="garbage"),
            filed(pickle.dumps(Refusing()), name="refusing"),
            filed(pickle.dumps(Leaving()), name="leaving"),
            filed(pickle.dumps(3), name="number"),
            filed(b"", name="empty"),
            filed(lambda text: True, name="good"),
            evaluator=evaluator,
        )
        assert scores["good"].value is True
        bad = {name: score.reason for name, score in scores.items() if name != "good"}
        assert {scores[name].state for name in bad} == {"error"}
        assert all(reason.startswith("its code cannot be loaded: ") for reason in bad.values())
        assert all("with this version of Python" in reason for reason in bad.values())
        assert "the disk is lost" in bad["refusing"]
        assert "SystemExit" in bad["leaving"]
        assert "int instead of a function" in bad["number"]


def hang_at_load() -> Any:
    time.sleep(0.5)


class Sleeping:
    def __reduce__(self) -> Any:
        return hang_at_load, ()


def test_code_that_hangs_while_it_is_loaded_is_given_up_on_for_every_item() -> None:
    evaluator = CallableEvaluator(CallableSettings(load_seconds=0.05))
    trait = filed(pickle.dumps(Sleeping()))
    first = one(trait, evaluator=evaluator)
    assert "not loaded within 0.05 s; give it more time with [plugins.trait-callable] load_seconds" in first.reason
    deadline = time.monotonic() + 15
    while not PROCESS.unused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert PROCESS.unused  # loaded by now; whether an item comes early or late does not decide its score
    assert one(trait, evaluator=evaluator) == first


SLOW_SOURCE = b"""
import time

time.sleep(0.3)

def evaluate(text):
    return True
"""


def test_items_that_come_while_code_is_loaded_wait_for_it_whatever_the_limit_of_a_call() -> None:
    async def main() -> list[Any]:
        evaluator = CallableEvaluator(CallableSettings(seconds=0.1))
        waiting = []
        for _ in range(6):
            waiting.append(asyncio.ensure_future(item(evaluator, filed(SLOW_SOURCE))))
            await asyncio.sleep(0.02)
        waiting.pop(0).cancel()  # it takes nothing away from the others
        return [scores["t"].value for scores in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == [True] * 5


def after(together: threading.Barrier, trait: CallableRubricTrait, evaluator: CallableEvaluator) -> Any:
    together.wait(5)
    return one(trait, evaluator=evaluator).value


def test_code_is_loaded_once_although_several_loops_ask_for_it_at_once() -> None:
    for _ in range(20):
        Unpickled.times = 0
        evaluator, trait, together = CallableEvaluator(), filed(pickle.dumps(Unpickled())), threading.Barrier(4)
        ask = partial(after, together, trait, evaluator)
        with ThreadPoolExecutor(4) as pool:
            assert [future.result() for future in [pool.submit(ask) for _ in range(4)]] == [True] * 4
        assert Unpickled.times == 1


SOURCE = b"""
import re

def evaluate(trace):
    return bool(re.search("BCL\\\\d", trace))
"""


def test_code_may_be_the_source_of_a_function_called_evaluate() -> None:
    assert one(filed(SOURCE)).value is True
    assert "defines no function evaluate(text)" in one(filed(b"def other(text):\n    return True\n")).reason
    assert "SystemExit" in one(filed(b"raise SystemExit")).reason


def test_pickles_of_every_protocol_are_distinguished_from_source() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert one(filed(pickle.dumps(str.isupper, protocol))).value is True


def test_a_trait_without_code_is_an_error_and_never_refused() -> None:
    trait = CallableRubricTrait(name="t", kind="boolean")
    assert not trait.usable
    for policy in ("sandbox", "refuse", "trusted"):
        score = one(trait, policy=policy)
        assert (score.state, score.value) == ("error", None)
        assert "it has no code" in score.reason
        assert problems(trait, policy=policy) == []


# Who may run what


def problems(*traits: CallableRubricTrait, policy: Any) -> list[Any]:
    app = application(installed={"trait-callable"})
    config = VerificationConfig(code_policy=policy)
    return list(app.trait_evaluator("callable").check_config(traits, config, app))


@pytest.mark.parametrize("policy", ["sandbox", "refuse"])
def test_code_of_a_file_runs_only_where_it_is_trusted(policy: Any) -> None:
    Unpickled.times = 0
    trait = filed(pickle.dumps(Unpickled()))
    (problem,) = problems(trait, live(lambda text: True, name="own"), evolve(trait, name="u"), policy=policy)
    assert problem.path == "code_policy"
    assert f"{policy!r} does not run it: t, u; " in problem.message
    for remedy in ("--trust", "code_policy='trusted'", "remove these traits"):
        assert remedy in problem.message
    score = one(trait, policy=policy)
    assert (score.state, score.value) == ("error", None)
    assert "may not run" in score.reason
    assert Unpickled.times == 0
    assert problems(trait, policy="trusted") == []


def test_a_function_that_was_loaded_under_trust_does_not_run_without_it() -> None:
    trait, evaluator = filed(lambda text: True), CallableEvaluator()
    assert one(trait, evaluator=evaluator).value is True
    assert one(trait, evaluator=evaluator, policy="sandbox").state == "error"


@pytest.mark.parametrize("policy", ["sandbox", "refuse", "trusted"])
def test_a_function_of_this_program_needs_no_permission(policy: Any) -> None:
    trait = live(lambda text: True)
    assert problems(trait, policy=policy) == []
    assert one(trait, policy=policy).value is True


def test_running_code_of_a_file_is_logged_once_per_run(caplog: pytest.LogCaptureFixture) -> None:
    evaluator = CallableEvaluator()
    caplog.set_level(logging.INFO, "karenina")
    for run_name in ("run_a", "run_a", "run_b"):
        evaluate(filed(lambda text: True), evaluator=evaluator, run_name=run_name)
    assert [record.getMessage() for record in caplog.records] == [
        "code of the benchmark file is run in this process traits='t'"
    ] * 2
    caplog.clear()
    evaluate(live(lambda text: True), evaluator=evaluator, run_name="run_c")
    evaluate(CallableRubricTrait(name="t", kind="boolean"), evaluator=evaluator, run_name="run_d")
    assert caplog.records == []


# Settings, files and runs


def test_the_time_limit_is_a_setting() -> None:
    app = application(installed={"trait-callable"}, settings={"trait-callable": {"seconds": 0.05}})
    score = one(live(sleepy), evaluator=app.trait_evaluator("callable"))
    assert "longer than 0.05 s" in score.reason
    for name in ("seconds", "load_seconds"):
        for wrong in (0, -1, "fast"):
            with pytest.raises(ConfigError, match=rf"plugins\.trait-callable.*{name}"):
                application(installed={"trait-callable"}, settings={"trait-callable": {name: wrong}})


RUN = {"rubric-evaluation", "trait-callable", "generate-answer", "finalize-result", "jsonld", "local-executor"}


def benchmark() -> Benchmark:
    names = ("BCL2", "MCL1")
    rubric = Rubric.from_traits(
        [
            live(lambda text: any(name in text for name in names), name="names one"),
            live(lambda text: len(text) / 2, "score", name="half", description="Half of the length", max_score=50),
            live(lambda text: "low" if len(text) < 50 else "high", "literal", name="length"),
            CallableRubricTrait(name="lost", kind="boolean"),
        ]
    )
    return Benchmark.create("b").with_questions([Question(id="q", question="Which?")]).with_rubric(rubric)


def verify(given: Benchmark, llm: ScriptedLLM, **facts: Any) -> Any:
    model = ModelConfig(model_name="m", interface="scripted")
    config = VerificationConfig(
        answering_models=[model], parsing_models=[model], evaluation_mode="rubric_only", **facts
    )
    (result,) = asyncio.run(given.arun_verification(config, app=application(llm, installed=RUN)))
    return result.rubric


EXPECTED = {"names one": True, "half": 5.5, "length": 0, "lost": None}


def test_traits_of_this_program_score_a_run() -> None:
    part = verify(benchmark(), ScriptedLLM("It is BCL2."))
    assert part.callable_trait_scores == EXPECTED
    assert part.trait_states["lost"]["state"] == "error"
    assert part.trait_states["half"]["state"] == "ok"
    assert part.trait_details == {"length": {"label": "Low"}}


def test_a_saved_benchmark_is_refused_before_any_call_and_scores_the_same_once_it_is_trusted(tmp_path: Path) -> None:
    app = application(installed=RUN)
    path = benchmark().save(tmp_path / "b.jsonld", app=app)
    read = Benchmark.load(path, app=app)
    assert read.rubric == benchmark().rubric
    llm = ScriptedLLM("It is BCL2.")
    with pytest.raises(ConfigError, match=r"names one, half, length; .*--trust"):
        verify(read, llm)
    assert llm.calls == []
    part = verify(read, llm, rubric_trait_names=["names one", "half", "length", "lost"], code_policy="trusted")
    assert part.callable_trait_scores == EXPECTED
