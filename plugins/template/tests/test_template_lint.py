"""The linter finds expected values wherever the judge can read them, and nothing in templates that keep them."""

from __future__ import annotations

import asyncio
import datetime
import json
import re
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from attrs import frozen
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_runs.plan.templates import TemplateLoader
from karenina_template.language.extraction import judge_schema
from karenina_template.language.verification import Verification
from karenina_template.lint.lint import Finding, lint_benchmark, lint_schema, lint_template, one_sided_positions
from karenina_template.lint.patterns import ANYTHING, accepted_by, accepted_texts, spelled_out
from karenina_template.lint.references import Targets, mentions, same
from karenina_vocabulary.handle import TemplateField
from pydantic import BaseModel, Field, create_model

from karenina_core import Benchmark, Karenina
from karenina_core.templates import (
    AliasMatch,
    BaseAnswer,
    ContainsAll,
    ContainsAny,
    ExactMatch,
    LiteralMatch,
    NumericRange,
    RegexMatch,
    VerifiedField,
)

REPOSITORY = Path(__file__).parents[3]
LAW = settings(database=None, deadline=None, derandomize=True, max_examples=150)
FEWER = settings(LAW, max_examples=settings().max_examples * 3 // 2)
"""For laws that hardly depend on what is drawn; as many with `--long`."""
CLEAN = "What the response settles on"


def schema_of(name: str = "x", /, **parts: Any) -> dict[str, Any]:
    """A schema with one field."""
    return {"type": "object", "properties": {name: {"description": CLEAN, **parts}}}


def found(expected: Any, **parts: Any) -> list[tuple[str, str]]:
    """`(where, severity)` of all findings on a schema with the one field `x`."""
    return [(item.where, item.severity) for item in lint_schema(schema_of(**parts), {"x": expected})]


# Templates that keep their answers

BENIGN: list[tuple[str, Any]] = [
    ("The protein that the response names as the target of venetoclax", "BCL2"),
    ("The gatekeeper substitution, in one-letter notation such as A123B", "T315I"),
    ("The cytochrome P450 enzyme that the response names, such as CYP1A2", "CYP3A4"),
    ("The star allele that the response names, such as *1", "*2A"),
    ("Number of half-lives that the response counts in 24 hours", 4),
    ("Percentage of the dose that is still in the body, from 0 to 100", 6.25),
    ("Percentage of patients, from 0 to 100", 100),
    ("Daily starting dose in mg that the response states", 960),
    ("Number of TA repeats that the response gives for the allele *28", 28),
    ("Concentration of IL-2 in pg/ml", 2),
    ("The active metabolite; write SN-38 with its hyphen", 38),
    ("Whether the response says that hypokalaemia makes toxicity more likely", True),
    ("True if the response says that the drug is indicated, false otherwise", True),
    ("True when the response commits itself; null if it does not", True),
    ("Whether the response claims that the statement is true", True),
    ("Answer yes or no", "yes"),
    ("Use 'other' if none of the options fits", "other"),
    ("Should be 0 if the response says that there is none", 0),
    ("If the response gives no number, it should be 0", 0),
    ("A score from 1 to 5, where 5 is best", 4),
    ("Number of siblings; must be 1 or 2", 1),
    ("Count of kinases, at least 1", 1),
    ("How certain the response is, on a scale of 10", 10),
    ("The year in four digits, e.g. 1999", 2016),
    ("Date of approval as YYYY-MM-DD, for example 1999-12-31", "2016-04-11"),
    ("Molar mass in g/mol, with 1 decimal", 493.6),
    ("Ratio with 3 significant digits, such as 0.523", 1.37),
    ("HGNC symbols of the kinases, also where the response uses other names", ["ALK", "MET", "ROS1"]),
    ("Procoagulant clotting factors; Roman numerals only, such as XII", ["II", "VII", "IX", "X"]),
    ("Numbers of the exons, counted from 1", [19, 21]),
    ("Text of the answer", "text"),
    ("The value in K (kelvin)", "K"),
    ("Interval between 41 and 430 days", 4),
    ("Version 4.2.1 of the nomenclature applies", 4.2),
    ("Section 12/42 of the guideline", 42),
    ("The name of the city, in English", "Paris"),
    ("Stage by the TNM system of 2017, as the response gives it", "T2N0M0"),
    ("Number of moons (2 digits at most)", 79),
    ("Return 2 decimals", 2),
    ("Return the symbol in capitals", "In"),
    ("Return Au if it is gold", "Au"),
    ("Shakespeare scholars call it differently; give the name", "William Shakespeare"),
    ("Who wrote it, not Marlowe", "William Shakespeare"),
]


@pytest.mark.parametrize(("description", "expected"), BENIGN)
def test_ordinary_descriptions_give_nothing(description: str, expected: Any) -> None:
    assert found(expected, description=description) == []


@pytest.mark.parametrize(
    ("expected", "parts"),
    [
        ("CLL", {"enum": ["AML", "CLL", "other"]}),
        ("rises", {"enum": ["rises", "falls"], "description": "Whether the exposure rises or falls"}),
        ("rises", {"enum": ["rises", "falls"], "examples": ["rises", "falls"]}),
        ("other", {"enum": ["liver", "other"], "description": "The organ; other where it is none of them"}),
        (["ALK"], {"type": "array", "items": {"enum": ["ALK", "MET"]}}),
        (0, {"type": "integer", "minimum": 0}),
        (100, {"type": "number", "minimum": 0, "maximum": 100}),
        (1, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
        (3, {"type": "integer", "minimum": 1, "maximum": 5}),
        (2016, {"type": "integer", "minimum": 1900, "maximum": 2100}),
        (42, {"anyOf": [{"type": "integer", "minimum": 100, "maximum": 101}, {"type": "integer", "minimum": 0}]}),
        ("NCT02296125", {"type": "string", "pattern": r"^NCT\d{8}$"}),
        ("BCL2", {"type": "string", "pattern": "^[A-Z0-9]+$"}),
        ("CLL", {"type": "string", "pattern": "^(AML|CLL|FL)$"}),
        ("FR", {"type": "string", "minLength": 2, "maxLength": 2}),
        (True, {"type": "boolean", "examples": [True, False]}),
        (2, {"examples": [1, 2, 3]}),
        ("BCL2", {"default": None}),
        ("BCL2", {"x-order": 3, "format": "symbol", "x-answer-format": "one symbol"}),
    ],
)
def test_ordinary_schemas_give_nothing(expected: Any, parts: dict[str, Any]) -> None:
    assert found(expected, **parts) == []


@pytest.mark.parametrize("path", ["examples/pharmacology.jsonld", "plugins/demo/karenina_demo/data/demo.jsonld"])
def test_the_bundled_benchmarks_give_nothing(path: str) -> None:
    app = Karenina.installed()
    benchmark = Benchmark.load(REPOSITORY / path, app=app)

    async def load() -> list[Any]:
        loader = TemplateLoader(app, "trusted")
        return [await loader.load(question.template) for question in benchmark if question.template]

    handles = asyncio.run(load())
    assert len(handles) == len(benchmark)
    assert {question.id: lint_template(handle) for question, handle in zip(benchmark, handles, strict=True)} == {
        question.id: () for question in benchmark
    }
    assert lint_benchmark(handles) == ()


VOCABULARY = """
The the response that names gives says number of amount in mg per day as it stands first last highest level e.g. such as
whether if null should be correct from 0 to 100 one of or and; 1 2 10 %
"""


@LAW
@given(
    st.lists(st.sampled_from(VOCABULARY.split()), min_size=1, max_size=25),
    st.sampled_from(["BCL2", "Paris", 42, 6.25, 2016]),
)
def test_words_and_numbers_that_are_not_expected_give_nothing(words: list[str], expected: Any) -> None:
    assert found(expected, description=" ".join(words)) == []


# Planted answers

SYMBOLS = st.from_regex(r"[A-Z]{3}[A-Z0-9]{1,4}", fullmatch=True).filter(str.isidentifier)
NUMBERS = st.one_of(
    st.integers(101, 10**9).filter(lambda n: n % 10), st.decimals("0.11", "99", places=2).filter(lambda d: d % 1)
).map(lambda n: float(n) if isinstance(n, Decimal) else n)
DATES = st.dates(datetime.date(1800, 1, 1), datetime.date(2100, 1, 1)).map(str)
VALUES: Mapping[str, st.SearchStrategy[Any]] = {"text": SYMBOLS, "number": NUMBERS, "date": DATES}
Plant = Callable[[Any], dict[str, Any]]
ANY_VALUE = ("text", "number", "date")


def _with_other_field(value: Any) -> dict[str, Any]:
    return {"properties": {"x": {"description": CLEAN}, "y": {"description": f"Whether it says that {value} matters"}}}


def _in_nested_model(value: Any) -> dict[str, Any]:
    inner = {"properties": {"part": {"description": f"such as {value}"}}}
    return {"properties": {"x": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}}, "$defs": {"Inner": inner}}


PLANTS: dict[str, tuple[tuple[str, ...], str, Plant]] = {
    "description": (ANY_VALUE, "description", lambda v: schema_of(description=f"The value, e.g. {v}")),
    "statement": (ANY_VALUE, "description", lambda v: schema_of(description=f"The correct answer is {v}.")),
    "brackets": (ANY_VALUE, "description", lambda v: schema_of(description=f"What the response settles on ({v})")),
    "title": (ANY_VALUE, "title", lambda v: schema_of(title=f"Is it {v}?")),
    "default": (ANY_VALUE, "default", lambda v: schema_of(default=v)),
    "examples": (ANY_VALUE, "examples", lambda v: schema_of(examples=["something", v])),
    "examples of the model": (ANY_VALUE, "examples", lambda v: {**schema_of(), "examples": [{"x": v}]}),
    "const": (ANY_VALUE, "const", lambda v: schema_of(anyOf=[{"const": v}, {"type": "null"}])),
    "one option": (ANY_VALUE, "const", lambda v: schema_of(enum=[v])),
    "pattern": (("text", "date"), "pattern", lambda v: schema_of(type="string", pattern=f"^{re.escape(v)}$")),
    "open pattern": (("text",), "pattern", lambda v: schema_of(anyOf=[{"pattern": rf"(?i).*\b{v}\b.*"}])),
    "bounds": (("number",), "bounds", lambda v: schema_of(type="number", minimum=v, maximum=v)),
    "tight bounds": (
        ("number",),
        "bounds",
        lambda v: schema_of(type="number", exclusiveMinimum=v * 0.998, maximum=v * 1.002),
    ),
    "leftover": (ANY_VALUE, "extra", lambda v: schema_of(**{"x-solution": {"value": v}})),
    "verification": (ANY_VALUE, "extra", lambda v: schema_of(**{"__verification__": {"ground_truth": v}})),
    "comment": (ANY_VALUE, "extra", lambda v: schema_of(**{"$comment": f"we want {v} here"})),
    "leftover of the model": (ANY_VALUE, "extra", lambda v: {**schema_of(), "x-answers": {"x": v}}),
    "class docstring": (("text", "date"), "description", lambda v: {**schema_of(), "description": f"Is it {v}?"}),
    "another field": (("text", "date"), "description", _with_other_field),
    "a nested model": (("text", "date"), "description", _in_nested_model),
    "field name": (
        ("text",),
        "name",
        lambda v: {"properties": {"x": {"description": CLEAN}, f"is_{v.lower()}_blocker": {"type": "boolean"}}},
    ),
}


@pytest.mark.parametrize("kind", VALUES)
@FEWER
@given(st.data())
def test_a_template_that_tells_its_expected_value_where_the_judge_reads_is_a_leak(
    kind: str, data: st.DataObject
) -> None:
    """Each value in every place: to draw one takes longer than to look for it."""
    value = data.draw(VALUES[kind])
    for place, (kinds, where, plant) in PLANTS.items():
        if kind in kinds:
            findings = lint_schema(plant(value), {"x": value})
            assert ("x", where, "leak") in [(item.field, item.where, item.severity) for item in findings], place
            assert all(item.where == where for item in findings), place


@pytest.mark.parametrize("place", PLANTS)
def test_the_same_template_with_another_expected_value_is_none(place: str) -> None:
    kinds, _, plant = PLANTS[place]
    value, other = ("QWERTY", "ASDFGH") if "text" in kinds else (987.5, 321.5)
    assert lint_schema(plant(value), {"x": value})
    assert [item.severity for item in lint_schema(plant(value), {"x": other}) if item.where != "extra"] == []


@LAW
@given(st.data())
def test_a_value_planted_in_a_class_is_found_in_its_judge_schema(data: st.DataObject) -> None:
    value = data.draw(SYMBOLS)
    inner = create_model("Inner", __doc__=f"Mostly {value}.", part=(str, Field(description=CLEAN)))
    plain_field: dict[str, Any] = data.draw(
        st.sampled_from([{"default": value}, {"examples": [value]}, {"pattern": f"^{value}$"}])
    )
    cases: list[tuple[dict[str, Any], str]] = [
        ({"x": (str, VerifiedField(f"The symbol ({value})", value, ExactMatch()))}, "description"),
        ({"x": (str, VerifiedField(CLEAN, value, ExactMatch(), pattern=f"^{value}$"))}, "pattern"),
        ({"x": (Literal[value], VerifiedField(CLEAN, value, LiteralMatch()))}, "const"),
        ({"x": (inner, Field(description=CLEAN))}, "description"),
        ({"x": (str, Field(description=CLEAN, **plain_field))}, next(iter(plain_field))),
    ]
    fields, where = data.draw(st.sampled_from(cases))
    schema = judge_schema(create_model("Answer", __base__=BaseAnswer, **fields))
    assert [(item.where, item.severity) for item in lint_schema(schema, {"x": value})] == [(where, "leak")]


# How values are recognised


@FEWER
@given(
    st.integers(3, 10**6), st.sampled_from(["{}", "{}.0", "{:,}", "+{}", "{} mg", "{}mg", "({})", "{}%", "'{}'", "{}."])
)
def test_a_number_is_found_however_it_is_written(number: int, form: str) -> None:
    assume(number not in (10, 100, 1000))
    text = "The dose should be " + form.format(number)
    assert [mention.stated for mention in mentions(text, number)] == [True]
    assert [mention.stated for mention in mentions(text, str(number))] == [True]
    assert mentions(f"{Decimal(number):e}", number) != []


@LAW
@given(
    st.integers(3, 9999),
    st.sampled_from(["1{}", "{}7", "{}.5", "0.{}1", "x{}", "IL-{}", "{}-fold", "v{}.1", "*{}", "{}/9", "3,{}", "{}th"]),
)
def test_a_number_is_not_found_inside_others_and_names(number: int, form: str) -> None:
    assume(not form.startswith("3,") or number < 100 or number > 999)
    assert mentions(f"It is {form.format(number)} here", number) == []


@pytest.mark.parametrize(
    ("text", "value", "mentioned"),
    [
        ("the Bcl-2 protein", "BCL2", True),
        ("the BCL 2 protein", "BCL2", True),
        ("the BCL2L1 gene", "BCL2", False),
        ("proto-BCL2x", "BCL2", False),
        ("binds PDL1", "PD-L1", True),
        ("the na+ / k+ atpase", "Na+/K+-ATPase", True),
        ("vitamin\n K epoxide  reductase", "vitamin K epoxide reductase", True),
        ("a dose of 15 mg", "1.5 mg", False),
        ("STRASSE", "Strasse", True),
        ("ＢＣＬ２ in full width", "BCL2", True),
        ("half of 6.25 % is", 0.0625, True),
        ("minus −4.5 volts", -4.5, True),
        ("4.2e1", 42, True),
    ],
)
def test_spellings(text: str, value: Any, mentioned: bool) -> None:
    assert bool(mentions(text, value)) is mentioned


@FEWER
@given(
    st.dates(datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)),
    st.sampled_from(
        ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d %B %Y", "%B %d, %Y", "%d %b. %Y", "%Y%m%d", "%Y/%m/%d"]
    ),
)
def test_a_date_is_found_however_it_is_written(date: datetime.date, form: str) -> None:
    text = f"The day ({date.strftime(form)}) of approval"
    assert mentions(text, date.isoformat()) != []
    later = date + datetime.timedelta(days=367)
    assert mentions(text, later.isoformat()) == []
    assert [item.severity for item in lint_schema(schema_of(description=text), {"x": date})] == ["leak"]


