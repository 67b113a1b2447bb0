"""A schema in words: every value that a judge has to give is there, with what belongs into it."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.wire import strict_schema
from karenina_calls.wire.strict_schema import outline
from pydantic import BaseModel, Field


class Drug(BaseModel):
    name: str = Field(description="As the response writes it")
    dose: float | None = Field(description="In mg", ge=0)


class Record(BaseModel):
    target: str = Field(description="The protein")
    phase: Literal["I", "II"] | None
    drugs: list[Drug] = Field(description="In order", max_length=5)
    main: Drug | None
    years: list[int]


def test_every_value_has_a_line_with_its_type_and_its_description() -> None:
    assert outline(Record.model_json_schema()) == "\n".join(
        (
            "- target (string): The protein",
            '- phase (one of "I", "II" or null)',
            "- drugs (list of object, maxItems 5): In order",
            "  - name (string): As the response writes it",
            "  - dose (number, minimum 0 or null): In mg",
            "- main (object or null)",
            "  - name (string): As the response writes it",
            "  - dose (number, minimum 0 or null): In mg",
            "- years (list of integer)",
        )
    )


class Tree(BaseModel):
    left: Tree | None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": True}},
        Tree.model_json_schema(),
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}},
    ],
)
def test_a_schema_that_says_more_has_none(schema: dict[str, Any]) -> None:
    assert outline(schema) is None


def test_neighbours_that_differ_in_their_names_alone_share_a_line() -> None:
    text, found = {"type": "string"}, {"type": "object", "properties": {"quoted": {"type": "string"}}}
    names = {
        "a": text,
        "b": text,
        "c": {"type": "string", "description": "Other"},
        "d, e": found,
        "f": found,
        "g": found,
    }
    assert outline({"type": "object", "properties": names}) == "\n".join(
        (
            *("- a, b (each string)", "- c (string): Other"),
            *("- d, e (object)", "  - quoted (string)", "- f, g (each object)", "  - quoted (string)"),
        )
    )


WORDS = st.text("abc", min_size=1, max_size=3)
LEAVES = st.sampled_from([{"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["x", 1]}, {"const": None}])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.builds(
            lambda properties: {"type": "object", "properties": properties, "additionalProperties": False},
            st.dictionaries(WORDS, inner, min_size=1, max_size=3),
        )
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
    ),
    max_leaves=5,
)


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3), WORDS)
def test_no_value_and_no_description_is_left_out(properties: dict[str, Any], described: str) -> None:
    def count(value: Any) -> int:
        """The names in a value; what is inside of equal neighbours is there once."""
        groups = [list(group) for _, group in groupby(value.get("properties", {}).values(), str)]
        items = [value["items"]] if "items" in value else []
        return sum(len(group) for group in groups) + sum(count(one) for one in (*(g[0] for g in groups), *items))

    numbered = enumerate(properties.items())
    about = {name: {**value, "description": f"{described} {number}"} for number, (name, value) in numbered}
    schema = {"type": "object", "properties": about}
    lines = outline(schema)
    if lines is not None:
        heads = [line.lstrip()[2:].split(" (")[0] for line in lines.split("\n")]
        assert sum(1 + head.count(", ") for head in heads) == count(schema)
        assert all(f"- {name} (" in lines and f": {value['description']}" in lines for name, value in about.items())
    else:
        assert str(schema).count("'items'") + str(schema).count("'properties'") > 4


@given(st.dictionaries(WORDS, VALUES | st.builds(lambda both: {"anyOf": both}, st.lists(VALUES)), max_size=3), WORDS)
def test_types_that_are_known_are_those_that_are_read_each_time(properties: dict[str, Any], described: str) -> None:
    about = {name: {**value, "description": described} for name, value in properties.items()}
    schema = {"type": "object", "properties": about}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_schema, "_flat", lambda schema: ("", 0))
        each_time = outline(schema)
    assert outline(schema) == each_time


@pytest.mark.parametrize("kind", ["objects", "unions", "lists"])
def test_a_schema_that_stands_for_billions_of_values_has_none(kind: str) -> None:
    def twelve(name: str) -> dict[str, Any]:
        parts = [{"$ref": f"#/$defs/{name}"}] * 12
        if kind == "objects":
            return {"type": "object", "properties": {f"p{n}": part for n, part in enumerate(parts)}}
        return {"anyOf": parts if kind == "unions" else [{"type": "array", "items": part} for part in parts]}

    levels = 7 if kind != "lists" else 4
    several = {f"D{n}": twelve(f"D{n + 1}") for n in range(levels)}
    properties = {f"x{n}": {"$ref": "#/$defs/D0"} for n in range(200)}
    last = {f"D{levels}": {"type": "object", "properties": {f"y{n}": {"type": "string"} for n in range(200)}}}
    assert outline({"type": "object", "properties": properties, "$defs": {**several, **last}}) is None
