"""Primitives survive the way to plain data and back."""

from __future__ import annotations

import gc
import inspect
import json
import weakref
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pytest
from attrs import field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from karenina_core import templates
from karenina_core.errors import TemplateError
from karenina_core.templates import (
    AliasMatch,
    BooleanMatch,
    ContainsAll,
    ContainsAny,
    DateMatch,
    DateRange,
    DateTolerance,
    ExactMatch,
    ExpressionMatch,
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
    QuantityMatch,
    RegexMatch,
    SemanticMatch,
    SetContainment,
    SynonymMap,
    TraceContains,
    TraceLength,
    TraceRegex,
    VerificationPrimitive,
    primitive_from_spec,
    to_spec,
)

BUILT_IN = {
    name: thing
    for name in dir(templates)
    if inspect.isclass(thing := getattr(templates, name))
    and issubclass(thing, VerificationPrimitive)
    and not inspect.isabstract(thing)
}
WORDS = st.text("abc ", min_size=1, max_size=5)
NORMALIZERS = st.lists(
    st.sampled_from(["lowercase", "strip"]) | st.builds(SynonymMap, st.dictionaries(WORDS, WORDS, max_size=2)),
    max_size=3,
)
TEXTS = st.lists(st.text("abc", min_size=1), min_size=1)
PATTERNS = st.text("abc.*", max_size=4).filter(lambda p: "**" not in p and p[:1] != "*").map(lambda p: p + "c")
MODES = st.sampled_from(["relative", "absolute"])
DECAYS = st.sampled_from(["linear", "quadratic"])
POSITIVE = st.integers(1, 99) | st.floats(0.01, 1e9)
LOW, HIGH = st.integers(-99, 0) | st.floats(-1e9, -1), st.integers(1, 99) | st.floats(1, 1e9)
EARLY = st.dates(max_value=date(2000, 1, 1)) | st.datetimes(
    max_value=datetime(2000, 1, 1), timezones=st.one_of(st.none(), st.timezones())
)
LATE = (
    st.dates(min_value=date(2000, 2, 1)) | st.datetimes(min_value=datetime(2000, 2, 1)) | st.just("May 31, 2024 6 pm")
)
SCOPES = st.sampled_from(["trace", "response"])
BY_NAME: dict[str, st.SearchStrategy[VerificationPrimitive]] = {
    "AliasMatch": st.builds(AliasMatch, st.lists(st.text("abc", min_size=1)), NORMALIZERS),
    "BooleanMatch": st.builds(BooleanMatch),
    "ContainsAll": st.builds(ContainsAll, TEXTS, st.just(["lowercase"])),
    "ContainsAny": st.builds(ContainsAny, TEXTS),
    "DateMatch": st.builds(DateMatch, st.none() | st.sampled_from(["%d/%m/%Y", "%Y%m%d %H:%M"])),
    "DateRange": st.builds(DateRange, EARLY, st.none() | LATE) | st.builds(DateRange, st.none(), LATE),
    "DateTolerance": st.builds(DateTolerance, st.integers(0, 99), st.sampled_from(["days", "hours", "minutes"])),
    "ExactMatch": st.builds(ExactMatch, NORMALIZERS),
    "ExpressionMatch": st.builds(ExpressionMatch, st.floats(0, 1)),
    "LiteralMatch": st.builds(LiteralMatch),
    "NumericExact": st.builds(NumericExact),
    "NumericGraded": st.builds(NumericGraded, POSITIVE, st.none() | st.floats(0, 0.009), MODES, DECAYS),
    "NumericMaximum": st.builds(NumericMaximum, st.booleans()),
    "NumericMinimum": st.builds(NumericMinimum, st.booleans()),
    "NumericRange": st.builds(NumericRange, LOW, HIGH, st.booleans(), st.booleans())
    | st.builds(NumericRange, st.none(), HIGH)
    | st.builds(NumericRange, LOW),
    "NumericRangeGraded": st.builds(
        NumericRangeGraded, LOW, HIGH, POSITIVE, MODES, DECAYS, st.booleans(), st.booleans()
    ),
    "NumericThresholdGraded": st.builds(
        NumericThresholdGraded, st.sampled_from(["max", "min"]), POSITIVE, MODES, DECAYS, st.booleans()
    ),
    "NumericTolerance": st.builds(NumericTolerance, st.floats(0, 1e9), MODES),
    "OrderedMatch": st.builds(OrderedMatch, NORMALIZERS),
    "QuantityMatch": st.builds(QuantityMatch, st.floats(0, 1e9), MODES),
    "RegexMatch": st.builds(RegexMatch, PATTERNS, st.just(["I"])),
    "SemanticMatch": st.builds(SemanticMatch, st.floats(0, 1, exclude_min=True)),
    "SetContainment": st.builds(SetContainment, st.sampled_from(["exact", "subset", "superset", "overlap"]))
    | st.builds(SetContainment, normalize=NORMALIZERS)
    | st.builds(SetContainment, st.just("overlap"), st.integers(1, 9)),
    "TraceContains": st.builds(TraceContains, st.text(min_size=1), scope=SCOPES),
    "TraceLength": st.builds(
        TraceLength,
        st.none() | st.integers(0, 9),
        st.integers(9, 99),
        st.sampled_from(["chars", "words"]),
        scope=SCOPES,
    ),
    "TraceRegex": st.builds(TraceRegex, PATTERNS, st.none() | st.integers(1, 9), scope=SCOPES),
}


