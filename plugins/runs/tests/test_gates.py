"""Gates of a run: each passes on one side of a planted case and fails on the other, on few questions and on many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.summaries.gates import Gate, RunLimits, must_pass_ids, run_gates
from karenina_runs.summaries.rates import Planned

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.values.result import MetadataPart

MODEL, JUDGE = ModelIdentity("scripted", "m"), ModelIdentity("scripted", "j")
PAIR = (str(MODEL), str(JUDGE))
SIZES = pytest.mark.parametrize("size", [6, 60, 600])


@cache
def result(question: str, outcome: str, replicate: int = 1) -> VerificationResult:
    about = MetadataPart(
        result_id=f"{question}-{replicate}",
        question_id=question,
        question_text="Why?",
        template_id="t",
        outcome=outcome,
        replicate=replicate,
        answering=MODEL,
        parsing=JUDGE,
    )
    return VerificationResult(metadata=about)


def run(outcomes: Sequence[Sequence[str]], limits: RunLimits, **must_pass: Sequence[str]) -> tuple[Gate, ...]:
    """The gates of a run of these outcomes, question by question; "" is an item without a result."""
    replicates = max(map(len, outcomes))
    planned = Planned([f"q{i}" for i in range(len(outcomes))], range(1, replicates + 1), (PAIR,))
    results = [
        result(f"q{i}", outcome, number)
        for i, row in enumerate(outcomes)
        for number, outcome in enumerate(row, 1)
        if outcome
    ]
    return run_gates(results, planned, limits, must_pass)


def only(outcomes: Iterable[str], limits: RunLimits) -> Gate:
    (gate,) = run([[outcome] for outcome in outcomes], limits)
    return gate


def parts(size: int, passed: int, *others: str) -> list[str]:
    """So many that pass, these, and wrong ones."""
    return [*["passed"] * passed, *others, *["failed"] * (size - passed - len(others))]


@SIZES
def test_the_pass_rate_is_decided_by_the_worst_case_of_what_is_missing(size: int) -> None:
    half = RunLimits(pass_rate=0.5)
    gate = only(parts(size, size // 2), half)
    assert gate.passed
    assert f"{size // 2} of {size} items pass (50.0 %), at least 50.0 % required" in gate.message
    assert "the confidence interval of so few questions is" in gate.message
    assert not only(parts(size, size // 2 - 1), half).passed
    for missing in ("error", ""):
        assert only(parts(size, size // 2, missing), half).passed
        undecided = only(parts(size, size // 2 - 1, missing), half)
        assert not undecided.passed
        assert undecided.message.startswith("cannot be decided: ")
        failed = only(parts(size, size // 2 - 2, missing), half)
        assert not failed.passed
        assert not failed.message.startswith("cannot")


@SIZES
def test_a_drop_from_all_to_half_never_passes_silently(size: int) -> None:
    limits = RunLimits(pass_rate=0.9)
    assert only(parts(size, size), limits).passed
    assert not only(parts(size, size // 2), limits).passed


@SIZES
def test_coverage_counts_right_and_wrong_answers_of_all_that_were_planned(size: int) -> None:
    limits = RunLimits(coverage=1 - 1 / size)
    assert only(parts(size, 1, "error"), limits).passed
    assert only(parts(size, 1, ""), limits).passed
    assert not only(parts(size, 1, "error", "abstained"), limits).passed


@SIZES
def test_what_must_pass_passes_in_every_replicate(size: int) -> None:
    limits = RunLimits(must_pass=["q0"])
    rest = [["failed", "failed"]] * (size - 1)

    def gate(*outcomes: str) -> Gate:
        (found,) = run([list(outcomes), *rest], limits, q0=("q0",))
        return found

    assert gate("passed", "passed").passed
    assert gate("passed", "failed").message == f"1 of 2 items pass; not q0 with {MODEL}"
    assert not gate("passed", "failed").passed
    for missing in ("error", ""):
        assert not gate("passed", missing).passed
        assert gate("passed", missing).message.startswith("cannot be decided")
    (both,) = run([["passed"], ["passed"], ["failed"] * 1], RunLimits(), **{"keyword:x": ("q0", "q1")})
    assert (both.about, both.passed) == ("keyword:x", True)
    (both,) = run([["passed"], ["passed"], ["failed"]], RunLimits(), **{"keyword:x": ("q0", "q2")})
    assert not both.passed


@SIZES
def test_every_question_passes_often_enough(size: int) -> None:
    limits = RunLimits(per_question=(8, 10))

    def gate(passed: int, *others: str) -> Gate:
        one = parts(10, passed, *others)
        (found,) = run([one, *[["passed"] * 10] * (size - 1)], limits)
        return found

    assert gate(8).passed
    assert not gate(7).passed
    assert f"1 of {size} questions pass fewer than 8 of 10 times: q0 (7)" in gate(7).message
    assert gate(8, "error", "").passed
    assert gate(7, "error").message.startswith("cannot be decided")
    assert not gate(7, "error").passed
    assert not gate(6, "error").message.startswith("cannot")


@SIZES
def test_errors_are_counted_and_so_are_items_without_a_result(size: int) -> None:
    for limits in (RunLimits(errors=1), RunLimits(error_share=1 / size)):
        assert only(parts(size, 1, "error"), limits).passed
        assert only(parts(size, 1, ""), limits).passed
        assert not only(parts(size, 1, "error", "error"), limits).passed
        undecided = only(parts(size, 1, "error", ""), limits)
        assert not undecided.passed
        assert undecided.message.startswith("cannot be decided")
    assert only(parts(size, 1), RunLimits(errors=0)).passed
    assert not only(parts(size, 1, "error"), RunLimits(errors=0)).passed
    assert only(["error"] * size, RunLimits(error_share=1.0)).passed


OUTCOME = st.sampled_from(["passed", "failed", "abstained", "error", ""])


@given(st.lists(OUTCOME, min_size=1, max_size=12).filter(any), st.floats(0, 1), st.integers(0, 3))
def test_no_way_in_which_missing_items_could_end_undoes_a_gate_that_passed(
    outcomes: list[str], share: float, number: int
) -> None:
    limits = RunLimits(pass_rate=share, errors=number)
    gates = run([[outcome] for outcome in outcomes], limits)
    for end in ("passed", "failed", "error"):
        again = run([[outcome or end] for outcome in outcomes], limits)
        assert all(after.passed or not before.passed for before, after in zip(gates, again, strict=True))
    assert gates[0].passed == (outcomes.count("passed") >= share * len(outcomes) - 1e-9)


def test_a_pair_of_models_without_any_result_fails() -> None:
    other = ("scripted:other", str(JUDGE))
    planned = Planned(["q0"], (1,), (PAIR, other))
    gates = run_gates([result("q0", "passed")], planned, RunLimits(pass_rate=0.5, coverage=0.5))
    assert [(gate.about.split(",")[0], gate.passed) for gate in gates] == [
        *((str(MODEL), True), (str(MODEL), True)),
        *(("scripted:other", False), ("scripted:other", False)),
    ]


QUESTIONS = {"a": ["x"], "b": ["x", "y"]}


def test_what_must_pass_is_found_by_id_and_by_keyword() -> None:
    limits = RunLimits(must_pass=["b", "keyword:x", "keyword:y"])
    assert must_pass_ids(limits, QUESTIONS, 1, "template_only") == {
        "b": ("b",),
        "keyword:x": ("a", "b"),
        "keyword:y": ("b",),
    }


def test_gates_that_could_never_be_decided_are_refused_together() -> None:
    limits = RunLimits(must_pass=["bb", "keyword:xx"], per_question=(8, 10))
    with pytest.raises(ConfigError) as raised:
        must_pass_ids(limits, QUESTIONS, 3, "template_only")
    assert list(map(str, raised.value.problems)) == [
        "--must-pass: the run has no question 'bb' (did you mean 'b'?)",
        "--must-pass: no question of the run has the keyword 'xx' (did you mean 'x'?)",
        "--min-pass-per-question: 8/10 is of 10 replicates, and the run has 3; add --replicates 10",
    ]
    with pytest.raises(ConfigError, match="no item has a verdict in the mode rubric_only"):
        must_pass_ids(RunLimits(pass_rate=0.5), QUESTIONS, 1, "rubric_only")
    assert must_pass_ids(RunLimits(errors=3), QUESTIONS, 1, "rubric_only") == {}
