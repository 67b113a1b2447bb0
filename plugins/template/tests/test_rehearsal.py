"""A ground truth that not even a perfect extraction could match is refused before a run."""

from __future__ import annotations

import asyncio
import datetime
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language.to_json import plain
from karenina_template.primitives import NAMES
from karenina_template.pydantic_handle import open_class
from karenina_template.python_source import InProcessRuntime
from karenina_template.rules import rehearsal_problems
from pydantic import create_model

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import BaseAnswer, VerifiedField

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
HEADER = """
import datetime, enum
from typing import Annotated
from pydantic import BaseModel, BeforeValidator, field_validator, model_validator

class Color(enum.Enum):
    RED = "red"

class Person(BaseModel):
    name: str

class Picky(VerificationPrimitive):
    def check(self, extracted, expected):
        raise RuntimeError("not today")

class Other(VerificationPrimitive):
    def check(self, extracted, expected):
        return extracted != expected

class Answer(BaseAnswer):
"""


def load(body: str) -> Any:
    source = HEADER + textwrap.indent(textwrap.dedent(body), "    ")
    return asyncio.run(InProcessRuntime().load(source, PRIMITIVES))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (
            "list[str] = VerifiedField('x', {'a'}, LiteralMatch())",
            r"JSON has lists only: write the ground truth as a list",
        ),
        ("list[int] = VerifiedField('x', (1, 2), LiteralMatch())", r"or declare the field as tuple\[...\]"),
        ("str = VerifiedField('x', datetime.date(2016, 4, 11), LiteralMatch())", r"write the ground truth as str"),
        ("Color = VerifiedField('x', 'red', LiteralMatch())", r"write the ground truth as Color"),
        ("Person = VerifiedField('x', {'nam': 'A'}, LiteralMatch())", r"{'nam': 'A'} is not a value that"),
        ("str = VerifiedField('x', 'a', Other())", r"write matches_ground_truth = False in its class"),
        ("float = VerifiedField('x', 5, ExactMatch())", r"the field reads this as 5.0, and ExactMatch does not accept"),
        ("list[str] = VerifiedField('x', [], SetContainment('overlap'))", r"not even a perfect extraction would pass"),
        ("str = VerifiedField('x', 'a', Picky())", r"Picky raises RuntimeError: not today"),
        ("str = VerifiedField('x', 'a', Other())", r"Other does not accept that"),
        (
            "int = VerifiedField('x', 3.5, NumericExact())",
            r"3.5 is not a value that the field can have \(Input should be",
        ),
        ("Literal['a', 'b'] = VerifiedField('x', 'c', ExactMatch())", r"'c' is not a value .*'a' or 'b'"),
        ("int = VerifiedField('x', 12, NumericExact(), le=10)", r"less than or equal to 10"),
        ("str = VerifiedField('x', 'canary', ExactMatch(), max_length=3)", r"at most 3 characters"),
        ("list[str] = VerifiedField('x', 'a', SemanticMatch())", r"'a' is not a value that the field can have"),
        (
            "int = VerifiedField('x', '4', SemanticMatch())",
            r"SemanticMatch compares texts, so declare the field as str",
        ),
    ],
)
def test_a_ground_truth_that_can_never_match_is_refused(field: str, message: str) -> None:
    with pytest.raises(TemplateError, match=rf"class Answer: field 'x': .*{message}"):
        load(f"x: {field}")


