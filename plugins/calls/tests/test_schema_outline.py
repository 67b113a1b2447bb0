"""A schema in words: every value that a judge has to give is there, with what belongs into it."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
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


def test_every_value_has_a_line_with_its_path_its_type_and_its_description() -> None:
    assert outline(Record.model_json_schema()) == "\n".join(
        (
            "- target (string): The protein",
            '- phase (one of "I", "II" or null)',
            "- drugs (list of object, maxItems 5): In order",
            "- drugs[].name (string): As the response writes it",
            "- drugs[].dose (number, minimum 0 or null): In mg",
            "- main (object or null)",
            "- main.name (string): As the response writes it",
            "- main.dose (number, minimum 0 or null): In mg",
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
        inner = value.get("properties", {}).values()
        return len(inner) + sum(map(count, inner)) + (count(value["items"]) if "items" in value else 0)

    schema = {
        "type": "object",
        "properties": {name: {**value, "description": described} for name, value in properties.items()},
    }
    lines = outline(schema)
    if lines is not None:
        assert len(lines.split("\n")) == count(schema)
        assert lines.count(f": {described}") == len(properties)
    else:
        assert str(schema).count("'items'") + str(schema).count("'properties'") > 4


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
