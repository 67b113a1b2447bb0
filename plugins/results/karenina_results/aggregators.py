"""The plugin `aggregators`: functions of a list of values that give one value for all of them.

The list is never empty and holds scores only. One that cannot be applied to such values raises TypeError.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Sequence
from typing import Any

from karenina_core import hookimpl
from karenina_core.values.fields import is_number
from karenina_core.values.identity import canonical_json


def mean(values: Sequence[Any]) -> float:
    """The mean of numbers; of True and False, the share of True."""
    numbers = _numbers(values, "mean")
    try:
        return statistics.fmean(numbers)
    except OverflowError:  # the sum is too large for a float, the mean is not
        return sum(number / len(numbers) for number in numbers)


def median(values: Sequence[Any]) -> float:
    """The median of numbers, True counting 1; of an even count, the mean of the two in the middle."""
    return float(statistics.median(_numbers(values, "median")))


def mode(values: Sequence[Any]) -> Any:
    """The most frequent value; of several, the smallest number or the first text of the alphabet."""
    counts = _counted(values)
    most = max(found for found, _ in counts)
    return min((value for found, value in counts if found == most), key=_rank)


def majority_vote(values: Sequence[Any]) -> Any:
    """The value of strictly more than half; None where no value has so many."""
    found, value = max(_counted(values), key=lambda pair: pair[0])
    return value if 2 * found > len(values) else None


def first(values: Sequence[Any]) -> Any:
    """The first value, in the order of question, models and replicate."""
    return values[0]


def count(values: Sequence[Any]) -> int:
    """How many there are."""
    return len(values)


def _numbers(values: Sequence[Any], name: str) -> list[float]:
    for value in values:
        if not isinstance(value, bool) and not is_number(value):
            others = "mode, majority_vote, first or count"
            raise TypeError(f"{name} needs numbers or True and False, not {value!r}; take {others}")
    return [float(value) for value in values]


def _counted(values: Sequence[Any]) -> list[tuple[int, Any]]:
    """`(count, value)` of each different value. 4 is 4.0 and True is not 1; lists and tables can be counted too."""
    found: dict[Hashable, tuple[int, Any]] = {}
    for value in values:
        counted_as_number = isinstance(value, int | float) and not isinstance(value, bool)
        key = ("number", value) if counted_as_number else ("json", canonical_json(value))
        known, first_one = found.get(key, (0, value))
        found[key] = (known + 1, first_one)
    return list(found.values())


def _rank(value: Any) -> tuple[int, float, str]:
    if isinstance(value, bool) or is_number(value):
        return 0, float(value), "" if isinstance(value, bool) else "number"
    return 1, 0.0, value if isinstance(value, str) else canonical_json(value)


@hookimpl
def karenina_register_aggregators(registry: Any) -> None:
    for function in (mean, median, mode, majority_vote, first, count):
        registry.add(function)