@pytest.mark.parametrize(
    "field",
    [
        "set[str] = VerifiedField('x', {'a'}, LiteralMatch())",
        "tuple[int, str] = VerifiedField('x', (1, 'a'), LiteralMatch())",
        "list[str] = VerifiedField('x', {'a', 'b'}, SetContainment())",
        "datetime.date = VerifiedField('x', datetime.date(2016, 4, 11), LiteralMatch())",
        "str = VerifiedField('x', datetime.date(2016, 4, 11), DateMatch())",
        "str = VerifiedField('x', datetime.date(2016, 4, 11), DateMatch(format='%d.%m.%Y'))",
        "datetime.date = VerifiedField('x', 'April 11, 2016', DateMatch())",
        "datetime.date = VerifiedField('x', 'April 11, 2016', DateTolerance(3))",
        "Color = VerifiedField('x', Color.RED, LiteralMatch())",
        "list[Person] = VerifiedField('x', [Person(name='A')], LiteralMatch())",
        "str = VerifiedField('x', True, BooleanMatch())",
        "str = VerifiedField('x', 5, NumericExact())",
        "int = VerifiedField('x', 3.5, NumericTolerance(0.2))",
        "int = VerifiedField('x', 3.5, NumericMinimum())",
        "int = VerifiedField('x', 3, NumericMinimum(exclusive=True))",
        "int = VerifiedField('x', 3, NumericThresholdGraded('max', 0.1, exclusive=True))",
        "int = VerifiedField('x', 'N/A', NumericRange(min=1))",
        "bool = VerifiedField('x', False, TraceContains('sorry'))",
    ],
)
def test_a_ground_truth_that_comes_back_as_it_is_meant_is_accepted(field: str) -> None:
    load(f"x: {field}")


def test_an_authors_validators_take_part() -> None:
    with pytest.raises(TemplateError, match="the field reads this as 'bcl2', and LiteralMatch does not accept that"):
        load("""
            x: str = VerifiedField('x', 'BCL2', LiteralMatch())

            @field_validator("x")
            def lower(cls, value):
                return value.lower()
        """)
    load(
        """
        x: float = VerifiedField('x', 5.0, NumericExact())
        y: Annotated[float, BeforeValidator(lambda text: float(text.split()[0]))] = VerifiedField(
            'y', 5.0, NumericExact()
        )

        @field_validator("x", mode="before")
        def number(cls, value):
            return float(value.split()[0])
    """.replace("Annotated", "__import__('typing').Annotated")
    )
    load("""
        x: str = VerifiedField('x', 'a', ExactMatch())
        y: str

        @model_validator(mode="after")
        def together(self):
            raise ValueError("not like this")
    """)


def test_everything_that_cannot_match_is_reported_at_once() -> None:
    with pytest.raises(TemplateError) as caught:
        load("""
            x: list[str] = VerifiedField('x', {'a'}, LiteralMatch())
            y: Literal['a'] = VerifiedField('y', 'b', ExactMatch())
            z: str = VerifiedField('z', True, TraceContains('q'))
        """)
    for part in ("field 'x': ", "field 'y': ", "z: TraceContains holds or does not, so declare the field as bool"):
        assert part in str(caught.value)


TRUTHS = st.one_of(
    st.integers(-9, 9),
    st.floats(-9, 9),
    st.booleans(),
    st.text("ab ", max_size=3),
    st.dates(datetime.date(2000, 1, 1)),
    st.lists(st.text("ab", max_size=2), max_size=2),
    st.sets(st.text("ab", max_size=2), max_size=2),
    st.tuples(st.integers(0, 3), st.text("ab", max_size=2)),
)
TYPES = st.sampled_from([int, float, bool, str, datetime.date, list[str], set[str], tuple[int, str], int | None])
CHOICES = st.sampled_from(
    [
        primitives.LiteralMatch(),
        primitives.ExactMatch(),
        primitives.NumericExact(),
        primitives.BooleanMatch(),
        primitives.SetContainment(),
        primitives.DateMatch(),
        primitives.OrderedMatch(),
    ]
)


@settings(database=None, deadline=None, derandomize=True, max_examples=settings().max_examples * 6)
@given(TYPES, TRUTHS, CHOICES)
def test_what_is_accepted_passes_when_a_judge_extracts_the_ground_truth(type_: Any, truth: Any, primitive: Any) -> None:
    try:
        declared = VerifiedField("x", truth, primitive)
        cls = create_model("Answer", __base__=BaseAnswer, x=(type_, declared))
        handle = open_class(cls, "no-code")
    except (TypeError, ValueError, TemplateError):
        return

    async def judged(value: Any) -> Any:
        return (await (await handle.build({"x": value})).verify("")).result

    try:
        assert asyncio.run(judged(plain(truth))) is True
    except FillError:  # a number or a truth value, for a field of text
        assert asyncio.run(judged(str(plain(truth)).lower())) is True
    assert rehearsal_problems(cls) == []
