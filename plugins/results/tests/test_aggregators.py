"""The functions that make one value of many."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_results.aggregators import count, first, majority_vote, mean, median, mode

NUMBERS = st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=8)
ANYTHING = st.lists(st.sampled_from([True, False, 0, 1, 1.0, "a", "b", "", [1], {"k": 1}]), min_size=1, max_size=7)


@given(NUMBERS)
def test_the_mean_and_the_median_are_those_of_the_standard_library(values: list[float]) -> None:
    assert mean(values) == statistics.fmean(values)
    assert median(values) == statistics.median(values)


@given(st.lists(st.booleans(), min_size=1, max_size=9))
def test_of_true_and_false_the_mean_is_the_share_of_true(values: list[bool]) -> None:
    assert mean(values) == sum(values) / len(values)
    assert median(values) in (0.0, 0.5, 1.0)


def test_the_mean_of_huge_numbers_is_no_error() -> None:
    assert mean([1.7e308, 1.7e308]) == pytest.approx(1.7e308)


@pytest.mark.parametrize("value", ["4", None, [1], math.nan, {"a": 1}])
@pytest.mark.parametrize("function", [mean, median])
def test_no_mean_is_taken_of_what_is_no_number(function: Any, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{function.__name__} needs numbers.*majority_vote"):
        function([1, value])


def times(value: Any, values: list[Any]) -> int:
    """How often a value occurs; True is not 1, and 1 is 1.0."""
    return sum(isinstance(other, bool) == isinstance(value, bool) and other == value for other in values)


@given(ANYTHING)
def test_a_majority_is_strictly_more_than_half(values: list[Any]) -> None:
    found = majority_vote(values)
    most = max(times(value, values) for value in values)
    if 2 * most > len(values):
        assert times(found, values) == most
    else:
        assert found is None


@given(ANYTHING, st.randoms())
def test_the_mode_is_most_frequent_and_does_not_depend_on_the_order(values: list[Any], random: Any) -> None:
    found = mode(values)
    assert times(found, values) == max(times(value, values) for value in values)
    shuffled = list(values)
    random.shuffle(shuffled)
    assert mode(shuffled) == found
    assert isinstance(mode(shuffled), bool) == isinstance(found, bool)


def test_of_several_modes_it_is_the_smallest_or_the_first_of_the_alphabet() -> None:
    assert mode([3, 1, 2]) == 1
    assert mode(["b", "a"]) == "a"


@given(ANYTHING)
def test_the_first_and_the_number(values: list[Any]) -> None:
    assert first(values) is values[0]
    assert count(values) == len(values)
