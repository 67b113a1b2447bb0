"""What the conformance kit is made of: comparing, naming lines, fakes, event loops, audit events."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest
from attrs import define, field, frozen
from karenina_testing.checks import BrokenPromise, Check, Fault, difference, expecting, run_checks, snapshot
from karenina_testing.fakes import FakeFilled, FakeHandle, example_of
from karenina_testing.watch.audit import watching
from karenina_testing.watch.loops import in_loop
from karenina_vocabulary.handle import RegexVerdict

from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import FilledTemplate, TemplateHandle


@frozen
class Point:
    x: int = 0
    seen: list[int] = field(factory=list, eq=False)


class Plain:
    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


@define(eq=False)
class Loop:
    other: Any = None


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (1, 1, None),
        ([1, 2], [1, 3], "[1]: 3, not 2"),
        ({"a": [1]}, {"a": [2]}, "['a'][0]: 2, not 1"),
        ({"a": 1}, {"b": 1}, "it: {'b': 1}, not {'a': 1}"),
        (1, True, "it: True, not 1"),
        (float("nan"), float("nan"), None),
        ({1}, {1}, None),
        (Point(1), Point(1), None),
        (Point(1, [1]), Point(1, [2]), ".seen[0]: 2, not 1"),
        (Plain(a=Plain(b=1)), Plain(a=Plain(b=2)), ".a.b: 2, not 1"),
        (Plain(a=1), Plain(a=1), None),
        (len, len, None),
        (Plain, Point, "it: "),
    ],
)
def test_the_first_difference_is_named(a: Any, b: Any, said: str | None) -> None:
    found = difference(a, b)
    assert found == said if said is None else str(found).startswith(said)


def test_circles_can_be_compared() -> None:
    one, two = Loop(), Loop()
    one.other, two.other = one, two
    assert difference(one, two) is None


def test_what_cannot_be_copied_stays_itself() -> None:
    lock = threading.Lock()
    assert snapshot(lock) is lock
    assert snapshot(value := [1]) is not value


def test_a_check_says_whose_promise_is_broken_where_and_what_to_do() -> None:
    check = Check("stage S", "tidy", "It is tidy.", lambda: Fault("it is not", "s.py:3: mess()", "tidy up"))
    with pytest.raises(BrokenPromise) as broken:
        check.run()
    assert str(broken.value) == "stage S breaks tidy: It is tidy.\nit is not\n  s.py:3: mess()\ntidy up"
    assert check.__name__ == "tidy"
    expecting([check], {"tidy": "known"})[0].run()


def test_checks_that_go_wrong_do_not_keep_others_from_running() -> None:
    def broken() -> Fault | None:
        raise ZeroDivisionError("in the check")

    checks = [
        Check("S", "a", "A.", broken),
        Check("S", "b", "B.", lambda: Fault("no")),
        Check("S", "c", "C.", lambda: None),
    ]
    with pytest.raises(ExceptionGroup, match="S: 2 of 3 checks failed") as failed:
        run_checks(checks)
    first, second = failed.value.exceptions
    assert isinstance(first, ZeroDivisionError)
    assert "while checking a: A." in first.__notes__[0]
    assert "breaks b" in str(second)
    run_checks(checks[2:])


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string"}, "x"),
        ({"type": ["integer", "null"], "minimum": 3}, 3),
        ({"enum": ["b", "a"]}, "b"),
        ({"const": 7}, 7),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "x"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "number"}},
                "required": ["a"],
                "$defs": {"A": {"type": "string", "minLength": 3}},
            },
            {"a": "xxx"},
        ),
    ],
)
def test_examples_fit_their_schema(schema: dict[str, Any], example: Any) -> None:
    assert example_of(schema) == example


def test_a_fake_template_compares_for_equality() -> None:
    handle = FakeHandle(
        expected={"drug": "aspirin", "dose": 1.5}, credit=0.5, patterns=RegexVerdict(True, False, {"p": False})
    )
    assert isinstance(handle, TemplateHandle)
    filled = asyncio.run(handle.build({"drug": "aspirin", "dose": None, "more": 1}))
    assert isinstance(filled, FilledTemplate)
    assert (filled.values(), filled.nulls) == ({"drug": "aspirin", "dose": None}, {"dose"})
    verdict = asyncio.run(filled.verify("trace"))
    assert (verdict.result, verdict.field_results) == (False, {"drug": True, "dose": None})
    assert asyncio.run(filled.granular()) == 0.5
    assert asyncio.run(filled.regex("trace")).success is False
    assert asyncio.run(asyncio.run(handle.build({"drug": "aspirin", "dose": 1.5})).verify("")).result is True
    assert asyncio.run(handle.build(example_of(handle.schema()))).values() == {"drug": "x", "dose": 0}


def test_a_fake_template_looks_at_what_was_said_and_at_similarities() -> None:
    handle = FakeHandle(expected={"drug": "aspirin", "advice": "take one"}, marks={"cites": "["}, semantic={"advice"})
    assert [(field.name, field.semantic) for field in handle.fields()] == [("drug", False), ("advice", True)]
    assert [field.name for field in handle.trace_fields()] == ["cites"]
    filled = asyncio.run(handle.build({"drug": "ibuprofen", "advice": "have one"}))
    with pytest.raises(TemplateError, match="field 'advice' needs a similarity"):
        asyncio.run(filled.verify(""))
    verdict = asyncio.run(filled.verify("[", said="", similarities={"advice": 0.6}))
    assert verdict.field_results == {"drug": False, "advice": True, "cites": False}
    assert asyncio.run(filled.verify("[", similarities={"advice": 0.4})).field_results["cites"] is True


def test_a_fake_template_accepts_fields_in_a_copy() -> None:
    filled = FakeFilled(
        handle=FakeHandle(expected={"drug": "aspirin", "dose": 7}, credit=0.5), data={"drug": "x", "dose": None}
    )
    copied = filled.accepting(["drug"]).accepting(["dose"])
    assert asyncio.run(copied.verify("")).field_results == {"drug": True, "dose": True}
    assert (copied.values(), copied.nulls) == (filled.values(), filled.nulls) == ({"drug": "x", "dose": None}, {"dose"})
    assert (asyncio.run(copied.granular()), asyncio.run(filled.granular())) == (1.0, 0.5)
    assert asyncio.run(filled.verify("")).result is False
    with pytest.raises(TemplateError, match="field 'drog' has no expected value"):
        filled.accepting(["drog"])


@pytest.mark.parametrize("data", [None, {}, {"else": 1}, {"fact": 42}, {"fact": ["42"]}])
def test_a_fake_template_refuses_what_does_not_fit(data: Any) -> None:
    with pytest.raises(FillError):
        asyncio.run(FakeHandle().build(data))


def test_a_fake_template_can_fail() -> None:
    filled = FakeFilled(handle=FakeHandle(failure="line 3: no"))
    for work in (filled.verify(""), filled.regex(""), filled.granular()):
        with pytest.raises(TemplateError, match="line 3: no"):
            asyncio.run(work)


def test_a_loop_ends_though_a_task_does_not() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    async def work() -> str:
        kept.append(asyncio.ensure_future(stubborn()))
        await asyncio.sleep(0)
        return "done"

    kept: list[asyncio.Task[None]] = []
    assert in_loop(work()) == "done"


def test_audit_events_are_seen_only_while_watching() -> None:
    with socket.socket() as one, watching() as seen:
        one.bind(("127.0.0.1", 0))
    assert list(seen) == ["opens a socket"]
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
    path, line = seen["opens a socket"]
    assert path == __file__
    assert line > 0
