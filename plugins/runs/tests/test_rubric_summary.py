"""What traits come to over a run: only scores go into rates and means; everything else is counted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.summaries.summary import summarize
from karenina_runs.summaries.trait_summary import MOST_TEXTS, trait_lines
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import MetadataPart, TrailEntry

BOOLEAN = {"type": "llm", "kind": "boolean", "higher_is_better": False}
SCORE = {"type": "llm", "kind": "score", "min": 1, "max": 5, "higher_is_better": True}
LITERAL = {"type": "llm", "kind": "literal", "classes": ["concise", "wordy", "endless"], "higher_is_better": True}
METRIC = {"type": "metric", "higher_is_better": None}
RECORD = {"type": "llm", "kind": "template", "higher_is_better": None}
FIELDS = {
    "llm": "llm_trait_scores",
    "regex": "regex_trait_scores",
    "callable": "callable_trait_scores",
    "metric": "metric_trait_scores",
}


def result(part: RubricPart | None, model: str = "m", *, trail: Sequence[str] = (), **facts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q",
        template_id="t",
        result_id="r",
        question_text="Why?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        **{"outcome": "scored", **facts},
    )
    return VerificationResult(
        metadata=metadata, rubric=part, trail=tuple(TrailEntry(stage, "skipped", "no answer") for stage in trail)
    )


def of(scale: Mapping[str, Any], value: Any, name: str = "t", **more: Any) -> VerificationResult:
    """A result with one trait that has a score; a dict is a record of fields or of metrics."""
    is_record = scale.get("kind") == "template"
    scores = {f"{name}.{key}": inner for key, inner in value.items()} if is_record else {name: value}
    facts = {"trait_scales": {name: scale}, "trait_states": {name: {"state": "ok", "reason": ""}}}
    field_name = FIELDS.get(scale["type"])
    stored = {field_name: scores} if field_name else {"extra_trait_scores": {scale["type"]: scores}}
    return result(RubricPart(**{**facts, **stored, **more}))


def failed(scale: Mapping[str, Any], state: str, name: str = "t", *, label: str | None = None) -> VerificationResult:
    """A result whose trait has no score, as results are written."""
    value = -1 if scale.get("kind") == "literal" else None
    stored: dict[str, Any] = {"trait_states": {name: {"state": state, "reason": "why"}}, "trait_scales": {name: scale}}
    if state != "skipped":
        stored |= {FIELDS[scale["type"]]: {name: value}, "llm_trait_labels": {name: label} if label else {}}
    return result(RubricPart(**stored))


def line(*results: VerificationResult) -> dict[str, Any]:
    (found,) = trait_lines(results)
    return found


def test_booleans_have_the_rate_of_true() -> None:
    found = line(of(BOOLEAN, True), of(BOOLEAN, True), of(BOOLEAN, False), failed(BOOLEAN, "error"))
    assert found == {
        "trait": "t",
        "type": "llm",
        "kind": "boolean",
        "n": 4,
        "ok": 3,
        "errors": 1,
        "skipped": 0,
        "higher_is_better": False,
        "rate": pytest.approx(2 / 3),
    }


def test_scores_have_a_mean_beside_their_scale() -> None:
    found = line(of(SCORE, 5), of(SCORE, 2), failed(SCORE, "skipped"))
    assert (found["mean"], found["min"], found["max"], found["n"], found["skipped"]) == (3.5, 1, 5, 2, 1)


def test_classes_are_counted_in_the_order_of_the_scale() -> None:
    found = line(of(LITERAL, 1), of(LITERAL, 0), of(LITERAL, 1), failed(LITERAL, "invalid", label="grumpy"))
    assert list(found["classes"].items()) == [("concise", 1), ("wordy", 2), ("endless", 0)]
    assert (found["n"], found["ok"], found["errors"]) == (4, 3, 1)
    assert "mean" not in found


def test_metrics_have_a_mean_of_each() -> None:
    found = line(
        of(METRIC, {"tp": 2, "fn": 0, "fp": 0, "f1": 1.0, "recall": 1.0}),
        of(METRIC, {"tp": 0, "fn": 2, "fp": 0, "f1": 0.0, "recall": 0.5}),
        failed(METRIC, "error"),
    )
    assert found["metrics"] == {"f1": 0.5, "recall": 0.75}
    assert (found["kind"], found["ok"], found["n"]) == ("metric", 2, 3)


def test_records_have_a_line_for_each_field_of_booleans_or_numbers() -> None:
    lines = trait_lines(
        [
            of(RECORD, {"approved": True, "year": 2016, "note": "well"}),
            of(RECORD, {"approved": False, "year": None, "note": "ill"}),
            failed(RECORD, "missing"),
        ]
    )
    approved, year = lines
    assert (approved["trait"], approved["rate"], approved["n"], approved["ok"]) == ("t.approved", 0.5, 3, 2)
    assert (year["trait"], year["mean"], year["n"], year["ok"], year["errors"]) == ("t.year", 2016, 3, 1, 1)
    assert approved["kind"] == year["kind"] == "template"
    (bare,) = trait_lines([failed(RECORD, "missing")])
    assert (bare["trait"], bare["errors"]) == ("t", 1)


def test_traits_of_other_packages_are_summed_up_by_their_values() -> None:
    scale = {"type": "citations", "higher_is_better": True}
    assert line(of(scale, 3), of(scale, 4))["mean"] == 3.5
    assert line(of(scale, True), of(scale, False))["rate"] == 0.5
    words = line(of(scale, "many"), of(scale, 4))
    assert (words["ok"], words.keys() & {"mean", "rate"}) == (2, set())


def test_a_field_that_is_null_in_every_item_keeps_its_line() -> None:
    approved, year = trait_lines([of(RECORD, {"approved": True, "year": None}), of(RECORD, {"year": None})])
    assert (approved["trait"], approved["ok"], approved["n"]) == ("t.approved", 1, 2)
    assert (year["trait"], year["ok"], year["n"], "mean" in year) == ("t.year", 0, 2, False)


def test_a_scale_with_two_ends_is_one_of_scores() -> None:
    scale = {"type": "readability", "min": 0, "max": 5, "higher_is_better": False}
    found = line(of(scale, 3), of(scale, 4), of(scale, 99))
    assert (found["kind"], found["mean"], found["min"], found["max"]) == ("score", 3.5, 0, 5)
    assert (found["ok"], found["errors"]) == (2, 1)


def test_texts_are_counted_the_most_frequent_ones_by_name() -> None:
    scale = {"type": "colour"}
    found = line(of(scale, "red"), of(scale, "blue"), of(scale, "red"))
    assert (found["texts"], found["other_texts"]) == ({"red": 2, "blue": 1}, 0)
    many = line(*(of(scale, f"shade {number}") for number in range(MOST_TEXTS + 4)), of(scale, "shade 7"))
    assert (len(many["texts"]), many["texts"]["shade 7"], many["other_texts"]) == (MOST_TEXTS, 2, 4)


def test_the_kind_of_other_packages_scores_is_that_of_all_of_them() -> None:
    scale = {"type": "jargon"}
    assert line(of(scale, True), of(scale, False))["kind"] == "boolean"
    assert line(of(scale, 3), of(scale, 2.5))["kind"] == "score"
    assert line(of(scale, True), of(scale, 3))["kind"] is None
    assert line(of(scale, "x"))["kind"] is None


def test_an_older_rank_of_no_class_is_counted_with_the_only_trait_of_its_name() -> None:
    named = RubricPart(llm_trait_scores={"t": 1}, llm_trait_labels={"t": "wordy"})
    found = line(result(named), result(RubricPart(llm_trait_scores={"t": -1})))
    assert (found["kind"], found["n"], found["ok"], found["errors"]) == ("literal", 2, 1, 1)
    assert found["classes"] == {"wordy": 1}


def test_one_name_in_two_types_is_two_lines_and_a_failure_goes_to_its_own() -> None:
    both = RubricPart(llm_trait_scores={"t": True}, regex_trait_scores={"t": False})
    lone = RubricPart(llm_trait_scores={"t": None})
    found = trait_lines(map(result, (lone, both)))
    assert [(row["type"], row["rate"], row["n"], row["errors"]) for row in found] == [
        ("llm", 1.0, 2, 1),
        ("regex", 0.0, 1, 0),
    ]


def test_where_a_label_contradicts_the_rank_the_rank_is_counted() -> None:
    found = line(of(LITERAL, 1, llm_trait_labels={"t": "concise"}))
    assert found["classes"] == {"concise": 0, "wordy": 1, "endless": 0}


def test_a_count_that_no_item_stores_is_in_no_metric() -> None:
    part = RubricPart(
        metric_trait_scores={"t": {"tp": 1, "fn": 0, "fp": 0, "f1": 1.0}},
        metric_trait_confusion_lists={"t": {"tp": ["a"], "fn": [], "fp": [], "tn": []}},
    )
    assert line(result(part))["metrics"] == {"f1": 1.0}


@pytest.mark.parametrize(
    ("facts", "trail", "counted"),
    [
        ({"evaluation_mode": "template_and_rubric", "outcome": "error"}, ["GenerateAnswer", "RubricEvaluation"], 1),
        ({"evaluation_mode": "rubric_only", "outcome": "error"}, ["RubricEvaluation"], 1),
        ({"evaluation_mode": "rubric_only", "outcome": "error"}, [], 1),
        # its question has no rubric
        ({"evaluation_mode": "template_and_rubric", "outcome": "error"}, ["GenerateAnswer", "VerifyTemplate"], 0),
        ({"evaluation_mode": "template_and_rubric", "outcome": "passed"}, [], 0),
        ({"evaluation_mode": "template_only", "outcome": "error"}, ["GenerateAnswer"], 0),
        ({"evaluation_mode": "template_only", "outcome": "error"}, [], 0),
    ],
)
def test_items_in_which_nothing_could_be_scored_are_counted(
    facts: Mapping[str, Any], trail: Sequence[str], counted: int
) -> None:
    results = [of(SCORE, 5), result(None, trail=trail, **facts)]
    (row,) = summarize(results)["models"]
    assert row["items_without_scores"] == counted
    assert row["traits"][0]["n"] == 1


def test_one_name_with_two_scales_is_two_lines() -> None:
    other = {**SCORE, "max": 10}
    lines = trait_lines([of(SCORE, 5), of(other, 10), of(SCORE, 3)])
    assert [(found["mean"], found["max"], found["n"]) for found in lines] == [(4, 5, 2), (10, 10, 1)]


def test_a_failure_without_a_scale_is_counted_with_the_only_trait_of_its_name() -> None:
    bare = result(RubricPart(llm_trait_scores={"t": None}))
    skipped = result(RubricPart(dynamic_rubric_skipped_traits={"t": "absent"}))
    found = line(of(SCORE, 5), bare, skipped)
    assert (found["n"], found["ok"], found["errors"], found["skipped"]) == (2, 1, 1, 1)


def test_nothing_scored_is_none_and_not_zero() -> None:
    assert line(failed(SCORE, "error"))["mean"] is None
    assert line(failed(BOOLEAN, "error"))["rate"] is None
    assert line(failed(METRIC, "error"))["metrics"] == {}


def test_every_model_has_its_own_lines() -> None:
    results = [
        of(SCORE, 5),
        result(RubricPart(llm_trait_scores={"t": 1}, trait_scales={"t": SCORE}), "other"),
        result(None),
    ]
    found = summarize(results)
    assert [[trait["mean"] for trait in row["traits"]] for row in found["models"]] == [[5], [1]]
    assert summarize([result(None)])["models"][0]["traits"] == []
    json.dumps(found, allow_nan=False)


CASES = st.one_of(
    st.tuples(st.just(BOOLEAN), st.lists(st.booleans(), max_size=6)),
    st.tuples(st.just(SCORE), st.lists(st.integers(1, 5), max_size=6)),
    st.tuples(st.just(LITERAL), st.lists(st.integers(0, 2), max_size=6)),
    st.tuples(
        st.just(METRIC), st.lists(st.fixed_dictionaries({"tp": st.integers(0, 3), "f1": st.floats(0, 1)}), max_size=6)
    ),
    st.tuples(
        st.just(RECORD), st.lists(st.fixed_dictionaries({"a": st.booleans(), "b": st.floats(-9, 9)}), max_size=6)
    ),
)
FAILURES = st.lists(st.sampled_from(["invalid", "missing", "error", "skipped"]), max_size=4)
SUMS = ("rate", "mean", "min", "max", "classes", "metrics")


def sums(lines: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What the scores come to, without counts; a trait that has no score yet says nothing."""
    return [(found["trait"], {key: found[key] for key in SUMS if key in found}) for found in lines if found["ok"]]


