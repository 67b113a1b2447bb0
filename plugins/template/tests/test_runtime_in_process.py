"""Python templates, executed in this process."""

from __future__ import annotations

import asyncio
import gc
import json
import linecache
import sys
import textwrap
from typing import Any

import pytest
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime

from karenina_core import templates as primitives
from karenina_core.errors import FillError, TemplateError
from karenina_core.templates import FilledTemplate, TemplateHandle, TemplateRuntime

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
RUNTIME = InProcessRuntime()


def load(source: str) -> Any:
    return asyncio.run(RUNTIME.load(textwrap.dedent(source), PRIMITIVES))


def fill(handle: Any, data: Any) -> Any:
    return asyncio.run(handle.build(data))


def verify(source: str, data: Any, trace: str = "") -> Any:
    return asyncio.run(fill(load(source), data).verify(trace))


CLASSIC = """
    from karenina.schemas.entities import BaseAnswer
    from pydantic import Field

    class Answer(BaseAnswer):
        colors: list[str] = Field(description="Colors")

        def model_post_init(self, __context):
            self.correct = {"colors": ["red", "green"]}

        def verify(self) -> bool:
            return [c.lower() for c in self.colors] == self.correct["colors"]
"""
VERIFIED = """
    class Answer(BaseAnswer):
        target: str = VerifiedField("The target", "BCL2", ExactMatch(), extraction_hint="the gene")
        year: int = VerifiedField("The year", 2016, NumericExact(), weight=3)
"""


def test_the_runtime_says_what_it_is() -> None:
    assert isinstance(RUNTIME, TemplateRuntime)
    assert (RUNTIME.name, RUNTIME.executes_code, RUNTIME.isolation) == ("in-process", True, "in-process")
    assert "python" in RUNTIME.languages
    handle = load(VERIFIED)
    assert isinstance(handle, TemplateHandle)
    assert isinstance(fill(handle, {"year": 1}), FilledTemplate)
    assert handle.isolation == "in-process"


def test_a_classic_template_of_an_existing_benchmark() -> None:
    handle = load(CLASSIC)
    assert handle.ground_truth() == {"colors": ["red", "green"]}
    assert [(f.name, f.type, f.description, f.verified) for f in handle.fields()] == [
        ("colors", "list[str]", "Colors", False)
    ]
    right = fill(handle, {"colors": ["Red", "GREEN"]})
    assert asyncio.run(right.verify("")).result is True
    assert asyncio.run(right.granular()) is None
    assert asyncio.run(fill(handle, {"colors": ["red"]}).verify("")).result is False


def test_a_verified_template_brings_its_own_names() -> None:
    handle = load(VERIFIED)
    assert handle.ground_truth() == {"target": "BCL2", "year": 2016}
    target, year = handle.fields()
    assert (target.verified, target.hint, target.weight) == (True, "the gene", 1.0)
    assert (year.type, year.hint, year.weight) == ("int", None, 3)
    filled = fill(handle, {"target": None, "year": 2016})
    verdict = asyncio.run(filled.verify(""))
    assert verdict.result is False
    assert verdict.field_results == {"target": None, "year": True}
    assert verdict.field_scores == {"target": None, "year": 1.0}
    assert verdict.composition_strategy is None
    assert asyncio.run(filled.granular()) == 0.75
    assert filled.nulls == {"target"}
    assert filled.values() == {"target": None, "year": 2016}


def test_what_the_judge_is_asked_holds_no_expected_value_however_a_field_gives_it_away() -> None:
    source = """
        from typing import Annotated
        from pydantic import Field

        Said = Annotated[str, Field(examples=["canary"], json_schema_extra={"gold": "canary"})]

        class Answer(BaseAnswer):
            target: Said = VerifiedField("The target", "canary", ExactMatch(), default="canary", examples=["canary"])
            targets: list[Said] = VerifiedField("All", ["canary"], SetContainment())
    """
    handle = load(source)
    assert handle.ground_truth() == {"target": "canary", "targets": ["canary"]}
    assert "canary" not in json.dumps(handle.schema())


def test_one_namespace_serves_the_whole_source() -> None:
    source = """
        from __future__ import annotations
        import re
        import dataclasses
        from pydantic import BaseModel

        LIMIT = 3

        def long_enough(text):
            import string
            return len(text) > LIMIT and text[0] in string.ascii_letters

        class Answer(BaseAnswer):
            items: List[Item] = Field(description="Items")
            kind: Optional[Literal["a", "b"]] = None

            def verify(self):
                names = [i.name for i in self.items if isinstance(i, Item)]
                return bool(names) and all(long_enough(name) and re.match("[a-z]+", name) for name in names)

        class Item(BaseModel):
            name: str

        @dataclasses.dataclass
        class Unrelated:
            x: Union[int, Any]
    """
    assert verify(source, {"items": [{"name": "abcd"}]}).result is True
    assert verify(source, {"items": [{"name": "abc"}]}).result is False


