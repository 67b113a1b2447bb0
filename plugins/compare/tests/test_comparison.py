"""Comparisons: laws that hold for all data, planted differences and noise, and what is reported of missing items."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_compare.comparison import Comparison, Limits, Pair, Row, compare, compare_models, gates
from karenina_compare.comparison.compare import ties_among
from karenina_compare.comparison.rows import Facing, judged
from karenina_compare.comparison.rows import row as row_of
from karenina_compare.comparison.sides import Seen, Side, matched
from karenina_compare.comparison.wording import changed, changes, notes_on
from karenina_compare.measures import PASS_RATE, Item
from karenina_compare.statistics import (
    detectable_difference,
    holm,
    mcnemar,
    paired_bootstrap,
    paired_rate_difference,
    paired_test,
    permutation_test,
    wilson,
)
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import ConfigError
from karenina_core.values.result import GenerationPart, MetadataPart

LAW = settings(
    max_examples=settings().max_examples // 2,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


def result(
    question: str = "q", model: str = "m", replicate: int = 1, outcome: Any = "passed", **parts: Any
) -> VerificationResult:
    metadata = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{model}-{replicate}",
        question_text=f"What is {question}?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        replicate=replicate,
        outcome=outcome,
        completed_without_errors=outcome != "error",
    )
    return VerificationResult(metadata=evolve(metadata, **parts.pop("metadata", {})), **parts)


def run(passes: Any, **facts: Any) -> list[VerificationResult]:
    """A result a question, passed where the value is true, an error where it is None."""
    names = ["error" if value is None else "passed" if value else "failed" for value in passes]
    return [result(f"q{place:04}", outcome=name, **facts) for place, name in enumerate(names)]


def score(value: int, question: str, **facts: Any) -> VerificationResult:
    scale = {"type": "llm", "kind": "score", "min": 0, "max": 10, "higher_is_better": True, **facts.pop("scale", {})}
    part = RubricPart(llm_trait_scores={"clarity": value}, trait_scales={"clarity": scale})
    return result(question, rubric=part, **facts)


def only(comparison: Comparison) -> Row:
    assert len(comparison.rows) == 1
    return comparison.rows[0]


SMALL = st.builds(
    result,
    st.sampled_from("abcdefgh"),
    st.sampled_from(["m", "n"]),
    st.integers(1, 2),
    st.sampled_from(["passed", "passed", "failed", "failed", "error", "abstained", "scored", "skipped"]),
)
RESULTS = st.lists(SMALL, max_size=24, unique_by=lambda r: r.metadata.result_id)
CLUSTERS = {"a": 1, "b": 1, "c": 2, "d": 2}
GROUPS = st.sampled_from([None, CLUSTERS])


# Laws


@LAW
@given(RESULTS, GROUPS)
def test_a_run_compared_with_itself_has_no_difference(results: list[VerificationResult], cluster: Any) -> None:
    same = compare(results, results, cluster=cluster, metrics=())
    assert not same.flipped
    assert same.only_a == same.only_b == same.unpaired_a == same.unpaired_b == ()
    for row in same.rows:
        assert row.difference in (0, None)
        assert row.p_value in (1, None)
        assert row.verdict in ("no difference found", "too few pairs", "not compared")
        assert row.a == row.b


def mirrored(row: Row) -> Row:
    """The row as it would be if A were B."""
    minus = {"difference": row.difference and -row.difference, "interval": turned(row.interval)}
    verdict: Any = {"worse": "better", "better": "worse"}.get(row.verdict, row.verdict)
    questions = tuple(evolve(q, a=q.b, b=q.a, missing_a=q.missing_b, missing_b=q.missing_a) for q in row.by_question)
    sides: dict[str, Any] = {"a": row.b, "b": row.a, "replicates": row.replicates[::-1]}
    sides |= {"missing_a": row.missing_b, "missing_b": row.missing_a, "lost_a": row.lost_b, "lost_b": row.lost_a}
    sides |= {"lost": -row.lost, "better": row.worse, "worse": row.better}
    bounds = {"worst": row.best and -row.best, "best": row.worst and -row.worst}
    tests = tuple(evolve(test, interval=turned(test.interval)) for test in row.tests)
    pair = Pair(row.pair.answering_b, row.pair.parsing_b, row.pair.answering, row.pair.parsing)
    changes: dict[str, Any] = {**minus, **sides, **bounds, "pair": pair, "tests": tests, "by_question": questions}
    return evolve(row, verdict=verdict, **changes)


def turned(interval: Any) -> Any:
    return interval and evolve(interval, low=-interval.high, high=-interval.low)


def numbers_of(rows: tuple[Row, ...]) -> list[Any]:
    """Everything, floats rounded: sums in another order differ in their last digit."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return round(value, 9) + 0.0
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return [plain(item) for item in value] if isinstance(value, list | tuple) else value

    from attrs import asdict

    # The worst cases of what B has lost, and of what both were asked, are those of B alone.
    return [plain(asdict(evolve(row, worst_p=None, worst_asked=None))) for row in rows]