@pytest.mark.parametrize(
    ("description", "expected", "severity"),
    [
        ("The number, should be 2", 2, "leak"),
        ("The number, e.g. 2", 2, "hint"),
        ("The number of 2 sided tests", 2, None),
        ("The dose given every 3 weeks", 3, "hint"),
        ("The dose given every 3 weeks, expected: 3", 3, "leak"),
        ("Between 41 and 43", 43, "note"),
        ("True because the drug binds it", True, "note"),
        ("The expected value is false", False, "note"),
        ("The expected value is false", True, None),
        ("No, because the label says so", False, "note"),
        ("The correct answer is no", "no", "leak"),
        ("One of increase, decrease or no change", "increase", "hint"),
        ("Kinases: ALK, MET and ROS1", ["ALK", "MET", "ROS1"], "leak"),
        ("Kinases such as ALK", ["ALK", "MET", "ROS1"], "hint"),
        ("Clotting factors: II, VII, IX and X", ["II", "VII", "IX", "X"], "leak"),
        ("Exons 19 and 21", [19, 21], "hint"),
        ("Choose among ALK, MET, ROS1, RET", ["ALK", "MET"], "hint"),
        ("Kinases: ALK, MET, ROS1 or RET", ["ALK", "MET"], "hint"),
        ("Kinases: ALK or MET", ["ALK", "MET"], "leak"),
        ("The unit: days, weeks or months", "days", "hint"),
        ("The unit: days, weeks or months", "months", "hint"),
        ("What it does, inhibit or activate", "activate", "hint"),
        ("The protein: BCL2, MCL1 or BCL-XL", "MCL1", "hint"),
        ("The protein BCL2 or Bcl-2", "BCL2", "leak"),
        ("The target (BCL2), gene symbol or full name", "BCL2", "leak"),
        ("The protein by symbol or name, e.g. BCL2", "BCL2", "leak"),
        ("The response (partial response, complete response, stable disease)", "complete response", "hint"),
        ("The class (kinase inhibitor, BCL2 inhibitor, antibody, ...)", "BCL2 inhibitor", "hint"),
        ("The drug (ABT-199, venetoclax)", "venetoclax", "leak"),
        ("Surname: García Márquez", "Garcia Marquez", "leak"),
        ("Surname: Garcia Marquez", "García Márquez", "leak"),
        ("Author: Shakespeare", "William Shakespeare", "hint"),
        ("Symbol, Au", "Au", "leak"),
        ("Must match 'Au'", "Au", "leak"),
        ("The element, namely Au", "Au", "leak"),
        ("The element which is Au.", "Au", "leak"),
        ("Return Au.", "Au", "leak"),
        ("Number of chromosomes, which is 46", 46, "leak"),
        ("Number of chromosomes (46)", 46, "hint"),
        ("The dose, 400mg", 400, "hint"),
        ("The dose must match 400mg", 400, "leak"),
        ("About 1,000,000 cells", 1_000_000, "hint"),
    ],
)
def test_how_bad_a_description_is(description: str, expected: Any, severity: str | None) -> None:
    assert found(expected, description=description) == ([("description", severity)] if severity else [])


