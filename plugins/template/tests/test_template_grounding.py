"""Extracted values that do not occur in the answer are found, and others are not."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_template.language import grounding
from karenina_template.language.grounding import ungrounded
from karenina_vocabulary.handle import TemplateField


def missing(declared: str, value: Any, text: str) -> bool:
    field = TemplateField(name="f", type=declared, description="d", verified=True)
    return ungrounded([field], {"f": value}, text) == ("f",)


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        ("str", "BCL2", "It binds Bcl-2."),
        ("str", "BCL-2", "It binds BCL2."),
        ("str", "B-cell lymphoma 2", "It is **B cell lymphoma-2**."),
        ("str", "proton pump inhibitor", "It belongs to the inhibitors of the proton pump."),
        ("str", "Muller", "Said by Müller."),
        ("float", 500, "five hundred"),
        ("float", 0.25, "1/4 of them"),
        ("float", 0.5, "about half of it"),
        ("float", 3_200_000, "3.2 million"),
        ("float", 3_200_000, "a 3.2-million grant"),
        ("int", 12, "a dozen"),
        ("int", 24, "Two dozen, no more."),
        ("int", 36, "3 dozen"),
        ("float", 0.667, "two thirds of the patients"),
        ("float", 0.33, "One third."),
        ("float", 0.75, "three-quarters"),
        ("float", 1.5, "one and a half"),
        ("float", 2.75, "two and three quarters"),
        ("float", 2.5, "2 1/2 cups"),
        ("float", 2.5, "2½ cups"),
        ("float", 0.75, "¾"),
        ("int", 1_500_000, "one and a half million"),
        ("int", 500_000, "half a million"),
        ("int", 250_000, "a quarter of a million"),
        ("int", 1999, "in nineteen ninety-nine"),
        ("int", 3, "The third one."),
        ("str", "500", "five hundred"),
        ("str", "№ 7", "No 7 it is"),
        ("str", "…", "what …"),
        ("str", "1000", "It weighs 1,000 g."),
        ("str", "維新", "明治維新が始まった。"),
        ("str | None", "4", "It is 4."),
        ("date", "2019-03-05", "On March 5, 2019 it was."),
        ("datetime", "2019-03-05T10:00:00", "05.03.2019, ten o'clock"),
        ("int", 12, "7 + 5 equals 12"),
        ("int", 12, "There are twelve."),
        ("int", -5, "It is minus 5."),
        ("int", 2_000_000, "About 2 million people"),
        ("float", 0.05, "a share of 5 %"),
        ("float", 0.05, "5 percent"),
        ("float", 3.5, "3,5 Liter"),
        ("float", 1234.5, "1.234,5 Liter"),
        ("int", 40000, "40 000 euros"),
        ("float", 0.15, "150 mM, so in the usual unit"),
        ("float", 1e-9, "1e-9 M"),
        ("list[str]", ["warfarin", "heparin"], "Heparin and warfarin."),
        ("list[int]", [], "nothing"),
        ("int", 10**400, f"It is {10**400}."),
        ("str", None, "nothing"),
        ("dict[str, int]", {"anything": 5}, "there are five"),
    ],
)
def test_what_the_answer_holds_in_other_spelling_is_found(declared: str, value: Any, text: str) -> None:
    assert not missing(declared, value, text)


@pytest.mark.parametrize(
    ("declared", "value", "text"),
    [
        ("str", "{{value}}", "7 + 5 equals 12"),
        ("str", "adverse reaction of the jaw that the response names", "It causes osteonecrosis of the jaw."),
        ("str", "ABL1", "It binds BCL2."),
        ("str", "no", "Nothing is known."),
        ("str", "12", "It weighs 1234 g."),
        ("int", 2_000_000_000_000_000, "I cannot answer that."),
        ("int", 400, "200 mg every 3 weeks"),
        ("float", 0.06, "a share of 5 %"),
        ("date", "2019-03-06", "On March 5, 2019 it was."),
        ("date", "2018-03-05", "On March 5, 2019 it was."),
        ("list[str]", ["warfarin", "protein ZZ"], "Heparin and warfarin."),
        ("list[list[int]]", [[1], [7]], "only 1 there"),
        ("str", "x", ""),
        ("int", 501, "five hundred"),
        ("int", 100, "five hundred"),
        ("int", 5, "five hundred"),
        ("int", 25, "twenty, five"),
        ("int", 25, "twenty and five"),
        ("float", 0.2, "1/4"),
        ("float", 0.67, "a third"),
        ("float", 0.25, "1/41"),
        ("int", 12, "dozens of hundreds"),
        ("int", 10, "often"),
        ("int", 10**400, "9" * 500),
    ],
)
def test_what_does_not_occur_is_marked(declared: str, value: Any, text: str) -> None:
    assert missing(declared, value, text)


@pytest.mark.parametrize(
    ("declared", "value"), [("bool", True), ("Literal['a', 'b']", "a"), ("Color", "red"), ("list[bool]", [True])]
)
def test_judgements_and_choices_are_not_looked_for(declared: str, value: Any) -> None:
    assert not missing(declared, value, "something else")


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_a_value_that_the_text_quotes_is_always_found(before: str, value: str, after: str) -> None:
    assert not missing("str", value, f"{before} {value} {after}")


@given(
    st.integers(-(10**12), 10**12) | st.floats(-1e9, 1e9).map(lambda value: float(f"{value:.6g}")),
    st.sampled_from(["{0}", "{0:,}", "about {0} of them", "({0})", "{0} %", "[{0}]"]),
)
def test_a_number_is_found_however_it_is_written(value: float, form: str) -> None:
    assert not missing("float", value, form.format(value))


ONES = [
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spelt(number: int, joint: str, hyphen: str) -> str:
    """A number below a thousand million in English."""
    for scale, word in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= scale:
            over, under = divmod(number, scale)
            glue = joint if under < 100 else " "
            return f"{spelt(over, joint, hyphen)} {word}" + (f"{glue}{spelt(under, joint, hyphen)}" if under else "")
    if number < 20:
        return ONES[number]
    ten, one = divmod(number, 10)
    return TENS[ten - 2] + (f"{hyphen}{ONES[one]}" if one else "")


@given(
    st.integers(0, 999_999_999) | st.integers(0, 1100),
    st.sampled_from([" ", " and "]),
    st.sampled_from([" ", "-", "\n"]),
    st.integers(1, 9),
)
def test_a_number_in_english_words_is_found_and_another_is_not(number: int, joint: str, hyphen: str, off: int) -> None:
    text = f"There were {spelt(number, joint, hyphen)}."
    assert not missing("int", number, text)
    assert not missing("int", number, text.upper())
    if number % 10 + off < 10:
        assert missing("int", number + off, text)


@given(st.text(st.characters(codec="utf-8", categories=("L",)), min_size=1, max_size=8), st.text(max_size=30))
def test_a_word_with_a_letter_that_the_text_does_not_have_is_missing(word: str, text: str) -> None:
    assert missing("str", f"{word}ß{word}"[:9] + "zq", text.replace("q", "").replace("Q", "").replace("ｑ", ""))


PIECES = (
    "two",
    "hundred",
    "half",
    "million",
    "1",
    "2,000",
    ".5",
    "3/4",
    "½",
    " ",
    " and ",
    "-",
    "_",
    "k",
    "%",
    "é",
    "X",
)


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_what_is_left_out_of_the_search_would_have_found_nothing(text: str) -> None:
    """The search for numbers skips what a text without digits, fractions or numerals cannot have."""
    source, folded = grounding._Source(text), grounding._folded(text)
    scales = "|".join(sorted(grounding.SCALES, key=len, reverse=True))
    scaled = re.findall(rf"(?<![\d.,])([\d.,]*\d)[\s-]*({scales})(?!\w)", folded)
    assert grounding.SCALED.findall(folded) == scaled
    found = {reading for written in grounding.NUMBER.findall(folded) for reading in grounding._readings(written)}
    found |= {
        float(f"{reading * grounding.SCALES[scale]:.12g}")
        for written, scale in scaled
        for reading in grounding._readings(written)
    }
    for run in grounding.SPELT_WORDS.findall(spelt := grounding._folded(grounding.VULGAR.sub(" ", text))):
        found |= set(grounding._read_words(grounding.BETWEEN.split(run)))
    for whole, over, under in grounding.FRACTION.findall(spelt):
        found |= {int(over) / int(under), int(whole or 0) + int(over) / int(under)}
    assert source._numbers == found
    assert source._words == grounding.WORD.findall(folded)


def test_a_long_text_is_looked_through_in_linear_time() -> None:
    text = "some words, 12 of them and 3.5 more; " * 30_000
    fields = [TemplateField(name=f"f{n}", type="str", description="d", verified=True) for n in range(200)]
    started = time.process_time()
    assert len(ungrounded(fields, {field.name: f"nowhere {field.name}" for field in fields}, text)) == 200
    assert time.process_time() - started < 20


@pytest.mark.parametrize("unit", ["1", ",", ".", "…", "1,", "- ", ". ", "½", "1/", " ", "one "])
def test_long_lines_of_digits_and_separators_are_read_once(unit: str) -> None:
    """In some tenths of a second; reading on from each of these characters to the last one would take minutes."""
    fields = [TemplateField("dose", "float", "", True)]
    began = time.thread_time()
    assert ungrounded(fields, {"dose": 41.5}, unit * (200_000 // len(unit))) == ("dose",)
    assert time.thread_time() - began < 10
