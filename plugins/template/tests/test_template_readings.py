"""What a judge's JSON is read as, and what it is not: numbers are no dates, truth values no numbers, slips no nulls."""

from __future__ import annotations

import datetime
import enum
import json
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language.coercions import careful_reader
from karenina_template.language.extraction import extraction_class, fill, judge_schema
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from karenina_core.errors import FillError
from karenina_core.templates import (
    BaseAnswer,
    ContainsAny,
    DateMatch,
    ExactMatch,
    LiteralMatch,
    NumericExact,
    RegexMatch,
    TraceContains,
    VerifiedField,
)


class Rank(enum.IntEnum):
    FIRST = 1


class Visit(BaseModel):
    type: str = "a field that is called like a keyword"
    day: datetime.date
    doses: list[float] = []
    later: list[Visit] = []


class Study(BaseAnswer):
    day: datetime.date = VerifiedField("Day", "2016-04-11", DateMatch())
    at: datetime.datetime | None = VerifiedField("Time", "2016-04-11", DateMatch())
    count: int = VerifiedField("Count", 1, NumericExact(), ge=0)
    share: Annotated[float, Field(le=9)] | None = VerifiedField("Share", 1.0, NumericExact())
    price: Decimal = VerifiedField("Price", 1, NumericExact())
    phase: Literal[1, 2] = VerifiedField("Phase", 1, NumericExact())
    rank: Rank = VerifiedField("Rank", 1, NumericExact())
    sizes: dict[str, list[int]] = VerifiedField("Sizes", {}, LiteralMatch())
    visit: Visit = VerifiedField("Visit", {"day": "2016-04-11"}, LiteralMatch())
    days: tuple[datetime.date, int] | None = None
    plain: int = 0


NUMBERS = st.one_of(
    st.integers(-(10**11), 10**11).filter(lambda n: not 10**7 <= n < 10**8),
    st.floats(allow_nan=False, allow_infinity=False),
).filter(lambda n: len(str(n).strip()) != 8)


@settings(database=None, deadline=None, derandomize=True)
@given(NUMBERS, st.booleans(), st.sampled_from(["day", "at"]))
def test_a_number_is_never_read_as_a_date(number: float, as_text: bool, field: str) -> None:
    with pytest.raises(FillError, match="a number is no date; write it like 2024-05-31"):
        fill(Study, {field: f" {number} " if as_text else number})


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"visit": {"day": 0}}, "visit.day"),
        ({"visit": {"day": "2016-04-11", "later": [{"day": "1460332800"}]}}, r"visit.later\[0\].day"),
        ({"days": [86400, 1]}, r"days\[0\]"),
    ],
)
def test_a_number_is_no_date_inside_lists_and_nested_models_either(data: dict[str, Any], path: str) -> None:
    with pytest.raises(FillError, match=rf"- {path}: a number is no date"):
        fill(Study, data)


@settings(database=None, deadline=None, derandomize=True)
@given(st.dates(datetime.date(1000, 1, 1)), st.booleans())
def test_eight_digits_are_a_day_and_not_a_moment_of_1970(day: datetime.date, as_text: bool) -> None:
    digits = day.strftime("%Y%m%d")
    filled = fill(Study, {"day": digits if as_text else int(digits), "at": digits, "visit": {"day": digits}})
    assert (filled.day, filled.at, filled.visit.day) == (day, datetime.datetime(day.year, day.month, day.day), day)


@pytest.mark.parametrize("value", ["20161399", 99999999])
def test_eight_digits_that_are_no_day_are_refused(value: object) -> None:
    with pytest.raises(FillError, match="day: Input should be a valid date"):
        fill(Study, {"day": value})


@pytest.mark.parametrize("field", ["count", "share", "price", "phase", "rank", "plain"])
@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_never_read_as_a_number(field: str, value: bool) -> None:
    with pytest.raises(FillError, match=f"- {field}: true and false are no numbers"):
        fill(Study, {field: value})


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"sizes": {"a": [True]}}, r"sizes.a\[0\]"),
        ({"visit": {"day": "2016-04-11", "doses": [1, False]}}, r"visit.doses\[1\]"),
        ({"days": ["2016-04-11", True]}, r"days\[1\]"),
    ],
)
def test_a_truth_value_is_no_number_inside_lists_and_nested_models_either(data: dict[str, Any], path: str) -> None:
    with pytest.raises(FillError, match=rf"- {path}: true and false are no numbers"):
        fill(Study, data)


def test_everything_else_is_read_as_before_and_asked_for_with_the_same_schema() -> None:
    filled = fill(
        Study,
        {"day": "2016-04-11", "at": "2016-04-11T10:00:00Z", "count": "1", "share": 1, "price": "1.5", "phase": 2}
        | {"rank": 1, "visit": {"day": "2016-04-11"}, "days": ["2016-04-11", "3"]},
    )
    assert type(filled.visit) is Visit
    assert filled.visit == Visit(day=datetime.date(2016, 4, 11))
    assert (filled.count, filled.share, filled.price, filled.rank) == (1, 1.0, Decimal("1.5"), Rank.FIRST)
    assert judge_schema(Study)["properties"]["day"] == {
        "anyOf": [{"format": "date", "type": "string"}, {"type": "null"}],
        "description": "Day",
    }
    assert Visit.__pydantic_complete__ is True
    assert Visit(day=0).day == datetime.date(1970, 1, 1)  # type: ignore[arg-type]  # the author's own code is left alone


