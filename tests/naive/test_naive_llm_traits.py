"""Ways to read a judge's scores that look right and are not: each law holds for the real thing and rejects the
variant."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from karenina_judging.scoring import read_score
from karenina_rubric.llm_calls import score_of
from karenina_vocabulary.record_traits import TemplateKind, read_record
from karenina_vocabulary.traits import LLMRubricTrait
from pydantic import BaseModel, Field, create_model

from karenina_core.errors import FillError
from karenina_core.values.convert import structure, unstructure

LAW = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)
Read = Callable[[LLMRubricTrait, Any], Any]
"""The score that a value is for a trait, None for no score."""


def as_it_is(trait: LLMRubricTrait, value: Any) -> Any:
    return score_of(trait, value).value


# Bounds for which "not set" and "zero" are the same.


def with_default_bounds(trait: LLMRubricTrait, value: Any) -> Any:
    low, high = trait.min_score or 1, trait.max_score or 5
    return max(low, min(high, int(value)))


def with_default_bounds_strictly(trait: LLMRubricTrait, value: Any) -> Any:
    low, high = trait.min_score or 1, trait.max_score or 5
    return value if low <= value <= high else None


def law_every_number_of_a_scale_is_a_score_and_no_other(read: Read) -> None:
    @given(st.integers(-6, 6), st.integers(1, 10), st.integers(-10, 20))
    @LAW
    def law(low: int, steps: int, value: int) -> None:
        trait = LLMRubricTrait(name="t", kind="score", min_score=low, max_score=low + steps)
        assert read(trait, value) == (value if low <= value <= low + steps else None)

    law()


def test_zero_is_a_bound_like_any_other() -> None:
    law_every_number_of_a_scale_is_a_score_and_no_other(as_it_is)


@pytest.mark.parametrize("read", [with_default_bounds, with_default_bounds_strictly])
def test_the_law_of_bounds_rejects_a_zero_that_counts_as_not_set(read: Read) -> None:
    with pytest.raises(AssertionError):
        law_every_number_of_a_scale_is_a_score_and_no_other(read)


# A class that nobody knows, made into a score.


def by_index(trait: LLMRubricTrait, value: Any) -> Any:
    return trait.get_class_index(value)


def by_index_into_the_scale(trait: LLMRubricTrait, value: Any) -> Any:
    return max(0, trait.get_class_index(value))


def by_likeness(trait: LLMRubricTrait, value: Any) -> Any:
    close = difflib.get_close_matches(value, trait.get_class_names(), 1, 0.0)
    return trait.get_class_index(close[0]) if close else None


def by_mention(trait: LLMRubricTrait, value: Any) -> Any:
    return next((index for index, name in enumerate(trait.get_class_names()) if name in value.casefold()), None)


NAMES = ("low", "medium", "high")


def law_only_a_class_is_a_score(read: Read) -> None:
    trait = LLMRubricTrait(name="t", kind="literal", classes=dict.fromkeys(NAMES))

    @given(st.sampled_from([*NAMES, "", "-1", "lowest", "not low", "low or high", "hi", "unknown"]) | st.text())
    @LAW
    def law(said: str) -> None:
        name = said.strip().casefold()
        assert read(trait, said) == (NAMES.index(name) if name in NAMES else None)

    law()


def test_what_is_no_class_is_no_score_and_so_never_the_lowest_rank() -> None:
    law_only_a_class_is_a_score(as_it_is)


def test_the_text_that_was_said_instead_of_a_class_is_kept_as_it_is() -> None:
    trait = LLMRubricTrait(name="t", kind="literal", classes=dict.fromkeys(NAMES))
    word = score_of(trait, "low or high")
    assert (word.state, word.value, word.label) == ("invalid", None, "low or high")


@pytest.mark.parametrize("read", [by_index, by_index_into_the_scale, by_likeness, by_mention])
def test_the_law_of_classes_rejects_a_score_for_what_is_no_class(read: Read) -> None:
    with pytest.raises(AssertionError):
        law_only_a_class_is_a_score(read)


# A record whose fields are rebuilt from their types: what a file says about bounds and allowed values is forgotten.

TYPES = {"boolean": bool, "integer": int, "number": float, "string": str}
ReadRecord = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
"""Whether a reply is a record of a schema that was read from a file."""


def rebuilt_from_types(schema: Mapping[str, Any], reply: Mapping[str, Any]) -> bool:
    fields: dict[str, Any] = {name: (TYPES[facts["type"]], ...) for name, facts in schema["properties"].items()}
    try:
        create_model("Rebuilt", **fields).model_validate(reply, strict=True)
    except ValueError:
        return False
    return True


def by_the_schema(schema: Mapping[str, Any], reply: Mapping[str, Any]) -> bool:
    try:
        read_record(TemplateKind(schema), reply)
    except FillError:
        return False
    return True


class Style(BaseModel):
    sentences: int = Field(ge=0, le=10)
    share: float = Field(gt=0)
    wording: Literal["plain", "technical"]
    code: str = Field(min_length=2, pattern="^[A-Z]+$")


def law_a_file_keeps_what_a_class_refuses(accepts: ReadRecord) -> None:
    data = json.loads(json.dumps(unstructure(LLMRubricTrait(name="t", kind=Style))))
    kind: Any = structure(data, LLMRubricTrait).kind

    @given(
        st.integers(-3, 13),
        st.floats(-1, 1),
        st.sampled_from(["plain", "Plain", "other"]),
        st.sampled_from(["A", "AB", "ab"]),
    )
    @LAW
    def law(sentences: int, share: float, wording: str, code: str) -> None:
        reply = {"sentences": sentences, "share": share, "wording": wording, "code": code}
        try:
            Style.model_validate(reply)
        except ValueError:
            expected = False
        else:
            expected = True
        assert accepts(kind.schema, reply) is expected

    law()


def test_bounds_and_allowed_values_of_a_template_kind_outlive_its_class() -> None:
    law_a_file_keeps_what_a_class_refuses(by_the_schema)


def test_the_law_of_template_kinds_rejects_fields_that_are_rebuilt_from_their_types() -> None:
    with pytest.raises(AssertionError):
        law_a_file_keeps_what_a_class_refuses(rebuilt_from_types)


# Clamping, rounding and truthiness: every reply becomes some score.


def clamped(trait: LLMRubricTrait, value: Any) -> Any:
    assert trait.min_score is not None
    assert trait.max_score is not None
    try:
        return max(trait.min_score, min(trait.max_score, int(value)))
    except (TypeError, ValueError, OverflowError):
        return None


def law_a_reply_outside_the_scale_is_no_score(read: Read) -> None:
    trait = LLMRubricTrait(name="t", kind="score", min_score=0, max_score=4)

    @given(st.integers(-9, 9) | st.floats() | st.booleans())
    @LAW
    def law(value: Any) -> None:
        whole = not isinstance(value, bool) and value in range(5)
        assert read(trait, value) == (value if whole else None)

    law()


def test_a_number_outside_the_scale_a_fraction_and_true_are_no_scores() -> None:
    law_a_reply_outside_the_scale_is_no_score(as_it_is)
    assert read_score(LLMRubricTrait(name="t", kind="score", min_score=0), 0) == 0


def test_the_law_of_scales_rejects_clamping() -> None:
    with pytest.raises(AssertionError):
        law_a_reply_outside_the_scale_is_no_score(clamped)
