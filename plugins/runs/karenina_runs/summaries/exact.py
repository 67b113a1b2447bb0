"""Sums that lose nothing: the same whatever the order, and of any number of values in the same little memory."""

from __future__ import annotations

import math

from attrs import define

SMALLEST = 1074
"""Every finite float is a whole number of 2**-1074."""


@define
class ExactSum:
    """What `math.fsum` says of all values that were added, without keeping them."""

    count: int = 0
    _scaled: int = 0
    _odd: float = 0.0
    """Infinities, and what is no number."""

    def add(self, value: float) -> None:
        """Add a number; True counts as 1."""
        self.count += 1
        if isinstance(value, int):
            self._scaled += value << SMALLEST
        elif math.isfinite(value):
            above, below = value.as_integer_ratio()
            self._scaled += above << (SMALLEST + 1 - below.bit_length())
        else:
            self._odd += value

    def merge(self, other: ExactSum) -> None:
        """Add what another has seen."""
        self.count += other.count
        self._scaled += other._scaled
        self._odd += other._odd

    @property
    def total(self) -> float:
        """The sum, rounded once. Raises OverflowError where no float is so large."""
        return self._odd or self._scaled / (1 << SMALLEST)

    @property
    def mean(self) -> float | None:
        """None without values."""
        if not self.count:
            return None
        try:
            return self.total / self.count
        except OverflowError:  # the sum is too large for a float, the mean is not
            return self._scaled / (self.count << SMALLEST)