@pytest.mark.parametrize(
    ("expected", "parts", "result"),
    [
        (42, {"type": "integer", "exclusiveMinimum": 41, "exclusiveMaximum": 43}, ("bounds", "leak")),
        (42, {"type": "integer", "minimum": 40, "maximum": 44, "multipleOf": 21}, ("bounds", "leak")),
        (2016, {"type": "integer", "minimum": 2014, "maximum": 2018}, ("bounds", "hint")),
        (97.0, {"type": "number", "minimum": 95, "maximum": 99}, ("bounds", "hint")),
        (42, {"type": "integer", "minimum": 42}, ("bounds", "hint")),
        (24, {"type": "integer", "minimum": 0, "maximum": 24}, ("bounds", "note")),
        (48, {"type": "integer", "multipleOf": 48}, ("bounds", "hint")),
        (["a1", "b2"], {"type": "array", "minItems": 2, "maxItems": 2}, ("bounds", "note")),
        ("SN-38", {"pattern": r"\bSN[- ]?38\b"}, ("pattern", "leak")),
        ("BCL2", {"pattern": "^(BCL2|Bcl-2)$"}, ("pattern", "leak")),
        ("BCL2", {"pattern": r"(?=BCL2)\w+"}, ("pattern", "hint")),
        (True, {"type": "boolean", "const": True}, ("const", "leak")),
        (True, {"type": "boolean", "default": True}, ("default", "hint")),
        (0, {"type": "integer", "default": 0}, ("default", "hint")),
        (["ALK", "MET"], {"items": {"enum": ["ALK", "MET"]}}, ("enum", "hint")),
        (["ALK", "MET"], {"default": ["MET", "ALK"]}, ("default", "leak")),
        (["ALK", "MET"], {"examples": [["ALK"]]}, ("examples", "hint")),
        ("other", {"default": "other"}, ("default", "hint")),
        ("CLL", {"enum": ["AML", "CLL"], "description": "CLL or what else it names"}, ("description", "hint")),
        (True, {"x-expected": True}, ("extra", "leak")),
        (True, {"ground_truth": "see the notes"}, ("extra", "hint")),
    ],
)
def test_how_bad_a_schema_is(expected: Any, parts: dict[str, Any], result: tuple[str, str]) -> None:
    assert found(expected, **parts) == [result]


