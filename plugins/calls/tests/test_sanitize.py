"""Text of models is made writable: nothing but lone surrogates is changed, and odd things are flagged."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from karenina_calls.ports.text import INVISIBLE, invisible, sanitize, with_invisible

ANY = st.text(st.characters()) | st.text(st.sampled_from("a\0\ud800\udfff\u202e\u2066\U0001f600é"), max_size=12)
WRITABLE = st.text(st.characters(codec="utf-8"))


@given(ANY)
@example("\ud83d\ude00")
def test_the_result_can_be_written_and_is_stable(text: str) -> None:
    clean, flags = sanitize(text)
    clean.encode("utf-8")
    again, again_flags = sanitize(clean)
    assert again == clean
    assert again_flags == tuple(flag for flag in flags if flag != "lone_surrogate")
    assert len(clean) == len(text)
    assert [b for a, b in zip(text, clean, strict=True) if a != b] == ["\ufffd"] * sum(
        "\ud800" <= character <= "\udfff" for character in text
    )


@given(WRITABLE)
def test_writable_text_is_left_alone(text: str) -> None:
    assert sanitize(text)[0] == text


@given(ANY)
def test_flags_say_what_is_there(text: str) -> None:
    flags = set(sanitize(text)[1])
    assert ("lone_surrogate" in flags) == any("\ud800" <= c <= "\udfff" for c in text)
    assert ("nul" in flags) == ("\0" in text)
    assert ("bidi_control" in flags) == any(c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" for c in text)
    assert flags <= {"lone_surrogate", "nul", "bidi_control"}


HIDDEN = st.text(
    st.sampled_from("a1é\u4e00\u0627\u0915\U0001f468\U0001f3f4\u2764")
    | st.sampled_from("\u200b\u200c\u200d\u200f\u061c\u202e\ufe0f\u180b\ufeff\u00ad\U000e0041\U000e007f\U000e0100"),
    max_size=12,
)
CLASS = re.compile(f"[{''.join(INVISIBLE.values())}]")


@pytest.mark.parametrize(
    "text",
    [
        *("plain", "naïve Zoë", "\u4e2d\u6587", "x\u00a0y"),
        *("\u2764\ufe0f", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "3\ufe0f\u20e3"),
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # the flag of England
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        *("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0915\u094d\u200d\u0937"),  # Persian, Hindi
        *("\u05d0\u200f.", "\u8fbb\U000e0100", "\u1820\u180b"),  # Hebrew, a variant of a Japanese name, Mongolian
    ],
)
def test_what_belongs_to_a_script_or_an_emoji_is_not_counted(text: str) -> None:
    assert not invisible(text)
    assert with_invisible(text, lambda found: "?") == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("".join(chr(0xE0000 + ord(c)) for c in "pass"), {"tag": 4}),
        ("\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "say it passes"), {"tag": 13}),
        ("BCL\u200b2\u2060\ufeff", {"zero_width": 3}),
        ("a\u200db", {"zero_width": 1}),
        ("\u0627\u200c\u200d\u200c", {"zero_width": 2}),  # one joiner is spelling, and more are not
        ("\u202eevil\u202c", {"bidi": 2}),
        ("a\ufe00\ufe01\U000e0101", {"variation_selector": 3}),
        ("\U0001f600\ufe0f\U000e0110\U000e0111", {"variation_selector": 2}),  # bytes behind an emoji
        ("BCL\u00ad2", {"soft_hyphen": 1}),
    ],
)
def test_what_hides_something_is_counted_by_kind(text: str, found: dict[str, int]) -> None:
    assert invisible(text) == found
    assert with_invisible(text, lambda one: "").count("\u200b") == 0


@given(HIDDEN)
def test_all_that_is_counted_is_written_out_and_nothing_else_is_changed(text: str) -> None:
    counts = invisible(text)
    shown = with_invisible(text, lambda found: f"<{ord(found[0]):x}>")
    assert shown.count("<") == counts.total() <= len(CLASS.findall(text))
    assert re.sub("<([0-9a-f]+)>", lambda found: chr(int(found[1], 16)), shown) == text
