"""What a field may hold, where that gives its expected value away: bounds, and lists with one option."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from .references import Scalar, Sought, is_common, number_of

Severity = Literal["leak", "hint", "note"]
Weighed = tuple[Severity, str]
"""How bad it is, and what it is in words."""

NARROW, TIGHT = Decimal("0.05"), Decimal("0.01")
"""Width of an interval relative to the expected value: below, bounds point at the value or give it away. Bounds
that follow from the nature of a quantity (years of a century, a scale from 1 to 5) are wider than 5 % or hold few
values for everybody.
"""
FEW = 10
"""Whole numbers in an interval below which it is worth guessing."""
_NATURAL = frozenset(map(Decimal, (5, 7, 12, 24, 31, 60, 90, 180, 360, 365)))


def read_bounds(node: Mapping[str, Any], value: Scalar) -> Weighed | None:
    """What the bounds of one numeric node say about the expected value."""
    number = number_of(value)
    if number is None:
        return None
    low, high, step = _interval(node)
    if (low is not None and number < low) or (high is not None and number > high):
        return None  # not this alternative
    if low is not None and high is not None and (found := _narrow(number, low, high, step)):
        return found
    multiple = number_of(node.get("multipleOf"))
    if multiple is not None and multiple == abs(number) and not is_common(value):
        return "hint", f"multipleOf is {multiple}, the expected value"
    # Limits such as 0, 1 and 100 are those of a quantity, not of an answer.
    if (number == low and number in (-1, 0, 1)) or (number == high and number in (0, 1, 100)):
        return None
    for limit, name in ((low, "lowest"), (high, "highest")):
        if number == limit:
            common = is_common(number) or number in _NATURAL
            return ("note" if common else "hint"), f"{number} is the {name} value allowed"
    return None


def _interval(node: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None, Decimal | None]:
    """Lowest and highest value that are allowed, and the distance between values where there is one.

    An open end of an interval of real numbers counts as closed: it makes no difference to what it reveals.
    """
    step = number_of(node.get("multipleOf")) or (Decimal(1) if node.get("type") == "integer" else None)
    low, high = number_of(node.get("minimum")), number_of(node.get("maximum"))
    over, under = number_of(node.get("exclusiveMinimum")), number_of(node.get("exclusiveMaximum"))
    if over is not None:
        over = (math.floor(over / step) + 1) * step if step else over
        low = over if low is None else max(low, over)
    if under is not None:
        under = (math.ceil(under / step) - 1) * step if step else under
        high = under if high is None else min(high, under)
    return low, high, step


def _narrow(number: Decimal, low: Decimal, high: Decimal, step: Decimal | None) -> Weighed | None:
    allowed = f"the bounds allow only {low} to {high}"
    if step is not None:
        count = math.floor(high / step) - math.ceil(low / step) + 1
        if count == 1:
            return "leak", f"the bounds allow only {number}"
        near = number != 0 and (high - low) / abs(number) <= NARROW
        return ("hint", f"{allowed}, {count} values") if near and count <= FEW else None
    if low == high:
        return "leak", f"the bounds allow only {number}"
    width = (high - low) / abs(number) if number else None
    if width is not None and width <= NARROW:
        return ("leak" if width <= TIGHT else "hint"), allowed
    return None


def read_options(options: Sequence[Any], sought: Sought, many: bool) -> Weighed | None:
    """What a list of options says where it holds nothing but expected values."""
    if not options or not all(map(sought.equal_to, options)):
        return None
    if len(options) == 1:
        return "leak", f"{options[0]!r} is the only value allowed"
    return ("hint", "every option is one of the expected values") if many else None