def test_expected_values_inside_nested_models_are_named_by_their_path() -> None:
    class Dose(BaseModel):
        kind: Literal["oral"] = "oral"
        amount: float = Field(description="The amount, 12.5 for adults")

    class Answer(BaseAnswer):
        dose: Dose = Field(description=CLEAN)
        doses: list[Dose] = Field(description=CLEAN)

    truth = Dose(amount=12.5)
    findings = lint_schema(judge_schema(Answer), {"dose": truth, "doses": [truth]})
    assert [(item.field, item.where, item.severity) for item in findings if item.field != "doses.kind"] == [
        ("dose.kind", "default", "leak"),
        ("dose.kind", "const", "leak"),
        ("dose.amount", "description", "leak"),
        ("doses.amount", "description", "leak"),
    ]


def test_another_field_that_names_one_member_of_a_set_says_nothing_and_all_of_them_everything() -> None:
    schema = {"properties": {"x": {"description": CLEAN}, "y": {"description": "Whether it says that ALK comes first"}}}
    assert lint_schema(schema, {"x": ["ALK", "MET"], "y": True}) == ()
    schema["properties"]["y"]["description"] = "Whether it says that ALK comes before MET"
    assert [(item.field, item.severity) for item in lint_schema(schema, {"x": ["ALK", "MET"]})] == [("x", "leak")]