@LAW
@given(RESULTS, RESULTS, GROUPS)
def test_to_swap_the_sides_is_to_change_the_sign(a: Any, b: Any, cluster: Any) -> None:
    forth, back = compare(a, b, cluster=cluster), compare(b, a, cluster=cluster)
    assert numbers_of(forth.rows) == numbers_of(tuple(mirrored(row) for row in back.rows))
    assert {(f.question_id, f.pair.answering, f.a, f.b) for f in forth.flipped} == {
        (f.question_id, f.pair.answering, f.b, f.a) for f in back.flipped
    }
    assert (forth.only_a, forth.only_b) == (back.only_b, back.only_a)


@LAW
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=8), GROUPS)
def test_to_swap_the_sides_is_to_change_the_sign_of_scores_too(pairs: list[tuple[int, int]], cluster: Any) -> None:
    a, b = ([score(pair[side], "abcdefgh"[place]) for place, pair in enumerate(pairs)] for side in (0, 1))
    forth = compare(a, b, cluster=cluster, metrics=["trait:clarity"])
    back = compare(b, a, cluster=cluster, metrics=["trait:clarity"])
    assert numbers_of(forth.rows) == numbers_of(tuple(mirrored(row) for row in back.rows))


@LAW
@given(RESULTS, RESULTS, st.randoms(use_true_random=False))
def test_the_order_of_results_means_nothing(a: Any, b: Any, rng: Any) -> None:
    expected = compare(a, b)
    shuffled = [rng.sample(side, len(side)) for side in (a, b)]
    assert compare(*shuffled) == expected


@LAW
@given(RESULTS, RESULTS)
def test_errors_are_never_failures(a: Any, b: Any) -> None:
    """Without its errors, a run has the same values; only what is missing differs."""

    def kept(results: Any) -> Any:
        return [r for r in results if r.metadata.outcome not in ("error", "skipped")]

    whole = {row.pair: row for row in compare(a, b, metrics=["pass_rate"]).rows} if verdicts(a, b) else {}
    rest = {row.pair: row for row in compare(kept(a), kept(b), metrics=["pass_rate"]).rows} if verdicts(kept(a)) else {}
    for pair, row in rest.items():
        same = whole[pair]
        assert (row.a, row.b, row.difference, row.p_value) == (same.a, same.b, same.difference, same.p_value)
        assert row.compared == same.compared


def verdicts(*sides: Any) -> bool:
    return any(r.metadata.outcome != "scored" for side in sides for r in side)


@LAW
@given(RESULTS, RESULTS)
def test_bounds_hold_whatever_the_missing_items_are(a: Any, b: Any) -> None:
    for row in compare(a, b).rows:
        assert row.worst is not None
        assert row.best is not None
        assert -1 <= row.worst <= row.best <= 1
        if row.compared == row.questions and not row.missing_a and not row.missing_b:
            assert row.worst == pytest.approx(row.difference) == pytest.approx(row.best)


# Which procedure


def test_single_answers_are_compared_by_the_exact_test_of_mcnemar() -> None:
    a, b = [1] * 12 + [0] * 8 + [1] * 10, [0] * 12 + [1] * 3 + [0] * 5 + [1] * 10
    row = only(compare(run(a), run(b)))
    interval = paired_rate_difference(3, 12, 30).interval
    assert (row.test, row.p_value, row.interval) == ("mcnemar", mcnemar(3, 12).p_value, interval)
    assert row.difference == pytest.approx(-9 / 30)
    assert [test.name for test in row.tests] == ["mcnemar", "permutation", "t", "bootstrap"]
    assert (row.tests[0].p_value, row.tests[0].interval) == (row.p_value, interval)


def test_replicates_are_averaged_by_question() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((15, 3)) < 0.7, rng.random((15, 3)) < 0.5

    def replicated(table: Any) -> list[VerificationResult]:
        return [
            result(f"q{q:02}", replicate=r + 1, outcome="passed" if value else "failed")
            for q, values in enumerate(table)
            for r, value in enumerate(values)
        ]

    row = only(compare(replicated(a), replicated(b)))
    means = b.mean(axis=1), a.mean(axis=1)
    student, drawn = paired_test(*means), paired_bootstrap(*means)
    assert (row.test, row.compared, row.replicates) == ("permutation", 15, (3, 3))
    assert row.p_value == permutation_test(*means).p_value
    assert row.interval == student.difference.interval
    assert row.difference == pytest.approx(student.difference.value)
    assert row.tests[-1].interval
    assert drawn.interval
    assert row.tests[-1].interval.low == pytest.approx(drawn.interval.low, abs=0.05)


