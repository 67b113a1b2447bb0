"""What a trait may be: mistakes are refused when it is made, with its name and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date
from enum import StrEnum
from typing import Any, Literal

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_vocabulary.record_traits import TemplateKind, as_kind, read_record, record_schema
from karenina_vocabulary.traits import AgenticRubricTrait, CallableRubricTrait, LLMRubricTrait, RegexRubricTrait
from pydantic import BaseModel, Field, create_model

from karenina_core.errors import FillError
from karenina_core.values.convert import structure, unstructure

LAW = settings(deadline=None)


def llm(**facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(**{"name": "Tone", "kind": "boolean", **facts})


def agentic(**facts: Any) -> AgenticRubricTrait:
    return AgenticRubricTrait(**{"name": "Files", "kind": "boolean", "description": "d", **facts})


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "template", "schema": {"type": "object", "properties": properties}}


# Scales


def test_a_score_runs_from_one_to_five_unless_said_otherwise() -> None:
    trait = llm(kind="score")
    assert (trait.min_score, trait.max_score, trait.scale()["min"], trait.scale()["max"]) == (1, 5, 1, 5)


@given(st.integers(-9, 9), st.integers(-9, 9))
@LAW
def test_the_lower_end_of_a_scale_lies_below_the_upper_one(low: int, high: int) -> None:
    for make in (llm, agentic):
        if low < high:
            trait = make(kind="score", min_score=low, max_score=high)
            assert (trait.min_score, trait.max_score) == (low, high)
            assert [value for value in range(-10, 11) if trait.validate_score(value)] == list(range(low, high + 1))
        else:
            with pytest.raises(ValueError, match=f"min_score {low} is not below max_score {high}; give both"):
                make(kind="score", min_score=low, max_score=high)


def test_a_bound_of_zero_is_a_bound() -> None:
    assert llm(kind="score", min_score=0).min_score == 0
    assert llm(kind="score", min_score=-5, max_score=0).max_score == 0


@pytest.mark.parametrize("bound", ["min_score", "max_score"])
@pytest.mark.parametrize("value", [True, 1.5, 2.0, "3"])
def test_a_bound_is_a_whole_number(bound: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"trait 'Tone': {bound} must be a whole number, not"):
        llm(kind="score", **{bound: value})


@pytest.mark.parametrize("kind", ["percent", None, 5, "Boolean", [], int])
def test_an_unknown_kind_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match="trait 'Tone': kind must be boolean, score, literal or a pydantic class"):
        llm(kind=kind)


@pytest.mark.parametrize("name", ["", "  ", None, 5])
def test_a_trait_has_a_name(name: Any) -> None:
    with pytest.raises(ValueError, match="a trait needs a name, not"):
        llm(name=name)


@pytest.mark.parametrize("name", ["a.b", ".", "v1.2"])
def test_a_name_has_no_dot(name: str) -> None:
    with pytest.raises(ValueError, match=r"may not contain '\.'"):
        llm(name=name)


# Classes


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        (None, "needs 2 to 20 classes, not 0"),
        ({"a": None}, "needs 2 to 20 classes, not 1"),
        (dict.fromkeys(map(str, range(21))), "needs 2 to 20 classes, not 21"),
        ({"a": None, " ": None}, "must be texts and not blank, not ' '"),
        ({"a": "", "b": None}, "must be texts and not blank, not ''"),
        ({"a": None, 3: None}, "must be texts and not blank, not 3"),
        ({"a": 3, "b": None}, "must be texts and not blank, not 3"),
        ({"a": None, "A": None}, "must differ in more than upper and lower case"),
        (["a", "b"], "classes must be names with a description or None each"),
        ("ab", "classes must be names with a description or None each"),
    ],
)
def test_classes_that_cannot_be_told_apart_are_refused(classes: Any, expected: str) -> None:
    for make in (llm, agentic):
        with pytest.raises(ValueError, match=expected):
            make(kind="literal", classes=classes)


@pytest.mark.parametrize("count", [2, 20])
def test_two_to_twenty_classes_are_numbered_in_their_order(count: int) -> None:
    names = [f"class {number}" for number in reversed(range(count))]
    trait = llm(kind="literal", classes=dict.fromkeys(names), min_score=7, max_score=9)
    assert (trait.min_score, trait.max_score, trait.get_class_names()) == (0, count - 1, names)
    assert [trait.get_class_index(name.upper()) for name in names] == list(range(count))
    assert trait.scale()["classes"] == names


def test_minus_one_is_the_mark_of_no_class_and_the_rank_of_none() -> None:
    trait = llm(kind="literal", classes={"low": None, "high": None})
    assert trait.get_class_index("medium") == -1
    assert [value for value in (-2, -1, 0, 1, 2, True, "low", 0.0) if trait.validate_score(value)] == [-1, 0, 1]
    assert not llm(kind="score", min_score=0).validate_score(-1)


def test_white_space_around_a_class_decides_only_where_it_is_unique() -> None:
    trait = llm(kind="literal", classes={" low": None, "high": None})
    assert [trait.get_class_index(said) for said in (" low", "LOW ", "high ")] == [0, 0, 1]
    alike = llm(kind="literal", classes={" low": None, "low": None})
    assert [alike.get_class_index(said) for said in (" low", "low", "LOW")] == [0, 1, -1]
    accented = llm(kind="literal", classes={"caf\u00e9": None, "bar": None})
    assert accented.get_class_index("Cafe\u0301") == 0


@pytest.mark.parametrize("pair", [("low", " low"), ("low", "LOW "), ("caf\u00e9", "cafe\u0301")])
def test_classes_that_look_alike_can_be_kept_and_not_scored(pair: tuple[str, str]) -> None:
    """A file may hold them."""
    trait = llm(kind="literal", classes=dict.fromkeys(["high", *pair]))
    assert structure(unstructure(trait), LLMRubricTrait) == trait
    assert trait.ambiguity().startswith(f"trait 'Tone': classes {pair[0]!r} and {pair[1]!r} look alike")
    assert llm(kind="literal", classes={"low": None, "high": None}).ambiguity() == ""


def test_a_field_with_a_dot_can_be_kept_and_not_scored() -> None:
    for make in (llm, agentic):
        assert "field 'a.b': '.' separates" in make(kind=schema(**{"a.b": {"type": "boolean"}})).ambiguity()
        assert make(kind=Plain).ambiguity() == ""


def test_bounds_and_classes_of_other_kinds_are_kept_and_mean_nothing() -> None:
    """Benchmark files give bounds for every kind."""
    odd = llm(min_score=9, max_score=1, classes={"only": None})
    assert structure(unstructure(odd), LLMRubricTrait) == odd
    assert odd.scale() == llm().scale()
    assert [value for value in (0, 1, 9, True, False) if odd.validate_score(value) and value is not True] == [False]
    assert llm(kind="score", classes={"only": None}).scale() == llm(kind="score").scale()
    assert llm(kind=Plain, min_score=1, max_score=5).scale() == llm(kind=Plain).scale()


# Settings


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("deep_judgment_enabled", [1, "true", None], [True, False]),
        ("deep_judgment_excerpt_enabled", [0, "no"], [True, False]),
        ("deep_judgment_search_enabled", ["false"], [True, False]),
        ("include_ground_truth", [1], [True, False]),
        ("deep_judgment_max_excerpts", [0, -1, True, 2.0, "3"], [None, 1, 50]),
        ("deep_judgment_fuzzy_match_threshold", [-0.1, 1.01, True, "0.5", float("nan")], [None, 0, 0.8, 1]),
        ("deep_judgment_excerpt_retry_attempts", [-1, False, 1.0], [None, 0, 3]),
        ("higher_is_better", [1, "yes"], [True, False, None]),
        ("description", [3, ["a"]], [None, "", "text"]),
        ("summary", [3], [None, "text"]),
    ],
)
def test_settings_are_strict_and_the_error_names_the_trait(setting: str, wrong: list[Any], right: list[Any]) -> None:
    for value in wrong:
        with pytest.raises(ValueError, match=f"trait 'Tone': {setting} must be"):
            llm(**{setting: value})
    for value in right:
        assert getattr(llm(**{setting: value}), setting) == value


@pytest.mark.parametrize("setting", ["max_turns", "timeout_seconds"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, None])
def test_an_agent_gets_at_least_one_turn_and_one_second(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"trait 'Files': {setting} must be a whole number from 1 on"):
        agentic(**{setting: value})


def test_switches_of_patterns_are_true_or_false() -> None:
    for setting in ("case_sensitive", "invert_result"):
        odd: dict[str, Any] = {setting: "no"}
        with pytest.raises(ValueError, match=f"{setting} must be True or False, not 'no'"):
            RegexRubricTrait(name="r", pattern="x", **odd)


# Template kinds


class Level(StrEnum):
    low = "low"
    high = "high"


class Plain(BaseModel):
    yes: bool
    count: int = Field(ge=0, le=10, multiple_of=2)
    share: float = Field(gt=0, lt=1, description="A part of it")
    word: str = Field(min_length=2, max_length=5, pattern="^[a-z]+$")
    one: Literal["only"]
    two: Literal[1, 2]
    level: Level
    listed: list[Level] = Field(min_length=1, max_length=2)
    flags: list[bool] = []
    perhaps: int | None = Field(None, ge=5)
    perhaps_listed: list[str] | None = None
    perhaps_level: Level | None = Level.low


def of_type(annotation: Any, default: Any = ...) -> type[BaseModel]:
    return create_model("Record", odd=(annotation, default))


@pytest.mark.parametrize("make", [llm, agentic])
def test_a_record_of_plain_fields_is_kept_word_for_word(make: Any) -> None:
    trait = make(kind=Plain)
    assert isinstance(trait.kind, TemplateKind)
    assert trait.kind.schema == Plain.model_json_schema()
    assert (trait.higher_is_better, trait.scale()["kind"], trait.kind.model) == (None, "template", Plain)
    data = json.loads(json.dumps(unstructure(trait)))
    read = structure(data, type(trait))
    assert read == trait
    assert read.kind.schema == Plain.model_json_schema()
    assert read.validate_score({"anything": "goes"})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Plain, "a nested object or a dictionary"),
        (dict[str, int], "a nested object or a dictionary"),
        (tuple[int, str], "a tuple"),
        (set[str], "a set"),
        (int | str, "a union of several types"),
        (int | str | None, "a union of several types"),
        (Literal["a", 1], "a union of several types"),
        (list[int | str], "a union of several types"),
        (list[Plain], "a nested object or a dictionary"),
        (list[list[int]], "a list of lists"),
        (list[int | None], "a list of optional values"),
        (list, "it says no type"),
        (Any, "it says no type"),
        (str | None, "it may be None, but has no default; give it one"),
        (date, "it may not use 'format'"),
        (None, "its type is 'null'"),
    ],
)
def test_a_field_that_is_more_than_plain_is_refused_and_named(annotation: Any, expected: str) -> None:
    for make, name in ((llm, "Tone"), (agentic, "Files")):
        with pytest.raises(ValueError, match=f"trait '{name}': field 'odd': {expected}"):
            make(kind=of_type(annotation))


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({}, "describes an object with at least one field"),
        ({"type": "object", "properties": {}}, "describes an object with at least one field"),
        ({"type": "string"}, "describes an object with at least one field"),
        ({"type": "object", "properties": ["a"]}, "describes an object with at least one field"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}, "not all fields of it"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"}, "not all fields of it"),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "allOf": []}, "may not use 'allOf'"),
    ],
)
def test_a_schema_that_describes_no_record_is_refused(given_: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"trait 'Tone': .*{expected}"):
        llm(kind={"type": "template", "schema": given_})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "integer", "minimum": "low"}, "its schema cannot be used"),
        ({"type": "string", "pattern": "(?=a)"}, "its schema cannot be used"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": -1}, "its schema cannot be used"),
        ({"type": "integer", "enum": 3}, "its schema cannot be used"),
        ({"type": "integer", "enum": []}, "its schema cannot be used"),
        ({"anyOf": 3}, "its schema cannot be used"),
        ({"type": "integer", "enum": [1, "a"]}, "its allowed value 'a' does not fit"),
        ({"type": "integer", "default": "x"}, "its default 'x' does not fit"),
        ({"type": "integer", "minimum": 4, "default": 3}, "its default 3 does not fit"),
        ({"type": ["integer", "null"], "default": None, "minimum": 4, "oneOf": []}, "may not use 'oneOf'"),
        ({"type": ["integer", "null"]}, "it may be None, but has no default"),
        ({"type": ["integer", "string"]}, "a union of several types"),
        ({"type": "array", "items": {"type": "integer"}, "enum": [[1]]}, "for the whole list"),
        ({"$ref": "#/$defs/Gone"}, "which is not in the schema"),
        ({"$ref": "#/properties/a"}, "which is not in the schema"),
        (True, "is no schema"),
    ],
)
def test_a_field_that_nothing_could_be_checked_by_is_refused(field: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=f"trait 'Tone': field 'a': .*{expected}"):
        llm(kind=schema(a=field))


def test_a_definition_that_refers_to_itself_is_refused() -> None:
    kind = schema(a={"$ref": "#/$defs/Loop"})
    kind["schema"]["$defs"] = {"Loop": {"$ref": "#/$defs/Loop"}}
    with pytest.raises(ValueError, match="field 'a': it refers to itself"):
        llm(kind=kind)


def test_a_class_that_no_schema_describes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"kind: Record has no JSON Schema .*use bool, int, float, str"):
        llm(kind=of_type(Callable[[], int]))


def test_a_template_kind_needs_its_schema() -> None:
    with pytest.raises(ValueError, match="a template kind needs a JSON Schema under 'schema'"):
        llm(kind={"type": "template"})


def test_a_template_kind_has_no_direction_also_where_none_was_said() -> None:
    for make in (llm, agentic):
        trait = make(kind=Plain)
        assert trait.higher_is_better is None
        for direction in (True, False):
            with pytest.raises(ValueError, match=r"no direction.*leave higher_is_better"):
                make(kind=Plain, higher_is_better=direction)
        with pytest.raises(ValueError, match="no direction"):
            evolve(trait, higher_is_better=True)
    with pytest.raises(ValueError, match="no deep judgment"):
        llm(kind=Plain, deep_judgment_enabled=True)


def test_a_callable_trait_has_no_template_kind() -> None:
    with pytest.raises(ValueError, match="a callable trait has no template kind"):
        CallableRubricTrait(name="c", kind=Plain)


# Reading records

READ: Mapping[str, Any] = {
    "yes": True,
    "count": 4,
    "share": 0.5,
    "word": "abc",
    "one": "only",
    "two": 2,
    "level": "high",
    "listed": ["low"],
}


def kinds() -> list[TemplateKind]:
    """With its class, and as it comes out of a file."""
    kind: TemplateKind = as_kind(Plain)
    return [kind, TemplateKind(json.loads(json.dumps(kind.schema)))]


@pytest.mark.parametrize("kind", kinds())
def test_defaults_are_taken_only_where_the_schema_gives_them(kind: TemplateKind) -> None:
    whole = {**READ, "flags": [], "perhaps": None, "perhaps_listed": None, "perhaps_level": "low"}
    assert read_record(kind, {**READ, "unknown": 3}) == whole
    first = read_record(kind, READ)["flags"]
    first.append(True)
    assert read_record(kind, READ)["flags"] == []
    for name in READ:
        with pytest.raises(FillError, match=f"{name} is missing"):
            read_record(kind, {key: value for key, value in READ.items() if key != name})


@pytest.mark.parametrize("kind", kinds())
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("yes", [1, 0, "true", None]),
        ("count", [-2, 12, 3, 1.5, True, "4", None]),
        ("share", [0, 1, float("nan"), float("inf"), True, "0.5"]),
        ("word", ["a", "abcdef", "ABC", 3, None]),
        ("one", ["other", "Only", None]),
        ("two", [3, "1", True]),
        ("level", ["medium", "LOW"]),
        ("listed", [[], ["low"] * 3, ["medium"], "low", {"0": "low"}, None]),
        ("perhaps", [4, "5", False]),
        ("perhaps_listed", [[1], "a"]),
        ("flags", [[1], None]),
    ],
)
def test_values_are_neither_converted_nor_moved_into_their_bounds(
    kind: TemplateKind, name: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises(FillError, match=f"^{name}"):
            read_record(kind, {**READ, name: value})


def test_a_field_without_a_default_is_needed_also_where_the_schema_does_not_require_it() -> None:
    trait = llm(kind=schema(a={"type": "integer"}, b={"type": "integer", "default": 7}))
    assert isinstance(trait.kind, TemplateKind)
    assert read_record(trait.kind, {"a": 0}) == {"a": 0, "b": 7}
    with pytest.raises(FillError, match="a is missing"):
        read_record(trait.kind, {"b": 1})
    assert record_schema(trait.kind)["required"] == ["a", "b"]
    assert "required" not in trait.kind.schema


def test_a_field_that_is_required_is_needed_also_where_it_has_a_default() -> None:
    kind = schema(a={"type": "integer"}, b={"type": "integer", "default": 7})
    kind["schema"]["required"] = ["a", "b"]
    record = llm(kind=kind).kind
    assert isinstance(record, TemplateKind)
    with pytest.raises(FillError, match="b is missing"):
        read_record(record, {"a": 0})
    assert read_record(record, {"a": 0, "b": 1}) == {"a": 0, "b": 1}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_is_finite(value: float) -> None:
    kind: TemplateKind = as_kind(of_type(float))
    for record in (kind, TemplateKind(kind.schema)):
        with pytest.raises(FillError, match="odd: Input should be a finite number"):
            read_record(record, {"odd": value})
