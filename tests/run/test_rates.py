"""Counts and rates: errors are in no denominator and always in the counts; intervals are Wilson's."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.model.result import GenerationPart, MetadataPart
from karenina_core.run.prepare import LeftOut
from karenina_core.run.results import VerificationResultSet
from karenina_core.run.summary import rates, summarize, wilson

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
    found = wilson(successes, trials)
    assert found == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_proportion(case: tuple[int, int]) -> None:
    successes, trials = case
    found = wilson(successes, trials)
    assert found is not None
    low, high = found
    assert 0.0 <= low <= successes / trials + 1e-12
    assert successes / trials - 1e-12 <= high <= 1.0
    mirrored = wilson(trials - successes, trials)
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_without_trials_there_is_no_interval() -> None:
    assert wilson(0, 0) is None


COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 50)).map(Counter)


@given(COUNTS)
def test_the_published_formulas(counts: Counter[str]) -> None:
    found = rates(counts)
    decided = sum(counts[name] for name in ("passed", "failed", "auto_failed", "abstained", "insufficient"))
    answered = counts["passed"] + counts["failed"]
    items = sum(counts.values())
    assert found["pass_rate"] == (counts["passed"] / decided if decided else None)
    assert found["answered_accuracy"] == (counts["passed"] / answered if answered else None)
    assert found["coverage"] == (answered / items if items else None)
    assert (found["pass_rate_low"], found["pass_rate_high"]) == (wilson(counts["passed"], decided) or (None, None))


@given(COUNTS, st.integers(0, 9))
def test_errors_change_coverage_and_nothing_else(counts: Counter[str], errors: int) -> None:
    before, after = rates(counts), rates(counts + Counter(error=errors))
    assert {k: v for k, v in before.items() if k != "coverage"} == {k: v for k, v in after.items() if k != "coverage"}


def result(outcome: str = "passed", detail: str | None = None, model: str = "m", **usage: Any) -> VerificationResult:
    me = ModelIdentity("x", model)
    return VerificationResult(
        metadata=MetadataPart(
            question_id="q",
            template_id="t",
            result_id="r",
            question_text="Why?",
            answering=me,
            parsing=ModelIdentity("x", "judge"),
            outcome=outcome,  # type: ignore[arg-type]  # a name of the list above
            outcome_detail=detail,
        ),
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
    found = summarize(results, left_out=[LeftOut("q9", "not finished")], notes=["x falls back to y"])
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
