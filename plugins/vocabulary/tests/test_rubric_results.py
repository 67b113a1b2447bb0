"""How the traits of a result are read: a trait that failed is told from one that is not there, and has no score."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_vocabulary.rubric_part import RubricPart, read_traits, typed_scores
from karenina_vocabulary.trait_scale import misfit, scale_kind

from karenina_core.values.convert import structure, unstructure

OK = {"state": "ok", "reason": ""}
TONES = {"type": "llm", "kind": "literal", "classes": ["plain", "stiff"], "higher_is_better": True}
PART = RubricPart(
    rubric_evaluation_performed=True,
    llm_trait_scores={
        "Safe": True,
        "Clarity": 4,
        "Tone": 1,
        "Lost tone": -1,
        "Claims.approved": True,
        "Claims.year": 2016,
        "Broken": None,
    },
    llm_trait_labels={"Tone": "stiff", "Lost tone": "grumpy"},
    regex_trait_scores={"Cites": False},
    callable_trait_scores={"Words": 12.5},
    metric_trait_scores={"Coverage": {"tp": 2, "fn": 1, "fp": 0, "recall": 2 / 3, "f1": 0.8}, "Restraint": None},
    metric_trait_confusion_lists={"Coverage": {"tp": ["BCL2", "Ki"], "fn": ["dose"], "fp": [], "tn": []}},
    extra_trait_scores={"citations": {"Sources": 3}},
    trait_details={"Sources": {"style": "numbered", "found": [1, 2, 3]}},
    trait_scales={
        "Safe": {"type": "llm", "kind": "boolean", "higher_is_better": True},
        "Clarity": {"type": "llm", "kind": "score", "min": 1, "max": 5, "higher_is_better": True},
        "Tone": TONES,
        "Lost tone": TONES,
        "Claims": {"type": "llm", "kind": "template", "higher_is_better": None},
        "Broken": {"type": "llm", "kind": "template", "higher_is_better": None},
        "Cites": {"type": "regex", "higher_is_better": True},
        "Words": {"type": "callable", "kind": "score", "min": 0, "max": 100, "higher_is_better": False},
        "Coverage": {"type": "metric", "higher_is_better": None},
        "Restraint": {"type": "metric", "higher_is_better": None},
        "Sources": {"type": "citations", "higher_is_better": True},
        "Dosing": {"type": "llm", "kind": "boolean", "higher_is_better": True},
    },
    trait_states={
        **dict.fromkeys(("Safe", "Clarity", "Tone", "Claims", "Cites", "Words", "Coverage", "Sources"), OK),
        "Lost tone": {"state": "invalid", "reason": "'grumpy' is no class"},
        "Broken": {"state": "missing", "reason": "the reply says nothing about it"},
        "Restraint": {"state": "error", "reason": "the server is down"},
        "Dosing": {"state": "skipped", "reason": "the answer does not speak of dosing"},
    },
    trait_provenance={"Safe": "global", "Dosing": "dynamic"},
    dynamic_rubric_skipped_traits={"Dosing": "the answer does not speak of dosing"},
)
COLUMNS = [
    *("trait_name", "trait_type", "kind", "trait_score", "trait_label", "metric_name"),
    *("confusion_tp", "confusion_fp", "confusion_fn", "confusion_tn"),
    *("state", "reason", "provenance", "higher_is_better"),
]


def read_back(part: RubricPart) -> RubricPart:
    """As from a line of a results file."""
    return structure(json.loads(json.dumps(unstructure(part))), RubricPart)


def row_of(part: RubricPart, name: str, metric: str | None = None) -> dict[str, Any]:
    (row,) = [row for row in part.rows() if row["trait_name"] == name and row["metric_name"] == metric]
    return row


def test_all_scores_are_one_table_as_stored() -> None:
    scores = PART.get_all_trait_scores()
    assert list(scores) == [
        *("Safe", "Clarity", "Tone", "Lost tone", "Claims.approved", "Claims.year", "Broken"),
        *("Cites", "Words", "Coverage", "Restraint", "Sources"),
    ]
    assert (scores["Sources"], scores["Claims.year"], scores["Broken"], scores["Lost tone"]) == (3, 2016, None, -1)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Safe", (True, "llm")),
        ("Tone", (1, "llm")),
        ("Claims", ({"approved": True, "year": 2016}, "llm")),
        ("Claims.year", (2016, "llm")),
        ("Words", (12.5, "callable")),
        ("Sources", (3, "citations")),
        ("Claims.month", None),
        ("safe", None),
    ],
)
def test_a_trait_is_found_by_its_name(name: str, found: Any) -> None:
    assert PART.get_trait_by_name(name) == read_back(PART).get_trait_by_name(name) == found


@pytest.mark.parametrize(("name", "type_name"), [("Lost tone", "llm"), ("Broken", "llm"), ("Restraint", "metric")])
def test_a_trait_that_failed_is_told_from_one_that_is_absent(name: str, type_name: str) -> None:
    assert PART.get_trait_by_name(name) == (None, type_name)
    assert name in PART.trait_errors
    assert name in PART.get_all_trait_scores()
    assert row_of(PART, name)["state"] in ("invalid", "missing", "error")
    assert PART.get_trait_by_name(f"no {name}") is None


def test_a_skipped_trait_is_neither_scored_nor_failed() -> None:
    assert PART.get_trait_by_name("Dosing") is None
    assert "Dosing" not in PART.trait_errors
    row = row_of(PART, "Dosing")
    assert (row["state"], row["trait_type"], row["trait_score"], row["provenance"]) == (
        "skipped",
        "llm",
        None,
        "dynamic",
    )
    assert row["reason"] == "the answer does not speak of dosing"


def test_errors_have_their_reasons() -> None:
    assert PART.trait_errors == {
        "Lost tone": "'grumpy' is no class",
        "Broken": "the reply says nothing about it",
        "Restraint": "the server is down",
    }


def test_labels_are_a_copy() -> None:
    labels = PART.get_llm_trait_labels()
    assert labels == {"Tone": "stiff", "Lost tone": "grumpy"}
    labels.clear()
    assert PART.get_llm_trait_labels()


def test_rows_have_the_same_columns() -> None:
    rows = PART.rows()
    assert all(list(row)[: len(COLUMNS)] == COLUMNS for row in rows)
    assert rows == read_back(PART).rows()
    assert [row["trait_name"] for row in rows].count("Coverage") == 2
    assert len(rows) == 14


def test_a_metric_trait_has_a_row_for_each_metric_with_its_counts() -> None:
    row = row_of(PART, "Coverage", "f1")
    assert (row["trait_score"], row["kind"], row["trait_type"]) == (0.8, "metric", "metric")
    assert [row[f"confusion_{name}"] for name in ("tp", "fp", "fn", "tn")] == [2, 0, 1, None]
    failed = row_of(PART, "Restraint")
    assert (failed["trait_score"], failed["confusion_tp"], failed["reason"]) == (None, None, "the server is down")
    assert row_of(PART, "Safe")["confusion_tp"] is None


def test_details_are_columns_of_the_trait_that_has_them() -> None:
    assert row_of(PART, "Sources")["details.style"] == "numbered"
    assert not any(name.startswith("details.") for name in row_of(PART, "Safe"))


def test_a_literal_trait_has_its_class_as_label_and_no_rank_where_it_has_no_class() -> None:
    assert (row_of(PART, "Tone")["trait_score"], row_of(PART, "Tone")["trait_label"]) == (1, "stiff")
    lost = row_of(PART, "Lost tone")
    assert (lost["trait_score"], lost["trait_label"], lost["state"]) == (None, "grumpy", "invalid")


def test_the_label_of_other_types_comes_from_the_scale() -> None:
    part = RubricPart(callable_trait_scores={"Tone": 0}, trait_scales={"Tone": {**TONES, "type": "callable"}})
    assert row_of(part, "Tone")["trait_label"] == "plain"


# Files of other tools, which say less


def test_without_states_and_scales_kinds_follow_from_place_and_form() -> None:
    part = RubricPart(
        llm_trait_scores={"a": True, "b": 4, "c": 0, "d.x": "text", "e.x": 1, "v1.2": 3},
        llm_trait_labels={"c": "plain"},
        regex_trait_scores={"v.2": True},
        metric_trait_scores={"m": {"f1": 0.5}},
        agentic_trait_scores={"g": 2},
        trait_scales={"d": {"kind": "template"}},
        trait_states={"v1.2": OK, "e": OK},
    )
    found = {trait.name: (trait.type, trait.kind, trait.state) for trait in read_traits(part)}
    assert found == {
        "a": ("llm", "boolean", "ok"),
        "b": ("llm", "score", "ok"),
        "c": ("llm", "literal", "ok"),
        "d": ("llm", "template", "ok"),
        "e": ("llm", "template", "ok"),
        "v1.2": ("llm", "score", "ok"),
        "v.2": ("regex", "boolean", "ok"),
        "m": ("metric", "metric", "ok"),
        "g": ("agentic", "score", "ok"),
    }
    assert part.get_trait_by_name("d.x") == ("text", "llm")


@pytest.mark.parametrize(
    ("label", "state", "reason"),
    [
        ("grumpy", "invalid", "'grumpy' is not one of its classes"),
        ("[MISSING_FROM_RESPONSE]", "missing", "the reply says nothing about it"),
        ("[EVALUATION_ERROR: the server is down]", "error", "the server is down"),
    ],
)
def test_without_states_labels_tell_why_there_is_no_class(label: str, state: str, reason: str) -> None:
    part = RubricPart(llm_trait_scores={"Tone": -1}, llm_trait_labels={"Tone": label})
    (trait,) = read_traits(part)
    assert (trait.value, trait.state, trait.reason) == (None, state, reason)
    assert part.trait_errors == {"Tone": reason}


def test_confusion_counts_are_counted_where_only_the_lists_are_stored() -> None:
    part = RubricPart(
        metric_trait_scores={"m": {"f1": 0.5}}, metric_trait_confusion_lists={"m": {"tp": ["a"], "fn": ["b", "c"]}}
    )
    assert read_traits(part)[0].counts == {"tp": 1, "fn": 2}


def test_a_skipped_trait_without_a_state_is_skipped() -> None:
    part = RubricPart(dynamic_rubric_skipped_traits={"Dosing": "not spoken of"})
    assert [(t.name, t.type, t.state, t.reason) for t in read_traits(part)] == [
        ("Dosing", None, "skipped", "not spoken of")
    ]


SCORE = {"type": "llm", "kind": "score", "min": 1, "max": 5}


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"llm_trait_scores": {"t": -1}}, -1),
        ({"agentic_trait_scores": {"t": -1}}, -1),
        ({"llm_trait_scores": {"t": -1}, "trait_scales": {"t": TONES}, "trait_states": {"t": OK}}, -1),
        ({"llm_trait_scores": {"t": 2}, "trait_scales": {"t": TONES}, "trait_states": {"t": OK}}, 2),
        ({"llm_trait_scores": {"t": True}, "trait_scales": {"t": TONES}, "trait_states": {"t": OK}}, True),
        ({"llm_trait_scores": {"t": 9}, "trait_scales": {"t": SCORE}, "trait_states": {"t": OK}}, 9),
        ({"llm_trait_scores": {"t": "4"}, "trait_scales": {"t": SCORE}, "trait_states": {"t": OK}}, "4"),
        ({"llm_trait_scores": {"t": True}, "trait_scales": {"t": SCORE}, "trait_states": {"t": OK}}, True),
        ({"regex_trait_scores": {"t": 1}}, 1),
        ({"callable_trait_scores": {"t": math.nan}}, math.nan),
        ({"metric_trait_scores": {"t": {}}}, {}),
        ({"metric_trait_scores": {"t": 0.5}}, 0.5),
        ({"llm_trait_scores": {"t": None}, "trait_states": {"t": OK}}, None),
        ({"llm_trait_scores": {"t": 4}, "trait_states": {"t": {"state": "pending"}}}, 4),
    ],
)
def test_what_is_no_score_is_not_read_as_one(fields: dict[str, Any], value: Any) -> None:
    part = RubricPart(**fields)
    (trait,) = read_traits(part)
    assert trait.value is None, value
    assert trait.state in ("invalid", "error")
    assert part.trait_errors["t"]


def test_a_score_of_minus_one_counts_where_the_scale_has_it() -> None:
    part = RubricPart(llm_trait_scores={"t": -1}, trait_scales={"t": {**SCORE, "min": -5}})
    assert part.get_trait_by_name("t") == (-1, "llm")


def test_a_name_with_a_dot_is_one_trait_where_no_record_has_that_field() -> None:
    part = RubricPart(llm_trait_scores={"v1.0 ok": False, "v1.1": True, "v2": 3, "v2.1": 4, "v3.": 5})
    assert [(trait.name, trait.kind, trait.value) for trait in read_traits(part)] == [
        ("v1.0 ok", "boolean", False),
        ("v1.1", "boolean", True),
        ("v2", "score", 3),
        ("v2.1", "score", 4),
        ("v3.", "score", 5),
    ]
    assert part.get_trait_by_name("v1.1") == (True, "llm")
    assert part.get_trait_by_name("v1") is None


def test_one_name_in_two_types_is_two_traits() -> None:
    part = RubricPart(llm_trait_scores={"d": True}, regex_trait_scores={"d": False})
    assert [(row["trait_name"], row["trait_type"], row["trait_score"]) for row in part.rows()] == [
        ("d", "llm", True),
        ("d", "regex", False),
    ]
    told = RubricPart(
        llm_trait_scores={"d": None},
        regex_trait_scores={"d": False},
        trait_scales={"d": {"type": "llm", "kind": "boolean"}},
        trait_states={"d": {"state": "error", "reason": "away"}},
    )
    assert [(trait.type, trait.value, trait.state) for trait in read_traits(told)] == [
        ("llm", None, "error"),
        ("regex", False, "ok"),
    ]


def test_an_older_rank_of_no_class_has_no_kind() -> None:
    part = RubricPart(llm_trait_scores={"t": -1})
    assert (row_of(part, "t")["kind"], row_of(part, "t")["state"]) == (None, "invalid")


def test_a_label_that_contradicts_the_rank_is_told_in_the_reason() -> None:
    part = RubricPart(llm_trait_scores={"t": 1}, llm_trait_labels={"t": "plain"}, trait_scales={"t": TONES})
    row = row_of(part, "t")
    assert (row["trait_score"], row["trait_label"], row["state"]) == (1, "plain", "ok")
    assert row["reason"] == "its label is 'plain', but the score 1 is that of the class 'stiff'"
    agreed = RubricPart(llm_trait_scores={"t": 1}, llm_trait_labels={"t": " Stiff"}, trait_scales={"t": TONES})
    assert row_of(agreed, "t")["reason"] == ""


@pytest.mark.parametrize(
    ("label", "state"), [("[MISSING_FROM_RESPONSE]", "missing"), ("[EVALUATION_ERROR: x]", "error")]
)
def test_where_the_label_says_that_there_is_no_class_a_rank_is_no_score(label: str, state: str) -> None:
    for scales in ({}, {"t": TONES}):
        part = RubricPart(llm_trait_scores={"t": 1}, llm_trait_labels={"t": label}, trait_scales=scales)
        assert (row_of(part, "t")["trait_score"], row_of(part, "t")["state"]) == (None, state)


def test_counts_that_are_stored_are_used_alone() -> None:
    """A metric trait that has no true negatives has an empty list of them, and no count."""
    lists = {"tp": ["a"], "fn": ["b"], "fp": [], "tn": []}
    part = RubricPart(
        metric_trait_scores={"m": {"tp": 1, "fn": 1, "fp": 0, "f1": 0.5}}, metric_trait_confusion_lists={"m": lists}
    )
    assert [row_of(part, "m", "f1")[f"confusion_{name}"] for name in ("tp", "fp", "fn", "tn")] == [1, 0, 1, None]


def test_labels_of_other_types_are_read_from_the_details() -> None:
    levels = {"type": "levels", "kind": "literal", "classes": ["low", "high"]}
    part = RubricPart(
        extra_trait_scores={"levels": {"a": 1, "b": None, "c": 3.5}},
        trait_details={"a": {"label": "high"}, "b": {"label": "lukewarm"}, "c": {"label": 7}},
        trait_scales={"a": levels, "b": levels, "c": {"type": "levels"}},
        trait_states={"b": {"state": "invalid", "reason": "no class"}},
    )
    assert [row_of(part, name)["trait_label"] for name in "abc"] == ["high", "lukewarm", None]
    assert row_of(part, "b")["state"] == "invalid"


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        ({"min": 0, "max": 5}, 2.5, 99),
        ({"kind": "score", "min": 0, "max": 5}, 5, True),
        ({"kind": "boolean"}, False, 0),
        ({"kind": "literal", "classes": ["a", "b"]}, 1, 2),
        ({"kind": "literal", "classes": ["a", "b"]}, 0, -1),
        ({"kind": "literal"}, 7, "a"),
        ({"kind": "template"}, {"x": None}, {}),
        ({"kind": "score"}, 10**300, 10**400),
    ],
)
def test_a_scale_tells_scores_of_other_packages_from_what_is_none(scale: dict[str, Any], good: Any, bad: Any) -> None:
    for value, state in ((good, "ok"), (bad, "invalid")):
        part = RubricPart(extra_trait_scores={"x": {"t": value}}, trait_scales={"t": {"type": "x", **scale}})
        assert part.rows()[0]["state"] == state
        assert bool(misfit(scale_kind(scale), scale, value)) is (state == "invalid")


def test_of_a_scale_that_says_nothing_every_value_is_a_score() -> None:
    for value in ("red", [1], {"a": 1}, -1, {}):
        part = RubricPart(extra_trait_scores={"x": {"t": value}}, trait_scales={"t": {"type": "x"}})
        assert (part.rows()[0]["state"], part.rows()[0]["trait_score"]) == ("ok", value)


NAMES = st.sampled_from(["a", "b", "c", "d.e", "d.f"])
VALUES = st.none() | st.booleans() | st.integers(-2, 6) | st.floats() | st.sampled_from(["x", "[EVALUATION_ERROR: y]"])
STATES = st.sampled_from(["ok", "invalid", "missing", "error", "skipped", "pending"])
PARTS = st.builds(
    RubricPart,
    llm_trait_scores=st.dictionaries(NAMES, VALUES),
    llm_trait_labels=st.dictionaries(NAMES, st.sampled_from(["plain", "[MISSING_FROM_RESPONSE]"])),
    regex_trait_scores=st.dictionaries(NAMES, VALUES),
    metric_trait_scores=st.dictionaries(NAMES, st.none() | st.dictionaries(st.sampled_from(["tp", "f1"]), VALUES)),
    agentic_trait_scores=st.dictionaries(NAMES, VALUES),
    extra_trait_scores=st.dictionaries(st.sampled_from(["x", "y"]), st.dictionaries(NAMES, VALUES)),
    trait_scales=st.dictionaries(NAMES, st.sampled_from([TONES, SCORE, {"type": "llm", "kind": "boolean"}])),
    trait_states=st.dictionaries(NAMES, st.builds(lambda state: {"state": state, "reason": "why"}, STATES)),
    dynamic_rubric_skipped_traits=st.dictionaries(NAMES, st.just("absent")),
)


@given(PARTS)
def test_whatever_is_stored_is_read_and_has_a_score_or_a_state(part: RubricPart) -> None:
    traits = read_traits(part)
    names = [trait.name for trait in traits]
    assert len({(trait.name, trait.type) for trait in traits}) == len(names)
    for type_name, scores in typed_scores(part):
        for key in scores:
            assert any(t.type == type_name and (t.name == key or key.startswith(f"{t.name}.")) for t in traits), key
    for trait in traits:
        assert (trait.value is not None) == (trait.state == "ok")
        assert trait.state != "ok" or trait.value != -1 or trait.kind != "literal"
    assert all(row["trait_score"] is None for row in part.rows() if row["state"] != "ok")
    assert part.trait_errors.keys() <= set(names)
    part.get_all_trait_scores()
