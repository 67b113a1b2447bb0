"""Dates and times, and how texts and Python objects are read as such.

Nothing is ever filled in from the clock of this machine, so a reading is the same on every day and everywhere. A text
has to state the day, the month and the year (with four digits); a time of day without a zone is read as UTC. Numbers
that are separated by slashes or hyphens are read month first (04/11/2016 is April 11) unless that is no date; with
dots, day first (11.04.2016 and 11. 4. 2016 are April 11). The article of a day ("the 11th of April") is read over, and
so is a comment in parentheses after a day without a time. Any other word makes a text unreadable, because it may change
what is meant: "before April 11, 2016".
"""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any, ClassVar

from attrs import field, frozen

from .base import VerificationPrimitive, one_of, whole_number

_LONGEST = 100
"""Characters. No date is longer; a whole paragraph is none. Chosen, not measured."""
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d|\d{8}", re.ASCII)
_ISO = re.compile(rf"(?:{_ISO_DAY.pattern})(?:[Tt]\d\d.*| \d\d:\d\d.*)", re.ASCII)
_CLOCK = re.compile(
    r"""(?: \d{1,2} : \d\d (?: :\d\d (?: [.,]\d+ )? )? \s* (?: [ap]\.?m\b\.? )?
        | \d{1,2} \s* [ap]\.?m\b\.?
        | \d{1,2} \s* h (?: ours? )? \b )
        \s* (?: (?: UTC | GMT )? \s* [+-] \d{1,2} (?: :?\d\d )? (?!\d) )?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_DAY_FIRST = re.compile(r"(?<!\d)\d{1,2}\s*\.\s*\d{1,2}\s*\.\s*\d{4}")
_ARTICLE = re.compile(r"\bthe\s+(?=\d)", re.IGNORECASE)
_NO_ASIDE = r"(?![^()]*\b(?:before|after|later|latest|earlier|earliest|not|by|until|since|about)\b)"
_ASIDE = re.compile(rf"\s*\({_NO_ASIDE}[^()\d]*\)\.?$")
_OTHER_CALENDAR = re.compile(r"\b(?:B\.?\s?C|B\.?\s?C\.?\s?E|O\.?\s?S|old style|julian)\b", re.IGNORECASE)
_NAMED_OFFSET = re.compile(r"\b(?:UTC|GMT)\s*(?=[+-]\d)")
# Those of RFC 5322, section 4.3. Other abbreviations mean different zones in different countries.
_ZONES = {"UT": 0, "UTC": 0, "GMT": 0, "Z": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6}
_ZONES |= {"MDT": -6, "MST": -7, "PDT": -7, "PST": -8}
# Whatever the text leaves out comes from these two, and then the two readings differ. Both are leap years.
_FILLERS = (datetime(2000, 1, 1, 0), datetime(2004, 12, 31, 1))


@frozen
class Moment:
    """A day, perhaps with a time. The day is the one that was written, in whatever zone that was."""

    day: date
    at: datetime | None = None
    """The point in time, with its zone; None where no time of day was given."""
    unknown_zone: str = ""

    def instant(self) -> datetime:
        """The point in time, that of midnight UTC for a day alone. ValueError where its zone is not known."""
        if self.unknown_zone:
            raise ValueError(f"the time zone {self.unknown_zone} has several meanings; write an offset such as +02:00")
        return self.at or datetime(self.day.year, self.day.month, self.day.day, tzinfo=UTC)

    def text(self) -> str:
        """In ISO 8601; a day alone stays one. Raises like `instant`."""
        return self.instant().isoformat() if self.at else self.day.isoformat()

    def is_before(self, other: Moment) -> bool:
        """Whether it is earlier: by the day, where one of the two has no time. Raises like `instant`."""
        if self.at is None or other.at is None:
            return self.day < other.day
        return self.instant() < other.instant()


def read_moment(value: Any) -> Moment:
    """A date, a datetime or a text as a moment.

    Raises TypeError for anything else, and ValueError for a text that is no date or leaves a part of it out.
    """
    if isinstance(value, datetime):
        return _with_time(value)
    if isinstance(value, date):
        return Moment(value)
    if not isinstance(value, str):
        raise TypeError(
            f"{value!r} is neither a date nor a text; write a text such as 2016-04-11 or a datetime.date, and declare "
            "the field as str or date"
        )
    text = value.strip()
    if len(text) > _LONGEST:
        raise ValueError(f"a text of {len(text)} characters is not a date")
    try:
        if _ISO_DAY.fullmatch(text):
            return Moment(date.fromisoformat(text))
        if _ISO.fullmatch(text):
            return _with_time(datetime.fromisoformat(text))
    except ValueError:
        pass  # it may still be something else that begins like this
    return _spelled_out(text)


def _with_time(value: datetime) -> Moment:
    return Moment(value.date(), value.replace(tzinfo=UTC) if value.utcoffset() is None else value)


def _spelled_out(text: str) -> Moment:
    from dateutil import parser  # type: ignore[import-untyped]  # it ships no types; imported here because it is slow

    unknown: list[str] = []

    def zone(name: str | None, seconds: int | None) -> tzinfo | None:
        if name is None or (seconds is not None and name in _ZONES):
            return None if seconds is None else timezone(timedelta(seconds=seconds))
        if name in _ZONES and seconds is None:
            return timezone(timedelta(hours=_ZONES[name]))
        unknown.append(name)
        return None

    bare = text
    if _CLOCK.search(text) is None and _OTHER_CALENDAR.search(text) is None:  # else it may be a time zone or an era
        bare = _ASIDE.sub("", text)
    bare = _ARTICLE.sub("", bare)
    try:
        # dateutil turns the sign of UTC+3 around; it reads a bare +3 as everybody does.
        plain, day_first = _NAMED_OFFSET.sub("", bare), _DAY_FIRST.search(bare) is not None
        first, second = (parser.parse(plain, default=f, dayfirst=day_first, tzinfos=zone) for f in _FILLERS)
    except (ValueError, ArithmeticError):
        raise ValueError(f"{text!r} cannot be read as a date; {_ADVICE}") from None
    if first.date() != second.date():
        raise ValueError(f"{text!r} is not a complete date: state the day, the month and the year")
    has_time = first.hour == second.hour
    if not _accounts_for(bare, first.year, has_time):
        raise ValueError(f"{text!r} can be read in several ways; {_ADVICE}")
    return Moment(first.date(), _with_time(first).at, "".join(unknown[:1])) if has_time else Moment(first.date())


_ADVICE = "write it like 2024-05-31 or 2024-05-31T18:00+02:00"


def _accounts_for(text: str, year: int, has_time: bool) -> bool:
    """Whether every number of the text is in the reading.

    dateutil is generous: it takes "May 5 and 6, 2016" for 20:16 on a day in 2006, and looks for the century of a year
    with two digits on the calendar of today.
    """
    rest, clocks = _CLOCK.subn(" ", text)
    numbers = re.findall(r"\d+", rest)
    years = [number[:4] if len(number) == 8 else number for number in numbers if len(number) > 2]
    return (clocks == 1) is has_time and len(numbers) <= 3 and years == [f"{year:04}"] and text[0] != "-"


_log = logging.getLogger("karenina.templates")


class _Dated(VerificationPrimitive):
    """A text that is no date does not pass; the log and the remark say why."""

    __slots__ = ()

    def check(self, extracted: Any, expected: Any) -> bool:
        passed, problem = self._judged(extracted, expected)
        if problem is not None:
            _log.warning("an extracted date counts as wrong: %s", problem)
        return passed

    def remark(self, extracted: Any, expected: Any) -> str | None:
        """Why the extracted text cannot be read as a date; None where it can."""
        problem = self._judged(extracted, expected)[1]
        return None if problem is None else f"The extracted date counts as wrong: {problem}."

    def _judged(self, extracted: Any, expected: Any) -> tuple[bool, str | None]:
        holds = self._test(expected)
        try:
            return holds(self._read(extracted)), None
        except ValueError as problem:
            return False, str(problem)

    @abstractmethod
    def _test(self, expected: Any) -> Callable[[Moment], bool]:
        """What the extracted date has to fulfil. Raises TypeError or ValueError for a bad ground truth."""

    def _read(self, value: Any) -> Moment:
        return read_moment(value)


# A day of which no part is what strptime fills in where the format does not ask for it.
_PROBE = datetime(2004, 11, 23)


@frozen
class DateMatch(_Dated):
    """The same day, whatever the time. A day is taken as it is written, without conversion of time zones.

    Texts are read by `format` (as `datetime.strptime` does) if it is given, on both sides. An extracted text that is
    no date, or not a complete one, does not pass.
    """

    format: str | None = field(default=None)

    @format.validator
    def _check_format(self, _: object, value: Any) -> None:
        if value is None:
            return
        if not isinstance(value, str):
            raise TypeError(f"format must be a text such as %d/%m/%Y, not {value!r}")
        try:
            again = datetime.strptime(_PROBE.strftime(value), value)
        except (ValueError, re.error) as error:  # the second for a directive that occurs twice
            raise ValueError(f"{value!r} is not a date format: {error}; write it like %d/%m/%Y") from None
        if again.date() != _PROBE.date():
            raise ValueError(
                f"the format {value!r} does not give a whole date: it needs the day, the month and the year"
            )

    def _test(self, expected: Any) -> Callable[[Moment], bool]:
        wanted = self._read(expected)
        return lambda found: found.day == wanted.day

    def check_ground_truth(self, expected: Any) -> None:
        self._read(expected)

    def _read(self, value: Any) -> Moment:
        if self.format is None or not isinstance(value, str):
            return read_moment(value)
        return Moment(datetime.strptime(value.strip(), self.format).date())


_UNITS = {"days": timedelta(days=1), "hours": timedelta(hours=1), "minutes": timedelta(minutes=1)}


@frozen
class DateTolerance(_Dated):
    """At most `tolerance` days, hours or minutes before or after the expected date.

    In days, a date without a time on either side makes the days count alone. In hours and minutes, such a date is its
    midnight, UTC. An extracted text that is no date, or not a complete one, does not pass.
    """

    tolerance: int = field(validator=whole_number(0))
    unit: str = field(default="days", validator=one_of(*_UNITS))

    def _test(self, expected: Any) -> Callable[[Moment], bool]:
        wanted = self._expected(expected)

        def is_near(found: Moment) -> bool:
            if self.unit == "days" and (found.at is None or wanted.at is None):
                return abs((found.day - wanted.day).days) <= self.tolerance
            units = -(-abs(found.instant() - wanted.instant()) // _UNITS[self.unit])  # rounded up
            return units <= self.tolerance

        return is_near

    def check_ground_truth(self, expected: Any) -> None:
        self._expected(expected)

    def _expected(self, value: Any) -> Moment:
        wanted = read_moment(value)
        wanted.instant()  # refuses a time zone that is not known
        return wanted


def _bound(value: Any) -> str | None:
    return None if value is None else read_moment(value).text()


@frozen
class DateRange(_Dated):
    """A date from `min` to `max`, both included; None leaves a side open. The ground truth is not used.

    Bounds are dates, datetimes or texts, and are kept as ISO 8601 texts. A bound without a time is the whole of that
    day: 18:00 on May 31 is within a `max` of May 31. So is an extracted date without a time; only two values with
    times are compared to the second, and days are taken as they are written. An extracted text that is no date, or
    not a complete one, does not pass.
    """

    uses_ground_truth: ClassVar[bool] = False

    min: str | None = field(default=None, converter=_bound)
    max: str | None = field(default=None, converter=_bound)

    def __attrs_post_init__(self) -> None:
        low, high = self._bounds()
        if low is None and high is None:
            raise ValueError("DateRange needs min, max or both; without a bound every date would pass")
        if low is not None and high is not None and high.is_before(low):
            raise ValueError(f"min {self.min} is after max {self.max}; swap them")

    def check(self, extracted: Any, expected: Any = None) -> bool:
        return super().check(extracted, expected)

    def remark(self, extracted: Any, expected: Any = None) -> str | None:
        return super().remark(extracted, expected)

    def _test(self, expected: Any) -> Callable[[Moment], bool]:
        low, high = self._bounds()
        return lambda found: (low is None or not found.is_before(low)) and (high is None or not high.is_before(found))

    def _bounds(self) -> tuple[Moment | None, Moment | None]:
        low = None if self.min is None else read_moment(self.min)
        high = None if self.max is None else read_moment(self.max)
        return low, high
