"""What a template may be, the warnings for its author at load, and the warnings of a verdict."""

from __future__ import annotations

import asyncio
import json
import textwrap
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest
from attrs import frozen
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.language.extraction import extraction_class
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import VerificationPrimitive, template_spec
from karenina_core.testing import BrokenPromise, ScriptedLLM, runtime_checks

HEADER = """
import datetime
from typing import Optional
from pydantic import BaseModel, ConfigDict, PrivateAttr, field_validator, model_validator

class Dose(BaseModel):
    value: float
    unit: Literal["mg", "g"] = "mg"

class Answer(BaseAnswer):
"""


@frozen
class OneOf(VerificationPrimitive):
    matches_ground_truth: ClassVar[bool] = False

    def check(self, extracted: Any, expected: Any) -> bool:
        return extracted in expected


@frozen
class Differs(VerificationPrimitive):
    matches_ground_truth: ClassVar[bool] = False

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted != expected)


@frozen
class Explaining(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted == expected)

    def remark(self, extracted: Any, expected: Any) -> str | None:
        if extracted == "broken":
            raise RuntimeError("no remark")
        return None if extracted == "silent" else f"{extracted!r} cannot be read."


PRIMITIVES: dict[str, Any] = {name: getattr(primitives, name) for name in NAMES} | {
    "OneOf": OneOf,
    "Differs": Differs,
    "Explaining": Explaining,
}


def load(body: str) -> Any:
    source = HEADER + textwrap.indent(textwrap.dedent(body), "    ")
    return asyncio.run(InProcessRuntime().load(source, PRIMITIVES))


def load_data(**field: Any) -> Any:
    spec = {"name": "x", "description": "what it says", **field}
    return asyncio.run(DeclarativeRuntime().load(json.dumps({"fields": [spec]}), PRIMITIVES))


def verified(handle: Any, data: Any, trace: str = "") -> Any:
    async def run() -> Any:
        return await (await handle.build(data)).verify(trace)

    return asyncio.run(run())


# Data that means something else


@pytest.mark.parametrize("primitive", ["DateMatch()", "DateTolerance(tolerance=1)", "DateRange(min='2016-01-01')"])
def test_eight_digits_are_judged_as_the_day_that_they_write(primitive: str) -> None:
    handle = load(f"when: datetime.datetime | None = VerifiedField('When', '2016-04-11', {primitive})")
    assert verified(handle, {"when": "20160411"}).result is True
    assert verified(handle, {"when": 20160411}).result is True
    with pytest.raises(FillError, match="a number is no date"):
        verified(handle, {"when": 2016})


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": "int", "ground_truth": True, "verify_with": {"type": "NumericExact"}}, "are no numbers"),
        ({"type": "float", "ground_truth": False, "verify_with": {"type": "NumericExact"}}, "are no numbers"),
        ({"type": "date", "ground_truth": 0, "verify_with": {"type": "DateMatch"}}, "a number is no date"),
        ({"type": "date", "ground_truth": "2016", "verify_with": {"type": "DateMatch"}}, "a number is no date"),
    ],
)
def test_a_ground_truth_in_data_is_read_as_carefully(field: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError, match=rf"fields\[0\].ground_truth: .*{message}"):
        load_data(**field)


def test_eight_digits_are_a_day_in_a_ground_truth_too() -> None:
    handle = load_data(type="date", ground_truth="20160411", verify_with={"type": "DateMatch"})
    assert handle.ground_truth() == {"x": "2016-04-11"}
    assert verified(handle, {"x": "2016-04-11"}).result is True


@frozen
class Careless(DeclarativeRuntime):
    """Reads what it is given as pydantic would."""

    async def load(self, text: str, primitives: Any) -> Any:
        handle = await super().load(text, primitives)
        extraction_class(handle.cls).model_rebuild(force=True)
        return handle


def test_the_kit_finds_a_runtime_that_reads_numbers_as_dates_or_truth_values_as_numbers() -> None:
    for runtime, keeps in ((DeclarativeRuntime(), True), (Careless(), False)):
        (careful,) = (check for check in runtime_checks(runtime) if check.name == "careful")
        with nullcontext() if keeps else pytest.raises(BrokenPromise, match=r"breaks careful: .*\nTrue for a field"):
            careful.run()


# Ground truths that need not match