def test_groups_of_questions_are_flipped_as_a_whole() -> None:
    a, b = [1] * 40 + [0] * 20, [0] * 20 + [1] * 20 + [0] * 20
    cluster = {f"q{i:04}": i // 10 for i in range(60)}
    alone, together = only(compare(run(a), run(b))), only(compare(run(a), run(b), cluster=cluster))
    assert (alone.test, together.test, together.clusters) == ("mcnemar", "cluster permutation", 6)
    assert alone.p_value is not None
    assert alone.p_value < 0.001
    assert together.p_value == 0.5  # two groups got worse: one of four ways to flip them, and its mirror image
    assert together.verdict == "no difference found"


def test_equal_runs_have_an_interval_too() -> None:
    passes = [1, 0] * 10
    row = only(compare(run(passes) + run(passes, replicate=2), run(passes) + run(passes, replicate=2)))
    assert row.interval == paired_rate_difference(0, 0, 20).interval


def test_as_many_gains_as_losses_have_a_bootstrap_interval_that_mirrors_itself() -> None:
    row = only(compare(run([1, 0] * 15), run([0, 1] * 15)))
    found = {test.name: test.interval for test in row.tests}
    student, bootstrap = found["t"], found["bootstrap"]
    assert student is not None
    assert bootstrap is not None
    assert bootstrap.low == -bootstrap.high
    assert bootstrap.high == pytest.approx(student.high, abs=0.05)


def test_what_could_have_been_found_is_reported_for_the_whole_family() -> None:
    a = [*run([1, 0] * 20), *run([1, 1] * 20, model="n")]
    b = [*run([1, 1, 0, 0] * 10), *run([1, 1] * 20, model="n")]
    error = paired_rate_difference(10, 10, 40).standard_error
    assert error
    assert compare(a, b).rows[0].detectable == detectable_difference(error, None, 0.05 / 2)


def test_paired_finds_what_unpaired_intervals_hide() -> None:
    rng = np.random.default_rng(5)
    easy = rng.random(120) < 0.55
    a, b = [bool(value) for value in easy], [bool(value) and i % 6 != 0 for i, value in enumerate(easy)]
    row = only(compare(run(a), run(b)))
    one, other = wilson(sum(a), 120), wilson(sum(b), 120)
    assert one
    assert other
    assert one.low < other.high  # the intervals overlap
    assert row.verdict == "worse"


# Planted differences and noise


def test_a_planted_regression_is_found_and_planted_noise_is_not() -> None:
    rng = np.random.default_rng(7)
    hardness = rng.beta(2, 1, 200)
    before, again = (rng.random(200) < hardness for _ in range(2))
    worse = (rng.random(200) < hardness) & (rng.random(200) > 0.25)
    assert only(compare(run(before), run(again))).verdict == "no difference found"
    found = compare(run(before), run(worse))
    assert only(found).verdict == "worse"
    assert sum(flip.change == "worse" for flip in found.flipped) > sum(
        flip.change == "better" for flip in found.flipped
    )


def test_the_chance_of_any_false_alarm_is_held_over_many_models() -> None:
    """Twelve models that did not change, two hundred times: raw p-values cry wolf, those of Holm rarely do."""
    rng = np.random.default_rng(12)
    raw = alarms = 0
    for _ in range(200):
        hardness = rng.beta(2, 2, 40)
        a, b = (rng.random((12, 40)) < hardness for _ in range(2))
        p_values = [mcnemar(int((y & ~x).sum()), int((x & ~y).sum())).p_value for x, y in zip(a, b, strict=True)]
        raw += min(p_values) <= 0.05
        alarms += min(holm(p_values)) <= 0.05
    assert alarms / 200 <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
    assert raw / 200 > 0.15


def test_the_rows_of_a_comparison_are_one_family() -> None:
    """What the simulation above relies on: the p-values of all models are adjusted together."""
    rng = np.random.default_rng(3)
    sides: list[list[VerificationResult]] = [[], []]
    for model in range(8):
        for side in sides:
            side += run(rng.random(40) < 0.6, model=f"m{model}")
    comparison = compare(*sides)
    raw = [row.p_value for row in comparison.rows if row.p_value is not None]
    assert len(raw) == 8
    assert [row.p_adjusted for row in comparison.rows] == list(holm(raw))
    screened = compare(*sides, correction="benjamini-hochberg")
    assert all((one.p_adjusted or 0) <= (other.p_adjusted or 0) for one, other in
               zip(screened.rows, comparison.rows, strict=True))  # fmt: skip


def test_false_alarms_stay_rare_in_whole_comparisons_of_many_traits(long: bool) -> None:
    """Six traits that did not change, eighty times; half as often in the short form."""
    rng = np.random.default_rng(21)
    raw, alarms, times = 0, 0, 80 if long else 40
    for _ in range(times):
        sides = [
            [traits(f"q{place}", values) for place, values in enumerate(rng.integers(0, 11, (12, 6)).tolist())]
            for _ in range(2)
        ]
        rows = compare(*sides, metrics=["trait:*"]).rows
        raw += any(row.p_value is not None and row.p_value <= 0.05 for row in rows)
        alarms += any(row.verdict != "no difference found" for row in rows)
    assert alarms / times <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / times)
    assert raw / times > 0.15


