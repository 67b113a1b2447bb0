"""Dates and times. How they are read is described in `moments`."""

from __future__ import annotations

import logging
import re
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

from attrs import field, frozen

from .base import VerificationPrimitive
from .moments import Moment, read_moment
from .parameters import one_of, whole_number

__all__ = ["DateMatch", "DateRange", "DateTolerance"]

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


def _check_format(_: object, __: object, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"format must be a text such as %d/%m/%Y, not {value!r}")
    try:
        again = datetime.strptime(_PROBE.strftime(value), value)
    except (ValueError, re.error) as error:  # the second for a directive that occurs twice
        raise ValueError(f"{value!r} is no date format: {error}; write it like %d/%m/%Y") from None
    if again.date() != _PROBE.date():
        raise ValueError(f"the format {value!r} does not give a whole date: it needs the day, the month and the year")


@frozen
class DateMatch(_Dated):
    """The same day, whatever the time. A day is taken as it is written, without conversion of time zones.

    Texts are read by `format` (as `datetime.strptime` does) if it is given, on both sides. An extracted text that is
    no date, or not a complete one, does not pass.
    """

    format: str | None = field(default=None, validator=_check_format)

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
        return lambda found: self._apart(found, wanted) <= self.tolerance

    def check_ground_truth(self, expected: Any) -> None:
        self._expected(expected)

    def _expected(self, value: Any) -> Moment:
        wanted = read_moment(value)
        wanted.instant()  # refuses a time zone that is not known
        return wanted

    def _apart(self, found: Moment, wanted: Moment) -> int:
        """In units, rounded up."""
        if self.unit == "days" and (found.at is None or wanted.at is None):
            return abs((found.day - wanted.day).days)
        return -(-abs(found.instant() - wanted.instant()) // _UNITS[self.unit])


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
        return self._contains

    def _contains(self, found: Moment) -> bool:
        low, high = self._bounds()
        return not (low is not None and found.is_before(low)) and not (high is not None and high.is_before(found))

    def _bounds(self) -> tuple[Moment | None, Moment | None]:
        low = None if self.min is None else read_moment(self.min)
        high = None if self.max is None else read_moment(self.max)
        return low, high
