"""Counts and rates: errors are in no denominator and always in the counts; a question is a cluster of its items."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.secrets.incoming import removal_note
from karenina_runs.plan.items import LeftOut
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.intervals import Clusters, cluster_rate, mean_of, rate_of, t_quantile, wilson
from karenina_runs.summaries.rates import DECIDED, Planned, rates_of
from karenina_runs.summaries.summary import Tally, spent, summarize
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.explanations import failure_kind
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import GenerationPart, MetadataPart

NAMES = ("passed", "failed", "scored", "auto_failed", "abstained", "insufficient", "error", "skipped")


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Values of the score interval without continuity correction at 95 %.
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        (1, 10, 0.017876, 0.404150),
        (5, 10, 0.236593, 0.763407),
        (81, 263, 0.255289, 0.366211),
        (15, 148, 0.062390, 0.160533),
        (1, 29, 0.006113, 0.171755),
    ],
)
def test_known_intervals(successes: int, trials: int, low: float, high: float) -> None:
    found = rate_of(Clusters.of([(1, 1)] * successes + [(0, 1)] * (trials - successes))).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_proportion(case: tuple[int, int]) -> None:
    successes, trials = case
    found = wilson(successes / trials, trials)
    low, high = found.low, found.high
    assert 0.0 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1.0
    mirrored = wilson(1 - successes / trials, trials)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - high, 1 - low))


def test_without_trials_there_is_no_interval() -> None:
    assert rate_of(Clusters()).interval is rate_of(Clusters.of([(0, 0)])).value is None


COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9)).map(Counter)


def of_questions(counts: Counter[str], **more: Any) -> list[VerificationResult]:
    """So many results of each outcome, each of a question of its own."""
    return [result(name, question=f"{name} {n}", **more) for name, often in counts.items() for n in range(often)]


@given(COUNTS)
def test_the_published_formulas(counts: Counter[str]) -> None:
    found = rates_of(of_questions(counts))
    decided = sum(counts[name] for name in DECIDED)
    answered, due = counts["passed"] + counts["failed"], sum(counts.values()) - counts["scored"]
    assert found["pass_rate"] == (counts["passed"] / decided if decided else None)
    assert found["answered_accuracy"] == (counts["passed"] / answered if answered else None)
    assert found["coverage"] == (answered / due if due else None)
    interval = wilson(counts["passed"] / decided, decided) if decided else None
    limits = (interval.low, interval.high) if interval else (None, None)
    assert (found["pass_rate_low"], found["pass_rate_high"]) == limits


@given(COUNTS)
def test_no_rate_is_taken_where_no_verdict_is_due(counts: Counter[str]) -> None:
    found = rates_of(of_questions(counts, mode="rubric_only"))
    assert found == dict.fromkeys(found) | {"has_parts": False}


@given(COUNTS, COUNTS)
def test_items_without_a_due_verdict_change_no_rate(counts: Counter[str], others: Counter[str]) -> None:
    mixed = [*of_questions(others, mode="rubric_only"), *of_questions(counts)]
    assert rates_of(mixed) == rates_of(of_questions(counts))


@given(COUNTS, st.integers(0, 9))
def test_errors_change_coverage_and_nothing_else(counts: Counter[str], errors: int) -> None:
    before, after = rates_of(of_questions(counts)), rates_of(of_questions(counts + Counter(error=errors)))
    assert {k: v for k, v in before.items() if k != "coverage"} == {k: v for k, v in after.items() if k != "coverage"}


# Items of one question


def test_replicates_of_a_question_are_not_independent() -> None:
    """Ten questions, of which five are always right, twenty times: as sure as ten answers, not as two hundred."""
    names = ["passed"] * 5 + ["failed"] * 5
    found = rates_of(result(name, question=f"q{n}", replicate=r) for n, name in enumerate(names) for r in range(20))
    assert [round(found[f"pass_rate{end}"], 3) for end in ("", "_low", "_high")] == [0.5, 0.199, 0.801]


def test_judges_of_one_answer_are_not_independent_either() -> None:
    judged = [result("passed" if n < 5 else "failed", question=f"q{n}", judge=j) for n in range(10) for j in "abcd"]
    summary = summarize(judged)
    (replicate,) = summary["replicate_stats"]
    assert replicate["pass_rate_low"] == rate_of(Clusters.of([(4, 4)] * 5 + [(0, 4)] * 5)).interval.low  # type: ignore[union-attr]
    assert replicate["pass_rate_low"] < summary["models"][0]["pass_rate_low"]


CLUSTERS = st.lists(st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=30)


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_the_order_of_questions_changes_no_digit(clusters: list[tuple[int, int]], rng: Any) -> None:
    mixed = list(clusters)
    rng.shuffle(mixed)
    assert rate_of(Clusters.of(mixed)) == rate_of(Clusters.of(clusters))
    assert mean_of(Clusters.of(mixed), 7) == mean_of(Clusters.of(clusters), 7)


@given(CLUSTERS)
def test_more_of_the_same_answers_make_nothing_surer(clusters: list[tuple[int, int]]) -> None:
    once = cluster_rate(Clusters.of(clusters))
    thrice = cluster_rate(Clusters.of((3 * k, 3 * n) for k, n in clusters))
    assert once.value == thrice.value
    spread = (once.value or 0) * (1 - (once.value or 0))
    if once.interval and thrice.interval and once.standard_error and spread / once.standard_error**2 <= once.n:
        assert (thrice.interval.low, thrice.interval.high) == pytest.approx((once.interval.low, once.interval.high))


@pytest.mark.parametrize(
    ("probability", "df", "quantile"),
    [
        # Tables of Student's t; df = 1 is the tangent of pi (p - 1/2), df = 2 has a closed form.
        (0.975, 1, 12.7062047364),
        (0.975, 2, 4.30265272991),
        (0.975, 9, 2.26215716280),
        (0.975, 30, 2.04227245630),
        (0.95, 5, 2.01504837333),
        (0.995, 120, 2.61742114477),
        (0.025, 9, -2.26215716280),
        (0.5, 3, 0.0),
        (0.975, 99_999, 1.95998771),
    ],
)
def test_quantiles_of_students_t(probability: float, df: float, quantile: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(quantile, abs=1e-8)


@pytest.mark.parametrize("df", [1, 2, 3, 7.5, 40, 1000, 100_000])
@pytest.mark.parametrize("probability", [0.501, 0.6, 0.8, 0.95, 0.975, 0.9995, 0.999999])
def test_quantiles_of_students_t_are_those_of_scipy(probability: float, df: float) -> None:
    from scipy.special import stdtrit

    assert t_quantile(probability, df) == pytest.approx(float(stdtrit(df, probability)), rel=1e-8)


# Partial credit


def test_partial_credit_is_the_mean_of_what_items_earn() -> None:
    results = [
        result("passed", question="a", granular=1.0),
        result("failed", question="b", granular=0.75),
        result("failed", question="c"),
        result("auto_failed", question="d", granular=0.5),
        result("error", question="e", granular=0.25),
    ]
    found = rates_of(results)
    assert (found["partial_credit"], found["has_parts"]) == (1.75 / 4, True)
    assert (found["partial_credit_low"], found["partial_credit_high"]) == (0.0, 1.0)  # cut at the ends of the scale
    by_pattern = template(verify_granular_result=1.0, regex_overall_success=False)
    found = rates_of([by_pattern])
    assert (found["partial_credit"], found["has_parts"]) == (0.0, False)
    grades = [result("failed", question=f"q{n}", granular=0.5 + n / 100) for n in range(3)]
    half = 4.30265273 * 0.01 / 3**0.5  # Student's t of two degrees of freedom, s = 0.01
    found = rates_of(grades)
    assert (found["partial_credit_low"], found["partial_credit_high"]) == pytest.approx((0.51 - half, 0.51 + half))
    assert rates_of([result("passed"), result("failed")])["has_parts"] is False


def result(
    outcome: str = "passed",
    detail: str | None = None,
    model: str = "m",
    *,
    question: str = "q",
    judge: str = "judge",
    replicate: int = 1,
    mode: str = "template_only",
    granular: float | None = None,
    **usage: Any,
) -> VerificationResult:
    me = ModelIdentity("x", model)
    return VerificationResult(
        metadata=MetadataPart(
            question_id=question,
            template_id="t",
            result_id="r",
            question_text="Why?",
            answering=me,
            parsing=ModelIdentity("x", judge),
            replicate=replicate,
            evaluation_mode=mode,
            outcome=outcome,  # type: ignore[arg-type]  # a name of the list above
            outcome_detail=detail,
        ),
        template=TemplatePart(verify_granular_result=granular),
        generation=GenerationPart(usage_metadata={"total": usage} if usage else {}),
    )


def test_the_summary_of_a_run() -> None:
    results = [
        result(attempts=2, cost_usd=0.5),
        result("failed", attempts=3, cost_usd=0.25),
        result("error", "judge", attempts=1, cost_usd=0.0),
        result("error", "judge"),
        result("error"),
        result("abstained", model="other"),
    ]
    whole = VerificationResultSet(results, left_out=(LeftOut("q9", "not finished"),), notes=("x falls back to y",))
    found = whole.get_summary()
    assert {**found, "left_out": [], "notes": []} == summarize(results) | {"canaries": None}
    assert found["outcomes"] == {"passed": 1, "failed": 1, "error": 3, "abstained": 1}
    assert (found["calls"], found["cost_usd"]) == (6, 0.75)
    assert found["left_out"] == [{"question_id": "q9", "reason": "not finished"}]
    assert found["notes"] == ["x falls back to y"]
    first, second = found["models"]
    assert (first["answering"], first["parsing"], first["items"]) == ("x:m", "x:judge", 5)
    assert first["errors"] == {"judge": 2, "unknown": 1}
    assert (first["pass_rate"], first["coverage"]) == (0.5, 0.4)
    assert (second["answering"], second["pass_rate"], second["answered_accuracy"]) == ("x:other", 0.0, None)
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("costs", "expected"), [([], 0.0), ([0.5, 0.25], 0.75), ([0.5, None], None), ([None], None), ([0.0], 0.0)]
)
def test_an_unknown_price_makes_the_sum_unknown(costs: list[float | None], expected: float | None) -> None:
    assert summarize([result(attempts=1, cost_usd=cost) for cost in costs])["cost_usd"] == expected


@pytest.mark.parametrize(("untold", "expected"), [([], False), ([False, None], False), ([False, True], True)])
def test_a_run_says_that_nobody_told_what_some_call_took(untold: list[bool | None], expected: bool) -> None:
    results = [result(attempts=1, cost_usd=None, usage_unavailable=one) for one in untold]
    assert summarize(results)["usage_unavailable"] is expected


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from("ab")), max_size=20))
def test_counts_add_up(rows: list[tuple[str, str]]) -> None:
    found = summarize([result(outcome, model=model) for outcome, model in rows])
    assert sum(found["outcomes"].values()) == len(rows)
    assert sum(row["items"] for row in found["models"]) == len(rows)
    assert sum((Counter(row["outcomes"]) for row in found["models"]), Counter()) == Counter(found["outcomes"])
    assert sum(sum(row["errors"].values()) for row in found["models"]) == found["outcomes"].get("error", 0)


@pytest.mark.parametrize(
    ("usage", "calls", "failed", "unknown"),
    [
        ({"replies": 2, "attempts": 5, "unknown_cost_attempts": 1}, 2, 3, 1),
        ({"attempts": 3}, 3, 0, 0),
        ({"replies": 2}, 2, 0, 0),
        ({"replies": 1, "attempts": "many", "unknown_cost_attempts": None}, 1, 0, 0),
    ],
)
def test_attempts_without_a_reply_are_no_calls(usage: dict[str, Any], calls: int, failed: int, unknown: int) -> None:
    found = summarize([result(**usage), result(**usage)])
    counted = [found[name] for name in ("calls", "failed_attempts", "unknown_cost_attempts")]
    assert counted == [2 * calls, 2 * failed, 2 * unknown]


def test_tokens_of_each_model_add_up_to_those_of_all() -> None:
    def used(model: str, number: int) -> VerificationResult:
        row = {"calls": 1, "input_tokens": number, "output_tokens": 2, "total_tokens": number + 2}
        return evolve(result(model=model), generation=GenerationPart(usage_metadata={"parsing": row, "total": row}))

    found = summarize([used("m", 10), used("n", 30), used("m", 100)])
    assert [row["tokens"] for row in found["models"]] == [
        {"input": 110, "output": 4, "total": 114},
        {"input": 30, "output": 2, "total": 32},
    ]
    assert found["tokens"] == {"input": 140, "output": 6, "total": 146}


def test_models_come_in_the_order_that_is_asked_for_and_others_after_them() -> None:
    tally = Tally(Planned(["q"], pairs=(("x:b", "x:judge"), ("x:a", "x:judge"))))
    for model in "dcab":
        tally.add(result(model=model))
    assert [row["answering"] for row in tally.document()["models"]] == ["x:b", "x:a", "x:d", "x:c"]


@pytest.mark.parametrize(
    ("planned", "absent"), [(Planned((), ()), 0), (Planned(["q"]), 0), (Planned(["q", "other"], range(1, 4)), 5)]
)
def test_planned_items_without_a_result_are_absent(planned: Planned, absent: int) -> None:
    tally = Tally(planned=planned)
    tally.add(result())
    (row,) = tally.document()["models"]
    assert (row["items"], row["absent"]) == (1, absent)


def test_every_replicate_has_its_counts_its_rates_and_what_is_absent() -> None:
    """Two pairs of models answer two questions, twice each; the second time, one of them answers one only."""
    pairs = (("x:m", "x:a"), ("x:m", "x:b"))
    tally = Tally(Planned(["q", "other"], range(1, 3), pairs))
    for judge in "ab":
        for question in ("q", "other"):
            tally.add(result(question=question, judge=judge, replicate=1))
    tally.add(result("failed", judge="a", replicate=2))
    first, second = tally.document()["replicate_stats"]
    assert (first["replicate"], first["items"], first["absent"], first["pass_rate"]) == (1, 4, 0, 1.0)
    assert (second["replicate"], second["items"], second["absent"], second["pass_rate"]) == (2, 1, 3, 0.0)
    assert (first["outcomes"], second["outcomes"]) == ({"passed": 4}, {"failed": 1})
    assert tally.absent == sum(row["absent"] for row in tally.document()["models"]) == 3


def test_a_removed_secret_is_named_with_the_number_of_its_items() -> None:
    held = result()
    held = evolve(held, metadata=evolve(held.metadata, warnings=(removal_note(["A_TOKEN", "B_KEY"]),)))
    notes = summarize([held, result(), held])["notes"]
    assert [note.partition(" from")[0] for note in notes] == [
        "the value of A_TOKEN was removed",
        "the value of B_KEY was removed",
    ]
    assert all("of 2 items" in note for note in notes)
    assert summarize([result()])["notes"] == []


def test_planned_models_and_replicates_without_any_result_are_absent_too() -> None:
    pairs = (("x:m", "x:judge"), ("x:n", "x:judge"))
    tally = Tally(Planned(["q", "other"], range(1, 4), pairs))
    tally.add(result(replicate=2))
    found = tally.document()
    assert [(row["answering"], row["items"], row["absent"]) for row in found["models"]] == [
        ("x:m", 1, 5),
        ("x:n", 0, 6),
    ]
    told = [(row["replicate"], row["items"], row["absent"]) for row in found["replicate_stats"]]
    assert told == [(1, 0, 4), (2, 1, 3), (3, 0, 4)]
    assert (tally.absent, found["num_models"], found["num_replicates"]) == (11, 1, 1)


def test_what_a_run_paid_for_is_what_its_ledger_says() -> None:
    total = {
        **{"calls": 7, "failed": 2, "unknown_cost_attempts": 1, "cost_usd": 0.5, "reused": 3},
        **{"input_tokens": 20, "output_tokens": 10, "total_tokens": 30},
    }
    paid = {
        **{"calls": 7, "failed_attempts": 2, "unknown_cost_attempts": 1, "cost_usd": 0.5},
        "tokens": {"input": 20, "output": 10, "total": 30},
    }
    ledger = {"total": {**total, "reused_cost_usd": 0.25}}
    assert spent(ledger) == {"reused_calls": 3, "reused_cost_usd": 0.25, "paid": paid}
    assert spent({"total": total}) == {"reused_calls": 3, "reused_cost_usd": None, "paid": paid}
    assert spent(ledger).items() <= Tally().document(ledger=ledger).items()


@pytest.mark.parametrize("ledger", [None, {}, {"total": None}])
def test_where_nothing_kept_the_calls_what_was_paid_is_unknown(ledger: Any) -> None:
    assert spent(ledger) == {"reused_calls": None, "reused_cost_usd": None, "paid": None}


def test_an_empty_summary_has_no_times_and_no_folder() -> None:
    found = Tally().document()
    assert (found["run_dir"], found["left_out"], found["notes"], found["models"]) == (None, [], [], [])
    assert not {"total_execution_time", "seconds"} & set(found)
    assert Tally().document(run_dir=Path("runs/one"))["run_dir"] == "runs/one"


# Sets of results


def test_filters_hold_together() -> None:
    results = VerificationResultSet(
        [result(), result("failed"), result(model="other"), result("failed", model="other")]
    )
    assert len(results.filter(outcomes=["failed"])) == 2
    assert len(results.filter(outcomes=["failed"], answering_models=["x:other"])) == 1
    assert len(results.filter(question_ids=["nobody"])) == 0
    assert (
        len(results.filter(replicates=[1], parsing_models=["x:judge"], where=lambda r: r.metadata.outcome == "passed"))
        == 2
    )
    assert results.filter() == results


def test_a_set_is_a_sequence() -> None:
    results = VerificationResultSet([result(), result("failed")], left_out=(LeftOut("q", "r"),))
    assert (len(results), results[1].metadata.outcome, results[-1]) == (2, "failed", results[1])
    part = results[:1]
    assert isinstance(part, VerificationResultSet)
    assert (list(part), part.left_out) == ([results[0]], results.left_out)
    assert list(iter(results)) == list(results.results)


def test_models_are_chosen_by_their_identity_or_by_their_own_name() -> None:
    results = VerificationResultSet([result(model="gpt-x"), result(model="gpt-y", judge="wise")])
    assert (
        list(results.filter(answering_models="gpt-x"))
        == list(results.filter(answering_models="x:gpt-x"))
        == [results[0]]
    )
    assert list(results.filter(answering_models=["gpt-x", "x:gpt-y"])) == list(results)
    assert list(results.filter(parsing_models="wise")) == [results[1]]
    with pytest.raises(ValueError, match=r"no result has the answering model 'gpt-z'.*available: x:gpt-x, x:gpt-y"):
        results.filter(answering_models="gpt-z")
    with pytest.raises(ValueError, match="no result has the parsing model 'gpt-x'"):
        results.filter(parsing_models=["gpt-x"])
    assert list(VerificationResultSet().filter(answering_models="gpt-x")) == []


# What was wrong


def _list(found: list[str], fields: dict[str, bool | None] | None) -> dict[str, Any]:
    return {"field_results": fields, "parsed_gt_response": {"x": ["A", "B"]}, "parsed_llm_response": {"x": found}}


def template(**facts: Any) -> VerificationResult:
    return evolve(result("failed"), template=TemplatePart(**facts))


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"field_results": {"x": None}}, "not_found"),
        ({"field_results": {"x": True, "y": None}}, "not_found"),
        ({"field_results": {"x": False, "y": None}}, "wrong"),
        ({"field_results": {"x": True}}, "wrong"),  # then something else has failed it
        ({"field_results": {"x": None}, "regex_overall_success": False}, "wrong"),
        ({"field_results": {"x": None}, "regex_overall_success": True}, "not_found"),
        # A verify() of the author's own says nothing of fields.
        ({"parsed_gt_response": {"x": 1, "y": 2}, "parsed_llm_response": {"x": 1, "y": None}}, "not_found"),
        ({"parsed_gt_response": {"x": 1, "y": 2}, "parsed_llm_response": {"x": 3, "y": None}}, "wrong"),
        ({"parsed_gt_response": {"x": None}, "parsed_llm_response": {"x": 3}}, "wrong"),
        ({"parsed_gt_response": {"x": 1}, "parsed_llm_response": {"x": 1}}, "wrong"),
        ({}, "wrong"),
        # An empty list for one with items says nothing.
        (_list([], {"x": False}), "not_found"),
        (_list([], {"x": None, "y": True}), "not_found"),
        (_list([], {"x": False, "y": False}), "wrong"),
        (_list(["A"], {"x": False}), "wrong"),
        (_list([], None), "not_found"),
        ({**_list([], {"x": False}), "parsed_gt_response": {"x": []}}, "wrong"),
    ],
)
def test_nothing_found_is_not_something_wrong(facts: dict[str, Any], kind: str) -> None:
    assert failure_kind(template(**facts)) == kind
    assert summarize([template(**facts)])["models"][0]["failures"] == {kind: 1}


@pytest.mark.parametrize("outcome", [name for name in NAMES if name != "failed"])
def test_only_failed_answers_have_something_wrong_with_them(outcome: str) -> None:
    assert failure_kind(result(outcome)) is None


# Caveats and types of traits that failed


def test_caveats_are_counted_for_each_model_and_for_all() -> None:
    odd = evolve(result(), metadata=evolve(result().metadata, caveats=("odd",), retry_counts={"server": 1}))
    found = summarize(
        [odd, odd, result(), evolve(odd, metadata=evolve(odd.metadata, answering=ModelIdentity("x", "n")))]
    )
    assert [row["caveats"] for row in found["models"]] == [{"odd": 2, "retries_used": 2}, {"odd": 1, "retries_used": 1}]
    assert found["caveats"] == {"odd": 3, "retries_used": 3}


def scored(**states: str) -> VerificationResult:
    """Traits of the type `llm`, one of them called `cited` of the type `regex`."""
    types = {name: "regex" if name == "cited" else "llm" for name in states}
    scores = {name: True if state == "ok" else None for name, state in states.items() if state != "skipped"}
    part = RubricPart(
        llm_trait_scores={name: score for name, score in scores.items() if types[name] == "llm"},
        regex_trait_scores={name: score for name, score in scores.items() if types[name] == "regex"},
        trait_scales={name: {"type": types[name], "kind": "boolean"} for name in states},
        trait_states={name: {"state": state, "reason": ""} for name, state in states.items()},
    )
    return evolve(result(mode="template_and_rubric"), rubric=part)


@pytest.mark.parametrize(
    ("results", "failed"),
    [
        ([scored(a="error", cited="ok"), scored(a="invalid", b="missing", cited="ok")], "llm traits failed (3 scores)"),
        ([scored(cited="error", a="ok")], "regex traits failed (1 score)"),
        ([scored(a="error"), scored(a="ok")], None),
        ([scored(a="skipped")], None),
        ([scored(a="ok")], None),
    ],
)
def test_a_type_of_trait_without_any_score_is_told(results: list[VerificationResult], failed: str | None) -> None:
    found = summarize(results)
    assert found["notes"] == ([f"every score of the {failed}: x:m, judged by x:judge"] if failed else [])


def test_items_without_scores_are_those_whose_traits_all_failed_too() -> None:
    results = [scored(a="error", b="invalid"), scored(a="error", b="ok"), scored(a="skipped"), scored(a="missing")]
    assert summarize(results)["models"][0]["items_without_scores"] == 2


# Memory


@pytest.mark.parametrize("each", [1, 3])
def test_a_question_with_all_its_items_takes_no_memory_any_more(each: int) -> None:
    """A hundred thousand questions must not make a run larger. A dictionary alone has fifty bytes for each of them."""
    number = 4000
    names = [f"q{n}" for n in range(number)]
    made = [result(question="", outcome="passed" if n % 3 else "failed", replicate=n + 1) for n in range(each)]
    tally = Tally(Planned(dict.fromkeys(names), range(1, each + 1), (("x:m", "x:judge"),)))
    for found in made:  # what is kept of replicates, models and outcomes is there before it is measured
        tally.add(evolve(found, metadata=evolve(found.metadata, question_id=names[0])))
    tracemalloc.start()
    for name in names[1:]:
        for found in made:
            tally.add(evolve(found, metadata=evolve(found.metadata, question_id=name)))
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken / number < 5
    summary = tally.document()
    assert (summary["num_questions"], summary["num_results"], tally.absent) == (number, number * each, 0)


PLANS = st.integers(1, 4).flatmap(
    lambda questions: st.tuples(
        st.just(questions), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False)
    )
)


@given(PLANS)
def test_what_is_folded_away_gives_the_same_numbers(plan: tuple[int, int, int, Any]) -> None:
    """The same results in any order, some of them missing: with the plan and without it."""
    questions, replicates, models, rng = plan
    listed = [
        result(
            rng.choice(DECIDED), question=f"q{q}", replicate=r + 1, model=f"m{m}", granular=rng.choice([None, 0.5, 0.3])
        )
        for q in range(questions)
        for r in range(replicates)
        for m in range(models)
    ]
    rng.shuffle(listed)
    kept = listed[: rng.randint(1, len(listed))]
    pairs = tuple((f"x:m{m}", "x:judge") for m in range(models))
    planned, free = Tally(Planned([f"q{q}" for q in range(questions)], range(1, replicates + 1), pairs)), Tally()
    for found in kept:
        planned.add(found)
        free.add(found)
    named = {(row["answering"], row["parsing"]): row for row in planned.document()["models"] if row["items"]}
    for row in free.document()["models"]:
        own = named.pop((row["answering"], row["parsing"]))
        assert {name: own[name] for name in row if name not in ("absent", "coverage")} == {
            name: value for name, value in row.items() if name not in ("absent", "coverage")
        }
        assert own["absent"] == questions * replicates - own["items"]
    assert not named
    stats = {row["replicate"]: row for row in planned.document()["replicate_stats"]}
    for row in free.document()["replicate_stats"]:
        names = ("pass_rate", "pass_rate_low", "partial_credit", "partial_credit_low", "outcomes", "items")
        assert [stats[row["replicate"]][name] for name in names] == [row[name] for name in names]
    assert planned.document()["num_questions"] == free.document()["num_questions"]
    assert planned.absent == len(listed) - len(kept)
