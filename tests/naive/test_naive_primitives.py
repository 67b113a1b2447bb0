"""Ways to compare values that look right and are not: each law holds for the real primitive and rejects the variant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from karenina_core.templates import BooleanMatch, DateRange, OrderedMatch, SetContainment

Check = Callable[[Any, Any], bool]
exhaustive = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)


# The text "false" is not empty, so it counts as true.


def boolean_by_truthiness(extracted: Any, expected: Any) -> bool:
    if extracted is None or expected is None:
        return extracted is None and expected is None
    return bool(extracted) == bool(expected)


WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def law_a_word_means_what_it_says(check: Check) -> None:
    @given(st.sampled_from(sorted(WORDS)), st.sampled_from([str.lower, str.upper, str.title]), st.booleans())
    @exhaustive
    def law(word: str, written: Callable[[str], str], expected: bool) -> None:
        assert check(written(word), expected) is (WORDS[word] is expected)
        assert check(expected, written(word)) is (WORDS[word] is expected)

    law()


def test_the_text_false_is_not_true() -> None:
    law_a_word_means_what_it_says(BooleanMatch().check)


def test_the_law_of_words_rejects_truthiness() -> None:
    with pytest.raises(AssertionError):
        law_a_word_means_what_it_says(boolean_by_truthiness)


# A text is an iterable too: "abc" and ["c", "b", "a"] are the same set of characters.


def set_of_whatever_iterates(extracted: Any, expected: Any) -> bool:
    return set(extracted) == set(expected)


def pairs_of_whatever_iterates(extracted: Any, expected: Any) -> bool:
    one, other = list(extracted), list(expected)
    return len(one) == len(other) and all(a == b for a, b in zip(one, other, strict=True))


def law_a_text_is_not_the_list_of_its_characters(check: Check) -> None:
    @given(st.text(max_size=6))
    @exhaustive
    def law(text: str) -> None:
        for extracted, expected in ((text, list(text)), (list(text), text), (text, text)):
            try:
                check(extracted, expected)
            except TypeError:
                continue
            raise AssertionError(f"{extracted!r} was compared with {expected!r}")

    law()


@pytest.mark.parametrize("mode", ["exact", "subset", "superset", "overlap"])
def test_a_text_is_not_the_set_of_its_characters(mode: str) -> None:
    law_a_text_is_not_the_list_of_its_characters(SetContainment(mode).check)


def test_a_text_is_not_the_list_of_its_characters() -> None:
    law_a_text_is_not_the_list_of_its_characters(OrderedMatch().check)


@pytest.mark.parametrize("variant", [set_of_whatever_iterates, pairs_of_whatever_iterates])
def test_the_law_of_texts_rejects_characters(variant: Check) -> None:
    with pytest.raises(AssertionError, match="was compared with"):
        law_a_text_is_not_the_list_of_its_characters(variant)


# The last day of a range begins at midnight, and everything later on that day is after it.

Within = Callable[[str, str, str], bool]


def range_of_midnights(low: str, high: str, extracted: str) -> bool:
    return datetime.fromisoformat(low) <= datetime.fromisoformat(extracted) <= datetime.fromisoformat(high)


def range_of_days(low: str, high: str, extracted: str) -> bool:
    return DateRange(low, high).check(extracted)


def law_the_last_day_belongs_to_the_range(within: Within) -> None:
    @given(st.dates(), st.dates(), st.dates(), st.times())
    @exhaustive
    def law(one: date, other: date, day: date, clock: time) -> None:
        low, high = sorted((one, other))
        for found in (low, high, day):
            moment = datetime.combine(found, clock)
            assert within(low.isoformat(), high.isoformat(), moment.isoformat()) is (low <= found <= high)

    law()


def test_any_time_of_the_last_day_is_within_the_range() -> None:
    law_the_last_day_belongs_to_the_range(range_of_days)


def test_the_law_of_the_last_day_rejects_midnight() -> None:
    with pytest.raises(AssertionError):
        law_the_last_day_belongs_to_the_range(range_of_midnights)