def test_annotations_are_evaluated_unless_the_template_says_otherwise() -> None:
    source = """
        def twice(x: int) -> int:
            return 2 * x

        assert twice.__annotations__ == {"x": int, "return": int}

        class Answer(BaseAnswer):
            x: int = VerifiedField("x", twice(2), NumericExact())
    """
    assert verify(source, {"x": 4}).result is True


def test_imports_of_the_reference_project_resolve_to_ours_in_templates_only() -> None:
    source = """
        import karenina
        import karenina.schemas.entities as entities
        import karenina.schemas
        from karenina import BaseAnswer as Base, schemas
        from karenina.schemas.entities import *
        from karenina.schemas.workflow.anything import VerifiedField as Field2, ExactMatch

        assert karenina.schemas.entities.BaseAnswer is entities.BaseAnswer is Base is schemas.BaseAnswer

        class Answer(karenina.schemas.BaseAnswer):
            x: bool = Field2("x", True, BooleanMatch())

            def ground_truth(self):
                from karenina.schemas.entities import SynonymMap
                self.correct = {"x": SynonymMap({"a": "b"})("a") == "b"}
    """
    assert verify(source, {"x": True}).result is True
    assert not [name for name in list(sys.modules) if name == "karenina" or name.startswith("karenina.")]
    with pytest.raises(ModuleNotFoundError):
        __import__("karenina")


def test_an_unknown_name_of_the_reference_project_lists_what_there_is() -> None:
    with pytest.raises(TemplateError, match="cannot import 'BaseAnwser'") as caught:
        load("from karenina.schemas.entities import BaseAnwser")
    text = str(caught.value)
    assert "did you mean 'BaseAnswer'?" in text
    assert "VerifiedField" in text
    assert "ExactMatch" in text
    assert "line 1" in text
    with pytest.raises(TemplateError, match="No module named 'kareninas'"):
        load("import kareninas")


def test_primitives_of_other_plugins_are_offered_too() -> None:
    class Shouting(primitives.VerificationPrimitive):
        def check(self, extracted: Any, expected: Any) -> bool:
            return bool(str(extracted).isupper())

    source = """
from karenina.schemas.entities import Shouting as Again
assert Again is Shouting
class Answer(BaseAnswer):
    x: str = VerifiedField("x", "N/A", Shouting())
"""
    handle = asyncio.run(RUNTIME.load(source, {"Shouting": Shouting}))
    assert asyncio.run(fill(handle, {"x": "ABC"}).verify("")).result is True
    with pytest.raises(TemplateError, match="name 'Shouting' is not defined"):
        load("class Answer(BaseAnswer):\n    x: str = VerifiedField('x', 'y', Shouting())")


def test_a_primitive_of_the_templates_own_needs_no_registration() -> None:
    source = """
        class Shouting(VerificationPrimitive):
            def __init__(self, marks):
                self.marks = marks

            def check(self, extracted, expected):
                return extracted == expected.upper() + "!" * self.marks

            def check_ground_truth(self, expected):
                if not expected:
                    raise ValueError("write something")

        class Answer(BaseAnswer):
            x: str = VerifiedField("x", "BCL2", Shouting(0))
            y: str = VerifiedField("y", "BAX", Shouting(0))
    """
    handle = load(source)
    assert asyncio.run(fill(handle, {"x": "BCL2", "y": "bax"}).verify("")).field_results == {"x": True, "y": False}
    assert set(handle.schema()["properties"]) == {"x", "y"}


def test_a_template_with_nothing_to_check_is_refused() -> None:
    for body in ("pass", "def verify(self): return True", "def ground_truth(self): self.regex = {}"):
        with pytest.raises(TemplateError, match=r"there is nothing to check: add fields, or set self\.regex"):
            load(f"class Answer(BaseAnswer):\n    {body}")


