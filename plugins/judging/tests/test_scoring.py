"""Scores of traits: what a judge is asked for, and what its reply is read as. Nothing is made up on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_judging.scoring import error_label, read_score, scale_words, score_schema
from karenina_vocabulary.traits import AgenticRubricTrait, LLMRubricTrait

from karenina_core.errors import FillError

LAW = settings(deadline=None)
BOUNDS = st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda pair: (pair[0], pair[0] + pair[1]))
CLASSES = st.lists(
    st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip),
    min_size=2,
    max_size=6,
    unique_by=lambda name: name.strip().casefold(),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)


def score(low: int, high: int) -> LLMRubricTrait:
    return LLMRubricTrait(name="Depth", kind="score", min_score=low, max_score=high)


def literal(*names: str) -> LLMRubricTrait:
    return LLMRubricTrait(name="Tone", kind="literal", classes=dict.fromkeys(names))


YES_OR_NO = LLMRubricTrait(name="Clear", kind="boolean")


# Numbers


@given(BOUNDS, st.data())
@LAW
def test_every_whole_number_of_the_scale_is_read_as_itself_zero_included(
    bounds: tuple[int, int], data: st.DataObject
) -> None:
    low, high = bounds
    trait = score(low, high)
    wanted = data.draw(st.integers(low, high) | st.sampled_from([low, high]))
    for written in (wanted, float(wanted), str(wanted), f" {wanted} ", f"{wanted}.0"):
        found = read_score(trait, written)
        assert (found, type(found)) == (wanted, int)
    assert score_schema(trait) == {"type": "integer", "minimum": low, "maximum": high}
    assert f"from {low} (lowest) to {high} (highest)" in scale_words(trait)


@given(BOUNDS, st.integers() | st.floats() | st.booleans())
@LAW
def test_what_is_no_whole_number_of_the_scale_is_no_score(bounds: tuple[int, int], value: Any) -> None:
    low, high = bounds
    fits = not isinstance(value, bool) and low <= value <= high and value == int(value)
    if fits:
        assert read_score(score(low, high), value) == value
    else:
        with pytest.raises(FillError, match="Depth: expected a whole number"):
            read_score(score(low, high), value)


@pytest.mark.parametrize(
    "value", ["4/5", "four", "4 out of 5", "4,0", "4.5", "", "1e0", "9" * 5000, [4], {"score": 4}, None]
)
def test_a_number_is_not_looked_for_in_anything_else(value: Any) -> None:
    with pytest.raises(FillError):
        read_score(score(1, 5), value)


# True and false


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), (1, True), ("Yes", True), (" TRUE ", True), (False, False), (0, False), ("no", False), ("0", False)],
)
def test_words_for_true_and_false_are_read(value: Any, expected: bool) -> None:
    assert read_score(YES_OR_NO, value) is expected


@pytest.mark.parametrize("value", ["not true", "unknown", "y", "", 2, -1, 1.0, None, [], [True]])
def test_anything_else_is_neither_true_nor_false(value: Any) -> None:
    with pytest.raises(FillError, match="Clear: expected true or false"):
        read_score(YES_OR_NO, value)


# Classes


@given(CLASSES, st.data())
@LAW
def test_a_class_is_its_index_in_the_order_of_declaration(names: list[str], data: st.DataObject) -> None:
    trait = literal(*names)
    index = data.draw(st.integers(0, len(names) - 1))
    assert read_score(trait, names[index]) == index
    assert read_score(trait, f" {names[index]}\n") == index
    assert score_schema(trait)["enum"] == names
    assert all(f"- {name}" in scale_words(trait) for name in names)


def test_case_counts_only_where_spelling_decides_nothing() -> None:
    trait = literal("Straße", "weg")
    assert [read_score(trait, word) for word in ("STRASSE", "Weg", "straße")] == [0, 1, 0]


@pytest.mark.parametrize("value", [-1, "-1", 0, 1, "0", "rude or warm", "rudeness", "", None, True, ["rude"]])
def test_what_is_no_class_is_no_score_and_never_minus_one(value: Any) -> None:
    trait = literal("rude", "neutral", "warm")
    with pytest.raises(FillError, match="Tone: expected one of: rude, neutral, warm; got"):
        read_score(trait, value)


# All of them


def outcome(trait: LLMRubricTrait, value: Any) -> bool | int | str:
    """The score, or the correction for the judge."""
    try:
        return read_score(trait, value)
    except FillError as error:
        return str(error)


@given(JSON)
@LAW
def test_every_reply_is_a_score_of_the_trait_or_an_error_in_few_words(value: Any) -> None:
    scales: list[tuple[LLMRubricTrait, list[Any]]] = [
        (YES_OR_NO, [True, False]),
        (score(0, 10), list(range(11))),
        (literal("a", "b"), [0, 1]),
    ]
    for trait, scores in scales:
        found = outcome(trait, value)
        if isinstance(found, str):
            assert found.startswith(f"{trait.name}: expected ")
            assert len(found) < 200
        else:
            assert type(found) is type(scores[0])
            assert found in scores


def test_a_template_kind_has_no_single_score() -> None:
    kind = {"type": "template", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    trait = AgenticRubricTrait(name="Files", description="d", kind=kind)
    for use in (score_schema, scale_words, lambda one: read_score(one, 3)):
        with pytest.raises(TypeError, match="'Files' is scored with a record"):
            use(trait)


def test_the_label_of_an_error_holds_its_reason() -> None:
    assert error_label("out of credit") == "[EVALUATION_ERROR: out of credit]"
