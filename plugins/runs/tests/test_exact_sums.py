"""A sum that keeps no values says the same as one of all values, in whatever order they come."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.summaries.exact import ExactSum

NUMBERS = st.lists(st.one_of(st.floats(-1e300, 1e300), st.integers(-(10**20), 10**20), st.booleans()), max_size=30)


def summed(values: list[float]) -> ExactSum:
    found = ExactSum()
    for value in values:
        found.add(value)
    return found


@given(NUMBERS)
def test_it_is_the_sum_of_all_values_rounded_once(values: list[float]) -> None:
    assert summed(values).total == math.fsum(values)
    assert summed(values).mean == (fmean(values) if values else None)
    assert summed(values).count == len(values)


@given(NUMBERS, NUMBERS, st.randoms())
def test_neither_the_order_nor_the_parts_change_it(one: list[float], other: list[float], draw: object) -> None:
    merged = summed(one)
    merged.merge(summed(other))
    shuffled = [*other, *one]
    draw.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert merged == summed(shuffled)


def test_a_sum_too_large_for_a_float_still_has_a_mean() -> None:
    large = summed([1.5e308, 1.5e308])
    assert large.mean == 1.5e308
    with pytest.raises(OverflowError):
        _ = large.total


def test_what_is_no_number_makes_no_number() -> None:
    assert math.isnan(summed([1.0, math.nan]).total)
    assert summed([1.0, math.inf]).mean == math.inf
    merged = summed([1.0])
    merged.merge(summed([math.inf]))
    assert merged == summed([1.0, math.inf])
