"""Templates as data."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from karenina_template import declarative_templates
from karenina_template.declarative_templates import SHORT, DeclarativeRuntime
from karenina_template.primitives import NAMES

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.ports.threads import in_own_thread
from karenina_core.templates import FilledTemplate, TemplateHandle, TemplateRuntime

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
RUNTIME = DeclarativeRuntime()
FIELD = {
    "name": "target",
    "type": "str",
    "description": "The target",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}


def load(spec: Any) -> Any:
    text = spec if isinstance(spec, str) else json.dumps(spec)
    return asyncio.run(RUNTIME.load(text, PRIMITIVES))


def with_field(**changes: Any) -> dict[str, Any]:
    field = {**FIELD, **changes}
    return {"fields": [{key: value for key, value in field.items() if value is not ...}]}


def verdict(handle: Any, data: Any) -> Any:
    async def run() -> Any:
        return await (await handle.build(data)).verify("")

    return asyncio.run(run())


def test_the_runtime_says_what_it_is() -> None:
    assert isinstance(RUNTIME, TemplateRuntime)
    assert (RUNTIME.name, RUNTIME.executes_code, RUNTIME.isolation) == ("declarative", False, "no-code")
    assert frozenset({"karenina-template"}) == RUNTIME.languages
    handle = load(with_field())
    assert isinstance(handle, TemplateHandle)
    assert handle.isolation == "no-code"
    assert isinstance(asyncio.run(handle.build({"target": "x"})), FilledTemplate)


@pytest.mark.parametrize(
    ("changes", "threads"),
    [
        ({}, 0),
        ({"description": "long " * SHORT}, 1),
        ({"verify_with": {"type": "RegexMatch", "pattern": "BCL2+"}, "ground_truth": "N/A"}, 1),
    ],
    ids=["short", "long", "pattern"],
)
def test_only_a_template_that_may_take_long_is_loaded_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], threads: int
) -> None:
    begun: list[str] = []

    async def counted(call: Any, name: str) -> Any:
        begun.append(name)
        return await in_own_thread(call, name)

    monkeypatch.setattr(declarative_templates, "in_own_thread", counted)
    assert [field.name for field in load(with_field(**changes)).fields()] == ["target"]
    assert len(begun) == threads


def test_a_template_of_every_type() -> None:
    handle = load(
        {
            "class_name": "Study",
            "verify_strategy": None,
            "fields": [
                {**FIELD, "extraction_hint": "the gene", "weight": 2, "is_trace": False},
                {**FIELD, "name": "ok", "type": "bool", "ground_truth": "yes", "verify_with": {"type": "BooleanMatch"}},
                {**FIELD, "name": "n", "type": "int", "ground_truth": "5", "verify_with": {"type": "LiteralMatch"}},
                {
                    **FIELD,
                    "name": "dose",
                    "type": "float",
                    "ground_truth": 400,
                    "verify_with": {"type": "NumericTolerance", "tolerance": 0.05},
                },
                {
                    **FIELD,
                    "name": "genes",
                    "type": "list_str",
                    "ground_truth": ["BAX", "BCL2"],
                    "verify_with": {"type": "SetContainment", "mode": "superset"},
                },
                {
                    **FIELD,
                    "name": "effect",
                    "type": "literal",
                    "literal_values": ["up", "down"],
                    "ground_truth": "up",
                    "verify_with": {"type": "LiteralMatch"},
                },
                {
                    **FIELD,
                    "name": "cite",
                    "ground_truth": "N/A",
                    "verify_with": {"type": "RegexMatch", "pattern": "^doi:", "flags": ["IGNORECASE"]},
                },
                {
                    **FIELD,
                    "name": "day",
                    "type": "date",
                    "ground_truth": "2016-04-11",
                    "verify_with": {"type": "DateTolerance", "tolerance": 1},
                },
                {
                    **FIELD,
                    "name": "quiet",
                    "type": "bool",
                    "ground_truth": False,
                    "verify_with": {"type": "TraceContains", "substring": "!", "scope": "response"},
                    "is_trace": True,
                },
            ],
        }
    )
    assert [(f.name, f.type, f.hint, f.weight) for f in handle.fields()] == [
        ("target", "str", "the gene", 2),
        ("ok", "bool", None, 1),
        ("n", "int", None, 1),
        ("dose", "float", None, 1),
        ("genes", "list[str]", None, 1),
        ("effect", "Literal['up', 'down']", None, 1),
        ("cite", "str", None, 1),
        ("day", "date", None, 1),
    ]
    assert [(f.name, f.type) for f in handle.trace_fields()] == [("quiet", "bool")]
    assert handle.ground_truth()["day"] == "2016-04-11"
    assert handle.ground_truth()["n"] == 5
    right = {
        "target": " bcl2",
        "ok": True,
        "n": 5,
        "dose": 390,
        "genes": ["BCL2", "BAX", "BIM"],
        "effect": "up",
        "cite": "DOI:1",
        "day": "2016-04-12",
    }
    assert verdict(handle, right).result is True
    wrong = {**right, "effect": "down", "cite": None}
    assert {k: v for k, v in verdict(handle, wrong).field_results.items() if v is not True} == {
        "effect": False,
        "cite": None,
    }
    with pytest.raises(FillError, match="effect: Input should be 'up' or 'down'"):
        verdict(handle, {**right, "effect": "sideways"})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ('{"fields": [', r"line 1, column 13: not JSON"),
        ('{"fields": [],\n "fields": []}', r"the key 'fields' occurs twice"),
        ('{"fields": [], "x": NaN}', r"NaN is not JSON"),
        ("[" * 100000, r"cannot be read"),
        ([], r"a template is one JSON object .*, not \[\]"),
        ({"fields": [FIELD, "x"]}, r"fields\[1\]: a field is a JSON object, not 'x'"),
        ({"fields": "x"}, r"fields: expected a list"),
        ({}, r"fields: is missing"),
        ({"fields": []}, r"fields: a template needs at least one field"),
        ({"fields": [FIELD], "clas_name": "A"}, r"clas_name: .*\(did you mean 'class_name'\?\)"),
        ({"fields": [FIELD], "class_name": "not a name"}, r"class_name: 'not a name' is not a class name"),
        (
            {"fields": [FIELD], "verify_strategy": {"type": "any_of"}},
            r"verify_strategy: any_of: parameter 'conditions' is missing",
        ),
        ({"fields": [FIELD], "verify_strategy": "all_of"}, r"verify_strategy: a condition is written"),
        (
            {"fields": [FIELD], "verify_strategy": {"type": "field_check", "field": "taget"}},
            r"verify_strategy: FieldCheck\('taget'\) names no verified field \(did you mean 'target'\?\)",
        ),
        (
            {"fields": [FIELD], "verify_strategy": {"type": "at_least_n", "n": 1, "conditions": []}},
            r"verify_strategy: at_least_n: AtLeastN\(1\) of 0 conditions",
        ),
        ({"fields": [FIELD, FIELD]}, r"fields\[1\].name: 'target' occurs twice"),
        (with_field(wieght=2), r"fields\[0\].wieght: .*\(did you mean 'weight'\?\)"),
        (with_field(verify_with=...), r"fields\[0\].*verify_with: is missing"),
        (with_field(ground_truth=...), r"fields\[0\].*ground_truth: is missing"),
        (with_field(description=" "), r"fields\[0\]: VerifiedField needs a description"),
        (with_field(weight=-1), r"fields\[0\]: weight must be"),
        (with_field(weight="1"), r"fields\[0\].weight: expected a number"),
        (with_field(type="date"), r"fields\[0\].ground_truth: Input should be a valid date"),
        (
            with_field(type="list_str", ground_truth=[], verify_with={"type": "SetContainment", "mode": "overlap"}),
            r"field 'target': not even a perfect extraction would pass. The ground truth \[\]",
        ),
        (with_field(type="text"), r"fields\[0\].type: must be one of bool, str, int"),
        (with_field(is_trace=True), r"fields\[0\].type: a check on the trace holds or does not: write bool, not str"),
        (
            with_field(is_trace=True, type="bool", ground_truth=True),
            r"fields\[0\].verify_with: ExactMatch looks at an extracted value",
        ),
        (
            with_field(type="bool", ground_truth=True, verify_with={"type": "TraceContains", "substring": "x"}),
            r"fields\[0\].is_trace: TraceContains looks at the trace: write true",
        ),
        (
            with_field(
                type="bool", ground_truth=1, is_trace=True, verify_with={"type": "TraceContains", "substring": "x"}
            ),
            r"fields\[0\]: TraceContains cannot compare .* write True or False, not 1",
        ),
        (
            with_field(type="list_str", ground_truth=["a"], verify_with={"type": "SemanticMatch"}),
            r"fields\[0\].type: SemanticMatch compares texts: write str, not list_str",
        ),
        (with_field(is_trace="false"), r"fields\[0\].is_trace: expected true or false"),
        (with_field(name="correct"), r"fields\[0\].name: 'correct' is taken"),
        (with_field(name="id"), r"fields\[0\].name: 'id' is taken"),
        (with_field(name="model_dump"), r"fields\[0\].name: 'model_dump' is taken"),
        (with_field(name="verify_regex"), r"fields\[0\].name: 'verify_regex' is taken"),
        (with_field(name="_x"), r"fields\[0\].name: '_x' is not a field name"),
        (with_field(name="a b"), r"fields\[0\].name: 'a b' is not a field name"),
        (with_field(name="class"), r"fields\[0\].name: 'class' is not a field name"),
        (with_field(verify_with={"type": "ExactMach"}), r"fields\[0\].verify_with: .*did you mean 'ExactMatch'"),
        (with_field(verify_with={"type": "ExactMatch", "normalise": []}), r"did you mean 'normalize'"),
        (with_field(verify_with="ExactMatch"), r"fields\[0\].verify_with: a primitive is written"),
        (with_field(ground_truth=5), r"fields\[0\].ground_truth: Input should be a valid string \(got 5\)"),
        (with_field(ground_truth=None), r"ground_truth None can never match"),
        (with_field(type="int"), r"fields\[0\].ground_truth: .*number"),
        (with_field(type="bool"), r"fields\[0\].ground_truth: .*boolean"),
        (with_field(type="list_str"), r"fields\[0\].ground_truth: Input should be a valid list"),
        (with_field(type="literal"), r"literal_values: a literal needs at least one value"),
        (with_field(type="literal", literal_values=["a", "a"]), r"literal_values: .* no value twice"),
        (with_field(type="literal", literal_values=["a"]), r"fields\[0\].ground_truth: Input should be 'a'"),
        (with_field(type="literal", literal_values="ab"), r"literal_values: expected a list"),
        (with_field(literal_values=["a"]), r"literal_values: only a literal has values"),
        (with_field(verify_with={"type": "SetContainment"}), r"SetContainment cannot compare anything"),
    ],
)
def test_a_description_that_cannot_work_says_where_and_why(spec: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        load(spec)


def test_all_problems_are_reported_at_once() -> None:
    spec = {
        "class_name": "1",
        "verify_strategy": {},
        "fields": [
            {**FIELD, "name": "_a", "type": "literal", "verify_with": {"type": "x"}},
            {**FIELD, "name": "b", "ground_truth": 3},
        ],
    }
    with pytest.raises(TemplateError) as caught:
        load(spec)
    places = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert places == [
        "class_name",
        "verify_strategy",
        "fields[0].name",
        "fields[0].literal_values",
        "fields[0].verify_with",
        "fields[1].ground_truth",
    ]


def test_a_strategy_in_data_decides() -> None:
    checks = [{"type": "field_check", "field": "target"}, {"type": "field_check", "field_name": "other"}]
    spec = {
        "fields": [FIELD, {**FIELD, "name": "other"}],
        "verify_strategy": {"type": "any_of", "conditions": checks, "n": None},
    }
    handle = load(spec)
    found = verdict(handle, {"target": None, "other": "BCL2"})
    assert (found.result, found.composition_strategy) == (True, "any_of")
    assert found.field_results == {"target": None, "other": True}


class Louder(primitives.VerificationPrimitive):
    def __init__(self, marks: int) -> None:
        self.marks = marks

    def check(self, extracted: Any, expected: Any) -> bool:
        return str(extracted) == str(expected) + "!" * self.marks


def test_a_primitive_of_another_plugin_is_used_by_its_registered_name() -> None:
    spec = with_field(verify_with={"type": "Louder", "marks": 0})
    handle = asyncio.run(RUNTIME.load(json.dumps(spec), {**PRIMITIVES, "Louder": Louder}))
    assert verdict(handle, {"target": "BCL2"}).result is True
    with pytest.raises(TemplateError, match=r"fields\[0\].verify_with: unknown primitive 'Louder'"):
        load(spec)


def test_text_in_a_description_is_never_executed(tmp_path: Any) -> None:
    target = tmp_path / "made"
    code = f"__import__('pathlib').Path({str(target)!r}).touch()"
    handle = load(with_field(description=code, ground_truth=code, extraction_hint=code))
    assert verdict(handle, {"target": code}).result is True
    with pytest.raises(TemplateError):
        load({**with_field(), "class_name": code})
    assert not target.exists()
