"""Every input is looked at once, here: plain finite numbers, or an error that says which one is not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, TypeAlias

from karenina_core.errors import KareninaError

from .arrays import Floats, Integers, np

Numbers: TypeAlias = Iterable[float]
"""Numbers or booleans in one dimension: a list, a tuple, a numpy array, a column of a table."""

SEED = 0
"""The seed of every random procedure, unless another one is given."""

LARGEST = 1e100
"""Sums of third powers of larger numbers would overflow."""


ROUNDING = 2e-15
"""Numbers that differ by less than this share of their size, nine units in the last place, are the same number."""


class StatisticsError(KareninaError, ValueError):
    """The numbers do not allow what was asked for; the message says what to give instead."""


def numbers(values: Numbers, name: str = "values") -> Floats:
    """The values as a fresh array; booleans are 0 and 1."""
    items: Any = values if isinstance(values, Sequence) or hasattr(values, "__array__") else list(values)
    if isinstance(items, np.ma.MaskedArray) and np.ma.is_masked(items):
        raise StatisticsError(f"{name}: some are masked; leave out what was not measured")
    try:
        array = np.asarray(items)
    except ValueError as error:
        raise StatisticsError(f"{name}: not one list of numbers ({error}); give one number for each") from error
    if array.ndim != 1:
        raise StatisticsError(f"{name}: {array.ndim} dimensions; give one list of numbers")
    if array.size == 0:
        return np.zeros(0)
    if array.dtype.kind not in "buif":
        array = _converted(items, name)
    result = array.astype(np.float64)
    if not np.isfinite(result).all():
        where = int(np.flatnonzero(~np.isfinite(result))[0])
        raise StatisticsError(f"{name}[{where}] is {result[where]}; leave out what was not measured")
    if np.abs(result).max() > LARGEST:
        raise StatisticsError(f"{name}: numbers beyond {LARGEST:g} cannot be computed with; use a larger unit")
    return result


def _converted(items: Iterable[Any], name: str) -> Floats:
    """Numbers in other boxes than numpy's, such as fractions or whole numbers of any size."""
    for i, item in enumerate(items):
        if not isinstance(item, Real | np.bool_):
            raise StatisticsError(f"{name}[{i}] is {item!r}, which is not a number; leave out what was not measured")
    try:
        return np.asarray([float(item) for item in items])
    except OverflowError as error:
        raise StatisticsError(f"{name}: numbers beyond {LARGEST:g} cannot be computed with") from error


def pairs(first: Numbers, second: Numbers) -> tuple[Floats, Floats]:
    """Two arrays of the same length: the values of both sides, question by question."""
    a, b = numbers(first, "first"), numbers(second, "second")
    if len(a) != len(b):
        raise StatisticsError(f"first has {len(a)} values and second {len(b)}; give both for the same questions")
    return a, b


def differences(first: Numbers, second: Numbers) -> Floats:
    """`first - second`, question by question.

    What is left of equal numbers after rounding is 0: 0.1 + 0.2 and 0.3 are no difference that a test may find.
    """
    a, b = pairs(first, second)
    result = a - b
    result[np.abs(result) <= ROUNDING * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return result


def cluster_codes(labels: Iterable[Hashable], n: int) -> Integers:
    """For each value the number of its cluster, counted from 0 in the order of appearance."""
    known: dict[Hashable, int] = {}
    codes = [known.setdefault(label, len(known)) for label in labels]
    if len(codes) != n:
        raise StatisticsError(f"{len(codes)} labels of clusters for {n} values; give one label for each value")
    if any(label is None or label != label for label in known):
        raise StatisticsError("a label of a cluster is missing; give independent values a label of their own")
    return np.asarray(codes, dtype=np.int64)


def whole(value: Any, name: str, least: int = 0) -> int:
    """A whole number that is at least `least`."""
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool | str) and int(value) == value and value >= least:
            return int(value)
    raise StatisticsError(f"{name} is {value!r}; give a whole number from {least} on")


def wholes(values: Numbers, name: str) -> Floats:
    """Whole numbers from 0 on, as floats."""
    array = numbers(values, name)
    wrong = np.flatnonzero((array < 0) | (array != np.floor(array)))
    if wrong.size:
        raise StatisticsError(f"{name}[{wrong[0]}] is {array[wrong[0]]:g}; give whole numbers from 0 on")
    return array


def counts(successes: Any, trials: Any) -> tuple[int, int]:
    """Successes out of trials."""
    k, n = whole(successes, "successes"), whole(trials, "trials")
    if k > n:
        raise StatisticsError(f"{k} successes in {n} trials; there cannot be more successes than trials")
    return k, n


def fraction(value: float, name: str) -> float:
    """A number between 0 and 1, both excluded: a level, an alpha, a power."""
    if not 0 < value < 1:
        raise StatisticsError(f"{name} is {value!r}; give a number between 0 and 1, such as 0.95 for 95 %")
    return float(value)


def positive(value: float, name: str) -> float:
    """A finite number above 0."""
    if not (value > 0 and math.isfinite(value)):
        raise StatisticsError(f"{name} is {value!r}; give a number above 0")
    return float(value)
