"""Template classes: three styles, the hook, the automatic verdict, and what is refused when a class is defined."""

from __future__ import annotations

import datetime
import itertools
import subprocess
import sys
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language.verification import compare
from pydantic import BaseModel, Field, create_model

from karenina_core.errors import TemplateError
from karenina_core.templates import (
    BaseAnswer,
    BooleanMatch,
    ExactMatch,
    LiteralMatch,
    NumericExact,
    RegexMatch,
    SetContainment,
    VerificationPrimitive,
    VerifiedField,
)


class Target(BaseAnswer):
    name: str = VerifiedField("The target", "BCL2", ExactMatch())
    year: int = VerifiedField("The year", 2016, NumericExact(), weight=3, ge=1900)


def test_a_verified_template_needs_no_code() -> None:
    answer = Target(name="bcl2", year=2015)
    assert answer.verify() is False
    assert answer.verify_granular() == 0.25
    assert Target(name="bcl2", year=2016).verify() is True
    assert answer.correct == {"name": "BCL2", "year": 2016}


def test_a_classic_template_decides_by_its_own_code() -> None:
    class Classic(BaseAnswer):
        result: int = Field(description="The sum")

        def model_post_init(self, __context: Any) -> None:
            self.correct = {"result": 4}

        def verify(self) -> bool:
            return bool(self.result == self.correct["result"])

    assert Classic(result=4).verify()
    assert not Classic(result=5).verify()
    assert not hasattr(Classic, "verify_granular")


def test_plain_fields_of_a_mixed_template_do_not_decide() -> None:
    class Mixed(BaseAnswer):
        name: str = VerifiedField("The target", "BCL2", ExactMatch())
        remark: str

    assert Mixed(name="BCL2", remark="wrong").verify()
    assert Mixed(name="BCL2", remark="wrong").verify_granular() == 1.0


def test_an_author_may_write_either_method_and_get_the_other() -> None:
    class OwnVerdict(Target):
        def verify(self) -> bool:
            return True

    class OwnCredit(Target):
        def verify_granular(self) -> float:
            return 0.5

    verdict, credit = OwnVerdict(name="x", year=1999), OwnCredit(name="x", year=1999)
    assert (verdict.verify(), verdict.verify_granular()) == (True, 0.0)
    assert (credit.verify(), credit.verify_granular()) == (False, 0.5)


def test_fields_of_parents_are_verified_too() -> None:
    class More(Target):
        drug: str = VerifiedField("The drug", "venetoclax", ExactMatch())

    assert not More(name="BCL2", year=2016, drug="x").verify()
    assert More(name="BCL2", year=2016, drug="Venetoclax").verify()


def test_ground_truth_keeps_its_python_type() -> None:
    class Typed(BaseAnswer):
        days: set[datetime.date] = VerifiedField("Days", {datetime.date(2016, 4, 11)}, SetContainment())
        pair: tuple[int, str] = VerifiedField("A pair", (1, "a"), LiteralMatch())

    answer = Typed.model_validate({"days": ["2016-04-11"], "pair": [1, "a"]})
    assert answer.verify()
    assert answer.correct == {"days": {datetime.date(2016, 4, 11)}, "pair": (1, "a")}


def test_metadata_may_be_in_the_annotation() -> None:
    class Annotation(BaseAnswer):
        name: Annotated[str, VerifiedField("The target", "BCL2", ExactMatch())]

    assert Annotation(name="bcl2").verify()


def test_the_hooks() -> None:
    class Hook(BaseAnswer):
        x: int

        def ground_truth(self) -> None:
            self.correct = {"x": 1}

    class Both(BaseAnswer):
        x: int

        def ground_truth(self) -> None:
            self.correct = {"x": 1}

        def model_post_init(self, __context: Any) -> None:
            self.correct = {"x": 2}

    class Newer(Both):
        def ground_truth(self) -> None:
            self.correct = {"x": 3}

    class Private(Hook):
        _memory: list[int] = []

    assert Hook(x=0).correct == {"x": 1}
    assert Both(x=0).correct == {"x": 2}
    assert Newer(x=0).correct == {"x": 3}
    assert Private(x=0).correct == {"x": 1}
    assert Private(x=0)._memory == []


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({}, {}),
        ({"frozen": True}, {}),
        ({"validate_assignment": True}, {}),
        ({"extra": "forbid"}, {}),
        ({}, {"__annotations__": {"correct": ClassVar[Any]}}),
    ],
)
def test_what_is_set_is_set_as_pydantic_sets_it(config: dict[str, Any], body: dict[str, Any]) -> None:
    def outcome(base: type[BaseModel]) -> Any:
        made = type("Answer", (base,), {"__module__": __name__, "model_config": {"extra": "allow", **config}, **body})()
        try:
            for value in ({"said": 1}, {"said": 2}):
                made.correct = value
        except (AttributeError, ValueError) as error:
            return type(error)
        return made.correct, made.model_extra, made.model_fields_set

    assert outcome(BaseAnswer) == outcome(BaseModel)


