"""Fields of every type, from a judge's reply to the verdict, in templates of all three styles."""

from __future__ import annotations

import asyncio
import textwrap
from typing import Any

import pytest
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime

from karenina_core import templates as primitives
from karenina_core.errors import FillError

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
HEADER = """
import datetime, enum
from pydantic import BaseModel

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Person(BaseModel):
    name: str = Field(description="Full name")
    age: int | None = None

"""
# annotation, ground truth and primitive as source, a right and a wrong reply
KINDS = [
    ("int | None", "4, NumericExact()", 4, 5),
    ("Optional[str]", "'a', ExactMatch()", "A", "b"),
    ("float", "0.5, NumericTolerance(0.1)", 0.52, 0.7),
    ("int, ge=0, le=10", "7, NumericExact()", 7, 0),
    ("str, min_length=2, max_length=4", "'abc', ExactMatch()", "abc", "abcd"),
    ("bool", "False, BooleanMatch()", False, True),
    ("datetime.date", "datetime.date(2016, 4, 11), DateMatch()", "2016-04-11", "2016-04-12"),
    ("datetime.date | None", "'2016-04-11', DateTolerance(1)", "2016-04-12", "2016-04-13"),
    (
        "datetime.datetime",
        "datetime.datetime(2016, 4, 11, 8, 0, tzinfo=datetime.timezone.utc), LiteralMatch()",
        "2016-04-11T10:00:00+02:00",
        "2016-04-11T10:00:00Z",
    ),
    ("dict[str, int]", "{'a': 1}, LiteralMatch()", {"a": 1}, {"a": 2}),
    ("dict[str, list[Person]]", "{'a': [Person(name='A')]}, LiteralMatch()", {"a": [{"name": "A"}]}, {"a": []}),
    ("Color", "Color.RED, LiteralMatch()", "red", "blue"),
    ("Literal['up', 'down']", "'up', LiteralMatch()", "up", "down"),
    ("Person", "Person(name='A', age=3), LiteralMatch()", {"name": "A", "age": 3}, {"name": "A", "age": None}),
    ("list[Person]", "[Person(name='A')], LiteralMatch()", [{"name": "A"}], [{"name": "B"}]),
    ("list[str]", "['b', 'a'], SetContainment()", ["a", "b"], ["a"]),
    ("set[str]", "{'b', 'a'}, LiteralMatch()", ["a", "b"], ["a"]),
    ("tuple[int, str]", "(1, 'a'), LiteralMatch()", [1, "a"], [1, "b"]),
]
NAMED = pytest.mark.parametrize(("annotation", "truth", "right", "wrong"), KINDS, ids=[kind[0] for kind in KINDS])


def load(body: str) -> Any:
    source = HEADER + "class Answer(BaseAnswer):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return asyncio.run(InProcessRuntime().load(source, PRIMITIVES))


def verified(handle: Any, data: Any) -> tuple[Any, dict[str, Any], float | None]:
    async def run() -> tuple[Any, dict[str, Any], float | None]:
        filled = await handle.build(data)
        verdict = await filled.verify("")
        return verdict.result, dict(verdict.field_results), await filled.granular()

    return asyncio.run(run())


def split(annotation: str) -> tuple[str, str]:
    """The type, and the constraints as further arguments."""
    type_, comma, rest = annotation.partition(", ") if "=" in annotation else (annotation, "", "")
    return type_, comma + rest


@NAMED
def test_in_a_verified_template(annotation: str, truth: str, right: Any, wrong: Any) -> None:
    type_, constraints = split(annotation)
    handle = load(f"x: {type_} = VerifiedField('x', {truth}{constraints})")
    assert verified(handle, {"x": right}) == (True, {"x": True}, 1.0)
    assert verified(handle, {"x": wrong}) == (False, {"x": False}, 0.0)
    assert verified(handle, {"x": None}) == (False, {"x": None}, 0.0)
    filled = asyncio.run(handle.build({"x": None}))
    assert (filled.nulls, filled.values()) == ({"x"}, {"x": None})


@NAMED
def test_in_a_strategy(annotation: str, truth: str, right: Any, wrong: Any) -> None:
    type_, constraints = split(annotation)
    handle = load(f"""
        x: {type_} = VerifiedField('x', {truth}{constraints})
        y: bool = VerifiedField('y', True, BooleanMatch())

        class VerificationStrategy:
            verify_strategy = AnyOf(FieldCheck("x"), AllOf(FieldCheck("y"), FieldCheck("x")))
    """)
    assert verified(handle, {"x": right, "y": False}) == (True, {"x": True, "y": False}, 1.0)
    assert verified(handle, {"x": None, "y": True}) == (False, {"x": None, "y": True}, 0.5)
    assert verified(handle, {"x": wrong, "y": None}) == (False, {"x": False, "y": None}, 0.0)


@NAMED
def test_in_a_classic_template(annotation: str, truth: str, right: Any, wrong: Any) -> None:
    type_, constraints = split(annotation)
    expected, _, primitive = truth.rpartition(", ")
    handle = load(f"""
        x: {type_} = Field(description="x"{constraints})
        seen: str | None = None

        def ground_truth(self):
            self.correct = {{"x": {expected}}}

        def verify(self):
            return {primitive}.check(self.x, self.correct["x"])
    """)
    assert verified(handle, {"x": right}) == (True, {}, None)
    assert verified(handle, {"x": wrong}) == (False, {}, None)


@NAMED
def test_in_a_mixed_template(annotation: str, truth: str, right: Any, wrong: Any) -> None:
    type_, constraints = split(annotation)
    handle = load(f"""
        x: {type_} = VerifiedField('x', {truth}{constraints})
        remark: str | None
        people: list[Person] = []

        def verify(self):
            if self.x is None:
                return self.remark == "nothing there"
            return self.remark is None and [person.age for person in self.people] == [None]
    """)
    assert verified(handle, {"x": right, "remark": None, "people": [{"name": "A"}]})[:2] == (True, {"x": True})
    assert verified(handle, {"x": wrong, "remark": "a"})[:2] == (False, {"x": False})
    assert verified(handle, {"x": None, "remark": "nothing there"}) == (True, {"x": None}, 0.0)


def test_constraints_are_the_judges_to_keep_and_null_is_none_of_them() -> None:
    handle = load("x: int = VerifiedField('x', 7, NumericExact(), ge=0, le=10)")
    with pytest.raises(FillError, match="x: Input should be less than or equal to 10"):
        verified(handle, {"x": 11})
    assert verified(handle, {"x": None})[1] == {"x": None}
