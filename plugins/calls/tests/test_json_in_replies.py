"""The JSON object in a judge's reply: found wherever it is, never guessed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from karenina_calls.ports.structured import json_object

from karenina_core.errors import ParseError

TEXT = st.text(max_size=6)
SCALAR = st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALAR, lambda v: st.lists(v, max_size=3) | st.dictionaries(TEXT, v, max_size=3), max_leaves=6)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)
PROSE = st.text(st.characters(exclude_characters="{}`", codec="utf-8"), max_size=30)
FRAMES = st.sampled_from(
    [
        "{object}",
        " \n{object}\n",
        "```json\n{object}\n```",
        "```\n{object}\n```",
        "{before}{object}{after}",
        "{before}\n```json\n{object}\n```\n{after}",
        "{before} **{object}** {after}",
        "The format {{like this}} is fine: {object}",
        "{{ {object}",
        "{object} }}",
    ]
)


@given(OBJECTS, FRAMES, PROSE, PROSE, st.booleans(), st.sampled_from([None, 1]))
def test_the_object_comes_back(
    value: dict[str, Any], frame: str, before: str, after: str, ascii_: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent)
    assert json_object(frame.format(object=text, before=before, after=after)) == value


@given(OBJECTS, PROSE)
def test_an_object_that_is_written_twice_is_one_object(value: dict[str, Any], prose: str) -> None:
    text = json.dumps(value)
    assert json_object(f"{text}{prose}{text}") == value
    assert json_object(f"{prose}\n```json\n{text}\n```\nAgain: {text}") == value


@given(OBJECTS, OBJECTS, st.booleans(), st.booleans())
def test_two_different_objects_are_an_error(a: Any, b: Any, first_fenced: bool, second_fenced: bool) -> None:
    parts = [
        f"```json\n{json.dumps(value)}\n```" if fenced else json.dumps(value)
        for value, fenced in ((a, first_fenced), (b, second_fenced))
    ]
    reply = "First I thought:\n" + "\nbut it is\n".join(parts)
    if a == b:
        assert json_object(reply) == a
    else:
        with pytest.raises(ParseError, match="several different JSON objects"):
            json_object(reply)


@given(OBJECTS, TEXT, VALUES, VALUES, FRAMES, st.booleans())
@example({}, "a", 1, True, "{object}", False)
@example({}, "a", {"b": 1}, {"b": 2}, "```json\n{object}\n```", True)
def test_a_key_with_two_values_is_an_error_and_never_the_last_of_them(
    value: dict[str, Any], key: str, one: Any, other: Any, frame: str, nested: bool
) -> None:
    value.pop(key, None)
    rest = "".join(f", {json.dumps(name)}: {json.dumps(found)}" for name, found in value.items())
    text = f"{{{json.dumps(key)}: {json.dumps(one)}, {json.dumps(key)}: {json.dumps(other)}{rest}}}"
    text = f'{{"outer": [{text}]}}' if nested else text
    reply = frame.format(object=text, before="", after="")
    if json.dumps(one) == json.dumps(other):
        assert json_object(reply) == ({"outer": [value | {key: one}]} if nested else value | {key: one})
    elif one != other or type(one) is not type(other):
        with pytest.raises(ParseError, match="more than once, with different values") as caught:
            json_object(reply)
        assert caught.value.raw_response == reply


@given(OBJECTS.filter(bool), st.data())
def test_a_cut_off_object_is_no_object(value: dict[str, Any], data: Any) -> None:
    """Least of all is one of the objects inside it the answer."""
    text = json.dumps(value)
    reply = f"Here it is: {text[: data.draw(st.integers(1, len(text) - 1))]}"
    with pytest.raises(ParseError, match="no JSON object"):
        json_object(reply)


@pytest.mark.parametrize(
    "reply",
    [
        '{"target": {"name": "BCL2"},}',
        '{"target": {"name": "BCL2"} "other": {"name": "BCL2"}}',
        '{\'target\': {"name": "BCL2"}}',
        '{"target": {"name": "BCL2"}, // the protein\n "n": 1}',
        '{"target": {"name": "BCL2"}, "n": 01}',
        '```json\n{"target": {"name": "BCL2"}, "n": }\n```',
        '{target: {"name": "BCL2"}}',
    ],
)
def test_the_inside_of_a_broken_object_is_not_the_answer(reply: str) -> None:
    with pytest.raises(ParseError, match="no JSON object"):
        json_object(reply)


@pytest.mark.parametrize("reply", ["", "BCL2", "null", "[]", '"text"', "42", "[1, 2]", "```json\n[1]\n```"])
def test_what_is_no_object_is_an_error(reply: str) -> None:
    with pytest.raises(ParseError, match="no JSON object") as caught:
        json_object(reply)
    assert caught.value.raw_response == reply
    assert caught.value.kind == "judge"


NASTY = st.text(st.sampled_from('{}[]"\\:,`\n0aeE.-+ jsontruefalsnul\ud800'), max_size=60)


@given(NASTY | st.text(max_size=60))
@example("{" * 3000)
@example('{"a":' * 3000)
@example("[" * 100_000)
@example('{"a": ' + "9" * 5000 + "}")
@example('{"a": "' + "\\" * 1001)
def test_no_text_does_any_harm(text: str) -> None:
    try:
        found = json_object(text)
    except ParseError:
        return
    assert isinstance(found, dict)


def test_long_replies_take_no_long_time() -> None:
    import time

    started = time.monotonic()
    for reply in ('{"a": "x' * 50_000, "{ " * 200_000, '{"a": {' * 50_000, "`" * 300_000, '{"k": [1, ' * 50_000):
        with pytest.raises(ParseError):
            json_object(reply)
    assert time.monotonic() - started < 5