def traits(question: str, values: list[int]) -> VerificationResult:
    scale = {"type": "llm", "kind": "score", "min": 0, "max": 10, "higher_is_better": True}
    scores = {f"trait {number}": value for number, value in enumerate(values)}
    return result(question, rubric=RubricPart(llm_trait_scores=scores, trait_scales=dict.fromkeys(scores, scale)))


# Missing items


def test_only_questions_with_values_on_both_sides_are_compared() -> None:
    a, b = run([1, 1, None, 0, 1]), [*run([1, None, 1, 0]), result("new")]
    comparison = compare(a, b)
    row = only(comparison)
    assert (row.compared, row.questions, row.coverage) == (2, 6, 2 / 6)
    assert row.missing_a == {"error": 1, "not asked": 1}
    assert row.missing_b == {"error": 1, "not asked": 1}
    assert (row.worst, row.best) == pytest.approx((-2 / 6, 2 / 6))
    assert (comparison.only_a, comparison.only_b) == (("q0004",), ("new",))
    assert (row.lost_a, row.lost_b) == (1, 1)


def test_a_question_that_asks_something_else_is_not_compared() -> None:
    changed = evolve(run([0])[0], metadata=evolve(run([0])[0].metadata, question_text="Another?"))
    with pytest.raises(ConfigError, match=r"1 item changed .*: q0000 \(another text\); .*--unchanged"):
        compare(run([1, 1]), [changed, *run([1, 0])[1:]])
    comparison = compare(run([1, 1]), [changed, *run([1, 0])[1:]], unchanged=True)
    assert comparison.changed == {"q0000": "another text"}
    assert (only(comparison).compared, only(comparison).missing_b) == (1, {"another item": 1})
    assert "Questions with another text in B, not compared: 1 (q0000)" in " ".join(notes_on(comparison))


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ("template_id", "another template"),
        ("item_digest", "another reference answer, examples or workspace"),
    ],
)
def test_items_that_changed_are_refused_by_name_and_left_out_where_one_asks(part: str, what: str) -> None:
    first, second = run([1, 1, 0], metadata={part: "old"}), run([1, 0, 1], metadata={part: "old"})
    second[1] = evolve(second[1], metadata=evolve(second[1].metadata, **{part: "new"}))
    with pytest.raises(ConfigError, match=rf"q0001 \({what}\)"):
        compare(first, second)
    comparison = compare(first, second, unchanged=True)
    assert (only(comparison).compared, comparison.changed) == (2, {"q0001": what})


def test_results_without_a_digest_are_no_other_items() -> None:
    comparison = compare(run([1, 1]), run([1, 0], metadata={"item_digest": "new"}))
    assert (only(comparison).compared, comparison.changed) == (2, {})


def test_planned_items_that_never_came_are_missing() -> None:
    planned = {f"q{i:04}": 1 for i in range(4)}
    row = only(compare(run([1, 1, 1, 1]), run([1, 1]), planned=(planned, planned)))
    assert (row.missing_b, row.lost_b) == ({"absent": 2}, 2)


def test_no_difference_is_larger_than_the_scale() -> None:
    """Ten questions that all changed, half of them for the better, distinguish nothing among twelve models."""
    a = [r for number in range(12) for r in run([1, 0] * 5, model=f"m{number}")]
    b = [r for number in range(12) for r in run([0, 1] * 5, model=f"m{number}")]
    comparison = compare(a, b)
    assert {row.verdict for row in comparison.rows} == {"no difference found"}
    assert all((row.detectable or 0) > 1 for row in comparison.rows)
    notes = notes_on(comparison)
    assert sum("even the largest difference would mostly go unnoticed" in text for text in notes) == 12
    assert not any(re.search(r"1\d\d\.\d pp", text) for text in notes)


def test_too_few_questions_are_no_proof_of_anything() -> None:
    assert only(compare(run([1] * 5), run([0] * 5))).verdict == "too few pairs"
    assert only(compare(run([1] * 6), run([0] * 6))).verdict == "worse"
    assert only(compare(run([1, 0]), run([None, None]))).verdict == "not compared"


def replicated(*answers: str) -> list[VerificationResult]:
    """A question a text: `p`assed, `f`ailed, `e`rror for each replicate."""
    names = {"p": "passed", "f": "failed", "e": "error"}
    return [
        result(f"q{place:03}", replicate=number, outcome=names[letter])
        for place, text in enumerate(answers)
        for number, letter in enumerate(text, 1)
    ]


