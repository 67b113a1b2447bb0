"""Numbers: equal, near, or on the right side of a bound.

A float is read as the decimal number that Python prints for it, and differences are computed exactly. So 1.1 is
within 10% of 1.0, as it is on paper, although the two nearest binary fractions are a little further apart.

Graded primitives give partial credit that falls from 1 to 0 over a stretch of distance: at the share `r` of the
stretch, the score is `1 - r` (`linear`) or `1 - r**2` (`quadratic`). So more distance never gives more credit.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, ClassVar

from attrs import field, frozen
from attrs.validators import optional

from .base import VerificationPrimitive, finite, flag, not_negative, one_of, positive


def read_number(value: Any) -> int | float:
    """A number, also from a text that is one. Truth values and NaN are no numbers: TypeError, ValueError."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        quoted = repr(value) if len(value) <= 80 else f"{value[:40]!r}... ({len(value)} characters)"
        for read in (int, float):
            try:
                number = read(value)
            except ValueError:
                continue
            if math.isinf(number) and any(map(str.isdigit, value)):
                raise ValueError(f"{quoted} is too large for a number; write it in a larger unit")
            if number == number:
                return number
        raise ValueError(f"{quoted} is not a number")
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise TypeError(f"{value!r} is not a number")
    if value != value:
        raise ValueError("NaN cannot be compared")
    return int(value) if isinstance(value, Integral) else float(value)


def exact(value: float) -> Fraction:
    """A finite number as the fraction that its decimal notation means: 0.1 is one tenth."""
    return Fraction(value) if isinstance(value, int) else Fraction(repr(float(value)))


def distance(found: float, wanted: float, mode: str) -> Fraction | None:
    """How far `found` is from `wanted`: in their own unit (`absolute`) or as a share of `wanted` (`relative`).

    None where that is no number: relative to 0, or to or from infinity; but equal numbers are always 0 apart.
    """
    if found == wanted:
        return Fraction(0)
    if math.inf in (abs(found), abs(wanted)) or (mode == "relative" and wanted == 0):
        return None
    apart = abs(exact(found) - exact(wanted))
    return apart / abs(exact(wanted)) if mode == "relative" else apart


class Numeric(VerificationPrimitive):
    """Base of what compares with an expected number."""

    __slots__ = ()

    def check_ground_truth(self, expected: Any) -> None:
        read_number(expected)


@frozen
class NumericExact(Numeric):
    """Equal numbers."""

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(read_number(extracted) == read_number(expected))


@frozen
class NumericTolerance(Numeric):
    """Numbers that differ by at most `tolerance`: of the expected value (`relative`) or in its own unit
    (`absolute`).

    An expected value of 0 leaves no room in relative mode: only 0 passes.
    """

    tolerance: float = field(validator=not_negative)
    mode: str = field(default="relative", validator=one_of("relative", "absolute"))

    def check(self, extracted: Any, expected: Any) -> bool:
        apart = distance(read_number(extracted), read_number(expected), self.mode)
        return apart is not None and apart <= exact(self.tolerance)


@frozen
class NumericRange(VerificationPrimitive):
    """A number from `min` to `max`, the bounds included unless they are exclusive. The ground truth is not used.

    A bound that is None leaves that side open. Both open is refused, because every number would pass.
    """

    uses_ground_truth: ClassVar[bool] = False

    min: float | None = field(default=None, validator=optional(finite))
    max: float | None = field(default=None, validator=optional(finite))
    exclusive_min: bool = field(default=False, validator=flag)
    exclusive_max: bool = field(default=False, validator=flag)

    def __attrs_post_init__(self) -> None:
        low, high = self.min, self.max
        if low is None and high is None:
            raise ValueError("NumericRange needs min, max or both; without a bound every number would pass")
        for name, bound, exclusive in (("min", low, self.exclusive_min), ("max", high, self.exclusive_max)):
            if exclusive and bound is None:
                raise ValueError(f"exclusive_{name} only means something together with {name}")
        if low is None or high is None:
            return
        if low > high:
            raise ValueError(f"min {low!r} is above max {high!r}; swap them")
        if low == high and (self.exclusive_min or self.exclusive_max):
            raise ValueError(f"nothing lies between {low!r} and {high!r} when a bound is exclusive")

    def check(self, extracted: Any, expected: Any = None) -> bool:
        value = read_number(extracted)
        above = self.min is None or value > self.min or (value == self.min and not self.exclusive_min)
        below = self.max is None or value < self.max or (value == self.max and not self.exclusive_max)
        return above and below


@frozen
class NumericMinimum(Numeric):
    """At least the expected number; above it if `exclusive`."""

    exclusive: bool = field(default=False, validator=flag)

    def check(self, extracted: Any, expected: Any) -> bool:
        value, threshold = read_number(extracted), read_number(expected)
        return value > threshold or (value == threshold and not self.exclusive)