def test_what_tells_the_members_of_a_union_apart_is_no_finding() -> None:
    union = {
        "oneOf": [
            {"properties": {"kind": {"const": "oral"}, "mg": {"type": "number"}}},
            {"properties": {"kind": {"const": "infusion"}}},
        ],
        "discriminator": {"propertyName": "kind"},
    }
    assert lint_schema({"properties": {"x": union}}, {"x": {"kind": "oral", "mg": 7}}) == ()


def test_models_that_refer_to_themselves_are_read_once() -> None:
    schema = {
        "properties": {"x": {"$ref": "#/$defs/Tree"}},
        "$defs": {
            "Tree": {"description": "BCL2 and more", "properties": {"left": {"$ref": "#/$defs/Tree"}}},
            "Unused": {"description": "Not BCL2"},
        },
    }
    assert [item.message.partition(" names")[0] for item in lint_schema(schema, {"x": "BCL2"})] == [
        "the description of 'x'",
        "the class docstring",
    ]


@pytest.mark.parametrize(
    ("docstring", "expected", "severity"),
    [
        ("The answer is venetoclax.", "venetoclax", "leak"),
        ("About venetoclax.", "venetoclax", "hint"),
        ("The correct number is 46.", 46, "leak"),
        ("The correct answer is yes.", "yes", None),
    ],
)
def test_what_a_docstring_says_is_right_is_a_leak(docstring: str, expected: Any, severity: str | None) -> None:
    findings = lint_schema({**schema_of(), "description": docstring}, {"x": expected})
    assert [item.severity for item in findings] == ([severity] if severity else [])