def test_answers_that_are_lost_count_against_the_coverage_even_if_others_are_left() -> None:
    """Every question has a value on both sides; of B's answers two thirds have none."""
    whole, rest = replicated(*["ppp"] * 20), replicated(*["pee"] * 20)
    for row in (only(compare(whole, rest)), only(compare(rest, whole))):
        assert (row.compared, row.questions, row.coverage) == (20, 20, pytest.approx(1 / 3))
        assert abs(row.lost) == pytest.approx(2 / 3)
        assert row.lost_p == permutation_test([1.0] * 20, [0.0] * 20).p_value
    row = only(compare(replicated("ppp", "ppe", "eee", "ppp"), replicated("pee", "ppp", "ppp", "ppp")))
    assert (row.coverage, row.lost_a, row.lost_b) == (pytest.approx((1 / 3 + 2 / 3 + 0 + 1) / 4), 2, 1)
    assert row.lost == pytest.approx((2 / 3 - 1 / 3 - 1) / 4)


def test_fewer_replicates_that_were_not_asked_for_are_no_loss() -> None:
    row = only(compare(replicated(*["ppp"] * 9), replicated(*["p"] * 9)))
    assert (row.coverage, row.lost, row.lost_p, row.missing_b) == (1, 0, 1, {})


def test_losses_of_single_answers_are_compared_by_the_test_of_mcnemar() -> None:
    row = only(compare(run([1] * 20 + [None] * 3), run([None] * 9 + [1] * 14)))
    assert (row.lost_a, row.lost_b) == (3, 9)
    assert row.lost_p == pytest.approx(mcnemar(9, 3).p_value)


def test_losses_of_groups_of_questions_are_one_event() -> None:
    """A document that could not be read costs all of its questions."""
    cluster = {f"q{i:04}": i // 10 for i in range(60)}
    a, b = run([1] * 60), run([None] * 20 + [1] * 40)
    alone, together = only(compare(a, b)), only(compare(a, b, cluster=cluster))
    assert alone.lost_p < 0.001
    assert together.lost_p == 0.5


def test_questions_of_another_measure_or_run_are_not_lost() -> None:
    row = only(compare(run([1, 1, 1]), [*run([1]), result("new")]))
    assert (row.lost_a, row.lost_b, row.lost_p, row.coverage) == (0, 0, 1, 1 / 4)


# Families


def test_a_difference_is_found_however_many_traits_are_compared() -> None:
    """Drawn signs alone would never give a p-value below 0.0001, which is nothing among 520 traits."""
    rng = np.random.default_rng(0)
    before = rng.integers(0, 5, (28, 520))
    after = before + rng.integers(-1, 2, before.shape)
    after[:, 7] = before[:, 7] + rng.integers(2, 5, 28)
    sides = [
        [traits(f"q{place}", values) for place, values in enumerate(np.clip(side, 0, 10).tolist())]
        for side in (before, after)
    ]
    rows = compare(*sides, metrics=["trait:*"]).rows
    assert [(row.metric, row.verdict) for row in rows if row.verdict != "no difference found"] == [
        ("trait:trait 7", "better")
    ]


def test_too_few_pairs_means_that_no_result_at_all_could_be_significant() -> None:
    """With six questions the smallest p-value is 0.031. Whether that can be enough depends on the correction and on
    what the other rows can come to."""
    a = [*run([1] * 6), *run([1] * 6, model="n")]
    b = [*run([0] * 5 + [1]), *run([0] * 5 + [1], model="n")]
    assert {row.verdict for row in compare(a, b).rows} == {"too few pairs"}
    assert {row.verdict for row in compare(a, b, correction="benjamini-hochberg").rows} == {"no difference found"}
    a, b = [*a[:6], *run([1] * 40, model="n")], [*b[:6], *run([1] * 40, model="n")]
    assert [row.verdict for row in compare(a, b).rows] == ["no difference found"] * 2
    possible = compare(a, [*run([0] * 6), *run([0] * 40, model="n")]).rows
    assert [row.verdict for row in possible] == ["worse", "worse"]


def test_rows_that_could_never_be_significant_cost_the_others_nothing() -> None:
    """A trait of one question is no comparison that could raise a false alarm."""
    a, b = run([1] * 40), run([0] * 8 + [1] * 32)
    single = [score(4, f"q{i:04}", metadata={"replicate": 2}, outcome="scored") for i in range(1)]
    alone = only(compare(a, b, metrics=["pass_rate"]))
    for correction in ("holm", "benjamini-hochberg", "benjamini-yekutieli"):
        rate, trait = compare(
            [*a, *single], [*b, *single], metrics=["pass_rate", "trait:*"], correction=correction  # type: ignore[arg-type]  # one of three
        ).rows  # fmt: skip
        assert (rate.p_adjusted, rate.detectable) == (alone.p_value, alone.detectable)
        assert (trait.p_adjusted, trait.verdict) == (1, "too few pairs")


def test_the_chance_of_any_false_alarm_is_held_where_some_rows_are_small(long: bool) -> None:
    """Rows of 3 to 40 questions that did not change, four hundred times; half as often in the short form."""
    rng = np.random.default_rng(31)
    alarms, times = 0, 400 if long else 200
    for _ in range(times):
        made = []
        for size in (3, 5, 6, 7, 12, 40):
            a, b = (rng.random((2, size)) < 0.5).tolist()
            made.append(compare_one(tuple(sorted(zip(a, b, strict=True)))))
        alarms += any(row.verdict in ("worse", "better") for row in judged(made, "holm", 0.05))
    assert alarms / times <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / times)


