"""What the procedures give back. Nothing here computes."""

from __future__ import annotations

from attrs import field, frozen

__all__ = ["Estimate", "Interval"]


@frozen
class Interval:
    """A two-sided interval of confidence; both limits belong to it."""

    low: float
    high: float
    level: float
    """The nominal coverage, such as 0.95."""
    method: str
    """How it was made, such as `wilson` or `student-t`."""


@frozen(kw_only=True)
class Estimate:
    """A mean (or a difference of means) with what is known about its error.

    What could not be computed is None, and `note` says why.
    """

    value: float | None
    """The estimate, in the units of the values; None without values."""
    n: int
    """How many values it rests on."""
    method: str
    interval: Interval | None = None
    standard_error: float | None = None
    df: float | None = None
    """Degrees of freedom of the t distribution behind the interval."""
    clusters: int | None = None
    """How many clusters the values fall into; None where the values are taken as independent."""
    resamples: int | None = None
    """How many times was resampled; None where nothing was."""
    note: str = field(default="")