def test_each_accepted_value_counts_in_place_of_a_ground_truth_that_is_not_used() -> None:
    schema = schema_of(description="Such as ABT-199; N/A where there is none")
    accepted: dict[str, Any] = {"x": ("venetoclax", "ABT-199")}
    assert [f.severity for f in lint_schema(schema, {"x": "N/A"}, accepted=accepted)] == ["leak"]
    both: dict[str, Any] = {"x": (["venetoclax", "ABT-199"],)}
    assert [f.severity for f in lint_schema(schema, {"x": "N/A"}, accepted=both)] == ["hint"]
    assert lint_schema(schema_of(description="Of 0 or more"), {"x": 0.0}, accepted={"x": ()}) == ()


@pytest.mark.parametrize(
    ("primitive", "accepted"),
    [
        (ContainsAny(["a", "b"]), ("a", "b")),
        (ContainsAll(["a", "b"]), (["a", "b"],)),
        (RegexMatch(r"(?i)\bBCL-?2\b"), ("BCL-2", "BCL2")),
        (RegexMatch(r"^.*venetoclax.*$"), ("venetoclax",)),
        (RegexMatch(r"NCT\d{8}"), ()),
        (NumericRange(min=1, max=2), ()),
    ],
)
def test_what_a_primitive_accepts_is_read_off_its_parameters(primitive: Any, accepted: tuple[Any, ...]) -> None:
    assert accepted_texts(primitive) == accepted
    verified = {"x": Verification("N/A", primitive), "y": Verification("gout", ExactMatch())}
    assert accepted_by(verified) == {"x": accepted}