@given(CASES, FAILURES, st.randoms())
def test_an_item_whose_trait_failed_changes_no_mean(case: tuple[Any, list[Any]], states: list[str], order: Any) -> None:
    scale, values = case
    scored = [of(scale, value) for value in values]
    others = [failed(scale, state, label="grumpy" if scale is LITERAL else None) for state in states]
    mixed = [*scored, *others]
    order.shuffle(mixed)
    before, after = sums(trait_lines([r for r in mixed if r in scored])), sums(trait_lines(mixed))
    assert after == before
    due = len(values) + sum(state != "skipped" for state in states)
    assert all(found["n"] == due for found in trait_lines(mixed))
    assert all(found["errors"] == due - len(values) for found in trait_lines(mixed))


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=8), st.booleans())
def test_the_rank_of_no_class_is_in_no_sum(ranks: list[int], told: bool) -> None:
    """Also where the file does not say that the trait failed, and where its type has no labels."""
    states = {"t": {"state": "ok"}} if told else {}
    found = line(*(of({**LITERAL, "type": "callable"}, rank, trait_states=states) for rank in ranks))
    assert found["ok"] == sum(rank >= 0 for rank in ranks)
    assert sum(found["classes"].values()) == found["ok"]
    assert "-1" not in found["classes"]


@given(st.lists(st.integers(1, 5), min_size=1))
def test_a_mean_is_that_of_the_scores(values: list[int]) -> None:
    assert line(*(of(SCORE, value) for value in values))["mean"] == pytest.approx(fmean(values))


def test_numbers_that_no_float_can_hold_end_no_run() -> None:
    """A judge may reply with any number; the summary is made at the end of a run that was paid for."""
    part = RubricPart(
        rubric_evaluation_performed=True,
        llm_trait_scores={"record.n": 10**400, "record.x": 1e308},
        trait_scales={"record": {"type": "llm", "kind": "template", "higher_is_better": None}},
        trait_states={"record": {"state": "ok", "reason": ""}},
    )
    rows = {row["trait"]: row for row in trait_lines([result(part)] * 3)}
    assert rows["record.x"]["mean"] == pytest.approx(1e308)
    assert rows.get("record.n", {}).get("mean") is None
