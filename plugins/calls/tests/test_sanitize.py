"""Text of models is made writable: nothing but lone surrogates is changed, and odd things are flagged."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from karenina_calls.ports.text import sanitize

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
