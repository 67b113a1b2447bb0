"""Rubrics: what merging keeps, what it refuses, and what a part of a rubric still knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_testing.strategies import rubrics
from karenina_vocabulary.traits import AgenticRubricTrait, CallableRubricTrait

from karenina_core import DynamicRubric, LLMRubricTrait, MetricRubricTrait, RegexRubricTrait, Rubric
from karenina_core.values.rubric import RubricTrait

LAW = settings(database=None, deadline=None, derandomize=True)
SOURCES: Any = st.sampled_from(["global", "question_specific", "dynamic"])
LABELLED = st.builds(lambda rubric, source: rubric.labelled(source), rubrics(), SOURCES)
NAME = st.sampled_from("abcd")
"""Few names, so that rubrics often have one in common."""
CLOSE = st.lists(
    st.one_of(
        st.builds(lambda name: LLMRubricTrait(name=name, kind="boolean", summary="s"), NAME),
        st.builds(lambda name: RegexRubricTrait(name=name, pattern="x", summary="s"), NAME),
        st.builds(lambda name: CallableRubricTrait(name=name, kind="boolean", summary="s"), NAME),
        st.builds(lambda name: AgenticRubricTrait(name=name, kind="boolean", description="d"), NAME),
        st.builds(lambda name: MetricRubricTrait(name=name, metrics=["f1"], tp_instructions=["i"], summary="s"), NAME),
    ),
    max_size=2,
    unique_by=lambda trait: trait.name,
)


def contents(rubric: Rubric) -> tuple[Any, ...]:
    """What a rubric holds, whatever the order."""
    return Counter(map(repr, rubric)), dict(rubric.provenance)


def try_merging(rubrics_: Sequence[Rubric]) -> Rubric | None:
    try:
        return Rubric.merged(rubrics_)
    except ValueError:
        return None


def clashing(rubrics_: Sequence[Rubric]) -> set[str]:
    had = Counter(name for rubric in rubrics_ for name in rubric.names())
    return {f"{trait.type_name}:{trait.name}" for rubric in rubrics_ for trait in rubric if had[trait.name] > 1}


@LAW
@given(LABELLED, LABELLED, LABELLED)
def test_in_which_order_rubrics_are_merged_does_not_matter(a: Rubric, b: Rubric, c: Rubric) -> None:
    if clashing([a, b, c]):
        return
    whole = contents(Rubric.merged([a, b, c]))
    assert contents(a.merge(b).merge(c)) == contents(a.merge(b.merge(c))) == whole
    for order in permutations([a, b, c]):
        assert contents(Rubric.merged(order)) == whole
    assert contents(a.merge(Rubric())) == contents(a) == contents(Rubric().merge(a))


@LAW
@given(st.lists(st.builds(Rubric.from_traits, CLOSE) | st.builds(DynamicRubric.from_traits, CLOSE), max_size=3))
def test_every_name_that_two_rubrics_have_is_refused_and_named_with_its_types(parts: list[Rubric]) -> None:
    clashes = clashing(parts)
    if not clashes:
        merged = Rubric.merged(parts)
        assert Counter(map(repr, merged)) == Counter(repr(trait) for part in parts for trait in part)
        return
    with pytest.raises(ValueError, match="rubrics clash on") as caught:
        Rubric.merged(parts)
    told = str(caught.value).removeprefix("rubrics clash on ").partition(";")[0]
    assert set(told.split(", ")) == clashes


def test_the_same_name_in_two_types_is_refused_with_both_of_them() -> None:
    one = Rubric(llm_traits=[LLMRubricTrait(name="x", kind="boolean")])
    other = Rubric(regex_traits=[RegexRubricTrait(name="x", pattern="x")])
    with pytest.raises(ValueError, match="clash on llm:x, regex:x; rename the trait in one of them"):
        one.merge(other)
    with pytest.raises(ValueError, match="occur more than once: x"):
        Rubric(llm_traits=one.llm_traits, regex_traits=other.regex_traits)


@LAW
@given(LABELLED, st.data())
def test_a_part_of_a_rubric_knows_where_its_own_traits_are_from(rubric: Rubric, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.sampled_from([*rubric.names(), "unknown"])))
    part = rubric.only(wanted)
    assert part.names() == [name for name in rubric.names() if name in wanted]
    assert part.provenance == {name: rubric.provenance[name] for name in part.names()}
    assert part.dynamic <= set(part.names())
    assert rubric.usable.names() == [trait.name for trait in rubric if trait.usable]


def test_only_traits_without_their_code_are_not_usable() -> None:
    inert = CallableRubricTrait(name="inert", kind="boolean")
    live = CallableRubricTrait(name="live", kind="boolean", callable_code=b"code")
    assert Rubric(callable_traits=[inert, live]).usable.names() == ["live"]


@pytest.mark.parametrize(
    ("summary", "description", "fits"),
    [("short", None, True), (None, "long", True), (" ", "long", True), (None, None, False), ("", " \n", False)],
)
def test_a_dynamic_trait_needs_words_for_its_concept(summary: str | None, description: str | None, fits: bool) -> None:
    trait = RegexRubricTrait(name="x", pattern="x", summary=summary, description=description)
    if fits:
        assert DynamicRubric(regex_traits=[trait]).names() == ["x"]
        return
    with pytest.raises(ValueError, match="these traits need a summary, or a description: x"):
        DynamicRubric(regex_traits=[trait])


def test_a_rubric_holds_traits_where_they_belong() -> None:
    trait: Any = LLMRubricTrait(name="x", kind="boolean")
    with pytest.raises(ValueError, match="'x' is in regex_traits; it belongs in llm_traits"):
        Rubric(regex_traits=[trait])
    with pytest.raises(ValueError, match="which is not a rubric trait"):
        Rubric(llm_traits=["x"])  # type: ignore[list-item]  # the mistake
    with pytest.raises(ValueError, match="sets no type_name"):
        Rubric(extra_traits=[RubricTrait(name="x")])
