"""Primitives that read the text of a trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karenina_core.templates import TraceContains, TraceLength, TracePrimitive, TraceRegex

ALL: list[TracePrimitive] = [TraceRegex("a"), TraceContains("a"), TraceLength(max=3)]


@pytest.mark.parametrize(
    ("primitive", "text", "holds"),
    [
        (TraceRegex(r"\d+"), "step 12", True),
        (TraceRegex(r"\d+"), "step", False),
        (TraceRegex(r"(a)(b)"), "ab", True),
        (TraceRegex("aa", count_min=2), "aaaa", True),
        (TraceRegex("aa", count_min=2), "aaa", False),
        (TraceRegex("a", count_min=1), "", False),
        (TraceRegex(r"(?i)TOOL"), "tool", True),
        (TraceRegex("TOOL"), "tool", False),
        (TraceContains("[1]"), "see [1]", True),
        (TraceContains("See"), "see", False),
        (TraceContains("TNF-α in cafe\u0301s"), "on TNF\u2011α in\u00a0cafés.", True),
        (TraceContains("x"), "", False),
        (TraceLength(max=5), "hello", True),
        (TraceLength(max=4), "hello", False),
        (TraceLength(min=5), "hello", True),
        (TraceLength(min=6), "hello", False),
        (TraceLength(0, 0), "", True),
        (TraceLength(1, 2, "words"), "two  words\n", True),
        (TraceLength(1, 2, "words"), "now three words", False),
        (TraceLength(1, 2, "words"), " ", False),
    ],
)
def test_checks_on_the_trace(primitive: TracePrimitive, text: str, holds: bool) -> None:
    assert primitive.check_trace(text) is holds


@given(st.text(max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_a_length_is_within_its_bounds_or_not(text: str, low: int, high: int) -> None:
    low, high = sorted((low, high))
    assert TraceLength(low, high).check_trace(text) is (low <= len(text) <= high)
    assert TraceLength(low, high, "words").check_trace(text) is (low <= len(text.split()) <= high)


@given(st.text("ab", max_size=12), st.integers(1, 9))
def test_matches_are_counted_without_overlap(text: str, least: int) -> None:
    assert TraceRegex("ab|ba", least).check_trace(text) is (_count(text) >= least)


def _count(text: str) -> int:
    found = position = 0
    while position < len(text):
        step = 2 if text[position : position + 2] in ("ab", "ba") else 1
        found, position = found + (step == 2), position + step
    return found


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TraceRegex("("), ValueError, "not a regular expression"),
        (lambda: TraceRegex(3), TypeError, "must be a text"),  # type: ignore[arg-type]  # the wrong type is the point
        (lambda: TraceRegex("x*"), ValueError, "found in every text"),
        (lambda: TraceRegex("", count_min=2), ValueError, "found in every text"),
        (lambda: TraceRegex("a", count_min=0), ValueError, "count_min must be a whole number of at least 1"),
        (lambda: TraceRegex("a", count_min=True), ValueError, "count_min must be a whole number"),
        (lambda: TraceContains(""), ValueError, "every text would contain it"),
        (lambda: TraceContains(["a"]), TypeError, "substring must be a text"),  # type: ignore[arg-type]  # the wrong type is the point
        (lambda: TraceLength(), ValueError, "every text would pass"),
        (lambda: TraceLength(min=0), ValueError, "every text would pass"),
        (lambda: TraceLength(5, 4), ValueError, "swap them"),
        (lambda: TraceLength(max=-1), ValueError, "max must be a whole number of at least 0"),
        (lambda: TraceLength(max=1.5), ValueError, "max must be a whole number"),  # type: ignore[arg-type]  # the wrong type is the point
        (lambda: TraceContains("a", scope="respose"), ValueError, "did you mean 'response'"),
        (lambda: TraceContains("a", scope=None), ValueError, "scope must be one of"),  # type: ignore[arg-type]  # the wrong type is the point
    ],
)
def test_trace_parameters_that_mean_nothing_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("unit", ["sentences", "Words", "word", "", None])
def test_a_length_is_never_measured_in_a_unit_that_was_not_asked_for(unit: Any) -> None:
    with pytest.raises(ValueError, match="unit must be one of chars, words"):
        TraceLength(max=3, unit=unit)


@pytest.mark.parametrize("primitive", ALL)
def test_a_trace_primitive_declares_which_text_it_reads(primitive: TracePrimitive) -> None:
    assert primitive.scope == "trace"
    assert TraceContains("a", scope="response").scope == "response"
    assert TraceContains("a", scope="response") != TraceContains("a")


@pytest.mark.parametrize("primitive", ALL)
def test_a_trace_primitive_compares_no_extracted_value(primitive: TracePrimitive) -> None:
    for judge in (primitive.check, primitive.score):
        with pytest.raises(NotImplementedError, match=r"check_trace\(text\)"):
            judge(True, True)


@pytest.mark.parametrize("primitive", ALL)
def test_the_ground_truth_of_a_trace_primitive_is_whether_it_holds(primitive: TracePrimitive) -> None:
    assert primitive.uses_ground_truth
    primitive.check_ground_truth(True)
    primitive.check_ground_truth(False)
    for value in (1, 0, "True", None, "N/A"):
        with pytest.raises(TypeError, match="True or False"):
            primitive.check_ground_truth(value)