@cache
def compare_one(answers: tuple[tuple[bool, bool], ...]) -> Any:
    """A row of single answers to A and B, before its family is known."""
    models = Pair("m", "j", "m", "j")
    both = zip(*answers, strict=True)
    sides = [Side({}, {"pass_rate": {f"q{i}": Seen((float(v),)) for i, v in enumerate(own)}}) for own in both]
    return row_of(Facing(pair=models, measure=PASS_RATE, a=sides[0], b=sides[1], groups={}, level=0.95))


@LAW
@given(RESULTS, RESULTS, st.sampled_from(["holm", "benjamini-hochberg", "benjamini-yekutieli"]))
def test_no_row_is_significant_that_has_too_few_pairs(a: Any, b: Any, correction: Any) -> None:
    for row in compare(a, b, correction=correction).rows:
        assert row.p_value is None or row.smallest_p <= row.p_value * (1 + 1e-9)


# Which models are compared


def test_models_are_paired_by_name_and_judge() -> None:
    other = {"metadata": {"parsing": ModelIdentity("x", "strict")}}
    a = [*run([1], model="m"), *run([1], model="gone"), *run([1], model="m", **other)]
    comparison = compare(a, [*run([1], model="m"), *run([1], model="new")])
    assert [row.pair for row in comparison.rows] == [Pair("x:m", "x:judge", "x:m", "x:judge")]
    assert comparison.unpaired_a == ("x:gone, judged by x:judge", "x:m, judged by x:strict")
    assert comparison.unpaired_b == ("x:new, judged by x:judge",)
    named = compare(a, run([0], model="new"), models=["gone=new"])
    assert [row.pair.answering_b for row in named.rows] == ["x:new"]
    assert named.unpaired_a == named.unpaired_b == ()
    judged = compare(run([1], **other), run([1]), judges=["strict=judge"])
    assert [row.pair.parsing for row in judged.rows] == ["x:strict"]


def test_named_models_must_fit_one_on_each_side() -> None:
    a, b = ["x:gpt-4", "x:a=b"], ["x:gpt-4", "x:gpt-4o", "x:a=b"]
    assert matched(["gpt-4=4o", "a=b=a=b"], a, b) == {"x:gpt-4": "x:gpt-4o", "x:a=b": "x:a=b"}
    assert matched(["x:gpt-4"], a, b) == {"x:gpt-4": "x:gpt-4"}
    for pairs in ("gpt-4", "nothing=4o", ""):
        with pytest.raises(ConfigError, match="does not name one model of each run"):
            matched([pairs], a, b)
    with pytest.raises(ConfigError, match="with several models"):
        matched(["gpt-4=4o", "a=b=4o"], a, b)


def test_the_models_of_one_run_are_compared_with_each_other() -> None:
    rng = np.random.default_rng(4)
    base = rng.random(150) < 0.8
    results = [
        *run(base, model="best"),
        *run(base & (rng.random(150) < 0.97), model="close"),
        *run(base & (rng.random(150) < 0.5), model="far"),
    ]
    comparison = compare_models(results)
    assert [(row.pair.answering, row.pair.answering_b) for row in comparison.rows] == [
        ("x:best", "x:close"),
        ("x:best", "x:far"),
        ("x:close", "x:far"),
    ]
    assert [row.verdict for row in comparison.rows] == ["no difference found", "worse", "worse"]
    (tie,) = comparison.ties
    assert tie.groups == (("x:best", "x:close"), ("x:far",))
    assert tie.ranks == {"x:best": (1, 2), "x:close": (1, 2), "x:far": (3, 3)}
    assert ties_among(list(map(Item.of, results))) == comparison.ties
    assert {row.pair.answering for row in compare_models(results, models=["best", "far"]).rows} == {"x:best"}


def test_ranks_never_contradict_the_rows() -> None:
    """`careful` fails to answer the easy questions; on those that both answered it is far better."""
    careful = run([1] * 15 + [0] * 15 + [None] * 70, model="careful")
    quick = run([0] * 30 + [1] * 70, model="quick")
    comparison = compare_models([*careful, *quick])
    assert (only(comparison).verdict, comparison.numbers_a.pairs[0].pass_rate.value) == ("worse", 0.5)
    (tie,) = comparison.ties
    assert tie.ranks == {"x:careful": (1, 1), "x:quick": (2, 2)}
    assert tie.groups == (("x:careful",), ("x:quick",))
    assert list(tie.ranks) == ["x:careful", "x:quick"]


def test_ranks_mind_the_direction_of_a_score() -> None:
    scores = {"low": 2, "high": 8}
    results = [
        score(value, f"q{i:02}", model=model, scale={"higher_is_better": False})
        for model, value in scores.items()
        for i in range(12)
    ]
    (tie,) = compare_models(results, metrics=["trait:clarity"]).ties
    assert tie.ranks == {"x:low": (1, 1), "x:high": (2, 2)}
    few = [r for r in results if r.metadata.question_id < "q03"]
    (tied,) = compare_models(few, metrics=["trait:clarity"]).ties
    assert (tied.groups, set(tied.ranks.values())) == ((("x:low", "x:high"),), {(1, 2)})


