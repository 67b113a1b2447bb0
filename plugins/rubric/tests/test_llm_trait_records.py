"""Template kinds: a record is taken as it is or not at all, and its limits survive a benchmark file."""

from __future__ import annotations

import asyncio
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_rubric.llm import LLMEvaluator
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traces import EvaluationInput
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from karenina_core import (
    Benchmark,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    TraitCase,
    TraitScore,
    VerificationConfig,
    VerificationContext,
)
from karenina_core.errors import PortError
from karenina_core.testing import ScriptedLLM, application

LAW = settings(deadline=None)


class Level(StrEnum):
    low = "low"
    high = "high"


class Style(BaseModel):
    """How the answer is written."""

    formal: bool = Field(description="Whether it uses formal language")
    sentences: int = Field(ge=0, le=10)
    share: float = Field(0.5, gt=0, lt=1)
    wording: Literal["plain", "technical"]
    level: Level
    terms: list[str] = Field(max_length=2)
    code: str = Field("A1", pattern="^[A-Z][0-9]$")
    remark: str | None = None


RIGHT = {"formal": True, "sentences": 0, "wording": "plain", "level": "high", "terms": ["BCL2"]}
WHOLE = {**RIGHT, "share": 0.5, "code": "A1", "remark": None}
WRONG = [
    ("formal", "true"),
    ("formal", 1),
    ("formal", None),
    ("sentences", 11),
    ("sentences", -1),
    ("sentences", 2.5),
    ("sentences", True),
    ("sentences", "4"),
    ("share", 0),
    ("share", float("nan")),
    ("wording", "Plain"),
    ("level", "medium"),
    ("terms", ["a", "b", "c"]),
    ("terms", "BCL2"),
    ("terms", [1]),
    ("code", "a1"),
    ("remark", 3),
]


def trait(kind: Any = Style, **facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(name="Style", description="How it is written.", kind=kind, **facts)


def evaluated(
    one: LLMRubricTrait, *replies: Any, repairs: int = 0, raw_answer: str = ""
) -> tuple[TraitScore, ScriptedLLM]:
    llm = ScriptedLLM(*replies)
    model = Model(config=ModelConfig(model_name="judge", interface="scripted", max_retries=repairs), llm=llm)
    context = VerificationContext(
        question=Question(question="Which protein?", raw_answer=raw_answer),
        config=VerificationConfig(),
        parsing=ModelClient(model, []),
    )

    async def run() -> TraitScore:
        case = TraitCase(context, EvaluationInput("It is BCL2.", False), asyncio.Semaphore(1))
        return (await LLMEvaluator().evaluate([one], case))[one.name]

    return asyncio.run(run()), llm


def through_a_file(one: LLMRubricTrait, folder: Path) -> LLMRubricTrait:
    app = application(installed=["jsonld"])
    question = Question(question="Which protein?")
    benchmark = Benchmark(name="b", questions=[question], rubric=Rubric(llm_traits=[one]))
    benchmark.save(folder / "b.jsonld", app=app)
    rubric = Benchmark.load(folder / "b.jsonld", app=app).rubric
    assert rubric is not None
    return rubric.llm_traits[0]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LLMRubricTrait:
    return through_a_file(trait(), tmp_path_factory.mktemp("benchmark"))


# What is asked


def test_the_judge_is_asked_for_every_field_with_the_traits_own_schema() -> None:
    found, llm = evaluated(trait(), RIGHT)
    assert (found.state, found.value, found.reason) == ("ok", WHOLE, "")
    (call,) = llm.calls
    assert call.task == "rubric_llm_trait_template"
    assert call.output is not None
    assert call.output.schema is not None
    own = Style.model_json_schema()
    assert {**call.output.schema, "required": own["required"]} == own
    assert call.output.schema["required"] == list(Style.model_fields)
    assert "The record: Style\nCriteria: How it is written." in call.text
    assert "the value that claims least" in call.messages[0].text


@pytest.mark.parametrize("asks", [True, False])
def test_the_reference_answer_is_shown_where_the_trait_asks_for_it(asks: bool) -> None:
    _, llm = evaluated(trait(include_ground_truth=asks), RIGHT, raw_answer="gold-7f41c")
    assert ("gold-7f41c" in llm.calls[0].text) is asks


# What is read


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_bounds_and_allowed_values_hold_after_a_benchmark_was_saved_and_loaded(
    loaded: LLMRubricTrait, name: str, value: Any
) -> None:
    for one in (trait(), loaded):
        found, _ = evaluated(one, {**RIGHT, name: value})
        assert (found.state, found.value) == ("invalid", None)
        assert found.reason.startswith(name)
        assert "got" in found.reason


def test_the_schema_of_a_template_kind_survives_a_file_word_for_word(loaded: LLMRubricTrait) -> None:
    assert isinstance(loaded.kind, TemplateKind)
    assert loaded.kind.model is None
    assert loaded.kind.schema == Style.model_json_schema()
    assert loaded == trait()


RECORDS = st.fixed_dictionaries(
    {
        "formal": st.booleans(),
        "sentences": st.integers(0, 10) | st.integers(0, 10).map(float),
        "wording": st.sampled_from(["plain", "technical"]),
        "level": st.sampled_from(["low", "high"]),
        "terms": st.lists(st.text(st.characters(codec="ascii", categories=["L", "N"])), max_size=2),
    },
    optional={
        "share": st.floats(0, 1, exclude_min=True, exclude_max=True),
        "code": st.sampled_from(["A1", "Z9"]),
        "remark": st.none() | st.just("fine"),
        "unknown": st.integers(),
    },
)


@given(record=RECORDS)
@LAW
def test_a_record_that_fits_is_kept_as_it_is(loaded: LLMRubricTrait, record: dict[str, Any]) -> None:
    expected = {**WHOLE, **{key: value for key, value in record.items() if key != "unknown"}}
    for one in (trait(), loaded):
        found, _ = evaluated(one, record)
        assert (found.state, found.value) == ("ok", expected)
        assert type(found.value["sentences"]) is int
        assert list(found.value) == list(Style.model_fields)


def test_the_judge_is_asked_to_correct_a_wrong_record_and_its_correction_counts(loaded: LLMRubricTrait) -> None:
    found, llm = evaluated(loaded, {**RIGHT, "sentences": 11, "terms": "x"}, RIGHT, repairs=1)
    assert found.value == WHOLE
    correction = llm.calls[1].messages[-1].text
    assert "sentences: Input should be less than or equal to 10; got 11" in correction
    assert "terms: Input should be a valid list; got 'x'" in correction


def test_the_judge_is_asked_for_a_required_field_that_it_left_out() -> None:
    found, _ = evaluated(trait(), {key: value for key, value in RIGHT.items() if key != "formal"})
    assert (found.state, found.reason) == ("invalid", "formal is missing")


def test_a_field_with_a_default_that_is_left_out_is_asked_for_once() -> None:
    without = {**WHOLE, "share": 0.7}
    del without["remark"]
    given_ = {**without, "remark": "fine"}
    found, llm = evaluated(trait(), without, given_, repairs=2)
    assert (found.value, len(llm.calls)) == (given_, 2)
    correction = llm.calls[1].messages[-1].text
    assert "remark is missing; reply with every field" in correction
    assert "share" not in correction
    found, llm = evaluated(trait(), without, without, repairs=2)
    assert (found.state, found.value, len(llm.calls)) == ("ok", {**without, "remark": None}, 2)


@pytest.mark.parametrize("later", ["Hm.", {"remark": "fine"}, {**RIGHT, "sentences": 11}])
def test_a_record_that_fits_counts_also_where_later_replies_do_not(later: Any) -> None:
    found, _ = evaluated(trait(), RIGHT, later, repairs=1)
    assert (found.state, found.value) == ("ok", WHOLE)


def test_a_reason_is_cut() -> None:
    schema = {"type": "object", "properties": {"f" * 2000: {"type": "boolean"}}}
    found, _ = evaluated(trait({"type": "template", "schema": schema}), {"f" * 2000: 3})
    assert (found.state, len(found.reason)) == ("invalid", 1000)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [("Hm, formal I think.", "could not be read"), ({"unknown": 1}, "gave no value"), ({}, "gave no value")],
)
def test_a_judge_that_says_nothing_of_the_fields_leaves_the_record_missing(reply: Any, reason: str) -> None:
    found, _ = evaluated(trait(), reply)
    assert (found.state, found.value) == ("missing", None)
    assert reason in found.reason