@frozen
class NumericMaximum(Numeric):
    """At most the expected number; below it if `exclusive`."""

    exclusive: bool = field(default=False, validator=flag)

    def check(self, extracted: Any, expected: Any) -> bool:
        value, threshold = read_number(extracted), read_number(expected)
        return value < threshold or (value == threshold and not self.exclusive)


_MODES = one_of("relative", "absolute")
_DECAYS = one_of("linear", "quadratic")


def _credit(way: Fraction, stretch: Fraction, decay: str) -> float:
    """The score after `way` of `stretch`; below 1 after any, also where that would be rounded to it."""
    if way <= 0:
        return 1.0
    if way >= stretch:
        return 0.0
    share = way / stretch
    return min(float(1 - (share if decay == "linear" else share * share)), math.nextafter(1.0, 0.0))


@frozen
class NumericGraded(Numeric):
    """A number near the expected one: at most `full_credit` away, or `cutoff` where no `full_credit` is given.

    The score is 1 up to a distance of `full_credit` (0 if not given) and falls to 0 at `cutoff`. So a value between
    the two does not pass and still gets credit; and without `full_credit`, one that passes may get less than 1.
    Distances are shares of the expected value (`relative`) or in its own unit (`absolute`); relative to 0 only 0
    counts.
    """

    cutoff: float = field(validator=positive)
    full_credit: float | None = field(default=None, validator=optional(not_negative))
    mode: str = field(default="relative", validator=_MODES)
    decay: str = field(default="linear", validator=_DECAYS)

    def __attrs_post_init__(self) -> None:
        if self.full_credit is not None and self.full_credit >= self.cutoff:
            raise ValueError(f"full_credit {self.full_credit!r} must be below cutoff {self.cutoff!r}")

    def check(self, extracted: Any, expected: Any) -> bool:
        apart = distance(read_number(extracted), read_number(expected), self.mode)
        return apart is not None and apart <= exact(self.cutoff if self.full_credit is None else self.full_credit)

    def score(self, extracted: Any, expected: Any) -> float:
        apart = distance(read_number(extracted), read_number(expected), self.mode)
        inner = exact(self.full_credit or 0)
        return 0.0 if apart is None else _credit(apart - inner, exact(self.cutoff) - inner, self.decay)


@frozen
class NumericRangeGraded(VerificationPrimitive):
    """A number from `min` to `max`, with partial credit beside them. The ground truth is not used.

    The score is 1 from `min` to `max` and falls to 0 at a distance of `margin`: in the unit of the bounds (`absolute`)
    or as a share of `max - min` (`relative`). Exclusive bounds do not pass, but their score is 1.
    """

    uses_ground_truth: ClassVar[bool] = False

    min: float = field(validator=finite)
    max: float = field(validator=finite)
    margin: float = field(validator=positive)
    mode: str = field(default="absolute", validator=_MODES)
    decay: str = field(default="linear", validator=_DECAYS)
    exclusive_min: bool = field(default=False, validator=flag)
    exclusive_max: bool = field(default=False, validator=flag)

    def __attrs_post_init__(self) -> None:
        if self.min >= self.max:
            raise ValueError(f"min {self.min!r} must be below max {self.max!r}")

    def check(self, extracted: Any, expected: Any = None) -> bool:
        value = read_number(extracted)
        if value in (self.min, self.max):
            return not (self.exclusive_min if value == self.min else self.exclusive_max)
        return self.min < value < self.max

    def score(self, extracted: Any, expected: Any = None) -> float:
        value = read_number(extracted)
        if abs(value) == math.inf:
            return 0.0
        low, high, number = exact(self.min), exact(self.max), exact(value)
        shoulder = exact(self.margin) * (high - low if self.mode == "relative" else 1)
        return _credit(max(low - number, number - high), shoulder, self.decay)


@frozen
class NumericThresholdGraded(Numeric):
    """At least (`direction` is `min`) or at most (`max`) the expected number, with partial credit on the wrong side.

    The score is 1 on the right side, the threshold included, and falls to 0 at a distance of `margin` from it: as a
    share of the threshold (`relative`) or in its own unit (`absolute`). Relative to a threshold of 0 there is no
    partial credit. If `exclusive`, the threshold itself does not pass, but its score is 1.
    """

    direction: str = field(validator=one_of("max", "min"))
    margin: float = field(validator=positive)
    mode: str = field(default="relative", validator=_MODES)
    decay: str = field(default="linear", validator=_DECAYS)
    exclusive: bool = field(default=False, validator=flag)

    def check(self, extracted: Any, expected: Any) -> bool:
        value, threshold = read_number(extracted), read_number(expected)
        return not self.exclusive if value == threshold else self._right_side(value, threshold)

    def score(self, extracted: Any, expected: Any) -> float:
        value, threshold = read_number(extracted), read_number(expected)
        if value == threshold or self._right_side(value, threshold):
            return 1.0
        apart = distance(value, threshold, self.mode)
        return 0.0 if apart is None else _credit(apart, exact(self.margin), self.decay)

    def _right_side(self, value: float, threshold: float) -> bool:
        return value > threshold if self.direction == "min" else value < threshold
