"""A template class written as data says the same as the class."""

from __future__ import annotations

import asyncio
import datetime
import json
from typing import Annotated, Any, Literal

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.language.specs import template_spec
from karenina_template.primitives import NAMES
from karenina_template.pydantic_handle import open_class
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import (
    AllOf,
    AnyOf,
    AtLeastN,
    BaseAnswer,
    BooleanMatch,
    ContainsAny,
    DateMatch,
    DateRange,
    DateTolerance,
    ExactMatch,
    FieldCheck,
    LiteralMatch,
    NumericExact,
    NumericGraded,
    NumericRange,
    OrderedMatch,
    SemanticMatch,
    SetContainment,
    SynonymMap,
    TraceContains,
    TraceLength,
    VerificationPrimitive,
    VerifiedField,
)

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
WORD = st.sampled_from(["a", "A ", "b", "aspirin", ""])
DAY = st.dates(datetime.date(2016, 1, 1), datetime.date(2016, 1, 9))
UPPER = SynonymMap({"aspirin": "a"})
# type, ground truths, primitives, replies
KINDS: list[tuple[Any, Any, Any, Any]] = [
    (str, WORD, st.sampled_from([ExactMatch(), ExactMatch(["strip", UPPER]), LiteralMatch()]), WORD),
    (
        str | None,
        st.just("N/A"),
        st.sampled_from([ContainsAny(["a"], ["lowercase"]), DateRange(min="2016-01-04")]),
        WORD,
    ),
    (str, st.just("aspirin"), st.just(SemanticMatch(0.7)), WORD),
    (bool, st.booleans(), st.just(BooleanMatch()), st.booleans()),
    (int, st.integers(-3, 3), st.sampled_from([NumericExact(), NumericGraded(2, mode="absolute")]), st.integers(-4, 4)),
    (float, st.floats(-3, 3) | st.integers(-3, 3), st.just(NumericGraded(1, 0.5, "absolute")), st.floats(-4, 4)),
    (float, st.just(0), st.just(NumericRange(-1, 2, exclusive_max=True)), st.floats(-4, 4)),
    (list[str], st.lists(WORD, max_size=3), st.just(OrderedMatch()), st.lists(WORD, max_size=3)),
    (list[str], st.sets(WORD, min_size=1), st.just(SetContainment("superset")), st.lists(WORD, max_size=3)),
    (Literal["up", "down"], st.just("up"), st.just(LiteralMatch()), st.sampled_from(["up", "down", "x"])),
    (datetime.date, DAY, st.sampled_from([DateMatch(), DateTolerance(2), LiteralMatch()]), DAY.map(str)),
    (bool, st.booleans(), st.sampled_from([TraceContains("["), TraceLength(max=3, scope="response")]), st.booleans()),
]
FIELDS = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind[0]),
        kind[1],
        kind[2],
        st.none() | kind[3],
        st.sampled_from([0, 1, 2.5]),
        st.none() | st.just("look at the end"),
    )
)


def trees(names: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.sampled_from(names).map(FieldCheck),
        lambda child: st.lists(child, min_size=1, max_size=3).flatmap(
            lambda found: st.sampled_from([AllOf(found), AnyOf(found), AtLeastN(1, found)])
        ),
        max_leaves=5,
    )


@st.composite
def classes(draw: Any) -> tuple[type[BaseAnswer], dict[str, Any]]:
    """A class that data can express, and a judge's reply."""
    fields: dict[str, Any] = {}
    reply: dict[str, Any] = {}
    for number, (type_, truth, primitive, value, weight, hint) in enumerate(
        draw(st.lists(FIELDS, min_size=1, max_size=4))
    ):
        declared = VerifiedField(f"field {number}", truth, primitive, weight, hint)
        fields[f"f{number}"] = (type_, declared)
        reply[f"f{number}"] = value
    base: type[BaseAnswer] = create_model("Study", __base__=BaseAnswer, **fields)
    tree = draw(st.none() | trees(list(fields)))
    if tree is None:
        return base, reply

    class Study(base):  # type: ignore[valid-type,misc]  # made at run time
        class VerificationStrategy:
            verify_strategy = tree

    return Study, reply


def everything(handle: Any, reply: Any) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        behaviour: dict[str, Any] = {"schema": handle.schema(), "ground_truth": handle.ground_truth()}
        behaviour["fields"] = [(f.name, f.description, f.hint, f.weight, f.semantic) for f in handle.fields()]
        behaviour["trace_fields"] = handle.trace_fields()
        try:
            filled = await handle.build(reply)
            similarities = {field.name: 0.7 for field in handle.fields() if field.semantic}
            behaviour["verdict"] = await filled.verify("see [1]", said="[1]", similarities=similarities)
            behaviour |= {"values": filled.values(), "nulls": filled.nulls, "granular": await filled.granular()}
        except TemplateError as error:
            behaviour["error"] = (type(error), str(error))
        return behaviour

    return asyncio.run(run())


