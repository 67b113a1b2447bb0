"""The linter looks only at places that may name a value, and misses none by that."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.lint.lint import lint_schema
from karenina_template.lint.positions import Place
from karenina_template.lint.references import Targets
from karenina_template.lint.severity import Reach, Subject, weigh
from karenina_template.lint.spelling import _FEW, Wanted, prepared

LAW = settings(database=None, deadline=None, derandomize=True, max_examples=400)
PARTS = ["BCL2", "Bcl-2", "5", "0.05", "5 %", "true", "yes", "+", "such as", "or", "William", "Shakespeare"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=4).map(" ".join)
DATA = st.one_of(TEXTS, st.sampled_from([5, True, {"expected": "BCL2"}, ["BCL2", 5], {"a": "William Shakespeare"}]))
OF_TEXT, OF_DATA = ("description", "name", "hint"), ("default", "examples", "extra")
NAMES = ("a", "b", "bcl2")
PLACES = st.builds(
    lambda path, where, text, data: Place(path, where, "here", text if where in OF_TEXT else data, where),
    st.sampled_from([(), *((name,) for name in NAMES), ("a", "inner")]),
    st.sampled_from([*OF_TEXT, *OF_DATA]),
    TEXTS,
    DATA,
)
EXPECTED = ["BCL2", "William Shakespeare", "+", "yes", 5, 0.05, True, False, "2024-05-31"]
SUBJECTS = st.builds(
    lambda name, values, options: Subject(
        name=name, path=(name,), targets=Targets(tuple(values)), many=len(values) > 1, options=options
    ),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(EXPECTED), min_size=1, max_size=2),
    st.sampled_from([(), ("BCL2", "BAX")]),
)


def alike(left: Subject, right: Subject) -> bool:
    return repr((left.values, left.many, left.options)) == repr((right.values, right.many, right.options))


def weighed_one_by_one(places: list[Place], subject: Subject, others: list[Subject]) -> list[Any]:
    own = {(place.where, repr(place.value)) for place in places if subject.owns(place.path)}
    found = []
    for place in places:
        is_own = subject.owns(place.path)
        elsewhere = any(alike(subject, other) and other.owns(place.path) for other in others)
        if (is_own or (not elsewhere and (place.where, repr(place.value)) not in own)) and weigh(place, subject):
            found.append((place, weigh(place, subject)))
    return found


@settings(LAW, max_examples=settings().max_examples * 4)
@given(st.lists(PLACES, max_size=8), st.lists(SUBJECTS, min_size=1, max_size=4))
def test_what_is_looked_up_is_what_trying_every_place_for_every_value_finds(
    places: list[Place], subjects: list[Subject]
) -> None:
    reach = Reach(places, subjects)
    for subject in subjects:
        assert list(reach.weighed(subject)) == weighed_one_by_one(places, subject, subjects)


def test_a_text_that_several_fields_expect_is_reported_for_the_field_whose_description_names_it() -> None:
    revealing = {"description": "The target, which should be BCL2"}
    schema = {"properties": {"a": revealing, "b": {"description": "What the response settles on"}}}
    findings = lint_schema(schema, {"a": "BCL2", "b": "BCL2"})
    assert [(item.field, item.where, item.severity) for item in findings] == [("a", "description", "leak")]
    (other,) = lint_schema(schema, {"a": "MCL1", "b": "BCL2"})
    assert (other.field, other.where) == ("b", "description")


@LAW
@given(st.lists(st.one_of(TEXTS, st.text("aÀ1-_ é", max_size=6)), max_size=3).map(" ".join), st.lists(TEXTS))
def test_a_few_beginnings_are_found_in_a_text_where_all_of_its_own_would_be(text: str, values: list[str]) -> None:
    wanted = frozenset(key for value in (*EXPECTED, *values) for key in Targets((value,)).keys(of_data=True))
    many = wanted | {f"beginning {number}" for number in range(_FEW + 1)}
    assert len(wanted) <= _FEW, "all of them are searched one by one"
    assert prepared(text).among(Wanted.of(wanted)) == prepared(text).among(Wanted.of(many))