def test_a_primitive_may_say_that_its_ground_truth_need_not_match() -> None:
    handle = load("""
        gene: str = VerifiedField('Gene', ['BCL2', 'BCL-2'], OneOf())
        drug: str = VerifiedField('Drug', 'aspirin', Differs())
    """)
    verdict = verified(handle, {"gene": "BCL-2", "drug": "ibuprofen"})
    assert verdict.field_results == {"gene": True, "drug": True}
    assert verified(handle, {"gene": "TP53", "drug": "aspirin"}).field_results == {"gene": False, "drug": False}
    filled = asyncio.run(handle.build({"gene": "x", "drug": "aspirin"}))
    with pytest.raises(TemplateError, match="the ground truth of Differs need not be right"):
        filled.accepting(["drug"])


def test_an_attribute_called_exclusive_says_nothing_about_another_primitive() -> None:
    body = """
        class Picky(VerificationPrimitive):
            exclusive = True

            def check(self, extracted, expected):
                return extracted != expected

        x: str = VerifiedField('x', 'a', Picky())
    """
    with pytest.raises(TemplateError, match="write matches_ground_truth = False in its class"):
        load(body)
    load("x: float = VerifiedField('x', 5, NumericMinimum(exclusive=True))")


def test_a_nested_model_may_be_expected_as_a_dict() -> None:
    handle = load("""
        dose: Dose = VerifiedField('Dose', {'value': 400, 'unit': 'mg'}, LiteralMatch())
        doses: list[Dose] = VerifiedField('Doses', [{'value': 400}], LiteralMatch())
    """)
    right = {"dose": {"value": 400}, "doses": [{"value": 400.0, "unit": "mg"}]}
    assert verified(handle, right).result is True
    assert verified(handle, right | {"dose": {"value": 400, "unit": "g"}}).field_results["dose"] is False


# Hooks and validators


def test_a_hook_may_use_the_extracted_fields() -> None:
    handle = load("""
        x: int = VerifiedField('x', 4, NumericExact())
        y: str = VerifiedField('y', 'aspirin', ExactMatch())
        _limit: int = PrivateAttr(9)

        @field_validator('y')
        def limited(cls, value):
            return value

        def ground_truth(self):
            self.double = self.x + self.x
            self.y = self.y.lower()
    """)
    assert verified(handle, {"x": 4, "y": "ASPIRIN"}).result is True
    assert ["'x'" in handle.warnings[0], "'y'" in handle.warnings[1]] == [True, True]


def test_the_author_is_warned_where_a_null_would_end_as_an_error() -> None:
    body = """
        low: float = VerifiedField('Low', 1, NumericExact())
        high: float = VerifiedField('High', 2, NumericExact())
        note: str | None = VerifiedField('Note', 'a', ExactMatch())
        free: float

        @model_validator(mode='after')
        def ordered(self):
            if {} self.low > self.high:
                raise ValueError('low above high')
            return self
    """
    handle = load(body.replace("{}", ""))
    assert [warning.split(":")[0] for warning in handle.warnings] == [
        "where the answer does not say 'low' the template cannot be filled",
        "where the answer does not say 'high' the template cannot be filled",
    ]
    assert "let hooks and validators expect None there" in handle.warnings[0]
    assert "raised TypeError: '>' not supported" in handle.warnings[0]
    assert load(body.replace("{}", "None not in (self.low, self.high) and")).warnings == ()


def test_a_template_whose_examples_do_not_suit_its_validators_is_not_warned_of_nulls() -> None:
    handle = load("""
        x: float = VerifiedField('x', 5, NumericMinimum())
        free: float

        @model_validator(mode='after')
        def positive(self):
            if self.free <= 0:
                raise ValueError('free must be positive')
            return self
    """)
    assert handle.warnings == ()


def test_a_strict_template_with_dates_and_sets_can_be_used() -> None:
    handle = load("""
        model_config = ConfigDict(strict=True)
        day: datetime.date = VerifiedField('Day', '2016-04-11', DateMatch())
        genes: set[str] = VerifiedField('Genes', ['a'], SetContainment())
    """)
    assert verified(handle, {"day": "2016-04-11", "genes": ["a"]}).result is True
    assert verified(handle, {"day": "2016-04-12", "genes": ["a"]}).result is False


# Names, strategies, trace fields