def test_a_hook_may_say_more_than_the_verified_fields() -> None:
    class WithPatterns(Target):
        def ground_truth(self) -> None:
            self.regex = {"cite": {"pattern": r"\[\d+\]", "expected": 1, "match_type": "count"}}

    answer = WithPatterns(name="BCL2", year=2016)
    assert answer.correct == {"name": "BCL2", "year": 2016}
    assert answer.verify_regex("see [1]")["results"] == {"cite": True}
    assert answer.verify_regex("see [1] and [2]")["success"] is False


def test_without_patterns_the_regex_check_succeeds_empty() -> None:
    assert Target(name="a", year=2000).verify_regex("text") == {"success": True, "results": {}, "details": {}}


@pytest.mark.filterwarnings("ignore:Field name")  # pydantic's own, milder opinion comes first
@pytest.mark.parametrize(
    "name", ["id", "correct", "regex", "verify", "verify_granular", "verify_regex", "ground_truth"]
)
def test_reserved_names_are_refused_as_fields(name: str) -> None:
    with pytest.raises(TypeError, match=f"field '{name}' of Answer: the name is reserved .* rename the field"):
        create_model("Answer", __base__=BaseAnswer, **{name: (int, 1)})  # type: ignore[call-overload]  # names are data


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"description": "  "}, ValueError, "needs a description"),
        ({"verify_with": None}, ValueError, "needs verify_with"),
        ({"verify_with": ExactMatch}, TypeError, r"write ExactMatch\(\)"),
        ({"verify_with": "ExactMatch"}, TypeError, "must be a verification primitive"),
        ({"weight": -1}, ValueError, "weight"),
        ({"weight": float("inf")}, ValueError, "weight"),
        ({"weight": float("nan")}, ValueError, "weight"),
        ({"weight": True}, ValueError, "weight"),
        ({"extraction_hint": 3}, TypeError, "extraction_hint"),
        ({"wieght": 3}, TypeError, r"'wieght' \(did you mean 'weight'\?\)"),
        ({"ground_truth": None}, ValueError, "ground_truth None can never match"),
        ({"ground_truth": "four", "verify_with": NumericExact()}, ValueError, "NumericExact cannot compare"),
        ({"ground_truth": True, "verify_with": NumericExact()}, TypeError, "NumericExact cannot compare"),
        ({"ground_truth": "maybe", "verify_with": BooleanMatch()}, ValueError, "BooleanMatch cannot compare"),
        ({"ground_truth": "abc", "verify_with": SetContainment()}, TypeError, "SetContainment cannot compare"),
    ],
)
def test_a_field_that_could_not_work_is_refused_where_it_is_written(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        VerifiedField(**{"description": "d", "ground_truth": "x", "verify_with": ExactMatch(), **arguments})


def test_a_primitive_that_ignores_the_ground_truth_takes_any_placeholder() -> None:
    for placeholder in ("N/A", 0, None):
        VerifiedField("d", placeholder, RegexMatch("a"))


class Broken(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        raise RuntimeError("no idea")


class Vague(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        return "yes"  # type: ignore[return-value]  # the wrong type is the point


def test_null_false_and_error_stay_three_things() -> None:
    class One(BaseAnswer):
        x: str | None = VerifiedField("x", "a", ExactMatch())

    verified = One.__verified__
    assert compare(verified, {"x": None}).results == {"x": None}
    assert compare(verified, {"x": None}).scores == {"x": None}
    assert compare(verified, {"x": "b"}).results == {"x": False}
    assert compare(verified, {"x": "b"}).scores == {"x": 0.0}
    assert not compare(verified, {"x": None}).passed
    for primitive, message in (
        (Broken(), "Broken raised RuntimeError: no idea"),
        (Vague(), "must return True or False"),
    ):
        cls = create_model("Answer", __base__=BaseAnswer, x=(str, VerifiedField("x", "a", primitive)))
        with pytest.raises(TemplateError, match=f"field 'x': .*{message}"):
            cls.model_validate({"x": "b"}).verify()
        assert cls.model_construct(x=None).verify() is False


class Scored(VerificationPrimitive):
    def __init__(self, value: Any) -> None:
        self.value = value

    def check(self, extracted: Any, expected: Any) -> bool:
        return True

    def score(self, extracted: Any, expected: Any) -> float:
        if self.value == "raise":
            raise RuntimeError("no score")
        return self.value  # type: ignore[no-any-return]  # whatever a stranger's primitive gives


@given(st.floats() | st.integers() | st.sampled_from(["raise", None, "much"]))
def test_a_strangers_score_ends_between_0_and_1(value: Any) -> None:
    cls = create_model("Answer", __base__=BaseAnswer, x=(str, VerifiedField("x", "a", Scored(value))))
    score = compare(cls.__verified__, {"x": "b"}).scores["x"]
    assert score is not None
    assert 0.0 <= score <= 1.0
    if value in ("raise", None, "much") or value != value:
        assert score == 1.0  # the check passed, and that is all there is to go by


WEIGHTS = st.floats(0, 1e6)
PARTS = st.lists(st.tuples(st.sampled_from(["right", "wrong", None]), WEIGHTS), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(PARTS)
def test_the_granular_score_is_the_weighted_mean(parts: list[tuple[str | None, float]]) -> None:
    fields: dict[str, Any] = {
        f"f{i}": (str | None, VerifiedField("d", "right", ExactMatch(), weight=weight))
        for i, (_, weight) in enumerate(parts)
    }
    cls = create_model("Answer", __base__=BaseAnswer, **fields)
    answer = cls(**{f"f{i}": value for i, (value, _) in enumerate(parts)})
    total = sum(weight for _, weight in parts)
    mean = sum(weight for value, weight in parts if value == "right") / total if total else 0.0
    assert answer.verify_granular() == pytest.approx(mean)
    assert 0.0 <= answer.verify_granular() <= 1.0
    assert answer.verify() is all(value == "right" for value, _ in parts)


@settings(deadline=None, max_examples=25)
@given(PARTS)
def test_the_order_of_fields_never_changes_the_verdict(parts: list[tuple[str | None, float]]) -> None:
    named = [(f"f{i}", value, weight) for i, (value, weight) in enumerate(parts)]
    seen = set()
    for order in itertools.islice(itertools.permutations(named), 6):
        fields: dict[str, Any] = {
            name: (str | None, VerifiedField("d", "right", ExactMatch(), weight=weight)) for name, _, weight in order
        }
        cls = create_model("Answer", __base__=BaseAnswer, **fields)
        answer = cls(**{name: value for name, value, _ in order})
        results = compare(cls.__verified__, answer.__dict__).results
        seen.add((answer.verify(), round(answer.verify_granular(), 9), tuple(sorted(results.items(), key=str))))
    assert len(seen) == 1


def test_one_answer_cannot_spoil_the_ground_truth_of_the_next() -> None:
    class Listed(BaseAnswer):
        x: list[str] = VerifiedField("x", ["a", "b"], SetContainment())

    first = Listed(x=["a", "b"])
    first.correct["x"].clear()
    assert first.verify()
    assert Listed(x=["a", "b"]).correct == {"x": ["a", "b"]}
    assert Listed(x=["a", "b"]).verify()


def test_the_package_is_imported_without_pydantic() -> None:
    code = (
        "import sys, karenina_core.templates as t; "
        "t.ExactMatch, t.TemplateHandle, t.SynonymMap, t.FieldVerdict, t.primitive_from_spec; "
        "assert 'pydantic' not in sys.modules, 'too early'; "
        "t.BaseAnswer; assert 'pydantic' in sys.modules; "
        "assert all(getattr(t, name) is not None for name in t.__all__) and set(t.__all__) <= set(dir(t))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
