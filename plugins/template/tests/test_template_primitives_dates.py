"""Dates: read the same on every day and everywhere, or not at all."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_template.language.primitives.dates import read_moment

from karenina_core.templates import DateMatch, DateRange, DateTolerance, VerificationPrimitive

DAY = date(2016, 4, 11)
WRITTEN = [
    "2016-04-11",
    "20160411",
    "2016-4-11",
    "2016/04/11",
    "2016.04.11",
    " 2016-04-11 ",
    "April 11, 2016",
    "April 11, 2016.",
    "april 11th, 2016",
    "11th of April 2016",
    "11 Apr 2016",
    "11-Apr-2016",
    "11Apr2016",
    "Mon, 11 Apr 2016",
    "Monday, April 11, 2016",
    "2016, April 11",
    "04/11/2016",
    "4/11/2016",
    "11.04.2016",
    "11.4.2016",
    "11. 4. 2016",
    "11. 04. 2016",
    "11 . 4 . 2016",
    "2016. 4. 11.",
    "the 11th of April, 2016",
    "The 11th of April 2016",
    "on the 11th of April, 2016",
    "Monday the 11th of April, 2016",
    "April 11, 2016 (Monday)",
    "11 April 2016 (FDA)",
    "2016-04-11 (date of the approval).",
    "11. 4. 2016 (Montag)",
]
CLOCKS = [
    "T18:00",
    "T18:00:00.123",
    "T18:00Z",
    "T18:00+05:00",
    " 18:00",
    " 18:00:30 UTC",
    "T18",
    "T1800",
    " 6:00 pm",
    " 6 pm",
    " 18h",
]
NO_DATES = [
    "",
    " ",
    "unknown",
    "N/A",
    "10:00",
    "2016-02-30",
    "April 31, 2016",
    "2016-04-11 to 2016-04-12",
    "2016-04-11, 2016-04-12",
    "May 5 and 6, 2016",
    "April 11-12, 2016",
    "10 May 2016 20",
    "2016-04-11 10",
    "04,20at13of2016",
    "1 2 3",
    "160411",
    "-2016-04-11",
    "April 11, 2016 BC",
    "9" * 60,
    "2016-04-11 " * 20,
    "April 11," + " " * 100 + "2016",
    "before April 11, 2016",
    "not the 11th of April, 2016",
    "April 11, 2016 (or April 12)",
    "April 11, 2016 (BC)",
    "April 11, 2016 (B.C.)",
    "April 11, 2016 (BCE)",
    "April 11, 2016 (Old Style)",
    "2016-04-11 18:00 (EST)",
    "(April) 11, 2016 (Monday) (FDA)",
]
INCOMPLETE = [
    "2016",
    "2016-04",
    "April 2016",
    "04/2016",
    "April",
    "April 11",
    "11.04.",
    "11",
    "Tuesday",
    "Tuesday, April 2016",
    "Feb 29",
    "18:00",
    "11/04/16",
    "11 April 16",
    "April '16",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_one_day_in_many_spellings(text: str) -> None:
    assert read_moment(text).day == DAY
    for expected in (DAY, datetime(2016, 4, 11, 7), "2016-04-11", text):
        assert DateMatch().check(text, expected)
        assert DateMatch().check(expected, text)
        assert not DateMatch().check(date(2016, 4, 12), expected)


@pytest.mark.parametrize(
    ("day", "clock"),
    [(day, clock) for day in ("2016-04-11", "20160411") for clock in CLOCKS]
    + [("April 11, 2016", clock) for clock in CLOCKS if clock[0] == " "],
)
def test_a_time_of_day_does_not_change_the_day(day: str, clock: str) -> None:
    assert DateMatch().check(day + clock, DAY)
    assert read_moment(day + clock).instant().hour == 18


@given(st.dates(min_value=date(1000, 1, 1)), st.integers(0, 3), st.integers(0, 3))
def test_every_spelling_of_a_day_is_that_day(day: date, one: int, other: int) -> None:
    spellings = [
        day.isoformat(),
        f"{day:%d %B %Y}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day:%m/%d/%Y}",
    ]
    assert DateMatch().check(spellings[one], spellings[other])
    assert not DateMatch().check(spellings[one], day + timedelta(days=1 if day < date.max else -1))


@given(st.datetimes(timezones=st.just(UTC) | st.sampled_from([timezone(timedelta(hours=h)) for h in (-12, -5, 1, 14)])))
def test_a_moment_survives_its_text(moment: datetime) -> None:
    read = read_moment(moment.isoformat())
    assert read == read_moment(moment)
    assert read_moment(read.text()) == read


@pytest.mark.parametrize("text", INCOMPLETE)
def test_an_incomplete_date_is_never_filled_in(text: str) -> None:
    for primitive in (DateMatch(), DateTolerance(10**6), DateRange(min="0001-01-01", max="9999-12-31")):
        assert primitive.check(text, DAY) is False
        assert primitive.score(text, DAY) == 0
    for primitive in (DateMatch(), DateTolerance(1)):
        with pytest.raises(ValueError, match=r"not a complete date|several ways|cannot be read"):
            primitive.check_ground_truth(text)
    with pytest.raises(ValueError, match=r"not a complete date|several ways|cannot be read"):
        DateRange(min=text)


@pytest.mark.parametrize(
    "parts", ["%d", "%B", "%Y", "%B %d", "%d %b", "%Y-%m", "%B %Y", "%A", "%a %d", "%H:%M", "%m/%d/%y"]
)
def test_a_part_of_the_date_of_today_is_not_the_date_of_today(parts: str) -> None:
    now = datetime.now()
    assert not DateMatch().check(now.strftime(parts), now)
    assert not DateRange(min=now - timedelta(days=400)).check(now.strftime(parts))


@pytest.mark.parametrize("text", NO_DATES)
def test_a_text_that_is_no_date_does_not_pass_and_cannot_be_a_ground_truth(text: str) -> None:
    primitives: list[VerificationPrimitive] = [DateMatch(), DateTolerance(10**6), DateRange(min="0001-01-01")]
    assert [primitive.check(text, DAY) for primitive in primitives] == [False, False, False]
    for primitive in primitives[:2]:
        with pytest.raises(ValueError):
            primitive.check_ground_truth(text)
        with pytest.raises(ValueError):
            primitive.check(DAY, text)
    with pytest.raises(ValueError):
        DateRange(max=text)


@given(st.text(max_size=40) | st.text("0123456789-/. :T+,apmMayZ", max_size=25))
def test_any_text_is_a_date_or_it_is_not(text: str) -> None:
    try:
        moment = read_moment(text)
    except ValueError:
        assert DateMatch().check(text, DAY) is False
        return
    assert f"{moment.day.year:04}" in text
    assert DateMatch().check(text, moment.day)


def test_the_log_says_why_a_date_counts_as_wrong(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "karenina.templates"):
        DateMatch().check("April 2016", DAY)
    assert "counts as wrong: 'April 2016' is not a complete date" in caplog.text


@given(st.dates(min_value=date(1000, 1, 1)), st.sampled_from(["", " ", "  "]), st.sampled_from(["", " "]))
def test_dots_are_day_first_with_and_without_spaces(day: date, after: str, before: str) -> None:
    dot = before + "." + after
    assert read_moment(f"{day.day}{dot}{day.month}{dot}{day.year}").day == day


@pytest.mark.parametrize("text", [*INCOMPLETE, *NO_DATES])
@pytest.mark.parametrize(
    "primitive", [DateMatch(), DateMatch("%d/%m/%Y"), DateTolerance(1, "hours"), DateRange(min="0001-01-01")]
)
def test_an_extracted_text_that_cannot_be_read_as_a_date_leaves_a_remark(
    primitive: VerificationPrimitive, text: str
) -> None:
    remark = primitive.remark(text, DAY)
    assert remark is not None
    assert remark.startswith("The extracted date counts as wrong: ")
    assert primitive.check(text, DAY) is False


def test_an_extracted_date_that_can_be_read_leaves_no_remark_even_where_it_is_wrong() -> None:
    for primitive in (DateMatch(), DateTolerance(1, "hours"), DateRange(max="2000-01-01")):
        assert primitive.remark("April 12, 2016", DAY) is None
        assert not primitive.check("April 12, 2016", DAY)
    assert DateTolerance(1, "hours").remark("2016-04-11 18:00 IST", DAY) is not None
    with pytest.raises(ValueError, match="cannot be read"):
        DateMatch().remark("April 12, 2016", "soon")


def test_what_is_no_date_says_what_to_write_instead() -> None:
    with pytest.raises(TypeError, match=r"2016 is neither a date nor a text; write a text such as 2016-04-11"):
        DateMatch().check_ground_truth(2016)


@pytest.mark.parametrize("value", [20160411, 2016.0, True, ["2016-04-11"], None, b"2016-04-11"])
def test_what_is_neither_text_nor_date_is_an_error_of_the_template(value: Any) -> None:
    primitives: list[VerificationPrimitive] = [DateMatch(), DateMatch("%Y-%m-%d"), DateTolerance(1), DateRange(min=DAY)]
    for primitive in primitives:
        with pytest.raises(TypeError, match="neither a date nor a text"):
            primitive.check(value, DAY)
    for primitive in primitives[:3]:
        with pytest.raises(TypeError, match="neither a date nor a text"):
            primitive.check_ground_truth(value)


def test_a_format_reads_the_texts_of_both_sides() -> None:
    european = DateMatch("%d/%m/%Y")
    assert european.check("11/04/2016", "11/04/2016")
    assert european.check(" 11/04/2016", DAY)
    assert european.check(datetime(2016, 4, 11, 23), "11/04/2016")
    assert not european.check("04/11/2016", "11/04/2016")
    assert not european.check("2016-04-11", "11/04/2016")
    assert DateMatch("%d.%m.%y").check("11.04.16", DAY)
    with pytest.raises(ValueError, match="does not match format"):
        european.check_ground_truth("2016-04-11")


@pytest.mark.parametrize("text", ["%Y", "%Y-%m", "%Y-%d", "%H:%M", "", "date", "%Q", "%d %d %m %Y", "%"])
def test_a_format_that_gives_no_whole_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="format"):
        DateMatch(text)
    with pytest.raises(TypeError, match="format must be a text"):
        DateMatch(7)  # type: ignore[arg-type]  # the wrong type is the point


def test_a_day_is_taken_as_it_is_written() -> None:
    assert DateMatch().check("2016-04-11T23:00-05:00", "2016-04-11")
    assert DateMatch().check("2016-04-11 23:00 CEST", "2016-04-11")
    assert not DateMatch().check("2016-04-12T04:00Z", "2016-04-11T23:00-05:00")


@pytest.mark.parametrize(
    ("tolerance", "unit", "extracted", "expected", "passed"),
    [
        (2, "days", "2024-05-29", "2024-05-31", True),
        (2, "days", "2024-06-02", "2024-05-31", True),
        (2, "days", "2024-06-03", "2024-05-31", False),
        (0, "days", "2024-05-31", "2024-05-31", True),
        (0, "days", "2024-05-31T18:00", "2024-05-31", True),
        (0, "days", "2024-05-31", "2024-05-31T18:00", True),
        (1, "days", "2024-06-01T18:00", "2024-05-31", True),
        (1, "days", "2024-06-01T18:00", "2024-05-31T18:00", True),
        (1, "days", "2024-06-01T18:01", "2024-05-31T18:00", False),
        (3, "hours", "2024-05-31T21:00", "2024-05-31T18:00", True),
        (3, "hours", "2024-05-31T21:00:01", "2024-05-31T18:00", False),
        (3, "hours", "2024-05-31T03:00", "2024-05-31", True),
        (3, "hours", "2024-05-30T21:00", "2024-05-31", True),
        (3, "hours", "2024-05-31T04:00", "2024-05-31", False),
        (90, "minutes", datetime(2024, 5, 31, 19, 30), datetime(2024, 5, 31, 18), True),
        (89, "minutes", datetime(2024, 5, 31, 19, 30), datetime(2024, 5, 31, 18), False),
        (0, "minutes", "2024-05-31T20:00+02:00", "2024-05-31T18:00Z", True),
        (0, "minutes", "2024-05-31 20:00 UTC+2", "2024-05-31T18:00Z", True),
        (0, "minutes", "2024-05-31 13:00 EST", "2024-05-31 6 pm GMT", True),
        (0, "minutes", "2024-05-31T18:00", "2024-05-31T18:00Z", True),
        (0, "minutes", "2024-05-31 18:00 CEST", "2024-05-31T18:00Z", False),
        (10**30, "minutes", date.min, date.max, True),
        (5, "days", date.min, datetime.max, False),
    ],
)
def test_date_tolerance(tolerance: int, unit: str, extracted: Any, expected: Any, passed: bool) -> None:
    assert DateTolerance(tolerance, unit).check(extracted, expected) is passed


@given(st.datetimes(), st.datetimes(), st.sampled_from(["days", "hours", "minutes"]))
def test_a_tolerance_is_as_wide_as_the_distance_rounded_up(a: datetime, b: datetime, unit: str) -> None:
    apart = -(-abs(a - b) // timedelta(**{unit: 1}))
    assert DateTolerance(apart, unit).check(a.isoformat(), b)
    assert DateTolerance(apart, unit).check(b, a)
    assert apart == 0 or not DateTolerance(apart - 1, unit).check(a, b.isoformat(" ", "microseconds"))


@pytest.mark.parametrize("tolerance", [-1, 1.5, True, "1", None])
def test_a_date_tolerance_is_a_whole_number(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="tolerance must be a whole number"):
        DateTolerance(tolerance)
    with pytest.raises(ValueError, match="did you mean 'hours'"):
        DateTolerance(1, "hour")


def test_a_time_zone_with_several_meanings_is_no_ground_truth() -> None:
    with pytest.raises(ValueError, match=r"IST has several meanings; write an offset"):
        DateTolerance(1).check_ground_truth("2024-05-31 18:00 IST")
    with pytest.raises(ValueError, match="IST has several meanings"):
        DateRange(max="2024-05-31 18:00 IST")
    DateMatch().check_ground_truth("2024-05-31 18:00 IST")


MAY = DateRange(min="2024-05-01", max="2024-05-31")
NOON = DateRange(min="2024-05-01T12:00", max="2024-05-31T12:00")


@pytest.mark.parametrize(
    ("primitive", "extracted", "passed"),
    [
        (MAY, "2024-05-01", True),
        (MAY, "2024-05-31", True),
        (MAY, "April 30, 2024", False),
        (MAY, "2024-06-01", False),
        (MAY, datetime(2024, 5, 31, 23, 59, 59), True),
        (MAY, datetime(2024, 6, 1), False),
        (MAY, "2024-05-31T23:00-05:00", True),
        (MAY, "2024-05-31 23:00 CEST", True),
        (NOON, "2024-05-01", True),
        (NOON, "2024-05-31", True),
        (NOON, "2024-05-31T12:00", True),
        (NOON, "2024-05-31T12:00:01", False),
        (NOON, "2024-05-31T14:00+02:00", True),
        (NOON, "2024-05-01T11:59", False),
        (NOON, "2024-05-15 18:00 CEST", False),
        (DateRange(min=date(2024, 5, 1)), date.max, True),
        (DateRange(max=datetime(2024, 5, 1, tzinfo=UTC)), date.min, True),
        (DateRange(DAY, DAY), "2016-04-11T10:00", True),
    ],
)
def test_date_ranges(primitive: DateRange, extracted: Any, passed: bool) -> None:
    assert not primitive.uses_ground_truth
    assert primitive.check(extracted, "N/A") is passed


@given(st.dates(), st.times())
def test_a_bound_without_a_time_is_the_whole_of_that_day(day: date, time: Any) -> None:
    moment = datetime.combine(day, time)
    assert DateRange(max=day).check(moment)
    assert DateRange(min=day.isoformat()).check(moment.isoformat())
    assert DateRange(day, day).check(moment)


@given(st.lists(st.datetimes() | st.dates(), min_size=3, max_size=3))
def test_a_range_of_days_goes_by_the_day(values: list[date]) -> None:
    low, found, high = (value.date() if isinstance(value, datetime) else value for value in values)
    low, high = min(low, high), max(low, high)
    assert DateRange(low, high).check(values[1]) is (low <= found <= high)


def test_a_date_range_that_every_date_or_none_would_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="every date would pass"):
        DateRange()
    with pytest.raises(ValueError, match="swap them"):
        DateRange(min="2024-06-01", max="2024-05-31")
    with pytest.raises(TypeError, match="neither a date nor a text"):
        DateRange(min=2024)


def test_bounds_are_kept_as_iso_texts() -> None:
    assert DateRange("May 1, 2024", date(2024, 5, 31)) == MAY
    assert (MAY.min, MAY.max) == ("2024-05-01", "2024-05-31")
    assert DateRange(max=datetime(2024, 5, 1, 18)).max == "2024-05-01T18:00:00+00:00"


SCRIPT = """
import sys, warnings
warnings.simplefilter("error")
from karenina_core.templates import DateMatch, DateRange
from karenina_template.language.primitives.dates import read_moment
DateMatch().check("2016-04-11T18:00Z", "2016-04-11"), DateRange(max="2024-05-31")
assert "dateutil" not in sys.modules, "an ISO text needs no dateutil"
print([(t, DateMatch().check(t, "2016-04-11"), str(read_moment(t).text())) for t in
       ("April 11, 2016", "11 Apr 2016 18:00", "2016-04-11 18:00 EST", "2016-04-11 18:00 UTC+3")])
assert "dateutil" in sys.modules
"""


def test_a_reading_is_the_same_in_every_time_zone_and_imports_its_reader_late() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for zone in ("UTC", "EST5EDT", "Asia/Tokyo")
    }
    assert len(printed) == 1
    assert "2016-04-11T18:00:00-05:00" in printed.pop()


@pytest.mark.parametrize("aside", ["or later", "at the latest", "not before", "about"])
def test_a_remark_that_changes_the_date_is_not_passed_over(aside: str) -> None:
    assert DateMatch().check("April 11, 2016 (FDA)", "2016-04-11")
    assert not DateMatch().check(f"April 11, 2016 ({aside})", "2016-04-11")