def test_a_judge_that_cannot_be_reached_is_an_error_with_its_message() -> None:
    found, _ = evaluated(trait(), PortError("out of credit", kind="auth"))
    assert (found.state, found.value, found.reason) == ("error", None, "out of credit")


# Where the trait still has its class


class Careful(BaseModel):
    word: str

    @field_validator("word")
    @classmethod
    def _check(cls, value: str) -> str:
        if value == "ugly":
            raise ValueError("say it more kindly")
        if value == "bug":
            raise RuntimeError("the validator itself is broken")
        return value.lower()


def test_the_validators_of_a_class_are_asked_too() -> None:
    assert evaluated(trait(Careful), {"word": "FINE"})[0].value == {"word": "fine"}
    refused, _ = evaluated(trait(Careful), {"word": "ugly"})
    assert refused.state == "invalid"
    assert "word: Value error, say it more kindly; got 'ugly'" in refused.reason
    broken, _ = evaluated(trait(Careful), {"word": "bug"})
    assert broken.state == "error"
    assert "the validator itself is broken" in broken.reason


class Renamed(BaseModel):
    inner: int = Field(alias="outer", ge=0)
    other: int = Field(0, serialization_alias="written")


def test_fields_are_called_as_in_the_schema() -> None:
    assert evaluated(trait(Renamed), {"outer": 3, "other": 4})[0].value == {"outer": 3, "other": 4}


class Grade(Enum):
    low = "low"
    high = "high"


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    grade: Grade
    grades: list[Grade]
    share: float


def test_a_strict_class_accepts_what_its_schema_accepts(tmp_path: Path) -> None:
    record = {"grade": "low", "grades": ["high"], "share": 1}
    for one in (trait(Strict), through_a_file(trait(Strict), tmp_path)):
        assert evaluated(one, record)[0].value == record
        assert evaluated(one, {**record, "grade": "medium"})[0].state == "invalid"


class Reshaped(BaseModel):
    share: float

    @field_serializer("share")
    def _written(self, value: float) -> Any:
        return {1.0: {"nested": [value]}, 2.0: float("nan")}.get(value, value / 2)


@pytest.mark.parametrize("share", [1.0, 2.0])
def test_what_a_class_writes_has_to_fit_its_schema_too(share: float) -> None:
    found, _ = evaluated(trait(Reshaped), {"share": share})
    assert (found.state, found.value) == ("invalid", None)
    assert found.reason.startswith("share: ")
    assert evaluated(trait(Reshaped), {"share": 3.0})[0].value == {"share": 1.5}


class Careless(BaseModel):
    count: int

    @field_validator("count")
    @classmethod
    def _changed(cls, value: int) -> Any:
        return "many"


def test_what_a_validator_makes_of_a_value_has_to_fit_the_schema_too() -> None:
    found, _ = evaluated(trait(Careless), {"count": 3})
    assert (found.state, found.reason) == ("invalid", "count: Input should be a valid integer; got 'many'")