def test_other_forms_of_the_expected_value_are_accepted_beside_it() -> None:
    synonyms = ExactMatch(["lowercase", {"mapping": {"podagra": "gout"}}])
    verified = {"x": Verification("gout", AliasMatch(["Gicht"])), "y": Verification("Gout", synonyms)}
    assert accepted_by(verified) == {"x": ("gout", "Gicht"), "y": ("Gout", "podagra")}


LARGE = 5000


@pytest.mark.parametrize(
    "parts",
    [
        {"description": "All genes that the response names, e.g. gene 7"},
        {"description": "See the examples", "examples": [f"gene{number} alpha" for number in range(LARGE)]},
        {"items": {"enum": [f"gene{number} alpha" for number in range(LARGE)]}},
    ],
    ids=["description", "examples", "options"],
)
def test_the_time_follows_the_size_of_a_ground_truth(parts: dict[str, Any]) -> None:
    members = [f"gene{number} alpha" for number in range(0, LARGE, 2)]
    started = time.process_time()
    lint_schema(schema_of(**parts), {"x": members})
    assert time.process_time() - started < 3  # it takes 0.1 s; a comparison of every pair takes minutes


def test_only_values_that_a_text_may_name_are_searched_in_it() -> None:
    targets = Targets([f"{word} {number}" for number in range(LARGE) for word in ("gene", "exon")])
    text = "Genes and exons, such as gene 1234"
    assert list(targets.named_in(text)) == ["gene 1234"]
    assert len(targets.candidates(text)) < 100


@LAW
@given(
    st.text(max_size=40), st.lists(st.text(min_size=1, max_size=12) | NUMBERS | st.booleans(), max_size=6), st.data()
)
def test_many_values_are_found_as_each_of_them_alone(text: str, values: list[Any], data: st.DataObject) -> None:
    values = list(dict.fromkeys(values))
    if values:
        text += f" {data.draw(st.sampled_from(values))} {text}"
    targets = Targets(values)
    assert targets.named_in(text) == {value: found for value in values if (found := mentions(text, value))}
    assert [targets.equal_to(value) for value in values] == [[v for v in values if same(value, v)] for value in values]


def test_a_value_that_the_question_names_weighs_less() -> None:
    schema = schema_of(description="The stronger one, such as imatinib")
    question = "Is imatinib or dasatinib stronger?"
    assert [f.severity for f in lint_schema(schema, {"x": "imatinib"}, question=question)] == ["hint"]
    stated = schema_of(description="The stronger one, should be imatinib")
    assert [f.severity for f in lint_schema(stated, {"x": "imatinib"}, question=question)] == ["leak"]


# Whole templates and benchmarks


@frozen
class Handle:
    """What the linter uses of a handle."""

    described: Mapping[str, Any]
    expected: Mapping[str, Any]
    asked: tuple[TemplateField, ...] = ()
    traced: tuple[TemplateField, ...] = ()

    def schema(self) -> dict[str, Any]:
        return dict(self.described)

    def ground_truth(self) -> Mapping[str, Any]:
        return self.expected

    def fields(self) -> tuple[TemplateField, ...]:
        return self.asked

    def trace_fields(self) -> tuple[TemplateField, ...]:
        return self.traced


def test_hints_and_keys_of_the_author_s_own_are_followed_and_trace_fields_left_out() -> None:
    handle: Any = Handle(
        schema_of("theTarget", examples=["QWERTY"]),
        {"target": "QWERTY", "registry": "NCT02296125"},
        (TemplateField("target", "str", CLEAN, True, hint="It is QWERTY; not NCT02296125"),),
        (TemplateField("registry", "str", "", True),),
    )
    assert [(item.field, item.where, item.severity) for item in lint_template(handle)] == [
        ("target", "examples", "leak"),
        ("target", "hint", "leak"),
    ]


PYTHON = """
class Answer(BaseAnswer):
    '''Whether it is QWERTY.'''

    target: str = VerifiedField(
        description="The target", ground_truth="QWERTY", verify_with=ExactMatch(), alias="theTarget",
        extraction_hint="Q W E R T Y is also written QWERTY",
    )
"""