@settings(database=None, deadline=None, derandomize=True, max_examples=settings().max_examples * 4 // 5)
@given(classes())
def test_a_class_and_its_data_form_say_the_same(made: tuple[type[BaseAnswer], dict[str, Any]]) -> None:
    cls, reply = made
    text = json.dumps(template_spec(cls), allow_nan=False)
    from_class = everything(open_class(cls, "no-code"), reply)
    assert everything(asyncio.run(DeclarativeRuntime().load(text, PRIMITIVES)), reply) == from_class
    assert from_class.get("error", (FillError,))[0] is FillError


def test_the_data_form_of_a_class() -> None:
    class Study(BaseAnswer):
        drug: str = VerifiedField("The drug", "aspirin", ExactMatch(["strip"]), extraction_hint="at the end")
        effect: Literal["up", "down"] = VerifiedField("The effect", "up", LiteralMatch(), weight=2)
        cites: bool = VerifiedField("A citation", True, TraceContains("["))

        class VerificationStrategy:
            verify_strategy = AtLeastN(1, FieldCheck("drug"), FieldCheck("cites"))

    assert template_spec(Study) == {
        "class_name": "Study",
        "fields": [
            {
                "name": "drug",
                "type": "str",
                "description": "The drug",
                "ground_truth": "aspirin",
                "verify_with": {"type": "ExactMatch", "normalize": ["strip"]},
                "weight": 1.0,
                "extraction_hint": "at the end",
            },
            {
                "name": "effect",
                "type": "literal",
                "literal_values": ["up", "down"],
                "description": "The effect",
                "ground_truth": "up",
                "verify_with": {"type": "LiteralMatch"},
                "weight": 2,
            },
            {
                "name": "cites",
                "type": "bool",
                "description": "A citation",
                "ground_truth": True,
                "verify_with": {"type": "TraceContains", "scope": "trace", "substring": "["},
                "weight": 1.0,
                "is_trace": True,
            },
        ],
        "verify_strategy": {
            "type": "at_least_n",
            "n": 1,
            "conditions": [{"type": "field_check", "field": "drug"}, {"type": "field_check", "field": "cites"}],
        },
    }


@frozen
class Vowels(VerificationPrimitive):
    least: int = 1

    def check(self, extracted: Any, expected: Any) -> bool:
        return sum(str(extracted).count(vowel) for vowel in "aeiou") >= self.least


def test_a_primitive_of_another_plugin_is_written_by_its_name() -> None:
    cls = create_model("Study", __base__=BaseAnswer, x=(str, VerifiedField("x", "aa", Vowels(2))))
    spec = template_spec(cls)
    assert spec["fields"][0]["verify_with"] == {"type": "Vowels", "least": 2}
    handle = asyncio.run(DeclarativeRuntime().load(json.dumps(spec), {**PRIMITIVES, "Vowels": Vowels}))
    assert everything(handle, {"x": "banana"})["verdict"].result is True


class Part(BaseModel):
    name: str


class Unregistered(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        return True


class Everything(BaseAnswer):
    """What the judge reads."""

    model_config = ConfigDict(str_strip_whitespace=True)

    nested: Part = VerifiedField("x", Part(name="a"), LiteralMatch())
    parts: list[Part] = VerifiedField("x", [], LiteralMatch())
    moment: datetime.datetime = VerifiedField("x", datetime.datetime(2016, 1, 1), DateMatch())
    number: Literal[1, 2] = VerifiedField("x", 1, LiteralMatch())
    bounded: int = VerifiedField("x", 1, NumericExact(), ge=0)
    short: Annotated[str, Field(max_length=3)] = VerifiedField("x", "a", ExactMatch())
    renamed: str = VerifiedField("x", "a", ExactMatch(), alias="class")
    own: str = VerifiedField("x", "a", Unregistered())
    day: str = VerifiedField("x", datetime.date(2016, 1, 1), DateMatch())
    pair: list[str] = VerifiedField("x", ("a", "b"), OrderedMatch())
    yes: bool = VerifiedField("x", "yes", BooleanMatch())
    plain: str = "free"

    @field_validator("short")
    @classmethod
    def tidy(cls, value: str) -> str:
        return value

    def ground_truth(self) -> None:
        self.regex: dict[str, Any] = {}

    def verify(self) -> bool:
        return True

    def verify_granular(self) -> float:
        return 1.0

    def verify_regex(self, raw_trace: str) -> dict[str, Any]:
        return {"success": True}


def test_everything_that_data_cannot_express_is_named() -> None:
    with pytest.raises(TemplateError) as caught:
        template_spec(Everything)
    lines = str(caught.value).splitlines()
    for part in (
        "- verify() is code",
        "- verify_granular() is code",
        "- verify_regex() is code",
        "- the hook that sets self.correct or self.regex is code",
        "- validators and serializers are code",
        "- model_config has settings of its own",
        "- the judge reads the class's docstring",
        "- nested: it holds a nested model (Part)",
        "- parts: it holds a nested model",
        "- moment: its type has no name in data (datetime)",
        "- number: its type has no name in data (typing.Literal[1, 2])",
        "- bounded: data has no constraints (Ge(ge=0))",
        "- short: data has no constraints (MaxLen(max_length=3))",
        "- renamed: data has no aliases",
        "- own: its primitive: Unregistered cannot be written as data",
        "- day: its ground truth datetime.date(2016, 1, 1) is not kept by data",
        "- pair: its ground truth ('a', 'b') is not kept by data",
        "- yes: its ground truth 'yes' is not kept by data",
        "- plain: it is not a VerifiedField",
    ):
        assert any(line.startswith(part) for line in lines), part
    assert len(lines) == 20


def test_what_is_no_template_class_is_named_in_the_error() -> None:
    for thing in (Part, "Answer", None):
        with pytest.raises(TemplateError, match="is not a template class"):
            template_spec(thing)  # type: ignore[arg-type]  # the wrong type is the point
    with pytest.raises(TemplateError, match="it has no VerifiedField"):
        template_spec(create_model("Empty", __base__=BaseAnswer))
