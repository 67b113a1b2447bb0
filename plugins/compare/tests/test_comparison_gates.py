"""Each gate on its own: what passes it, what fails it, and what it says."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from karenina_compare.comparison import Comparison, Gate, Limits, compare, gates
from karenina_compare.headline import Bounds

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import MetadataPart


def result(question: str, outcome: Any) -> VerificationResult:
    return VerificationResult(
        metadata=MetadataPart(
            question_id=question,
            template_id="t",
            result_id=question,
            question_text="?",
            answering=ModelIdentity("x", "m"),
            parsing=ModelIdentity("x", "judge"),
            replicate=1,
            outcome=outcome,
        )
    )


def equal_runs() -> Comparison:
    """Two runs of the same 20 answers, half of which pass."""
    results = [result(f"q{n:02}", "passed" if n % 2 else "failed") for n in range(20)]
    return compare(results, results)


def with_row(**facts: Any) -> Comparison:
    comparison = equal_runs()
    return evolve(comparison, rows=(evolve(comparison.rows[0], **facts),))


MODELS = "x:m, judged by x:judge"
NO_DIFFERENCE = "+0.0 pp on 20 questions, adjusted p = 1"
UNSEEN = f"{NO_DIFFERENCE}; a difference below 18.0 pp would mostly go unnoticed"
LOST = "B has significantly more answers without a value: more than A on 2 questions, less on 1, adjusted p = 0.05"
WORST = "B would be significantly worse if every answer without a value were as bad for B as it can be, adjusted p ="


@pytest.mark.parametrize(
    ("facts", "passed", "message"),
    [
        ({}, True, f"no difference found: {UNSEEN}"),
        ({"verdict": "better"}, True, f"better: {NO_DIFFERENCE}"),
        ({"verdict": "not compared"}, False, "cannot be decided: none of 20 questions has a value on both sides"),
        ({"difference": None}, False, "cannot be decided: none of 20 questions has a value on both sides"),
        (
            {"verdict": "too few pairs"},
            False,
            f"cannot be decided: no result of 20 questions could be significant ({NO_DIFFERENCE})",
        ),
        (
            {"verdict": "too few pairs", "clusters": 3},
            False,
            f"cannot be decided: no result of 20 questions in 3 groups could be significant ({NO_DIFFERENCE})",
        ),
        ({"verdict": "worse"}, False, f"significantly worse: {NO_DIFFERENCE}"),
        (
            {"verdict": "different"},
            False,
            "cannot be decided: significantly different, and which value is better is unknown; name the metrics "
            f"that decide (--metric) ({NO_DIFFERENCE})",
        ),
        ({"lost_p": 0.05, "lost": 0.25, "lost_b": 2, "lost_a": 1}, False, f"{LOST} ({NO_DIFFERENCE})"),
        ({"lost_p": 0.051, "lost": 0.25}, True, f"no difference found: {UNSEEN}"),
        ({"lost_p": 0.01, "lost": 0.0}, True, f"no difference found: {UNSEEN}"),
        ({"lost_p": 0.01, "lost": -0.25}, True, f"no difference found: {UNSEEN}"),
        (
            {"worst_known": False},
            False,
            f"cannot be decided: answers without a value, whose worst value is unknown ({NO_DIFFERENCE})",
        ),
        ({"worst_p": 0.05}, False, f"cannot be decided: {WORST} 0.05 ({NO_DIFFERENCE})"),
        ({"worst_p": 0.051}, True, f"no difference found: {UNSEEN}"),
    ],
)
def test_what_is_a_regression(facts: dict[str, Any], passed: bool, message: str) -> None:
    found = gates(with_row(**facts), Limits(no_regression=True))
    assert found == (Gate("regression", f"{MODELS}: pass_rate", passed, message),)


PARTLY = ", with the answers that have no value"


@pytest.mark.parametrize(
    ("facts", "passed", "message"),
    [
        ({"coverage": 0.5}, True, f"20 of 20 questions compared (50.0 %{PARTLY}), at least 50.0 % required"),
        ({"coverage": 0.5 - 1e-10}, True, f"20 of 20 questions compared (50.0 %{PARTLY}), at least 50.0 % required"),
        ({"coverage": 0.5 - 1e-6}, False, f"20 of 20 questions compared (50.0 %{PARTLY}), at least 50.0 % required"),
        ({"coverage": 1.0}, True, "20 of 20 questions compared (100.0 %), at least 50.0 % required"),
        (
            {"coverage": 0.5, "compared": 10},
            True,
            "10 of 20 questions compared (50.0 %), at least 50.0 % required",
        ),
        (
            {"coverage": 0.6, "compared": 1, "questions": 1},
            True,
            f"1 of 1 question compared (60.0 %{PARTLY}), at least 50.0 % required",
        ),
        (
            {"coverage": None, "compared": 0, "questions": 0},
            False,
            "0 of 0 questions compared (0.0 %), at least 50.0 % required",
        ),
    ],
)
def test_which_share_of_the_questions_must_be_compared(facts: dict[str, Any], passed: bool, message: str) -> None:
    found = gates(with_row(**facts), Limits(coverage=0.5))
    assert found == (Gate("coverage", f"{MODELS}: pass_rate", passed, message),)


def bounds(worst: float, best: float) -> Bounds:
    return Bounds(worst, best, None, None)


PASSES = "50.0 % of 20 items with a verdict pass, at least 50.0 % required"
SLIGHTLY = 1e-10


@pytest.mark.parametrize(
    ("facts", "passed", "message"),
    [
        ({}, True, PASSES),
        ({"value": 0.5 - SLIGHTLY}, True, PASSES),
        ({"value": 0.5 - 1e-6}, False, PASSES),
        ({"value": None}, False, "cannot be decided: none of 20 items has a verdict"),
        ({"bounds": bounds(0.5, 0.6)}, True, f"{PASSES}; 50.0 % if none of those without one passed (error 2)"),
        (
            {"bounds": bounds(0.5 - SLIGHTLY, 0.6)},
            True,
            f"{PASSES}; 50.0 % if none of those without one passed (error 2)",
        ),
        (
            {"bounds": bounds(0.4, 0.5)},
            False,
            f"cannot be decided: {PASSES}; 40.0 % if none of those without one passed (error 2)",
        ),
        ({"bounds": bounds(0.3, 0.4)}, False, f"{PASSES}; 30.0 % if none of those without one passed (error 2)"),
    ],
)
def test_the_worst_case_decides_the_pass_rate(facts: dict[str, Any], passed: bool, message: str) -> None:
    comparison = equal_runs()
    (numbers,) = comparison.numbers_b.pairs
    other = evolve(numbers, pass_rate=evolve(numbers.pass_rate, missing={"error": 2}, **facts))
    changed = evolve(comparison, numbers_b=evolve(comparison.numbers_b, pairs=(other,)))
    assert gates(changed, Limits(pass_rate=0.5)) == (Gate("pass rate", MODELS, passed, message),)


EVERY = Limits(no_regression=True, coverage=0.5, pass_rate=0.5)


def test_gates_come_in_one_order_and_each_is_asked_for_by_itself() -> None:
    comparison = equal_runs()
    alone = (Limits(no_regression=True), Limits(coverage=0.5), Limits(pass_rate=0.5))
    assert gates(comparison, EVERY) == tuple(gate for limits in alone for gate in gates(comparison, limits))
    assert [gate.name for gate in gates(comparison, EVERY)] == ["regression", "coverage", "pass rate"]


def test_a_model_that_only_a_has_fails_the_gates_of_rows() -> None:
    more = set(gates(evolve(equal_runs(), unpaired_a=("x:n, judged by x:judge",)), EVERY)) - set(
        gates(equal_runs(), EVERY)
    )
    assert more == {
        Gate(
            "regression",
            "x:n, judged by x:judge",
            False,
            "B has no results of it; name the models to compare (--models)",
        ),
        Gate("coverage", "x:n, judged by x:judge", False, "B has no results of it"),
    }


@pytest.mark.parametrize("within", [True, False])
def test_planned_models_without_results_fail_every_gate_that_they_could_be_in(within: bool) -> None:
    found = gates(evolve(equal_runs(), unasked_b=1, within=within), EVERY)
    reason = "cannot be decided: 1 planned item of models without any result"
    failed = [
        Gate(name, "other models", False, reason) for name in ("coverage", "pass rate") if within or name != "coverage"
    ]
    assert [gate for gate in found if not gate.passed] == failed


@pytest.mark.parametrize(("nothing", "why"), [("no model is in both", "no model is in both"), ("", "B has no items")])
def test_nothing_to_compare_fails_every_gate(nothing: str, why: str) -> None:
    comparison = equal_runs()
    empty = evolve(comparison, rows=(), nothing=nothing, numbers_b=evolve(comparison.numbers_b, pairs=()))
    reasons = [f"cannot be decided: {text}" for text in (nothing, nothing, why)]
    names = ("regression", "coverage", "pass rate")
    assert gates(empty, EVERY) == tuple(
        Gate(name, "all models", False, text) for name, text in zip(names, reasons, strict=True)
    )


SIZES = pytest.mark.parametrize("size", [6, 60, 600])


def passing(size: int, passed: int, *missing: str) -> list[VerificationResult]:
    """So many that pass, then some without a verdict, then wrong ones."""
    outcomes = [*["passed"] * passed, *missing, *["failed"] * (size - passed - len(missing))]
    return [result(f"q{n:03}", outcome) for n, outcome in enumerate(outcomes)]


def of_drop(size: int, passed: int, *missing: str, **limits: Any) -> Gate:
    """Everything passed before."""
    (gate,) = gates(compare(passing(size, size), passing(size, passed, *missing)), Limits(**limits))
    return gate


@SIZES
def test_a_drop_from_all_to_half_never_passes_silently(size: int) -> None:
    half = of_drop(size, size // 2, no_regression=True)
    assert not half.passed
    assert ("cannot be decided" in half.message) == (size == 6)
    if size == 6:
        assert "a difference below 68.9 pp would mostly go unnoticed" in half.message
    same = of_drop(size, size, no_regression=True)
    assert same.passed
    assert "would mostly go unnoticed" in same.message


@pytest.mark.parametrize(
    ("undecided", "passed", "warns"), [("fail", False, False), ("warn", True, True), ("pass", True, False)]
)
@pytest.mark.parametrize("too_few", [(6, 3), (5, 0)])
def test_the_configuration_decides_where_there_are_too_few_questions(
    undecided: Any, passed: bool, warns: bool, too_few: tuple[int, int]
) -> None:
    gate = of_drop(*too_few, no_regression=True, undecided=undecided)
    assert (gate.passed, gate.warns) == (passed, warns)
    assert gate.message.startswith("cannot be decided: ")
    assert ("[plugins.compare]" in gate.message) == passed


@SIZES
def test_no_setting_lets_pass_what_is_missing_or_significant(size: int) -> None:
    for undecided in ("warn", "pass"):
        anything: Any = {"no_regression": True, "undecided": undecided, "tolerated_drop": 1.0}
        assert not of_drop(size, 0, **anything).passed
        assert not of_drop(size, 0, *["error"] * size, **anything).passed


def test_how_much_may_be_lost_before_few_questions_are_undecided() -> None:
    assert of_drop(6, 5, no_regression=True, tolerated_drop=1 / 6).passed
    assert not of_drop(6, 5, no_regression=True, tolerated_drop=1 / 6 - 1e-6).passed
    assert of_drop(30, 27, no_regression=True).passed
    assert not of_drop(30, 26, no_regression=True).passed


@SIZES
def test_the_drop_is_limited_in_the_worst_case_of_what_is_missing(size: int) -> None:
    third: Any = {"max_drop": 1 / 3}
    gate = of_drop(size, size * 2 // 3, **third)
    assert gate.passed
    assert f"-33.3 pp on {size} questions (" in gate.message
    assert "a drop of at most 33.3 pp allowed" in gate.message
    failed = of_drop(size, size * 2 // 3 - 1, **third)
    assert (failed.passed, "cannot be decided" in failed.message) == (False, False)
    assert of_drop(size, size * 2 // 3, "error", **third).passed
    undecided = of_drop(size, size - size // 3 - 1, "error", "error", **third)
    assert not undecided.passed
    assert of_drop(size, size, max_drop=0.0).passed
    assert gates(compare(passing(size, 0), passing(size, size)), Limits(max_drop=0.0))[0].passed


def test_a_drop_that_cannot_be_decided_fails() -> None:
    for facts, why in (
        ({"difference": None}, "none of 20 questions has a value on both sides"),
        ({"higher_is_better": None}, "which value is better is unknown"),
        ({"worst_known": False}, "the worst value of answers without one is unknown"),
        ({"worst_asked": -0.6}, "-60.0 pp if every answer without a value were as bad for B as it can be"),
    ):
        (gate,) = gates(with_row(**facts), Limits(max_drop=0.5))
        assert (gate.passed, gate.message.startswith("cannot be decided: "), why in gate.message) == (False, True, True)
    (falling,) = gates(with_row(higher_is_better=False, difference=0.6), Limits(max_drop=0.5))
    assert not falling.passed
    only = evolve(equal_runs(), unpaired_a=("x:n, judged by x:judge",))
    assert [gate.passed for gate in gates(only, Limits(max_drop=0.5))] == [True, False]


def test_scores_that_do_not_vary_say_what_would_go_unnoticed() -> None:
    (gate,) = gates(with_row(detectable=None, noticeable=6, is_rate=False), Limits(no_regression=True))
    assert "fewer than 6 questions that differ would go unnoticed" in gate.message