def test_a_strategy_decides_and_what_it_leaves_out_is_a_warning() -> None:
    handle = load("""
        from karenina.schemas.entities import AnyOf, FieldCheck

        class Answer(BaseAnswer):
            drug: str = VerifiedField("The drug", "aspirin", ExactMatch())
            brand: str = VerifiedField("The brand", "Aspro", ExactMatch())
            site: str = VerifiedField("The site", "liver", ExactMatch())

            class VerificationStrategy:
                verify_strategy = AnyOf([FieldCheck("drug"), FieldCheck("brand")])
    """)
    assert handle.warnings == (
        "verify_strategy leaves out 'site': verdict and partial credit do not depend on it; "
        "add FieldCheck('site') if that is not intended",
    )
    filled = fill(handle, {"drug": "aspirin", "brand": None, "site": "heart"})
    verdict = asyncio.run(filled.verify(""))
    assert (verdict.result, verdict.composition_strategy) == (True, "any_of")
    assert verdict.field_results == {"drug": True, "brand": None, "site": False}
    assert asyncio.run(filled.granular()) == 1.0


def test_a_strategy_that_names_no_field_is_refused_with_its_line() -> None:
    source = """
        class Answer(BaseAnswer):
            drug: str = VerifiedField("The drug", "aspirin", ExactMatch())

            class VerificationStrategy:
                verify_strategy = FieldCheck("durg")
    """
    with pytest.raises(TemplateError, match=r"FieldCheck\('durg'\) names no verified field .*'drug'.* \(line \d"):
        load(source)


def test_two_ground_truths_for_one_field_are_refused() -> None:
    source = """
        class Answer(BaseAnswer):
            drug: str = VerifiedField("The drug", "aspirin", ExactMatch())
            def ground_truth(self):
                self.correct = {"drug": "ibuprofen", "more": 1}
    """
    with pytest.raises(TemplateError, match=r"self.correct\['drug'\] is 'ibuprofen', but the field's own ground_truth"):
        load(source)
    load(source.rstrip() + "\n            def verify(self): return self.drug == self.correct['drug']\n")


def test_a_template_inside_itself_would_be_filled_with_anything_and_is_refused() -> None:
    source = """
        from __future__ import annotations
        class Answer(BaseAnswer):
            drug: str = VerifiedField("The drug", "aspirin", ExactMatch())
            parts: list[Answer] = []
    """
    with pytest.raises(TemplateError, match="Answer is a template inside a template; derive the nested model from"):
        load(source)


ONE_INT = "class Answer(BaseAnswer):\n    x: int\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("class A(:\n  pass", r"^line 1: invalid syntax: class A\("),
        ("x = 1\nif x:\npass", r"^line 3: expected an indented block"),
        ("a\0b", r"null bytes"),
        ("x = 1\ny = nothing", r"NameError: name 'nothing' is not defined \(line 2: y = nothing\)"),
        ("raise SystemExit(3)", r"SystemExit: 3 \(line 1"),
        ("x = 1", r"no template class: define one class that derives from BaseAnswer"),
        (
            f"{ONE_INT}    def verify(self): return True\n\nclass B(BaseAnswer):\n    y: int\n",
            r"several template classes \(Answer, B\)",
        ),
        ("class Answer(BaseAnswer):\n    pass", r"nothing to check: add fields, or set self.regex"),
        ("class Answer(BaseAnswer):\n    def verify(self): return True", r"nothing to check"),
        (ONE_INT, r"there is no verify\(\): write `def verify\(self\) -> bool`"),
        (f"{ONE_INT}    async def verify(self): return True", r"verify must be a plain method"),
        (f"{ONE_INT}    correct: dict\n", r"field 'correct' of Answer: the name is reserved .* \(line 1"),
        (
            f"{ONE_INT}    def verify(self): return True\n    def ground_truth(self): self.correct = [1]",
            r"self.correct must be a dict .*, not list",
        ),
        (
            f"{ONE_INT}    def verify(self): return True\n    def ground_truth(self): self.correct = {{'x': oops}}",
            r"NameError: name 'oops' is not defined \(line 4",
        ),
        (
            "class Answer(BaseAnswer):\n    def ground_truth(self): self.regex = {'a': {'pattern': '('}}",
            r"self.regex\['a'\]: 'expected' is missing",
        ),
        (
            "class Answer(BaseAnswer):\n    x: int = VerifiedField('x', 'four', NumericExact())",
            r"'four' is not a number \(line 2",
        ),
        (
            "from pydantic import BaseModel\nclass N(BaseModel):\n    q: int = VerifiedField('x', 3, NumericExact())\n"
            "class Answer(BaseAnswer):\n    x: dict[str, list[N]] = {}\n    def verify(self): return True\n",
            r"N.q is a VerifiedField inside a nested model",
        ),
    ],
)
def test_a_template_that_breaks_a_rule_is_refused_with_the_reason(source: str, message: str) -> None:
    before = set(sys.modules)
    with pytest.raises(TemplateError, match=message):
        load(source)
    assert not set(sys.modules) - before