def test_a_choice_of_types_keeps_its_choice() -> None:
    class Open(BaseAnswer):
        x: int | float | str | None = None
        y: bool | int | None = None
        z: datetime.date | str | None = None
        w: int | float | None = None

        def verify(self) -> bool:
            return True

    for value in (5, 5.5, "5", None):
        assert (fill(Open, {"x": value}).x, type(fill(Open, {"x": value}).x)) == (value, type(value))
    assert fill(Open, {"y": True}).y is True
    assert fill(Open, {"z": "20160411"}).z == "20160411"
    with pytest.raises(FillError, match=r"- w.int: true and false are no numbers .*\n- w.float: true"):
        fill(Open, {"w": True})


def test_an_authors_own_validator_comes_first() -> None:
    class Own(BaseAnswer):
        year: datetime.date = VerifiedField("Year", "2016-01-01", DateMatch())
        count: Annotated[int, BeforeValidator(int)] = VerifiedField("Count", 1, NumericExact())

        @field_validator("year", mode="before")
        @classmethod
        def first_day(cls, value: Any) -> Any:
            return f"{value}-01-01" if isinstance(value, int) else value

    filled = fill(Own, {"year": 2016, "count": True})
    assert (filled.year, filled.count) == (datetime.date(2016, 1, 1), 1)


def test_a_reader_of_one_type_is_as_careful() -> None:
    assert careful_reader(datetime.date)("20160411") == datetime.date(2016, 4, 11)
    assert careful_reader(list[Visit])([{"day": "2016-04-11"}])[0].day.year == 2016
    for annotation, value in ((int, True), (float | int, False), (datetime.date, 0), (Visit, {"day": 5})):
        with pytest.raises(ValidationError, match=r"are no numbers|is no date"):
            careful_reader(annotation)(value)


# Strict templates


class Strict(BaseAnswer):
    model_config = ConfigDict(strict=True)

    day: datetime.date = VerifiedField("Day", "2016-04-11", DateMatch())
    at: datetime.datetime | None = VerifiedField("Time", "2016-04-11", DateMatch())
    names: set[str] = VerifiedField("Names", ["a"], LiteralMatch())
    price: Decimal | None = VerifiedField("Price", 1, NumericExact())
    count: int = VerifiedField("Count", 1, NumericExact())
    rank: Rank | None = VerifiedField("Rank", 1, NumericExact())


def test_a_strict_template_reads_json_and_not_python() -> None:
    filled = fill(
        Strict,
        {"day": "2016-04-11", "at": "2016-04-11T00:00:00", "names": ["a"], "price": "1.5", "count": 1, "rank": 1},
    )
    assert (filled.day, filled.names, filled.price, filled.count) == (
        datetime.date(2016, 4, 11),
        {"a"},
        Decimal("1.5"),
        1,
    )
    assert filled.rank is Rank.FIRST
    for wrong in ({"count": "1"}, {"day": 0}, {"count": True}, {"names": "a"}):
        with pytest.raises(FillError, match=f"- {next(iter(wrong))}: "):
            fill(Strict, wrong)


# Keys


class Keys(BaseAnswer):
    drug_name: str = VerifiedField("Drug", "aspirin", ExactMatch())
    dose: str = VerifiedField("Dose", "400", ExactMatch(), alias="Daily Dose")
    remark: str = "none"
    seen: bool = VerifiedField("Seen", True, TraceContains("x"))


@pytest.mark.parametrize("word", ["Drug_Name", "drugName", "DRUG-NAME", "drug name", "drugname"])
def test_a_key_may_be_spelled_with_other_case_and_separators(word: str) -> None:
    assert fill(Keys, {word: "aspirin", "dose": "400"}).drug_name == "aspirin"
    assert fill(Keys, {word: "aspirin", "daily_dose": "5", "Remark": "r"}).dose == "5"
    assert fill(Keys, {word: "x", "REMARK": "r"}).remark == "r"


def test_a_key_that_is_right_wins_over_one_that_is_spelled_otherwise() -> None:
    assert fill(Keys, {"Drug Name": "x", "drug_name": "aspirin"}).drug_name == "aspirin"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"drug_nme": "aspirin", "dose": "400"}, "drug_name: missing, but there is 'drug_nme'; write the key as"),
        ({"Drug Name": "a", "drugname": "b"}, "drug_name: missing, but there is 'Drug Name', 'drugname'"),
        ({"drug_name": "a", "daily dosis": "b"}, "Daily Dose: missing, but there is 'daily dosis'; .* 'Daily Dose'"),
        ({"drug_names": ["a"]}, "drug_name: missing, but there is 'drug_names'"),
    ],
)
def test_a_misspelled_key_is_repaired_and_not_taken_for_silence(data: dict[str, Any], message: str) -> None:
    with pytest.raises(FillError, match=message):
        fill(Keys, data)


