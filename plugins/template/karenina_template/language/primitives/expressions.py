"""Mathematical expressions: the same value however they are written, in LaTeX or in one line."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from ..mathematics import Statement, numbers, read_statement, same_value
from .base import VerificationPrimitive, not_negative


@frozen
class ExpressionMatch(VerificationPrimitive):
    """An expression or equation with the same value: `\\frac{x+1}{2}` is `0.5 + x/2`. Needs the package mpmath.

    Compared is the value at points where both are defined, with 30 digits. `tolerance` is the share by which values may
    differ. An equation `y = ...` is its right side where the expected text is no equation.
    """

    tolerance: float = field(default=0.0, validator=not_negative)

    def __attrs_post_init__(self) -> None:
        numbers()  # else its absence would make every answer wrong

    @classmethod
    def prepare(cls) -> None:
        same_value(read_statement("x + 1/2"), read_statement(r"\frac{2x+1}{2}"), 0.0)

    def check(self, extracted: Any, expected: Any) -> bool:
        wanted = _read(expected)
        try:
            return same_value(_read(extracted), wanted, self.tolerance)
        except ValueError:
            return False

    def remark(self, extracted: Any, expected: Any) -> str | None:
        """Why the extracted text cannot be compared; None where it can."""
        try:
            same_value(_read(extracted), _read(expected), self.tolerance)
        except ValueError as problem:
            return f"The extracted expression counts as wrong: {problem}."
        return None

    def check_ground_truth(self, expected: Any) -> None:
        statement = _read(expected)
        same_value(statement, statement, self.tolerance)  # refuses what has no value anywhere


def _read(value: Any) -> Statement:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"an expression is a text such as 'x^2 + 1', not {value!r}")
    return read_statement(str(value))