def test_groups_of_models_are_in_the_order_of_their_ranks() -> None:
    results = [*run([1] * 20, model="z"), *run([0] * 20, model="a")]
    (tie,) = compare_models(results).ties
    assert (tie.groups, list(tie.ranks)) == ((("x:z",), ("x:a",)), ["x:z", "x:a"])


def test_models_are_ranked_by_what_one_judge_said_of_them() -> None:
    strict = {"parsing": ModelIdentity("x", "strict")}
    results = [*run([1] * 20, model="m"), *run([0] * 20, model="n")]
    results += [r for model in "no" for r in run([model == "n"] * 20, model=model, metadata=strict)]
    found = {tie.parsing: tie.groups for tie in compare_models(results).ties}
    assert found == {"x:judge": (("x:m",), ("x:n",)), "x:strict": (("x:n",), ("x:o",))}


def test_what_only_one_model_has_and_what_has_no_direction_ranks_nobody() -> None:
    one = [score(value, f"q{value}", model="m") for value in range(9)]
    other = run([1] * 9, model="n")
    assert compare_models([*one, *other], metrics=["trait:clarity"]).ties == ()
    both = [score(3, f"q{i}", model=model, scale={"higher_is_better": None}) for i in range(9) for model in "mn"]
    assert compare_models(both, metrics=["trait:clarity"]).ties == ()


# Traits


def test_scores_are_compared_on_their_own_scale() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(3, 9, 40)
    a, b = ([score(int(v) + shift, f"q{i:02}") for i, v in enumerate(values)] for shift in (0, 1))
    comparison = compare(a, b, metrics=["pass_rate", "trait:clarity"])
    rate, clarity = comparison.rows
    assert (rate.verdict, clarity.verdict, clarity.difference) == ("no difference found", "better", 1)
    assert (clarity.test, clarity.interval, clarity.worst) == ("permutation", None, 1)
    assert {flip.change for flip in comparison.flipped} == {"better"}


def test_where_lower_is_better_a_rise_is_a_regression_and_without_direction_it_is_none() -> None:
    for better, verdict in ((False, "worse"), (None, "different")):
        a, b = ([score(v, f"q{i:02}", scale={"higher_is_better": better}) for i in range(30)] for v in (3, 4))
        assert only(compare(a, b, metrics=["trait:clarity"])).verdict == verdict


def test_traits_alone_are_compared_where_no_verdict_is_due() -> None:
    a, b = ([score(v, f"q{i}", outcome="scored") for i in range(8)] for v in (3, 4))
    assert only(compare(a, b)).metric == "trait:clarity"
    with pytest.raises(ConfigError, match="there is no metric 'pass_rate'"):
        compare(a, b, metrics=["pass_rate"])


# Side by side


def test_flipped_questions_show_both_answers() -> None:
    def answered(passes: Any, text: str) -> list[VerificationResult]:
        return [evolve(r, generation=GenerationPart(raw_llm_response=f"{text}\n{'x' * 999}")) for r in run(passes)]

    comparison = compare(answered([1, 0, 1], "old"), answered([0, 1, 1], "new"))
    worse, better = comparison.flipped
    assert (worse.question_id, worse.change, worse.a, worse.b) == ("q0000", "worse", 1, 0)
    assert (better.question_id, better.change, worse.question) == ("q0001", "better", "What is q0000?")
    assert worse.of_a.excerpt.startswith("old x")
    assert worse.of_b.excerpt.startswith("new x")
    assert len(worse.of_a.excerpt) == 300
    assert (worse.of_a.outcomes, worse.of_b.outcomes) == ({"passed": 1}, {"failed": 1})


def test_of_replicates_the_means_decide_what_changed() -> None:
    def three(*counts: int) -> list[VerificationResult]:
        return [
            result(f"q{q}", replicate=r, outcome="passed" if r <= n else "failed")
            for q, n in enumerate(counts)
            for r in (1, 2, 3)
        ]

    comparison = compare(three(3, 3, 1, 2), three(2, 1, 1, 3))
    assert [(f.question_id, round(f.a, 2), round(f.b, 2)) for f in comparison.flipped] == [
        ("q1", 1, 0.33),
        ("q0", 1, 0.67),
        ("q3", 0.67, 1),
    ]
    assert (only(comparison).better, only(comparison).worse) == (1, 2)


def test_of_several_answers_one_is_shown_that_says_why_the_side_is_worse_and_no_error() -> None:
    def answered(*names: str) -> list[VerificationResult]:
        answers = [GenerationPart(raw_llm_response=name) for name in names]
        return [result("q", replicate=i, outcome=name, generation=answers[i]) for i, name in enumerate(names)]

    (flip,) = compare(answered("failed", "passed", "passed"), answered("error", "passed", "failed")).flipped
    assert (flip.of_a.excerpt, flip.of_b.excerpt) == ("passed", "failed")