def test_everything_wrong_with_a_class_is_reported_at_once() -> None:
    source = f"{ONE_INT}    def ground_truth(self):\n        self.correct = 3\n        self.regex = []\n"
    with pytest.raises(TemplateError) as caught:
        load(source)
    for part in ("no verify()", "self.correct must be a dict", "self.regex must be a dict"):
        assert part in str(caught.value)


def test_a_class_that_others_extend_is_no_template() -> None:
    source = """
        class Base(BaseAnswer):
            x: int
            def verify(self): return self.x == self.expected()

        class Answer(Base):
            y: int
            def expected(self): return self.y

        Alias = Answer
    """
    assert verify(source, {"x": 1, "y": 1}).result is True


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("int | None", 4),
        ("Optional[int]", None),
        ("Literal['a', 'b']", "b"),
        ("Color", "red"),
        ("datetime.date", "2016-04-11"),
        ("dict[str, int]", {"a": 1}),
        ("Person", {"name": "A", "age": 3}),
        ("list[Person]", [{"name": "A", "age": 3}]),
        ("Person | None", None),
        ("Annotated[int, Field(ge=10, le=20)]", 12),
        ("decimal.Decimal", "1.5"),
        ("tuple[int, str]", [1, "a"]),
    ],
)
def test_the_hook_is_tried_on_fields_of_any_kind(annotation: str, value: Any) -> None:
    source = f"""
        import datetime, decimal, enum
        from typing import Annotated
        from pydantic import BaseModel

        class Color(enum.Enum):
            RED = "red"

        class Person(BaseModel):
            name: str
            age: int = Field(ge=1)
            parent: "Person | None" = None

        class Answer(BaseAnswer):
            x: {annotation}
            word: str
            n: int = Field(ge=10)

            def ground_truth(self):
                self.correct = {{"seen": self.x}}
                self.derived = self.word.upper() + str(self.n + 1)

            def verify(self):
                return self.correct["seen"] == self.x
    """
    assert verify(source, {"x": value, "word": "w", "n": 11}).result is True


def test_a_template_of_patterns_alone_needs_neither_judge_nor_verify() -> None:
    handle = load("""
        class Answer(BaseAnswer):
            def ground_truth(self):
                self.regex = {"cites": {"pattern": r"\\[\\d\\]", "expected": 2, "match_type": "count"}}
    """)
    assert handle.fields() == ()
    assert handle.schema()["properties"] == {}
    filled = fill(handle, None)
    assert asyncio.run(filled.verify("")).result is True
    found = asyncio.run(filled.regex("[1] and [2]"))
    assert (found.performed, found.success, found.extractions) == (True, True, {"cites": ["[1]", "[2]"]})
    assert asyncio.run(filled.regex("[1]")).success is False
    assert asyncio.run(fill(load(CLASSIC), {"colors": []}).regex("[1]")).performed is False


def failing(body: str) -> Any:
    return fill(load(f"class Answer(BaseAnswer):\n    x: int\n    def verify(self):\n        {body}\n"), {"x": 0})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1 / self.x == 1", r"verify\(\) raised ZeroDivisionError: .* \(line 4: return 1 / self.x == 1\)"),
        ("return self.missing", r"verify\(\) raised AttributeError: .* \(line 4"),
        ("return self.x", r"verify\(\) returned 0; it must return True or False"),
        ("pass", r"verify\(\) returned None"),
        ("return 'yes'", r"verify\(\) returned 'yes'"),
        ("exit(2)", r"verify\(\) raised SystemExit: 2 \(line 4"),
        ("return self.verify()", r"verify\(\) raised RecursionError"),
    ],
)
def test_a_verify_that_fails_is_an_error_and_never_a_verdict(body: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message) as caught:
        asyncio.run(failing(body).verify(""))
    assert not isinstance(caught.value, FillError)
    assert caught.value.kind == "template"


def test_an_interrupt_is_not_the_templates_business() -> None:
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(failing("raise KeyboardInterrupt").verify(""))


@pytest.mark.parametrize("body", ["return 'much'", "return None", "return True", "return float('nan')", "return 1 / 0"])
def test_partial_credit_that_is_no_number_is_an_error_of_its_own(body: str) -> None:
    source = f"{ONE_INT}    def verify(self): return True\n    def verify_granular(self): {body}\n"
    filled = fill(load(source), {"x": 1})
    assert asyncio.run(filled.verify("")).result is True
    with pytest.raises(TemplateError, match=r"verify_granular\(\)"):
        asyncio.run(filled.granular())


