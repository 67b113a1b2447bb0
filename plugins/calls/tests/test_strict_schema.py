"""Strict schemas say nothing that the schema they came from does not say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_calls.wire.strict_schema import strict_schema
from pydantic import BaseModel, Field

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 3},
        {"type": ["boolean", "null"], "default": None},
        {"type": "null"},
        {"enum": ["x", 1, None], "title": "E"},
        {"const": "k", "examples": ["k"]},
        {"type": "string", "enum": ["y", "z"], "description": "one of two"},
    ]
)
NULLABLE = SCALARS.filter(lambda scalar: strict_schema({"type": "object", "properties": {"a": scalar}})[1])
UNSAID = st.sampled_from(
    [
        {},
        {"type": "object"},
        {"type": "string", "maxLength": 3},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
        {"oneOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "array"},
        {"$ref": "http://elsewhere/schema"},
        {"$ref": "#/$defs/Missing"},
        {"type": "string", "format": "uri"},
        {"not": {"type": "null"}, "type": "string"},
        {"properties": {"a": {"type": "string"}}},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    ]
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any], *, complete: bool) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    required = (
        sorted(properties)
        if complete
        else draw(st.lists(NAMES.filter(properties.__contains__), unique=True))
        if properties
        else []
    )
    closed = draw(st.sampled_from([{}, {"additionalProperties": False}]))
    return {"type": "object", "properties": properties, "required": required, **closed}


def schemas(leaves: st.SearchStrategy[Any], *, complete: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Whole schemas with two definitions, which may refer to each other and to themselves."""
    references = st.sampled_from(
        [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A", "description": "an A"}]
    )
    values = st.recursive(
        leaves | references,
        lambda inner: (
            objects(inner, complete=complete)
            | inner.map(lambda items: {"type": "array", "items": items, "maxItems": 2})
            | st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
        ),
        max_leaves=5,
    )
    definition = objects(values, complete=complete)
    return st.tuples(objects(values, complete=complete), definition, leaves | definition).map(
        lambda parts: {**parts[0], "$defs": {"A": parts[1], "B": parts[2]}}
    )


def fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether a value fits a schema, by the keywords used here: written from the standard, not from the code."""
    if "$ref" in schema and not fits(value, root["$defs"][schema["$ref"].split("/")[-1]], root):
        return False
    kinds = schema.get("type", [])
    if kinds and not any(_is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return False
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if "anyOf" in schema and not any(fits(value, branch, root) for branch in schema["anyOf"]):
        return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", [])):
            return False
        if schema.get("additionalProperties") is False and value.keys() - properties.keys():
            return False
        return all(fits(value[name], properties[name], root) for name in value.keys() & properties.keys())
    if isinstance(value, list):
        few = len(value) <= schema.get("maxItems", len(value))
        return few and all(fits(item, schema.get("items", {}), root) for item in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _is(value: Any, kind: str) -> bool:
    types = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None), "integer": int}
    return isinstance(value, types[kind]) and not (kind == "integer" and isinstance(value, bool))


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


@st.composite
def instances(draw: st.DrawFn, schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """A value made to fit a strict schema, or to miss it in places."""
    assume(depth < 8)
    if "$ref" in schema:
        return draw(instances(root["$defs"][schema["$ref"].split("/")[-1]], root, depth + 1))
    if "anyOf" in schema:
        return draw(instances(draw(st.sampled_from(schema["anyOf"])), root, depth + 1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    kind = schema["type"] if isinstance(schema["type"], str) else draw(st.sampled_from(schema["type"]))
    if kind == "object":
        return {name: draw(instances(inner, root, depth + 1)) for name, inner in schema["properties"].items()}
    if kind == "array":
        size = draw(st.integers(0, 2)) if depth < 6 else 0
        return [draw(instances(schema["items"], root, depth + 1)) for _ in range(size)]
    scalars = {
        "string": st.text(max_size=2),
        "integer": st.integers(-1, 4),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(scalars[kind])


def assert_strict(schema: Any) -> None:
    """Every object closed, every property required, nothing beside a reference, only words that strict mode knows."""
    if isinstance(schema, list):
        for each in schema:
            assert_strict(each)
        return
    if "$ref" in schema:
        assert set(schema) == {"$ref"}
        return
    assert not schema.keys() & {"default", "examples", "const", "oneOf", "allOf", "not", "maxLength", "uniqueItems"}
    assert schema.keys() & {"type", "enum", "anyOf"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])
    for inner in [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]:
        assert_strict(inner)
    assert_strict(schema.get("anyOf", []))
    if "items" in schema:
        assert_strict(schema["items"])


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans())
def test_what_fits_the_strict_schema_fits_the_original(data: st.DataObject, complete: bool) -> None:
    original = data.draw(schemas(SCALARS if complete else NULLABLE, complete=complete))
    strict, is_strict = strict_schema(original)
    assume(is_strict)
    assert_strict(strict)
    value = data.draw(instances(strict, strict))
    if fits(value, strict, strict):
        assert fits(value, original, original)


@settings(max_examples=60, deadline=None)
@given(schemas(SCALARS, complete=True))
def test_a_schema_that_has_a_strict_form_is_sent_in_it(original: dict[str, Any]) -> None:
    before = json.dumps(original)
    strict, is_strict = strict_schema(original)
    assert is_strict
    assert strict_schema(strict) == (strict, True)
    assert json.dumps(original) == before


@settings(max_examples=60, deadline=None)
@given(schemas(SCALARS | UNSAID, complete=False))
def test_a_schema_is_rewritten_whole_or_not_at_all(original: dict[str, Any]) -> None:
    strict, is_strict = strict_schema(original)
    if is_strict:
        assert_strict(strict)
    else:
        assert strict == original


@settings(max_examples=60, deadline=None)
@given(UNSAID)
def test_what_strict_mode_cannot_say_is_not_claimed_strict(unsaid: dict[str, Any]) -> None:
    assert not strict_schema({"type": "object", "properties": {"a": unsaid}, "required": ["a"]})[1]
    root = {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, unsaid]}}, "required": ["a"]}
    assert not strict_schema(root)[1]


@pytest.mark.parametrize(
    ("inner", "nullable"),
    [
        ({"type": "string"}, False),
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"anyOf": [{"$ref": "#/$defs/N"}]}, True),
        ({"$ref": "#/$defs/N"}, True),
        ({"$ref": "#/$defs/S"}, False),
        ({"enum": ["a", None]}, True),
        ({"type": "string", "enum": ["a", None]}, False),
        ({"const": None}, True),
        ({"const": 1}, False),
        ({"$ref": "#/$defs/Loop"}, False),
    ],
)
def test_an_optional_property_becomes_required_only_where_it_may_be_null(inner: dict[str, Any], nullable: bool) -> None:
    definitions = {
        "N": {"type": ["integer", "null"]},
        "S": {"type": "string"},
        "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}]},
    }
    root = {"type": "object", "properties": {"a": inner}, "$defs": definitions}
    strict, is_strict = strict_schema(root)
    assert is_strict is nullable
    assert not is_strict or strict["required"] == ["a"]


def test_a_reference_takes_descriptions_but_no_conditions_beside_it() -> None:
    root = {"type": "object", "properties": {"a": {"$ref": "#/$defs/N"}}, "required": ["a"]}
    definitions = {"N": {"type": "integer", "maximum": 3}}
    for beside, possible in (({"description": "d"}, True), ({"maximum": 5}, False), ({"type": "integer"}, False)):
        beside_it = {"$ref": "#/$defs/N", **beside}
        strict, is_strict = strict_schema({**root, "properties": {"a": beside_it}, "$defs": definitions})
        assert is_strict is possible
        assert not possible or strict["properties"]["a"] == {"type": "integer", "maximum": 3, **beside}


@pytest.mark.parametrize("root", [{}, {"type": "array", "items": {"type": "string"}}, {"anyOf": [{"type": "object"}]}])
def test_the_root_must_be_an_object(root: dict[str, Any]) -> None:
    assert strict_schema(root) == (root, False)


class Finding(BaseModel):
    gene: str = Field(description="its symbol")
    score: float | None = Field(None, ge=0)
    effect: Literal["up", "down"]


class Report(BaseModel):
    main: Finding = Field(description="the most important one")
    others: list[Finding]


class Node(BaseModel):
    name: str
    child: Node | None = None
    parent: Node = Field(description="described, so it is copied once")


class Counts(BaseModel):
    by_name: dict[str, int]


def test_schemas_of_pydantic() -> None:
    strict, is_strict = strict_schema(Report.model_json_schema())
    assert is_strict
    assert_strict(strict)
    assert strict["properties"]["main"]["description"] == "the most important one"
    assert strict["properties"]["main"]["properties"]["gene"]["description"] == "its symbol"
    assert not strict_schema(Counts.model_json_schema())[1]


def test_a_recursive_schema_stays_finite() -> None:
    strict, is_strict = strict_schema(Node.model_json_schema())
    assert is_strict
    assert_strict(strict)
    assert len(json.dumps(strict)) < 2000


def test_a_schema_that_would_explode_is_sent_as_it_is() -> None:
    twice = {f"D{n}": _pair(f"#/$defs/D{n + 1}") for n in range(30)}
    root = {**_pair("#/$defs/D0"), "$defs": {**twice, "D30": {"type": "string"}}}
    assert strict_schema(root) == (root, False)
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"anyOf": [deep]}
    assert not strict_schema({"type": "object", "properties": {"a": deep}, "required": ["a"]})[1]


def _pair(target: str) -> dict[str, Any]:
    inner = {name: {"$ref": target, "description": name} for name in "ab"}
    return {"type": "object", "properties": inner, "required": ["a", "b"]}


def test_a_union_that_stands_for_billions_of_types_is_sent_as_it_is() -> None:
    twice = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(40)}
    root = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/D0"}},
        "$defs": {**twice, "D40": {"type": "string"}},
    }
    assert strict_schema(root) == (root, False)