def test_a_loaded_template_is_read_as_the_judge_reads_it() -> None:
    from karenina_core.values.question import TemplateSource

    async def load() -> Any:
        return await TemplateLoader(Karenina.installed(), "trusted").load(TemplateSource(PYTHON))

    findings = lint_template(asyncio.run(load()))
    assert [(item.where, item.severity) for item in findings] == [("description", "leak"), ("hint", "leak")]
    assert str(findings[0]).startswith("target: the class docstring names the expected value, 'QWERTY'")


def handles(lists: list[tuple[list[str], str]]) -> list[Any]:
    return [Handle(schema_of(enum=options), {"x": expected}) for options, expected in lists]


@pytest.mark.parametrize(
    ("options", "count", "reported"),
    [(4, 4, False), (4, 5, True), (2, 9, False), (2, 10, True), (5, 5, True)],
)
@pytest.mark.parametrize("end", ["first", "last"])
def test_an_expected_option_that_is_always_at_one_end_is_reported_when_it_is_no_chance(
    options: int, count: int, reported: bool, end: str
) -> None:
    names = ["z", "b", "x", "a", "k"][:options]
    expected = names[0 if end == "first" else -1]
    findings = lint_benchmark(handles([(names, expected)] * count))
    assert [(item.field, item.where, item.severity) for item in findings] == (
        [(None, "enum_order", "hint")] if reported else []
    )
    assert all(f"the {end} option in {count} of {count}" in item.message for item in findings)


def test_sorted_lists_say_nothing_about_their_author() -> None:
    assert lint_benchmark(handles([(["a", "b", "c", "d"], "a")] * 50)) == ()
    assert list(one_sided_positions([([1, 2, 3], 1)] * 50)) == []


def test_fair_benchmarks_are_hardly_ever_reported() -> None:
    random = Random(7)
    reported = 0
    for _ in range(500):
        lists = []
        for _ in range(20):
            options = random.sample(["north", "east", "south", "west", "up", "down"], random.randint(2, 5))
            lists.append((options, random.choice(options)))
        reported += bool(list(one_sided_positions(lists)))
    assert reported <= 4  # 0.002 * 500 = 1 at most on average


# The reading itself

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = (
    *("properties", "$defs", "$ref", "anyOf", "items", "enum", "const", "default", "examples"),
    *("description", "title", "minimum", "maximum", "pattern", "discriminator"),
)


@LAW
@given(
    st.dictionaries(st.sampled_from(KEYS), st.dictionaries(st.sampled_from([*KEYS, "x", "y"]), JSON) | JSON),
    st.dictionaries(st.sampled_from(["x", "y"]), JSON),
)
def test_no_schema_and_no_ground_truth_is_too_odd_and_the_order_is_always_the_same(
    schema: dict[str, Any], expected: dict[str, Any]
) -> None:
    findings = lint_schema(schema, expected)
    assert findings == lint_schema(json.loads(json.dumps(schema)), json.loads(json.dumps(expected)))
    assert len(set(findings)) == len(findings)
    assert all(isinstance(item, Finding) and item.message and str(item) for item in findings)


PIECES = st.sampled_from(
    ["a", "B", "7", r"\.", "-", "[ab]", "[a-c]", "(?:x|yz)", "(p|q)", "c?", "d{2}", "e{1,2}", "^", "$"]
)


@FEWER
@given(st.lists(PIECES, max_size=3).map("".join))  # of more, there may be too many texts
def test_the_texts_of_a_pattern_are_those_that_it_matches(pattern: str) -> None:
    texts = spelled_out(pattern)
    assume(texts is not None)
    bare = pattern.replace("^", "").replace("$", "")
    assert texts is not None
    assert all(re.fullmatch(bare, text) for text in texts)
    assert all(ANYTHING not in text for text in texts)


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"BCL\d", {f"BCL{ANYTHING}"}),
        (r"^NCT\d{8}$", {"NCT" + 8 * ANYTHING}),
        (".*BCL2", {f"{ANYTHING}BCL2"}),
        ("(?i)^a(?P<n>b|c)$", {"ab", "ac"}),
        ("(?!a)b", None),
        (r"(a)\1", None),
        ("a{", {"a{"}),
        ("[[a]", None),
        ("[a--b]", None),
        ("(a", None),
        ("a)", None),
        ("*", None),
        ("[a", None),
        ("(" * 5000, None),
        ("[^a]b", {f"{ANYTHING}b"}),
    ],
)
def test_patterns_are_read_without_being_run(pattern: str, texts: set[str] | None) -> None:
    found = spelled_out(pattern)
    assert found == (texts if texts is None else frozenset(texts))