def test_partial_credit_of_the_authors_own() -> None:
    source = f"{ONE_INT}    def verify(self): return False\n    def verify_granular(self): return self.x / 4\n"
    assert asyncio.run(fill(load(source), {"x": 1}).granular()) == 0.25


def test_a_primitive_that_cannot_compare_is_an_error() -> None:
    source = "class Answer(BaseAnswer):\n    x: str = VerifiedField('x', True, BooleanMatch())\n"
    handle = load(source)
    assert asyncio.run(fill(handle, {"x": "No"}).verify("")).field_results == {"x": False}
    assert asyncio.run(fill(handle, {"x": None}).verify("")).field_results == {"x": None}
    with pytest.raises(TemplateError, match="field 'x': BooleanMatch raised ValueError: 'perhaps' is neither"):
        asyncio.run(fill(handle, {"x": "perhaps"}).verify(""))


def test_an_authors_regex_method_is_used_and_checked() -> None:
    source = f"{ONE_INT}    def verify(self): return True\n    def verify_regex(self, raw_trace): return RESULT\n"
    good = "RESULT = {'success': False, 'results': {'a': False}, 'details': {'a': {'matches_found': ['z']}}}\n"
    found = asyncio.run(fill(load(good + source), {"x": 1}).regex(""))
    assert (found.performed, found.success, found.extractions) == (True, False, {"a": ["z"]})
    with pytest.raises(TemplateError, match=r"verify_regex\(\) returned True"):
        asyncio.run(fill(load("RESULT = True\n" + source), {"x": 1}).regex(""))


def test_items_of_one_handle_do_not_influence_each_other() -> None:
    handle = load("""
        class Answer(BaseAnswer):
            names: list[str] = VerifiedField("Names", ["a", "b"], SetContainment())
            extra: dict[str, Any] = {}

            def verify(self):
                passed = sorted(self.names) == sorted(self.correct["names"])
                self.correct["names"].append("spoilt")
                self.names.append("spoilt")
                self.extra["spoilt"] = True
                self.note = "spoilt"
                return passed and len(self.extra) == 1

            def verify_granular(self):
                return 1.0 if hasattr(self, "note") else 0.0
    """)
    data = {"names": ["a", "b"], "extra": {}}
    first, second, third = (fill(handle, data) for _ in range(3))
    for filled in (first, second):
        verdict = asyncio.run(filled.verify(""))
        assert verdict.result is True
        assert verdict.field_results == {"names": True}
        assert filled.values() == {"names": ["a", "b"], "extra": {}}
    assert asyncio.run(third.granular()) == 0.0
    assert data == {"names": ["a", "b"], "extra": {}}
    handle.schema()["properties"].clear()
    handle.ground_truth()["names"].append("x")
    assert set(handle.schema()["properties"]) == {"names", "extra"}
    assert handle.ground_truth() == {"names": ["a", "b"]}


def test_field_results_speak_of_what_was_extracted() -> None:
    handle = load("""
        class Answer(BaseAnswer):
            x: str = VerifiedField("x", "a", ExactMatch())
            def verify(self):
                self.x = "a"
                return True
    """)
    filled = fill(handle, {"x": "b"})
    assert asyncio.run(filled.verify("")).field_results == {"x": False}
    assert asyncio.run(filled.granular()) == 0.0


def test_what_gives_the_answer_away_is_a_warning() -> None:
    leaking = "class Answer(BaseAnswer):\n    x: str = VerifiedField('BCL2 or another', 'BCL2', ExactMatch())\n"
    (warning,) = load(leaking).warnings
    assert warning.startswith("x: the description of 'x' names the expected value, 'BCL2'")
    assert load(VERIFIED).warnings == ()


def test_indented_source_is_read_too() -> None:
    source = "\n    class Answer(BaseAnswer):\n        x: bool = VerifiedField('x', True, BooleanMatch())\n"
    handle = asyncio.run(RUNTIME.load(source, PRIMITIVES))
    assert asyncio.run(fill(handle, {"x": True}).verify("")).result is True


def registered() -> list[str]:
    files = [name for name in linecache.cache if name.startswith("<template ")]
    return files + [name for name in sys.modules if name.startswith("karenina_template_source")]


def test_a_template_without_references_leaves_nothing_behind() -> None:
    before = set(registered())
    handle = load(VERIFIED)
    filled = fill(handle, {"year": 1})
    assert len(set(registered()) - before) == 2
    del handle
    gc.collect()
    assert asyncio.run(filled.verify("")).result is False
    assert len(set(registered()) - before) == 2
    del filled
    gc.collect()
    assert set(registered()) <= before
