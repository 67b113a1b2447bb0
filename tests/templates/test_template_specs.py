"""Primitives survive the way to plain data and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from karenina_core.errors import TemplateError
from karenina_core.templates import (
    BooleanMatch,
    ContainsAll,
    ContainsAny,
    ExactMatch,
    LiteralMatch,
    NumericExact,
    NumericTolerance,
    RegexMatch,
    SetContainment,
    SynonymMap,
    VerificationPrimitive,
    primitive_from_spec,
    to_spec,
)

BUILT_IN = {
    cls.__name__: cls
    for cls in (
        BooleanMatch,
        ContainsAll,
        ContainsAny,
        ExactMatch,
        LiteralMatch,
        NumericExact,
        NumericTolerance,
        RegexMatch,
        SetContainment,
    )
}
WORDS = st.text("abc ", min_size=1, max_size=5)
NORMALIZERS = st.lists(
    st.sampled_from(["lowercase", "strip"]) | st.builds(SynonymMap, st.dictionaries(WORDS, WORDS, max_size=2)),
    max_size=3,
)
PRIMITIVES = st.one_of(
    st.builds(BooleanMatch),
    st.builds(NumericExact),
    st.builds(LiteralMatch),
    st.builds(ExactMatch, NORMALIZERS),
    st.builds(ContainsAny, st.lists(st.text("abc", min_size=1), min_size=1)),
    st.builds(ContainsAll, st.lists(st.text("abc", min_size=1), min_size=1), st.just(["lowercase"])),
    st.builds(
        RegexMatch, st.text("abc.*", max_size=4).filter(lambda p: "**" not in p and p[:1] != "*"), st.just(["I"])
    ),
    st.builds(NumericTolerance, st.floats(0, 1e9), st.sampled_from(["relative", "absolute"])),
    st.builds(SetContainment, st.sampled_from(["exact", "subset", "superset", "overlap"])),
    st.builds(SetContainment, st.just("overlap"), st.integers(1, 9)),
)


@given(PRIMITIVES)
def test_every_primitive_comes_back_equal_from_json(primitive: VerificationPrimitive) -> None:
    text = json.dumps(to_spec(primitive))
    assert primitive_from_spec(json.loads(text), BUILT_IN) == primitive


def test_a_spec_reads_as_it_is_documented() -> None:
    assert to_spec(NumericTolerance(0.1)) == {"type": "NumericTolerance", "tolerance": 0.1, "mode": "relative"}
    assert to_spec(ExactMatch([SynonymMap({"a": "b"})])) == {
        "type": "ExactMatch",
        "normalize": [{"type": "SynonymMap", "mapping": {"a": "b"}}],
    }
    assert to_spec(RegexMatch("a")) == {"type": "RegexMatch", "pattern": "a", "flags": []}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "ExactMach"}, r"unknown primitive 'ExactMach' \(did you mean 'ExactMatch'\?\)"),
        ({"type": "NumericTolerance", "tolerence": 1}, r"unknown parameter 'tolerence' \(did you mean 'tolerance'\?\)"),
        ({"type": "NumericTolerance", "tolerence": 1}, r"parameter 'tolerance' is missing"),
        ({"type": "NumericTolerance", "tolerance": -1}, r"NumericTolerance: tolerance must be"),
        ({"type": "BooleanMatch", "x": 1}, r"it takes none"),
        ({"type": "RegexMatch", "pattern": "("}, r"RegexMatch: .* not a regular expression"),
        ({"type": "RegexMatch", "pattern": "a", "_compiled": 3}, r"unknown parameter '_compiled'"),
        ({"normalize": []}, r"a primitive is written"),
        ("ExactMatch", r"a primitive is written"),
        (None, r"a primitive is written"),
    ],
)
def test_a_bad_spec_says_what_to_change(spec: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        primitive_from_spec(spec, BUILT_IN)


@frozen
class StartsWith(VerificationPrimitive):
    length: int = 1

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(str(extracted)[: self.length] == str(expected)[: self.length])


class Homemade(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted == expected)


def test_third_parties_add_primitives_by_subclassing() -> None:
    made = primitive_from_spec({"type": "StartsWith", "length": 2}, {"StartsWith": StartsWith})
    assert made == StartsWith(2)
    assert to_spec(made) == {"type": "StartsWith", "length": 2}
    assert (made.check("abc", "abx"), made.score("abc", "xbc")) == (True, 0.0)


def test_a_class_whose_parameters_cannot_be_known_says_so() -> None:
    assert isinstance(primitive_from_spec({"type": "Homemade"}, {"Homemade": Homemade}), Homemade)
    with pytest.raises(TemplateError, match="frozen attrs class"):
        to_spec(Homemade())


def test_a_registered_class_that_is_no_primitive_is_refused() -> None:
    with pytest.raises(TemplateError, match="must derive from VerificationPrimitive"):
        primitive_from_spec({"type": "dict"}, {"dict": dict})