def test_a_set_with_notes_passes_them_on() -> None:
    results = VerificationResultSet(run([1]), notes=("line 3 was cut off",))
    assert compare(results, results).notes == ("line 3 was cut off",)


def test_what_a_reader_must_know_of_groups_and_of_items_that_are_there_twice() -> None:
    again = evolve(run([1])[0], metadata=evolve(run([1])[0].metadata, result_id="again"))
    comparison = compare([*run([1] * 4), again], run([1] * 4), cluster={"q0000": 1, "q0001": 1})
    assert comparison.notes == (
        "2 of 4 questions have no group and count as independent: q0002, q0003",
        "A: 1 more items of the same models, question and replicate; they are in the rates, and not in pass@k",
    )
    within = compare_models([*run([1] * 2), again, *run([1] * 2, model="n")], cluster={"q0000": 1})
    assert len(within.notes) == 2


def test_nothing_to_compare_says_why() -> None:
    apart = compare(run([1]), run([1], model="n")).nothing
    assert apart == "the models of A and B differ; to compare them, type: --models x:m=x:n"
    several = compare([*run([1]), *run([1], model="o")], run([1], model="n")).nothing
    assert several.startswith("no model of A is also in B")
    assert "no two models" in compare_models(run([1])).nothing
    for comparison in (
        compare(run([1]), run([1]), metrics=["trait:*"]),
        compare_models([*run([1]), *run([1], model="n")], metrics=["trait:*"]),
    ):
        assert comparison.nothing.startswith("nothing is measured that could be compared")
    assert compare(run([1]), run([1])).nothing == ""


# Better and worse


def test_a_row_has_the_two_counts_of_mcnemars_test() -> None:
    row = only(compare(run([1] * 6 + [0] * 9 + [1, None]), run([0] * 6 + [1] * 9 + [1, 1])))
    assert (row.better, row.worse, row.compared, row.test) == (9, 6, 16, "mcnemar")


def test_better_is_lower_where_lower_is_better() -> None:
    down = {"scale": {"higher_is_better": False}}
    a, b = ([score(value, f"q{n}", **down) for n, value in enumerate(values)] for values in ([1, 5, 5], [2, 3, 5]))
    row = only(compare(a, b, metrics=["trait:clarity"]))
    assert (row.better, row.worse) == (1, 1)
    undirected = [[score(4, "q", scale={"higher_is_better": None})] for _ in "ab"]
    row = only(compare(*undirected, metrics=["trait:clarity"]))
    assert (row.better, row.worse) == (None, None)


def test_the_worst_case_of_a_trait_of_which_less_is_better_is_the_highest_score() -> None:
    down = {"scale": {"higher_is_better": False}}
    lost = result("b", rubric=evolve(score(3, "b", **down).rubric, trait_states={"clarity": {"state": "error"}}))
    row = only(compare([score(3, "a", **down), score(3, "b", **down)], [score(3, "a", **down), lost],
                       metrics=["trait:clarity"]))  # fmt: skip
    assert (row.worst, row.best) == (3.5, -1.5)  # of 0 to 10: 10 - 3 and 0 - 3, over two questions


def test_changed_questions_of_every_kind_are_shown() -> None:
    comparison = compare(run([1] * 50 + [0] * 7), run([0] * 50 + [1] * 7))
    head, rows = changed(comparison, 20)
    assert [row[head.index("change")] for row in rows] == ["worse"] * 13 + ["better"] * 7
    assert changes(comparison) == "57 (50 worse, 7 better)"
    _, few = changed(comparison, 100)
    assert len(few) == 57


def test_found_nothing_and_found_something_wrong_are_distinguished() -> None:
    nothing = [evolve(r, template=TemplatePart(field_results={"x": None})) for r in run([0, 0, 1])]
    comparison = compare(run([1, 0, 1]), nothing)
    assert comparison.numbers_a.overall.failures == {"wrong": 1}
    assert comparison.numbers_b.overall.failures == {"not_found": 2}
    assert "B: of 2 failed answers, 2 miss something that was expected and have nothing wrong" in notes_on(comparison)
    assert not any(text.startswith("A: of") for text in notes_on(comparison))


def test_models_that_were_never_asked_fail_the_gates() -> None:
    """A planned model without any result is in no pair of the results."""
    comparison = evolve(compare_models(run([1] * 9), models=[]), unasked_b=9)
    found = {(gate.name, gate.about): gate for gate in gates(comparison, Limits(pass_rate=0.5, coverage=0.5))}
    assert found["pass rate", "x:m, judged by x:judge"].passed
    for name in ("pass rate", "coverage"):
        gate = found[name, "other models"]
        assert (gate.passed, gate.message) == (False, "cannot be decided: 9 planned items of models without any result")
