"""Numbers with partial credit that falls from 1 to 0 over a stretch of distance.

At the share `r` of the stretch, the score is `1 - r` (`linear`) or `1 - r**2` (`quadratic`). Everything is computed
exactly, as in `numeric`, and turned into a float at the end; so more distance never gives more credit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

from attrs import field, frozen
from attrs.validators import optional

from .base import VerificationPrimitive
from .numeric import Numeric, distance, exact, read_number
from .parameters import finite, flag, not_negative, one_of, positive

_MODES = one_of("relative", "absolute")
_DECAYS = one_of("linear", "quadratic")


def _credit(way: Fraction, stretch: Fraction, decay: str) -> float:
    """The score after `way` of `stretch`."""
    if way <= 0:
        return 1.0
    if way >= stretch:
        return 0.0
    share = way / stretch
    return float(1 - (share if decay == "linear" else share * share))


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