@pytest.mark.parametrize("name", ["copy", "schema", "json", "dict", "validate", "construct", "parse_obj", "from_orm"])
def test_a_field_of_data_may_have_an_old_name_of_pydantics(name: str) -> None:
    field = {"name": name, "type": "str", "ground_truth": "a", "verify_with": {"type": "ExactMatch"}}
    handle = load_data(**field)
    assert list(handle.schema()["properties"]) == [name]
    assert verified(handle, {name: "a"}).field_results == {name: True}
    assert verified(handle, {name: "b"}).field_results == {name: False}
    filled = asyncio.run(handle.build({name: None}))
    assert (filled.values(), filled.nulls) == ({name: None}, frozenset({name}))
    assert asyncio.run(filled.accepting([name]).verify("")).result is True
    assert [described["name"] for described in template_spec(handle.cls)["fields"]] == [name]


def test_an_own_verify_beside_a_strategy_is_a_warning() -> None:
    handle = load("""
        a: str = VerifiedField('A', 'a', ExactMatch())
        b: str = VerifiedField('B', 'b', ExactMatch())

        class VerificationStrategy:
            verify_strategy = AnyOf([FieldCheck('a'), FieldCheck('b')])

        def verify(self) -> bool:
            return self.a == 'a' and self.b == 'b'
    """)
    assert [warning.split(":")[0] for warning in handle.warnings] == [
        "the class has both a verify_strategy and its own verify()"
    ]
    filled = asyncio.run(handle.build({"a": "a", "b": "x"}))
    assert asyncio.run(filled.verify("")).result is False
    assert asyncio.run(filled.granular()) == 1.0


@pytest.mark.parametrize("annotation", ["bool", "bool | None", "Optional[bool]"])
def test_a_trace_field_may_be_declared_nullable(annotation: str) -> None:
    handle = load(f"cites: {annotation} = VerifiedField('Cites', True, TraceContains('x'))")
    assert (verified(handle, {}, "an x").result, verified(handle, {}, "none").result) == (True, False)
    with pytest.raises(TemplateError, match="declare the field as bool"):
        load("cites: str | None = VerifiedField('Cites', True, TraceContains('x'))")


# Warnings of primitives


@pytest.mark.parametrize(
    ("extracted", "warnings"),
    [
        ("right", ()),
        ("odd", ("field 'x': 'odd' cannot be read.",)),
        ("silent", ()),
        ("broken", ()),
        (None, ()),
    ],
)
def test_a_wrong_field_comes_with_the_warnings_of_its_primitive(
    extracted: str | None, warnings: tuple[str, ...]
) -> None:
    body = "x: str = VerifiedField('X', 'right', Explaining())\n"
    for own in ("", "def verify(self):\n    return self.x == 'right'\n"):
        handle = load(body + own)
        verdict = verified(handle, {"x": extracted})
        assert verdict.result is (extracted == "right")
        assert verdict.remarks == warnings
        accepted = asyncio.run(handle.build({"x": extracted})).accepting(["x"])
        assert asyncio.run(accepted.verify("")).remarks == ()


def test_warnings_of_primitives_become_warnings_of_the_item(
    context: Callable[..., Any], run: Callable[..., Any]
) -> None:
    field = {"name": "day", "type": "str", "description": "The day", "ground_truth": "2016-04-11"}
    template = json.dumps({"fields": [{**field, "verify_with": {"type": "DateMatch"}}]})
    about = context(template, judge=ScriptedLLM({"day": "sometime in spring"}))
    run(about)
    assert (str(about.outcome), about.get_result_field("field_results")) == ("failed", {"day": False})
    assert [str(warning) for warning in about.warnings if "field 'day'" in str(warning)]


def test_without_code_of_its_own_no_template_is_rehearsed_with_nulls(monkeypatch: pytest.MonkeyPatch) -> None:
    from karenina_template import rules

    asked: list[Any] = []
    real = rules.fill
    monkeypatch.setattr(rules, "fill", lambda cls, data: asked.append(data) or real(cls, data))
    field = "x: int = VerifiedField('x', 1, NumericExact())\n"
    load(field)
    assert asked == []
    load(f"{field}def model_post_init(self, context):\n    super().model_post_init(context)\n")
    assert len(asked) == 2, "once as it should be, once with a null"