def test_classes_of_templates_that_are_gone_are_not_kept() -> None:
    @frozen
    class Own(NumericTolerance):
        pass

    left = weakref.ref(Own)
    assert primitive_from_spec(to_spec(Own(0.1)), {"Own": Own}) == Own(0.1)
    del Own
    gc.collect()
    assert left() is None


def test_every_primitive_has_a_strategy_here() -> None:
    assert set(BY_NAME) == set(BUILT_IN)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_primitive_comes_back_equal_from_json(name: str) -> None:
    @given(BY_NAME[name])
    @settings(database=None, deadline=None)
    def law(primitive: VerificationPrimitive) -> None:
        text = json.dumps(to_spec(primitive))
        again = primitive_from_spec(json.loads(text), BUILT_IN)
        assert again == primitive
        assert json.dumps(to_spec(again)) == text

    law()


def test_a_spec_reads_as_it_is_documented() -> None:
    assert to_spec(NumericTolerance(0.1)) == {"type": "NumericTolerance", "tolerance": 0.1, "mode": "relative"}
    assert to_spec(ExactMatch([SynonymMap({"a": "b"})])) == {
        "type": "ExactMatch",
        "normalize": [{"type": "SynonymMap", "mapping": {"a": "b"}}],
    }
    assert to_spec(DateRange(min=date(2024, 5, 1))) == {"type": "DateRange", "min": "2024-05-01", "max": None}
    assert to_spec(TraceContains("a")) == {"type": "TraceContains", "scope": "trace", "substring": "a"}
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
        ({"type": "RegexMatch", "pattern": ""}, r"RegexMatch: .* found in every text"),
        ({"type": "TraceRegex", "pattern": "x*"}, r"TraceRegex: .* found in every text"),
        ({"type": "SemanticMatch", "threshold": 0}, r"SemanticMatch: a threshold of 0 would accept every text"),
        ({"type": "RegexMatch", "pattern": "a", "_compiled": 3}, r"unknown parameter '_compiled'"),
        ({"type": "NumericRange"}, r"NumericRange: .*without a bound"),
        ({"type": "TraceLength", "max": 3, "unit": "chars", "scop": 1}, r"did you mean 'scope'"),
        ({"type": "TraceRegex"}, r"parameter 'pattern' is missing"),
        ({"type": "DateRange", "max": "May 2024"}, r"DateRange: 'May 2024' is not a complete date"),
        ({"type": "TracePrimitive"}, r"unknown primitive 'TracePrimitive'"),
        ({"normalize": []}, r"a primitive is written"),
        ("ExactMatch", r"a primitive is written"),
        (None, r"a primitive is written"),
    ],
)
def test_a_bad_spec_says_what_to_change(spec: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        primitive_from_spec(spec, BUILT_IN)


def test_a_synonym_map_is_written_with_its_own_keys_however_they_are_looked_up() -> None:
    primitive = ExactMatch([SynonymMap({"cafe\u0301": "coffee"})])
    assert to_spec(primitive)["normalize"][0]["mapping"] == {"cafe\u0301": "coffee"}
    assert primitive_from_spec(to_spec(primitive), BUILT_IN) == primitive


@frozen
class StartsWith(VerificationPrimitive):
    length: int = 1

    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(str(extracted)[: self.length] == str(expected)[: self.length])


def _days(values: Any) -> frozenset[date]:
    return frozenset(value if isinstance(value, date) else date.fromisoformat(value) for value in values)


@frozen
class OneOfTheseDays(VerificationPrimitive):
    days: frozenset[date] = field(converter=_days)
    names: Mapping[str, SynonymMap] = field(factory=dict)

    def check(self, extracted: Any, expected: Any) -> bool:
        return extracted in self.days


class Homemade(VerificationPrimitive):
    def check(self, extracted: Any, expected: Any) -> bool:
        return bool(extracted == expected)


def test_third_parties_add_primitives_by_subclassing() -> None:
    made = primitive_from_spec({"type": "StartsWith", "length": 2}, {"StartsWith": StartsWith})
    assert made == StartsWith(2)
    assert to_spec(made) == {"type": "StartsWith", "length": 2}
    assert (made.check("abc", "abx"), made.score("abc", "xbc")) == (True, 0.0)


def test_dates_sets_and_mappings_of_third_parties_become_plain_data() -> None:
    mine = OneOfTheseDays([date(2024, 5, 2), date(2024, 5, 1)], {"a": SynonymMap({"b": "c"})})
    spec = to_spec(mine)
    assert spec["days"] == ["2024-05-01", "2024-05-02"]
    assert spec["names"] == {"a": {"type": "SynonymMap", "mapping": {"b": "c"}}}
    again = primitive_from_spec({"type": "OneOfTheseDays", "days": spec["days"]}, {"OneOfTheseDays": OneOfTheseDays})
    assert again == OneOfTheseDays(mine.days)


def test_a_class_whose_parameters_cannot_be_known_says_so() -> None:
    assert isinstance(primitive_from_spec({"type": "Homemade"}, {"Homemade": Homemade}), Homemade)
    with pytest.raises(TemplateError, match="frozen attrs class"):
        to_spec(Homemade())


def test_a_registered_class_that_is_no_primitive_is_refused() -> None:
    with pytest.raises(TemplateError, match="must derive from VerificationPrimitive"):
        primitive_from_spec({"type": "dict"}, {"dict": dict})
