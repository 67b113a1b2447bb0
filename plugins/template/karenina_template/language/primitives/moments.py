"""Texts and Python objects as days and points in time.

Nothing is ever filled in from the clock of this machine, so a reading is the same on every day and everywhere. A text
has to state the day, the month and the year (with four digits); a time of day without a zone is read as UTC. Numbers
that are separated by slashes or hyphens are read month first (04/11/2016 is April 11) unless that is no date; with
dots, day first (11.04.2016 and 11. 4. 2016 are April 11). The article of a day ("the 11th of April") is read over, and
so is a comment in parentheses after a day without a time. Any other word makes a text unreadable, because it may change
what is meant: "before April 11, 2016".
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Any

from attrs import frozen

__all__ = ["Moment", "read_moment"]

_LONGEST = 100
"""Characters. No date is longer; a whole paragraph is none."""
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
        raise ValueError(f"a text of {len(text)} characters is no date")
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
    unknown: list[str] = []

    def zone(name: str | None, seconds: int | None) -> tzinfo | None:
        if name is None or (seconds is not None and name in _ZONES):
            return None if seconds is None else timezone(timedelta(seconds=seconds))
        if name in _ZONES and seconds is None:
            return timezone(timedelta(hours=_ZONES[name]))
        unknown.append(name)
        return None

    bare = _bare(text)
    try:
        first, second = (_parsed(bare, filler, zone) for filler in _FILLERS)
    except (ValueError, ArithmeticError):
        raise ValueError(f"{text!r} cannot be read as a date; {_ADVICE}") from None
    if first.date() != second.date():
        raise ValueError(f"{text!r} is not a complete date: state the day, the month and the year")
    has_time = first.hour == second.hour
    if not _accounts_for(bare, first.year, has_time):
        raise ValueError(f"{text!r} can be read in several ways; {_ADVICE}")
    return Moment(first.date(), _with_time(first).at, "".join(unknown[:1])) if has_time else Moment(first.date())


def _bare(text: str) -> str:
    """The text without what does not belong to the date."""
    if _CLOCK.search(text) is None and _OTHER_CALENDAR.search(text) is None:  # else it may be a time zone or an era
        text = _ASIDE.sub("", text)
    return _ARTICLE.sub("", text)


_ADVICE = "write it like 2024-05-31 or 2024-05-31T18:00+02:00"


def _parsed(text: str, filler: datetime, zone: Any) -> datetime:
    from dateutil import parser  # type: ignore[import-untyped]  # it ships no types; imported here because it is slow

    # dateutil turns the sign of UTC+3 around; it reads a bare +3 as everybody does.
    plain = _NAMED_OFFSET.sub("", text)
    day_first = _DAY_FIRST.search(text) is not None
    read: datetime = parser.parse(plain, default=filler, dayfirst=day_first, tzinfos=zone)
    return read


def _accounts_for(text: str, year: int, has_time: bool) -> bool:
    """Whether every number of the text is in the reading.

    dateutil is generous: it takes "May 5 and 6, 2016" for 20:16 on a day in 2006, and looks for the century of a year
    with two digits on the calendar of today.
    """
    rest, clocks = _CLOCK.subn(" ", text)
    numbers = re.findall(r"\d+", rest)
    years = [number[:4] if len(number) == 8 else number for number in numbers if len(number) > 2]
    return (clocks == 1) is has_time and len(numbers) <= 3 and years == [f"{year:04}"] and text[0] != "-"
