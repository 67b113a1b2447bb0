"""Each primitive compares as promised, and refuses what it cannot compare instead of answering False."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from typing import Any, ClassVar

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st
from karenina_template.language.normalize import NORMALIZERS, as_text, normalized

from karenina_core import templates
from karenina_core.templates import (
    BooleanMatch,
    ContainsAll,
    ContainsAny,
    DateMatch,
    DateRange,
    DateTolerance,
    ExactMatch,
    LiteralMatch,
    NumericExact,
    NumericGraded,
    NumericMaximum,
    NumericMinimum,
    NumericRange,
    NumericRangeGraded,
    NumericThresholdGraded,
    NumericTolerance,
    OrderedMatch,
    RegexMatch,
    SemanticMatch,
    SetContainment,
    SynonymMap,
    TraceContains,
    VerificationPrimitive,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.datetimes()
VALUES = SCALARS | st.lists(SCALARS, max_size=4) | st.sets(st.text(max_size=3), max_size=4)
PRIMITIVES = [
    BooleanMatch(),
    ExactMatch(),
    ExactMatch(normalize=["collapse_whitespace", "remove_punctuation"]),
    ContainsAny(["a", "b"]),
    ContainsAll(["a", "b"], normalize=["lowercase"]),
    RegexMatch(r"a+", flags=["IGNORECASE"]),
    NumericExact(),
    NumericTolerance(0.1),
    NumericTolerance(3, mode="absolute"),
    SetContainment(),
    SetContainment("subset"),
    SetContainment("superset"),
    SetContainment("overlap", min_overlap=2),
    LiteralMatch(),
    OrderedMatch(),
    NumericRange(0, 1),
    NumericMinimum(exclusive=True),
    NumericMaximum(),
    DateMatch(),
    DateMatch("%Y%m%d"),
    DateTolerance(3, "hours"),
    DateRange(min="1900-01-01"),
]
GRADED = [NumericGraded(0.5), NumericRangeGraded(0, 1, 2, exclusive_min=True), NumericThresholdGraded("min", 1)]


@given(st.sampled_from(PRIMITIVES), VALUES, VALUES)
def test_a_score_is_the_check_as_a_number_or_both_refuse(primitive: VerificationPrimitive, a: Any, b: Any) -> None:
    try:
        passed = primitive.check(a, b)
    except (TypeError, ValueError) as refusal:
        with pytest.raises(type(refusal)):
            primitive.score(a, b)
        return
    assert isinstance(passed, bool)
    assert primitive.score(a, b) == float(passed)


@given(VALUES, VALUES)
def test_what_a_primitive_refuses_as_ground_truth_it_cannot_compare(a: Any, b: Any) -> None:
    for primitive in [*PRIMITIVES, *GRADED]:
        try:
            primitive.check_ground_truth(b)
        except (TypeError, ValueError):
            if a is not None and b is not None:
                with pytest.raises((TypeError, ValueError)):
                    primitive.check(a, b)


@pytest.mark.parametrize("text", ["false", "FALSE", " no ", "0", 0, 0.0, False])
def test_the_text_false_is_false(text: Any) -> None:
    assert BooleanMatch().check(text, False)
    assert not BooleanMatch().check(text, True)
    assert not BooleanMatch().check(text, "Yes")


@pytest.mark.parametrize("value", ["maybe", "", 2, 0.5, [], ["false"], {}])
def test_boolean_match_refuses_what_is_neither(value: Any) -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        BooleanMatch().check(value, True)


def test_boolean_match_pairs_nothing_with_nothing_only() -> None:
    assert BooleanMatch().check(None, None)
    assert not BooleanMatch().check(None, False)
    assert not BooleanMatch().check(True, None)


@pytest.mark.parametrize(
    ("extracted", "expected", "passed"),
    [(" BCL2 ", "bcl2", True), ("BCL-2", "bcl2", False), (4, "4", True), (None, "none", True), ("ß", "SS", False)],
)
def test_exact_match_lowers_and_strips_texts(extracted: Any, expected: Any, passed: bool) -> None:
    assert ExactMatch().check(extracted, expected) is passed


def test_exact_match_without_normalizers_is_exact() -> None:
    assert not ExactMatch(normalize=[]).check("BCL2 ", "BCL2")
    assert ExactMatch(normalize=[]).check("BCL2", "BCL2")


class Color(str, Enum):  # noqa: UP042  # unlike a StrEnum, this prints as Color.RED
    RED = "red"
    BLUE = "blue"


class Shade(Enum):
    DARK = "dark"


class Count(IntEnum):
    FOUR = 4


@pytest.mark.parametrize(
    ("extracted", "expected"),
    [(Color.RED, "red"), ("Red ", Color.RED), (Shade.DARK, "dark"), (Shade.DARK, Shade.DARK), (Count.FOUR, "4")],
)
def test_a_member_of_an_enumeration_is_compared_by_its_value(extracted: Any, expected: Any) -> None:
    assert ExactMatch().check(extracted, expected)
    assert OrderedMatch().check([extracted], [expected])
    assert ExactMatch().check({"a": [extracted]}, {"a": [expected]})
    assert RegexMatch(f"^{as_text(extracted)}$").check(extracted)
    assert ContainsAny([as_text(extracted)]).check([extracted])
    assert not ExactMatch().check(extracted, Color.BLUE)


KEYS = st.sampled_from("abcAB")
NESTED = st.recursive(
    st.integers(0, 3) | st.text("aBé", max_size=3) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def _turned_around(value: Any) -> Any:
    """The same value, its mappings and sets filled from the other end."""
    if isinstance(value, Mapping):
        return {key: _turned_around(item) for key, item in reversed(list(value.items()))}
    return [_turned_around(item) for item in value] if isinstance(value, list) else value


@given(NESTED)
def test_the_order_of_keys_never_decides(value: Any) -> None:
    assert ExactMatch().check(_turned_around(value), value)
    assert ExactMatch(normalize=[]).check(_turned_around(value), value)
    assert OrderedMatch().check([_turned_around(value)], [value])


@given(st.lists(st.text("abcABC", max_size=2), max_size=5), st.randoms())
def test_the_order_of_a_set_never_decides_not_even_after_normalization(members: list[str], random: Any) -> None:
    other = [random.choice([member.upper(), member.lower()]) for member in members]
    assert ExactMatch().check(set(members), frozenset(other))
    assert ExactMatch().check({"a": set(members)}, {"a": set(other)})


def test_members_are_compared_one_by_one() -> None:
    assert ExactMatch().check([" A"], ("a",))
    assert ExactMatch(["lowercase", SynonymMap({"heme": "haem"})]).check({"x": "Heme"}, {"x": "haem"})
    assert ExactMatch().check({1: "a"}, {"1": "A"})
    for one, other in [
        (["a", "b"], ["b", "a"]),
        (["a", "b"], ["a, b"]),
        (["a", "b"], {"a", "b"}),
        (["a", ["b"]], ["a", "b"]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": 1, "b": 2}),
        (["a"], ["a", "a"]),
    ]:
        assert not ExactMatch().check(one, other)


SEEDED = """
from karenina_core.templates import ExactMatch
from karenina_template.language.normalize import as_text
words = ["alpha", "beta", "gamma", "delta", "epsilon"]
assert ExactMatch().check(set(words), set(reversed(words)))
print(as_text({"b": set(words), "a": frozenset(words)}))
import sys
assert not {"pydantic", "dateutil", "numpy"} & set(sys.modules)
"""


def test_the_text_of_a_set_is_the_same_in_every_process_and_needs_no_pydantic() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_a_pydantic_model_is_the_mapping_of_its_fields() -> None:
    from pydantic import BaseModel

    class Dose(BaseModel):
        value: float
        unit: str = "mg"

    assert OrderedMatch().check([Dose(value=4)], [{"unit": "mg", "value": 4.0}])
    assert ExactMatch().check({"dose": Dose(value=4)}, {"dose": Dose(unit="MG", value=4)})
    assert RegexMatch("^mg$").check([Dose(value=4)])


SPELLINGS = [
    ("cafe\u0301", "café"),
    ("TNF\u2011α", "TNF-α"),
    ("\u2212195.8", "-195.8"),
    ("5 \u00b5g", "5 \u03bcg"),
    ("TNF\u2010α", "TNF-α"),
    ("400\u00a0mg", "400 mg"),
    ("400\u202fmg", "400 mg"),
    ("\u212b", "Å"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS + [(b, a) for a, b in SPELLINGS])
def test_what_looks_the_same_on_paper_is_the_same_text(one: str, other: str) -> None:
    for normalize in ([], ["lowercase", "strip"], ["remove_punctuation"], ["collapse_whitespace"]):
        assert ExactMatch(normalize).check(one, other)
        assert ExactMatch(normalize).check({"a": one}, {"a": other})
        assert OrderedMatch(normalize).check([one], [other])
        assert ContainsAny([one], normalize).check(f"of {other}.")
        assert ContainsAll([one], normalize).check(["x", other])
        assert ExactMatch([SynonymMap({one: "x"}), *normalize]).check(other, "x")
    assert SetContainment().check([one], {other})
    assert TraceContains(one).check_trace(f"of {other}.")


def test_what_means_something_else_is_another_text() -> None:
    for one, other in (("m²", "m2"), ("H₂O", "H2O"), ("\u2212 5", "- 5"), ("½", "1/2")):
        assert not ExactMatch().check(one, other)


@given(st.text(), st.lists(st.sampled_from(sorted(NORMALIZERS)), max_size=3), st.sampled_from(["NFC", "NFD"]))
def test_a_normalized_text_is_in_normal_form(text: str, names: list[str], form: Any) -> None:
    result = normalized(text, names)
    assert unicodedata.is_normalized("NFC", result)
    assert not set(result) & set("\u2010\u2011\u00a0\u202f")
    assert normalized(unicodedata.normalize(form, text), names) == result


def test_synonyms_are_looked_up_at_their_place_in_the_list() -> None:
    names = SynonymMap({"heme": "haem"})
    assert ExactMatch(["lowercase", names]).check("Heme", "haem")
    assert not ExactMatch([names]).check("Heme", "haem")
    assert not ExactMatch(["lowercase", names]).check("heme iron", "haem iron")
    assert ExactMatch(["lowercase", {"mapping": {"heme": "haem"}}]) == ExactMatch(["lowercase", names])


@pytest.mark.parametrize(
    ("name", "text", "result"),
    [
        ("lowercase", "BcL", "bcl"),
        ("strip", " a b \n", "a b"),
        ("remove_punctuation", "a-b, (c)!“", "ab c“"),
        ("collapse_whitespace", "  a \t\n b ", "a b"),
    ],
)
def test_each_normalizer(name: str, text: str, result: str) -> None:
    assert normalized(text, [name]) == result


@given(st.sampled_from(sorted(NORMALIZERS)), st.text())
def test_a_normalizer_has_nothing_left_to_do_the_second_time(name: str, text: str) -> None:
    once = normalized(text, [name])
    if name != "lowercase" or once.isascii():  # a few capitals beyond ASCII have lower forms that change again
        assert normalized(once, [name]) == once


@pytest.mark.parametrize("cls", [ExactMatch, OrderedMatch, lambda normalize: ContainsAny(["a"], normalize=normalize)])
def test_an_unknown_normalizer_is_refused_when_the_primitive_is_made(cls: Any) -> None:
    with pytest.raises(ValueError, match=r"'lowercse' \(did you mean 'lowercase'\?\)"):
        cls(normalize=["strip", "lowercse"])
    with pytest.raises(TypeError, match="list of normalizers"):
        cls(normalize="lowercase")
    with pytest.raises(ValueError, match="synonym map is written"):
        cls(normalize=[{"maping": {}}])
    with pytest.raises(TypeError, match="text to text"):
        cls(normalize=[{"mapping": {"a": 1}}])


def test_contains() -> None:
    assert ContainsAny(["venetoclax", "abt-199"], ["lowercase"]).check("It is ABT-199.", "N/A")
    assert not ContainsAny(["venetoclax"]).check("It is Venetoclax.")
    assert ContainsAll(["a", "b"]).check("b and a")
    assert not ContainsAll(["a", "c"]).check("b and a")
    assert ContainsAny(["ABT 199"], ["remove_punctuation"]).check("(ABT 199)")


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_list_is_searched_member_by_member_and_not_as_python_prints_it(kind: Any) -> None:
    assert RegexMatch("^BCL2$").check(kind(["MCL1", "BCL2"]))
    assert not RegexMatch("^$").check(kind(["MCL1", "BCL2"]))
    assert ContainsAny(["Alzheimer's"]).check(kind(['the "so-called" Alzheimer\'s']))
    assert ContainsAny(["a\nb"]).check(kind(["a\nb"]))
    assert ContainsAll(["BCL", "MCL"]).check(kind(["MCL1", "BCL2"]))
    assert not ContainsAll(["BCL", "KRAS"]).check(kind(["MCL1", "BCL2"]))
    for written_by_python in ("'", ", ", "[", "]", "(", "{", "frozenset"):
        for value in (kind(["a", "b"]), kind([])):
            assert not ContainsAny([written_by_python]).check(value)
            assert not ContainsAll([written_by_python]).check(value)
            assert not RegexMatch(f"[{chr(92)}{written_by_python[0]}]").check(value)


@given(st.lists(st.text("ab'\\", max_size=4), max_size=4), st.text("ab'\\", min_size=1, max_size=2))
def test_a_part_is_in_a_list_exactly_where_it_is_in_a_member(members: list[str], part: str) -> None:
    found = any(part in member for member in members)
    assert ContainsAny([part]).check(members) is found
    assert ContainsAll([part]).check(members) is found
    assert ContainsAny([part]).check({"x": members}) is found
    assert RegexMatch("".join(f"[{chr(92)}{c}]" if c in "'\\" else c for c in part)).check(members) is found


def test_a_mapping_is_searched_in_keys_and_values_and_nothing_has_no_text() -> None:
    assert ContainsAll(["aspirin", "100"]).check({"aspirin": {"dose": 100}})
    assert not RegexMatch("None|none|null").check([None, {"a": None}])


@pytest.mark.parametrize("cls", [ContainsAny, ContainsAll])
def test_substrings_that_would_always_or_never_be_found_are_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="list of texts"):
        cls("abc")
    with pytest.raises(ValueError, match="at least one"):
        cls([])
    with pytest.raises(ValueError, match="empty after normalization"):
        cls(["?!"], normalize=["remove_punctuation"])


def test_regex_match_searches_anywhere_with_flags() -> None:
    assert RegexMatch(r"bcl-?2", ["IGNORECASE"]).check("the BCL2 gene", "N/A")
    assert not RegexMatch(r"bcl-?2").check("the BCL2 gene", "N/A")
    assert RegexMatch(r"^2$", ["M"]).check("1\n2\n3")
    assert RegexMatch(r"\d").check(42)


@pytest.mark.parametrize("pattern", ["", "x*", "(?:a|b)?", ".*", "$", "a*$", "(?!sorry)", r"\s*\Z", "(?=x*)"])
def test_a_pattern_that_matches_nothing_at_all_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"found in every text; make a part of it obligatory"):
        RegexMatch(pattern)


@pytest.mark.parametrize(
    ("pattern", "found", "missing"),
    [
        (r"^\s*$", " ", "a"),
        (r"^(?!.*sorry)", "a", "so sorry"),
        (r"^[^x]*$", "a", "x"),
        (r"^.{0,3}$", "abc", "abcd"),
        (r"(?<!sorry)$", "a", "I am sorry"),
        (r"(?<!\.)$", "a", "a."),
        (r"^(?:a|b)?$", "", "c"),
    ],
)
def test_a_pattern_that_tells_texts_apart_is_accepted_even_if_it_can_be_empty(
    pattern: str, found: str, missing: str
) -> None:
    assert RegexMatch(pattern).check(found)
    assert not RegexMatch(pattern).check(missing)


def test_an_unknown_regex_flag_is_refused_when_the_primitive_is_made() -> None:
    with pytest.raises(ValueError, match="did you mean 'IGNORECASE'"):
        RegexMatch("a", ["IGNORCASE"])
    with pytest.raises(ValueError, match="unknown regular expression flag"):
        RegexMatch("a", ["DEBUG"])


def test_a_regex_that_cannot_work_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        RegexMatch("(")
    with pytest.raises(TypeError, match="list of names"):
        RegexMatch("a", "IGNORECASE")
    with pytest.raises(TypeError, match="must be a text"):
        RegexMatch(3)  # type: ignore[arg-type]  # the wrong type is the point


def test_an_unknown_mode_is_refused_when_the_primitive_is_made() -> None:
    with pytest.raises(ValueError, match="did you mean 'absolute'"):
        NumericTolerance(1, mode="absolut")
    with pytest.raises(ValueError, match="did you mean 'subset'"):
        SetContainment("subsets")


@pytest.mark.parametrize(
    ("primitive", "extracted", "expected", "passed"),
    [
        (SetContainment(), ["b", "a", "a"], {"a", "b"}, True),
        (SetContainment(), ["a"], ["a", "b"], False),
        (SetContainment("subset"), ["a"], ["a", "b"], True),
        (SetContainment("subset"), [], ["a", "b"], True),
        (SetContainment("subset"), ["c"], ["a", "b"], False),
        (SetContainment("superset"), ["a", "b", "c"], ("a", "b"), True),
        (SetContainment("superset"), ["a"], ["a", "b"], False),
        (SetContainment("overlap"), ["a", "x"], ["a", "b"], True),
        (SetContainment("overlap"), ["x"], ["a", "b"], False),
        (SetContainment("overlap", 2), ["a", "x"], ["a", "b"], False),
        (SetContainment("overlap", 2), ["a", "b", "x"], ["a", "b"], True),
    ],
)
def test_sets(primitive: Any, extracted: Any, expected: Any, passed: bool) -> None:
    assert primitive.check(extracted, expected) is passed


@pytest.mark.parametrize("value", ["abc", b"abc", {"a": 1}, None, 3, [["a"]]])
def test_a_text_is_never_taken_for_the_set_of_its_characters(value: Any) -> None:
    for mode in ("exact", "subset", "superset", "overlap"):
        with pytest.raises(TypeError, match="SetContainment"):
            SetContainment(mode).check(value, ["a", "b", "c"])
        with pytest.raises(TypeError, match="SetContainment"):
            SetContainment(mode).check(["a"], value)


@pytest.mark.parametrize(
    ("extracted", "expected", "passed"),
    [
        (["A ", "b"], ["a", "B"], True),
        (("a", "b"), ["a", "b"], True),
        (["b", "a"], ["a", "b"], False),
        (["a"], ["a", "b"], False),
        (["a", "b", "b"], ["a", "b"], False),
        ([1, None], ["1", "none"], True),
        ([], [], True),
        ([], ["a"], False),
    ],
)
def test_lists_in_order(extracted: Any, expected: Any, passed: bool) -> None:
    assert OrderedMatch().check(extracted, expected) is passed


def test_members_of_ordered_lists_are_normalized_as_declared() -> None:
    assert not OrderedMatch(normalize=[]).check(["A"], ["a"])
    assert OrderedMatch([SynonymMap({"heme": "haem"})]).check(["heme", "x"], ["haem", "x"])


@pytest.mark.parametrize("value", ["abc", b"abc", {"a": 1}, {"a", "b", "c"}, None, 3])
def test_what_has_no_order_is_no_ordered_list(value: Any) -> None:
    for call in (
        lambda: OrderedMatch().check(value, ["a", "b", "c"]),
        lambda: OrderedMatch().check(["a"], value),
        lambda: OrderedMatch().check_ground_truth(value),
    ):
        with pytest.raises(TypeError, match="OrderedMatch compares lists"):
            call()


def test_min_overlap_must_mean_something() -> None:
    with pytest.raises(ValueError, match="only means something in mode 'overlap'"):
        SetContainment("exact", min_overlap=2)
    for bad in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="at least 1"):
            SetContainment("overlap", min_overlap=bad)  # type: ignore[arg-type]  # the wrong type is the point


def test_literal_match_converts_nothing() -> None:
    assert LiteralMatch().check("A", "A")
    assert not LiteralMatch().check("4", 4)
    assert not LiteralMatch().check("a", "A")


def test_primitives_are_values() -> None:
    assert ExactMatch() == ExactMatch(["lowercase", "strip"])
    assert RegexMatch("a") != RegexMatch("b")
    with pytest.raises(AttributeError):
        ExactMatch().normalize = ()  # type: ignore[misc]  # frozen is the point


@pytest.mark.parametrize(
    ("threshold", "similarity", "accepted"),
    [
        (0.85, 0.85, True),
        (0.85, 0.849, False),
        (0.1, 0, False),
        (0.1, -0.2, False),
        (1, 1.0000001, True),
        (0.5, 1, True),
    ],
)
def test_semantic_match_accepts_what_reaches_its_threshold(threshold: float, similarity: float, accepted: bool) -> None:
    assert SemanticMatch(threshold).accepts(similarity) is accepted


def test_semantic_match_does_not_decide_without_a_similarity() -> None:
    assert SemanticMatch().threshold == 0.85
    with pytest.raises(NotImplementedError, match=r"accepts\(similarity\)"):
        SemanticMatch().check("a", "a")
    for nothing in (None, "0.9", True):
        with pytest.raises(TypeError, match="number"):
            SemanticMatch().accepts(nothing)
    with pytest.raises(ValueError, match="NaN"):
        SemanticMatch().accepts(float("nan"))


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "0.5", True, None, float("nan")])
def test_a_threshold_is_a_share(threshold: Any) -> None:
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1"):
        SemanticMatch(threshold)


def test_a_threshold_that_every_text_reaches_is_refused() -> None:
    for nothing in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match="threshold of 0 would accept every text"):
            SemanticMatch(threshold=nothing)


def test_only_a_text_that_says_something_can_be_meant() -> None:
    SemanticMatch().check_ground_truth("a cat")
    for empty in ("", "  \n"):
        with pytest.raises(ValueError, match="with a meaning"):
            SemanticMatch().check_ground_truth(empty)
    with pytest.raises(TypeError, match="compares texts"):
        SemanticMatch().check_ground_truth(["a cat"])


@frozen
class OneOf(VerificationPrimitive):
    """The extracted text is one of the alternatives that the ground truth lists."""

    matches_ground_truth: ClassVar[bool] = False

    def check(self, extracted: Any, expected: Iterable[str]) -> bool:
        return extracted in expected

    def remark(self, extracted: Any, expected: Any) -> str | None:
        return None if self.check(extracted, expected) else f"{extracted} is none of {len(expected)} alternatives."


def test_a_primitive_declares_that_its_ground_truth_need_not_pass_and_adds_remarks() -> None:
    assert OneOf.matches_ground_truth is False
    assert OneOf().remark("a", ["a"]) is None
    assert OneOf().remark("c", ["a", "b"]) == "c is none of 2 alternatives."
    for primitive in [*PRIMITIVES, *GRADED]:
        assert primitive.matches_ground_truth is True
    assert ExactMatch().remark("a", "b") is None


def test_every_primitive_is_offered_where_templates_are_written() -> None:
    from karenina_template.language import primitives

    for module in pkgutil.iter_modules(primitives.__path__, f"{primitives.__name__}."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(thing) and issubclass(thing, VerificationPrimitive) and not inspect.isabstract(thing):
                assert getattr(templates, name) is thing
