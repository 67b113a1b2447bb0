"""What a judge sees of a template, and what its reply is turned into."""

from __future__ import annotations

import datetime
import enum
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language.extraction import extraction_class, fill, judge_schema
from karenina_template.language.to_json import plain
from karenina_template.lint.lint import lint_schema
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr, create_model, field_validator

from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import (
    BaseAnswer,
    ExactMatch,
    LiteralMatch,
    NumericExact,
    RegexMatch,
    SetContainment,
    TraceContains,
    VerifiedField,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Person(BaseModel):
    name: str = Field(description="Full name")
    title: int = Field(default=0, description="A field whose name is also a keyword of JSON Schema")
    children: list[Person] = []


class Paper(BaseAnswer):
    """Facts about one paper."""

    year: int = VerifiedField("Year of publication", 2016, NumericExact(), ge=1900, le=2100, extraction_hint="see top")
    journal: Literal["Nature", "Science"] = VerifiedField("Journal", "Nature", LiteralMatch())
    drug: Annotated[str, Field(max_length=20)] = VerifiedField("Drug", "venetoclax", ExactMatch(), default="Zzz")
    authors: list[Person] = VerifiedField("Authors", [], LiteralMatch())
    note: str | None = VerifiedField("Note", "N/A", RegexMatch("."), max_length=9)
    color: Color
    counts: dict[str, int] = {}
    remark: str | None


GOOD: dict[str, Any] = {
    "year": 2016,
    "journal": "Nature",
    "drug": "venetoclax",
    "authors": [{"name": "A"}],
    "note": "n",
    "color": "red",
    "counts": {"a": 1},
    "remark": None,
}


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every dict in a JSON document."""
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from objects(part)


def test_the_schema_that_a_judge_sees() -> None:
    schema = judge_schema(Paper)
    properties = schema["properties"]
    assert list(properties) == ["year", "journal", "drug", "authors", "note", "color", "counts", "remark"]
    assert properties["year"] == {
        "anyOf": [{"minimum": 1900, "maximum": 2100, "type": "integer"}, {"type": "null"}],
        "description": "Year of publication",
    }
    assert properties["journal"] == {
        "anyOf": [{"enum": ["Nature", "Science"], "type": "string"}, {"type": "null"}],
        "description": "Journal",
    }
    assert properties["drug"] == {
        "anyOf": [{"maxLength": 20, "type": "string"}, {"type": "null"}],
        "description": "Drug",
    }
    assert properties["note"]["anyOf"] == [{"maxLength": 9, "type": "string"}, {"type": "null"}]
    assert properties["counts"]["additionalProperties"] == {"type": "integer"}
    assert schema["required"] == ["year", "journal", "drug", "authors", "note", "color", "remark"]
    assert schema["additionalProperties"] is False
    assert schema["description"] == "Facts about one paper."
    person = schema["$defs"]["Person"]
    assert set(person["properties"]) == {"name", "title", "children"}
    assert person["required"] == ["name"]
    assert person["additionalProperties"] is False
    assert person["properties"]["children"]["items"] == {"$ref": "#/$defs/Person"}


class Drug(BaseModel):
    name: str = Field(description="As sold", examples=["canary"], max_length=30, json_schema_extra={"hint": "canary"})
    marked: bool = Field(default=False, description="whether the package is marked")
    parent: Drug | None = None


class Told(BaseAnswer):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "canary"}]})

    name: str = VerifiedField("Name", "a", ExactMatch(), examples=["canary"], pattern="^[a-z]+$", default="canary")
    size: Annotated[int, Field(ge=1, examples=[7], json_schema_extra={"note": "canary"})] = VerifiedField(
        "Size", 3, NumericExact(), json_schema_extra={"note": "canary"}, le=9
    )
    words: list[Annotated[str, Field(min_length=2, examples=["canary"])]] = VerifiedField(
        "Words", ["ab"], SetContainment(), max_length=5
    )
    drugs: list[Drug] = VerifiedField("Drugs", [], LiteralMatch())
    marked: bool = VerifiedField("Marked", True, TraceContains("x"))
    free: str = Field(default="b", description="A plain field", examples=["as the author likes"])


def test_the_judge_sees_constraints_of_verified_fields_and_no_examples_or_additions() -> None:
    schema = judge_schema(Told)
    assert "canary" not in json.dumps(schema)
    assert schema["properties"]["name"] == {
        "anyOf": [{"pattern": "^[a-z]+$", "type": "string"}, {"type": "null"}],
        "description": "Name",
    }
    assert schema["properties"]["size"]["anyOf"][0] == {"minimum": 1, "maximum": 9, "type": "integer"}
    assert schema["properties"]["words"]["anyOf"][0] == {
        "type": "array",
        "maxItems": 5,
        "items": {"type": "string", "minLength": 2},
    }
    assert schema["$defs"]["Drug"]["properties"]["name"] == {
        "description": "As sold",
        "maxLength": 30,
        "type": "string",
    }
    assert schema["$defs"]["Drug"]["properties"]["marked"]["default"] is False
    assert schema["properties"]["free"]["examples"] == ["as the author likes"]


def test_a_trace_field_leaves_the_schema_and_a_nested_field_of_the_same_name_stays() -> None:
    schema = judge_schema(Told)
    assert "marked" not in schema["properties"]
    assert "marked" not in schema["required"]
    assert "marked" in schema["$defs"]["Drug"]["properties"]
    answer = fill(Told, {"name": "a", "drugs": [{"name": "d", "marked": True}], "marked": True})
    assert answer.drugs[0].marked is True
    assert answer.marked is None


def test_no_reply_reaches_what_the_judge_was_not_asked() -> None:
    schema = judge_schema(Told)
    assert schema["additionalProperties"] is False
    assert not {"id", "correct", "regex", "marked"} & set(schema["properties"])
    answer = fill(Told, {"name": "a", "id": "x", "correct": {"name": "b"}, "regex": {}, "marked": True, "more": 1})
    assert (answer.id, answer.marked, answer.correct["name"]) == (None, None, "a")
    assert not hasattr(answer, "more")


def test_nested_models_and_required_nulls_are_there_when_the_authors_code_runs() -> None:
    class Mixed(BaseAnswer):
        lead: Person = VerifiedField("Lead", Person(name="A"), LiteralMatch())
        remark: str | None
        parts: list[Person]

        def verify(self) -> bool:
            return self.remark is None and self.lead.name == "A" and self.parts[0].title == 3

    data = {"lead": {"name": "A"}, "remark": None, "parts": [{"name": "B", "title": 3}]}
    assert fill(Mixed, data).verify() is True


def test_plain_fields_stay_as_declared() -> None:
    class Classic(BaseAnswer):
        result: int = Field(description="The sum", ge=0)
        unit: str = "cm"

        def verify(self) -> bool:
            return True

    schema = judge_schema(Classic)
    assert schema["properties"] == {
        "result": {"description": "The sum", "minimum": 0, "type": "integer"},
        "unit": {"default": "cm", "type": "string"},
    }
    assert schema["required"] == ["result"]


def test_a_template_without_fields_asks_for_nothing() -> None:
    class Patterns(BaseAnswer):
        def ground_truth(self) -> None:
            self.regex = {"a": {"pattern": "a", "expected": "a"}}

    assert judge_schema(Patterns) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert fill(Patterns, {"made": "up"}).verify_regex("a")["success"]
    assert fill(Patterns, None).verify_regex("b")["success"] is False


GOLD = st.one_of(
    st.text("QXZ0123456789", min_size=8, max_size=12).map(lambda text: (str, text, ExactMatch())),
    st.integers(10**9, 10**12).map(lambda number: (int, number, NumericExact())),
    st.sets(st.text("QXZ", min_size=9, max_size=12), min_size=1, max_size=3).map(
        lambda texts: (set[str], texts, SetContainment())
    ),
    st.dates(datetime.date(3000, 1, 1)).map(lambda day: (datetime.date, day, LiteralMatch())),
)
WRAPPINGS = st.sampled_from([lambda m: m, lambda m: list[m], lambda m: m | None, lambda m: dict[str, m]])  # type: ignore[valid-type]  # made at run time


@st.composite
def trees(draw: Any, depth: int = 3) -> tuple[type[BaseAnswer], list[str], int]:
    """A template with verified fields at every depth, the texts to hide, and the number of its own fields."""
    hidden: list[str] = []

    def fields(level: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for i in range(draw(st.integers(1, 3))):
            type_, gold, primitive = draw(GOLD)
            hidden.extend(map(str, gold) if isinstance(gold, set) else [str(gold)])
            made[f"f{i}"] = (type_, VerifiedField("what to extract", gold, primitive, extraction_hint="QQhint"))
        if level < depth and draw(st.booleans()):
            inner = create_model(f"Level{level}", **fields(level + 1))
            made["inner"] = (draw(WRAPPINGS)(inner), Field(description="a part"))
        return made

    top = fields(0)
    cls: type[BaseAnswer] = create_model("Answer", __base__=BaseAnswer, **top)
    return cls, hidden, len(top)


@settings(deadline=None, max_examples=40)
@given(trees())
def test_no_schema_holds_ground_truth_at_any_depth(made: tuple[type[BaseAnswer], list[str], int]) -> None:
    cls, hidden, size = made
    schema = judge_schema(cls)
    for text in (json.dumps(schema), json.dumps(cls.model_json_schema()), repr(cls.model_fields)):
        assert not [gold for gold in hidden if gold in text]
    assert "QQhint" not in json.dumps(schema)
    assert len(schema["properties"]) == size
    for node in objects(schema):
        if "properties" in node and node.get("type") == "object":
            assert node["additionalProperties"] is False
    references = {node["$ref"].rpartition("/")[2] for node in objects(schema) if isinstance(node.get("$ref"), str)}
    assert references == set(schema.get("$defs", {}))


def test_what_an_author_gives_away_is_noticed() -> None:
    class Telling(BaseAnswer):
        """Find out that it is BCL2."""

        a: str = VerifiedField("Such as Venetoclax.", "venetoclax", ExactMatch())
        b: str = VerifiedField("The target", "BCL2", ExactMatch())
        c: list[str] = VerifiedField("Genes", ["BAX"], SetContainment(), examples=[["BAX"]])
        d: Literal["up", "down"] = VerifiedField("Direction", "up", LiteralMatch())
        e: str = VerifiedField("Prevenetoclaxed", "ovenet", ExactMatch())
        f: int = VerifiedField("4 or 5?", 4, NumericExact())

    golds = {name: verification.ground_truth for name, verification in Telling.__verified__.items()}
    leaks = [finding.field for finding in lint_schema(judge_schema(Telling), golds) if finding.severity == "leak"]
    assert leaks == ["a", "b"]  # the examples never reach the judge


def test_filling_gives_an_instance_of_the_authors_class() -> None:
    answer = fill(Paper, GOOD)
    assert isinstance(answer, Paper)
    assert type(answer).__name__ == "Paper"
    assert isinstance(answer.authors[0], Person)
    assert answer.color is Color.RED
    assert answer.counts == {"a": 1}
    assert answer.remark is None
    assert extraction_class(Paper) is extraction_class(type(answer))


def test_a_verified_field_without_a_value_does_not_spoil_the_record() -> None:
    answer = fill(Paper, {"year": None, "drug": "venetoclax", "color": "blue", "remark": "r"})
    assert answer.model_dump(include={"year", "journal", "drug", "authors"}) == {
        "year": None,
        "journal": None,
        "drug": "venetoclax",
        "authors": None,
    }
    assert answer.verify() is False


def test_unknown_keys_are_dropped() -> None:
    answer = fill(Paper, {**GOOD, "id": "made up", "correct": {"year": 1}, "regex": {}, "other": 1})
    assert answer.id is None
    assert answer.correct["year"] == 2016
    assert not hasattr(answer, "other")
    assert not hasattr(answer, "regex")


def test_keys_may_be_the_schemas_or_the_fields_own() -> None:
    class Aliased(BaseAnswer):
        kind: str = VerifiedField("Kind", "a", ExactMatch(), alias="class")

    assert list(judge_schema(Aliased)["properties"]) == ["class"]
    assert fill(Aliased, {"class": "a"}).verify()
    assert fill(Aliased, {"kind": "a"}).verify()


def test_a_field_with_several_keys_is_refused() -> None:
    class Many(BaseAnswer):
        kind: str = VerifiedField("Kind", "a", ExactMatch(), validation_alias=AliasChoices("a", "b"))

    with pytest.raises(TemplateError, match="only be given one key"):
        judge_schema(Many)


def test_an_alias_may_not_take_the_place_of_the_questions_id() -> None:
    cls = create_model("Answer", __base__=BaseAnswer, x=(str, VerifiedField("x", "a", ExactMatch(), alias="id")))
    with pytest.raises(TemplateError, match="field 'x': the alias 'id' is reserved"):
        judge_schema(cls)


@pytest.mark.parametrize("data", [None, [], "year", {}, {"yaer": 2016}, {"id": "x", "correct": {}}])
def test_data_without_any_known_key_is_no_answer(data: Any) -> None:
    with pytest.raises(FillError, match="year, journal, drug, authors, note, color, counts, remark"):
        fill(Paper, data)


def test_every_problem_is_named_with_its_place() -> None:
    with pytest.raises(FillError) as caught:
        fill(Paper, {**GOOD, "year": "long ago", "journal": "Cell", "authors": [{"name": 3}], "color": "green"})
    text = str(caught.value)
    for line in (
        "- year: Input should be a valid integer, unable to parse string as an integer (got 'long ago')",
        "- journal: Input should be 'Nature' or 'Science' (got 'Cell')",
        "- authors[0].name: Input should be a valid string (got 3)",
        "- color: Input should be 'red' or 'blue' (got 'green')",
    ):
        assert line in text
    assert "2016" not in text


def test_a_missing_plain_field_is_a_problem() -> None:
    with pytest.raises(FillError, match="- remark: Field required"):
        fill(Paper, {"year": 2016, "color": "red"})


def test_bounds_hold_for_verified_fields() -> None:
    with pytest.raises(FillError, match="year: Input should be greater than or equal to 1900"):
        fill(Paper, {**GOOD, "year": 3})
    with pytest.raises(FillError, match="drug: String should have at most 20 characters"):
        fill(Paper, {**GOOD, "drug": "x" * 21})


def test_numbers_that_json_does_not_know_are_refused() -> None:
    cls = create_model("Answer", __base__=BaseAnswer, x=(float, VerifiedField("x", 1.5, NumericExact())))
    for value in (float("nan"), float("inf"), "nan"):
        with pytest.raises(FillError, match="x: Input should be a finite number"):
            fill(cls, {"x": value})


def test_a_flood_of_problems_is_cut_short() -> None:
    cls = create_model("Answer", __base__=BaseAnswer, x=(list[int], VerifiedField("x", [1], SetContainment())))
    with pytest.raises(FillError, match="and 980 more") as caught:
        fill(cls, {"x": ["a" * 200] * 1000})
    assert len(str(caught.value)) < 5000


class Careful(BaseAnswer):
    name: str = VerifiedField("Name", "abc", ExactMatch([]))
    _memory: list[int] = PrivateAttr(default_factory=list)

    @field_validator("name")
    @classmethod
    def tidy(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("not this one")
        return {"key": value}["wrong"] if value == "boom" else value.strip()


def test_the_authors_validators_run_and_never_meet_null() -> None:
    assert fill(Careful, {"name": " abc "}).verify()
    assert fill(Careful, {"name": None}).name is None
    assert fill(Careful, {"name": "abc"})._memory == []
    with pytest.raises(FillError, match="name: Value error, not this one"):
        fill(Careful, {"name": "bad"})
    with pytest.raises(TemplateError, match=r"KeyError: 'wrong' \(line \d+: return \{") as caught:
        fill(Careful, {"name": "boom"})
    assert not isinstance(caught.value, FillError)


def test_a_hook_that_fails_is_not_the_judges_fault() -> None:
    class Hooked(BaseAnswer):
        x: int

        def ground_truth(self) -> None:
            raise ValueError("no ground truth today")

    with pytest.raises(TemplateError, match=r"self\.correct raised ValueError: no ground truth today") as caught:
        fill(Hooked, {"x": 1})
    assert not isinstance(caught.value, FillError)


def test_two_answers_from_the_same_data_share_nothing() -> None:
    class Loose(BaseAnswer):
        anything: Any
        parts: list[Person]

    data = {"anything": {"list": [1]}, "parts": [{"name": "A"}]}
    first, second = fill(Loose, data), fill(Loose, data)
    first.anything["list"].append(2)
    first.parts[0].name = "B"
    assert second.anything == {"list": [1]}
    assert second.parts[0].name == "A"
    assert data == {"anything": {"list": [1]}, "parts": [{"name": "A"}]}


def test_strictness_of_an_author_is_kept() -> None:
    class Strict(BaseAnswer):
        model_config = ConfigDict(strict=True)
        x: int = VerifiedField("x", 1, NumericExact())

    with pytest.raises(FillError, match="x: Input should be a valid integer"):
        fill(Strict, {"x": "1"})


def test_values_as_json_data() -> None:
    value = {
        "set": {"b", "a"},
        "day": datetime.date(2020, 1, 2),
        "model": Person(name="A"),
        "color": Color.RED,
        "pair": (1, 2.5),
        "odd": float("inf"),
        3: None,
    }
    assert plain(value) == {
        "set": ["a", "b"],
        "day": "2020-01-02",
        "model": {"name": "A", "title": 0, "children": []},
        "color": "red",
        "pair": [1, 2.5],
        "odd": "inf",
        "3": None,
    }
    json.dumps(plain(value), allow_nan=False)