@pytest.mark.parametrize("more", [{}, {"price": 1}, {"seen": True}, {"id": "drug"}, {"x": 1, "drug": "a"}])
def test_a_key_that_is_simply_not_there_is_null(more: dict[str, Any]) -> None:
    assert fill(Keys, {"dose": "400", **more}).drug_name is None


def test_fields_that_differ_in_case_alone_are_not_mixed_up() -> None:
    class Two(BaseAnswer):
        ab: str = VerifiedField("A", "a", ExactMatch())
        AB: str = VerifiedField("B", "b", ExactMatch())

    filled = fill(Two, {"ab": "x"})
    assert [filled.ab, filled.AB] == ["x", None]
    with pytest.raises(FillError, match="AB: missing, but there is 'a_b'"):
        fill(Two, {"a_b": "x"})


# Ground truths of nested models, and names


class Dose(BaseModel):
    value: float
    unit: Literal["mg", "g"] = "mg"


def test_a_ground_truth_may_write_nested_models_as_dicts() -> None:
    class Doses(BaseAnswer):
        one: Dose = VerifiedField("One", {"value": 400}, LiteralMatch())
        many: list[Dose] | None = VerifiedField("Many", [{"value": 1, "unit": "g"}], LiteralMatch())
        named: dict[str, Dose] = VerifiedField("Named", {"a": {"value": 2}}, LiteralMatch())
        open: dict[str, float] = VerifiedField("Open", {"value": 400}, LiteralMatch())
        free: Dose = VerifiedField("Free", {"value": "N/A"}, RegexMatch("."))

    truths = {name: found.ground_truth for name, found in Doses.__verified__.items()}
    assert truths == {
        "one": Dose(value=400),
        "many": [Dose(value=1, unit="g")],
        "named": {"a": Dose(value=2)},
        "open": {"value": 400},
        "free": {"value": "N/A"},
    }
    filled = fill(Doses, {"one": {"value": 400, "unit": "mg"}, "many": [{"value": 1, "unit": "g"}]})
    assert LiteralMatch().check(filled.one, truths["one"])
    assert LiteralMatch().check(filled.many, truths["many"])
    assert json.dumps(judge_schema(Doses)).count("400") == 0


def test_nested_models_that_are_defined_later_are_read_then() -> None:
    class Early(BaseAnswer):
        dose: Later = VerifiedField("Dose", {"value": 400}, LiteralMatch())

    class Later(BaseModel):
        value: float

    Early.model_rebuild(_types_namespace={"Later": Later})
    assert Early.__pydantic_complete__
    extraction_class(Early)
    filled = fill(Early, {"dose": {"value": 400}})
    assert LiteralMatch().check(filled.dose, Early.__verified__["dose"].ground_truth)


def test_a_template_that_pydantic_shall_build_later_is_read_as_carefully() -> None:
    class Later(BaseAnswer):
        model_config = ConfigDict(defer_build=True)

        dose: Dose = VerifiedField("Dose", {"value": 400}, LiteralMatch())

    filled = fill(Later, {"dose": {"value": 400}})
    assert LiteralMatch().check(filled.dose, Later.__verified__["dose"].ground_truth)
    with pytest.raises(FillError, match="true and false are no numbers"):
        fill(Later, {"dose": {"value": True}})


class Grade(enum.Enum):
    LOW = 1
    HIGH = 2


class Twice(BaseModel):
    before: Grade
    after: Grade


def test_a_schema_that_is_used_twice_is_read_carefully_in_both_places() -> None:
    class Compared(BaseAnswer):
        grades: Twice = VerifiedField("Grades", {"before": 1, "after": 2}, LiteralMatch())

    assert Compared.__verified__["grades"].ground_truth == Twice(before=Grade.LOW, after=Grade.HIGH)
    assert fill(Compared, {"grades": {"before": 1, "after": 2}}).verify() is True
    with pytest.raises(FillError):
        fill(Compared, {"grades": {"before": True, "after": 2}})


def test_a_number_in_a_key_makes_it_another_field_and_no_misspelling() -> None:
    class Drugs(BaseAnswer):
        drug_1: str = VerifiedField("First", "aspirin", ExactMatch())
        drug_2: str = VerifiedField("Second", "warfarin", ExactMatch())

    filled = fill(Drugs, {"drug_1": "aspirin", "drug_3": "heparin"})
    assert (filled.drug_1, filled.drug_2) == ("aspirin", None)
    with pytest.raises(FillError, match="drugs_2"):
        fill(Drugs, {"drug_1": "aspirin", "drugs_2": "heparin"})


def test_of_a_nested_model_only_the_values_are_texts() -> None:
    class Dose(BaseModel):
        unit: str

    assert not ContainsAny(["unit"]).check(Dose(unit="mg"))
    assert ContainsAny(["mg"]).check([Dose(unit="mg")])
    assert ContainsAny(["unit"]).check({"unit": "mg"})
