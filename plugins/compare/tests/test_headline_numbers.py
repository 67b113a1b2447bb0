"""Headline numbers: what goes into a rate, what is shown beside it, and how certain it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_compare.comparison import compare
from karenina_compare.headline import Number
from karenina_compare.measures import Item, Measures
from karenina_compare.numbers import MIXED, TWICE, headline_numbers, planned_items, unfinished
from karenina_compare.question_groups import by_keyword, grouping, groups_of
from karenina_compare.statistics import cluster_mean, mean_interval, pass_at_k, pass_hat_k, rate_bounds, wilson
from karenina_runs.results.lines import record
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart, read_traits

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import ConfigError
from karenina_core.values.outcome import OutcomeName
from karenina_core.values.result import MetadataPart

LAW = settings(
    max_examples=settings().max_examples // 2,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
ANY = st.lists(strategies.results(), max_size=3)
DIRECTED = {"higher_is_better": True}


def result(
    question: str = "q", model: str = "m", replicate: int = 1, outcome: Any = "passed", **parts: Any
) -> VerificationResult:
    metadata = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{model}-{replicate}",
        question_text="?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        replicate=replicate,
        outcome=outcome,
        completed_without_errors=outcome != "error",
    )
    return VerificationResult(metadata=evolve(metadata, **parts.pop("metadata", {})), **parts)


SMALL = st.builds(
    result,
    st.sampled_from("abc"),
    st.sampled_from(["m", "n"]),
    st.integers(1, 3),
    st.sampled_from(get_args(OutcomeName)),
    metadata=st.fixed_dictionaries({"evaluation_mode": st.sampled_from(["template_only", "rubric_only"])}),
)
RESULTS = st.lists(SMALL, max_size=12, unique_by=lambda r: r.metadata.result_id)


def outcomes(*names: Any, **facts: Any) -> list[VerificationResult]:
    return [result(f"q{place}", outcome=name, **facts) for place, name in enumerate(names)]


def scored(value: Any, state: str = "ok", **scale: Any) -> RubricPart:
    recorded = {"type": "llm", "kind": "score", "min": 1, "max": 5, **DIRECTED, **scale}
    return RubricPart(
        llm_trait_scores={"clarity": value if state == "ok" else None},
        trait_scales={"clarity": recorded},
        trait_states={"clarity": {"state": state, "reason": ""}},
    )


def trait(results: list[VerificationResult], name: str) -> Number:
    return next(number for number in headline_numbers(results).overall.traits if number.name == name)


# Rates


@LAW
@given(RESULTS)
def test_rates_are_those_of_the_summary(results: list[VerificationResult]) -> None:
    found = {(n.answering, n.parsing): n for n in headline_numbers(results).pairs}
    for row in VerificationResultSet(results).get_summary()["models"]:
        numbers = found.pop((row["answering"], row["parsing"]))
        assert (numbers.items, numbers.outcomes, numbers.errors) == (row["items"], row["outcomes"], row["errors"])
        assert numbers.pass_rate.value == row["pass_rate"]
        assert numbers.answered_accuracy.value == row["answered_accuracy"]
        assert numbers.coverage.value == row["coverage"]
        assert numbers.partial_credit.value == row["partial_credit"]
        for name, number in (("pass_rate", numbers.pass_rate), ("partial_credit", numbers.partial_credit)):
            limits = (number.interval.low, number.interval.high) if number.interval else (None, None)
            assert (row[f"{name}_low"], row[f"{name}_high"]) == limits
    assert not found


@LAW
@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), min_size=1), st.integers(1, 3))
def test_equal_values_have_equal_intervals(passes: dict[str, int], often: int) -> None:
    results = [
        result(question, replicate=n, outcome="passed" if n < right else "failed")
        for question, right in passes.items()
        for n in range(often)
    ]
    numbers = headline_numbers(results).overall
    found = [numbers.pass_rate, numbers.partial_credit, numbers.macro_questions]
    assert len({(number.value, number.interval, number.method, number.clusters) for number in found}) == 1


def test_worst_and_best_of_the_mean_over_questions_are_those_of_the_pass_rate() -> None:
    numbers = headline_numbers(outcomes("passed", "failed", "failed", "error")).overall
    assert numbers.macro_questions.bounds == numbers.pass_rate.bounds
    assert (numbers.macro_questions.items, numbers.macro_questions.missing) == (3, numbers.pass_rate.missing)


@LAW
@given(RESULTS, st.randoms(use_true_random=False))
def test_the_order_of_results_means_nothing(results: list[VerificationResult], rng: Any) -> None:
    mixed = list(results)
    rng.shuffle(mixed)
    assert headline_numbers(mixed).to_dict() == headline_numbers(results).to_dict()


@settings(LAW, max_examples=settings().max_examples // 6)
@given(ANY)
def test_all_results_have_numbers_that_json_can_hold(results: list[VerificationResult]) -> None:
    assert json.loads(json.dumps(headline_numbers(results).to_dict(), allow_nan=False))["level"] == 0.95


@LAW
@given(RESULTS)
def test_every_item_is_counted_once_for_every_rate(results: list[VerificationResult]) -> None:
    overall = headline_numbers(results).overall
    assert sum(overall.outcomes.values()) == len(results)
    due = [r for r in results if r.metadata.outcome != "scored" and r.metadata.evaluation_mode != "rubric_only"]
    assert overall.pass_rate.items + sum(overall.pass_rate.missing.values()) == len(due)


def test_errors_are_no_failures_and_are_shown_beside_the_rate() -> None:
    error = {"outcome_detail": "timeout"}
    results = [*outcomes("passed", "failed", "abstained"), result("late", outcome="error", metadata=error)]
    numbers = headline_numbers(results).overall
    assert (numbers.pass_rate.value, numbers.pass_rate.items) == (1 / 3, 3)
    assert (numbers.answered_accuracy.value, numbers.coverage.value) == (1 / 2, 2 / 4)
    assert numbers.pass_rate.missing == numbers.answered_accuracy.missing == {"error(timeout)": 1}
    assert numbers.errors == {"timeout": 1}


def test_guards_and_errors_are_counted_by_name() -> None:
    results = outcomes("auto_failed", "auto_failed", metadata={"outcome_detail": "Guard"})
    assert headline_numbers(results).overall.guards == {"Guard": 2}


def test_independent_items_have_the_interval_of_wilson_and_the_usual_bounds() -> None:
    results = outcomes(*["passed"] * 30, *["failed"] * 10, *["error"] * 5)
    rate, plain, bounds = headline_numbers(results).overall.pass_rate, wilson(30, 40), rate_bounds(30, 40, 45)
    assert (rate.interval, rate.method, rate.clusters) == (plain, "wilson", None)
    assert rate.bounds
    assert bounds.interval
    found = (rate.bounds.worst, rate.bounds.best, rate.bounds.low, rate.bounds.high)
    assert found == pytest.approx((bounds.worst, bounds.best, bounds.interval.low, bounds.interval.high))


def test_replicates_never_count_as_independent_items() -> None:
    names = ["passed", "failed"] * 10
    once = headline_numbers(outcomes(*names)).overall.pass_rate
    thrice = [result(f"q{i}", outcome=name, replicate=r) for i, name in enumerate(names) for r in (1, 2, 3)]
    repeated = headline_numbers(thrice).overall.pass_rate
    assert (once.items, repeated.items, repeated.questions, repeated.clusters) == (20, 60, 20, 20)
    assert once.interval
    assert repeated.interval
    assert repeated.interval.low <= once.interval.low
    assert repeated.interval.high >= once.interval.high


def test_groups_of_questions_widen_the_interval() -> None:
    names = [name for name in ("passed", "failed") * 6 for _ in range(5)]
    results = outcomes(*names)
    alone = headline_numbers(results).overall.pass_rate
    cluster = {f"q{i}": i // 5 for i in range(60)}
    together = headline_numbers(results, cluster=cluster).overall.pass_rate
    assert (alone.clusters, together.clusters) == (None, 12)
    assert alone.interval
    assert together.interval
    assert together.interval.high - together.interval.low > 1.5 * (alone.interval.high - alone.interval.low)
    assert together.standard_error == cluster_mean([n == "passed" for n in names], cluster.values()).standard_error


def test_planned_items_that_are_not_there_are_missing() -> None:
    planned = {f"q{i}": 2 for i in range(4)}
    numbers = headline_numbers(outcomes("passed", "passed", "failed"), planned=planned).overall
    assert (numbers.items, numbers.absent, numbers.pass_rate.missing) == (3, 5, {"absent": 5})
    assert (numbers.pass_rate.value, numbers.coverage.value) == (2 / 3, 3 / 8)
    assert numbers.pass_rate.bounds
    assert (numbers.pass_rate.bounds.worst, numbers.pass_rate.bounds.best) == (2 / 8, 7 / 8)


def test_a_set_of_a_whole_run_knows_what_was_planned_and_a_part_of_it_does_not(tmp_path: Path) -> None:
    manifest = {"questions": ["q0", "q1"], "config": {"replicate_count": 2}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (tmp_path / "results.jsonl").write_text(record(result("q0", outcome="passed")) + "\n", "utf-8")
    whole = VerificationResultSet.load(tmp_path)
    assert headline_numbers(whole).overall.absent == whole.get_summary()["models"][0]["absent"] == 3
    part = whole.filter(outcomes=["passed"])
    assert headline_numbers(part).overall.absent == part.get_summary()["models"][0]["absent"] == 0
    shutil.copy(tmp_path / "results.jsonl", tmp_path / "some.jsonl")
    assert headline_numbers(VerificationResultSet.load(tmp_path / "some.jsonl")).overall.absent == 0


def test_models_of_a_whole_run_that_were_never_asked_are_missing(tmp_path: Path) -> None:
    pairs = [["x:m", "x:judge"], ["x:n", "x:judge"]]
    manifest = {"questions": ["q0", "q1"], "pairs": pairs, "config": {"replicate_count": 2}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (tmp_path / "results.jsonl").write_text(record(result("q0", outcome="passed")) + "\n", "utf-8")
    whole = VerificationResultSet.load(tmp_path)
    numbers = headline_numbers(whole)
    assert ([each.absent for each in numbers.pairs], numbers.overall.absent) == ([3], 7)


@pytest.mark.parametrize(
    ("manifest", "planned", "note"),
    [
        ('{"items": 4}', 4, ("3 of 4 planned items have a result",)),
        *(('{"items": 3}', 3, ()), ('{"items": 2}', 2, ())),
        *((other, 0, ()) for other in ("{}", "no JSON", "[]", '{"items": null}', None)),
    ],
)
def test_a_run_that_is_not_finished_says_so(
    tmp_path: Path, manifest: str | None, planned: int, note: tuple[str, ...]
) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest, "utf-8")
    assert planned_items(tmp_path) == planned
    assert unfinished(tmp_path, 3) == note


def test_where_nothing_passed_the_worst_case_is_none_and_the_best_what_is_missing() -> None:
    bounds = headline_numbers(outcomes("failed", "error")).overall.pass_rate.bounds
    assert bounds is not None
    assert (bounds.worst, bounds.best) == (0.0, 0.5)


def test_nothing_has_no_rate() -> None:
    numbers = headline_numbers([]).overall
    assert (numbers.items, numbers.pass_rate.value, numbers.pass_rate.interval) == (0, None, None)
    only_scores = headline_numbers(outcomes("scored")).overall
    assert (only_scores.pass_rate.value, only_scores.coverage.value) == (None, None)


# Replicates


def test_a_number_without_an_interval_says_why() -> None:
    (number,) = headline_numbers([result(rubric=scored(3))]).overall.traits
    assert (number.value, number.interval, number.note) == (3, None, "one value says nothing about the error")


def test_what_k_answers_are_worth_is_unbiased_and_says_what_is_left_out() -> None:
    passed = {"a": 3, "b": 1, "c": 0, "d": 2}
    results = [
        result(q, replicate=r, outcome="passed" if r <= n else "failed") for q, n in passed.items() for r in (1, 2, 3)
    ]
    results.append(result("e", replicate=1, outcome="passed"))
    results.append(result("e", replicate=2, outcome="error"))
    repeated = headline_numbers(results).overall.repeated
    assert [(r.k, r.questions, r.left_out) for r in repeated] == [(2, 4, 1), (3, 4, 1)]
    hits, asked = list(passed.values()), [3] * 4
    assert repeated[0].at_least_one == pass_at_k(hits, asked, 2)
    assert repeated[1].all_of_them == pass_hat_k(hits, asked, 3)


def test_single_answers_have_no_replicates() -> None:
    assert headline_numbers(outcomes("passed", "failed")).overall.repeated == ()


# Traits


def test_a_mean_of_scores_has_its_interval_and_failed_traits_beside_it() -> None:
    values = [1, 4, 5, 3, 4]
    results = [result(f"q{i}", rubric=scored(value)) for i, value in enumerate(values)]
    results += [result("bad", rubric=scored(None, "invalid")), result("no", rubric=scored(None, "skipped"))]
    number, plain = trait(results, "trait:clarity"), mean_interval(values)
    assert (number.value, number.items, number.missing) == (plain.value, 5, {"trait invalid": 1})
    assert number.interval
    assert plain.interval
    assert number.interval.low == pytest.approx(plain.interval.low)
    assert number.interval.high == 5  # no mean is beyond the scale
    assert number.bounds
    assert (number.bounds.worst, number.bounds.best) == pytest.approx((18 / 6, 22 / 6))


def test_an_answer_that_never_came_is_a_missing_score_only_where_the_trait_was_due() -> None:
    lost: dict[str, Any] = {"outcome": "error", "metadata": {"evaluation_mode": "template_and_rubric"}}
    results = [result("q1", rubric=scored(4)), result("q1", replicate=2, **lost)]
    assert trait(results, "trait:clarity").missing == {"error": 1}
    other = RubricPart(regex_trait_scores={"short": True})
    results += [result("q2", rubric=other), result("q2", replicate=2, **lost)]
    assert trait(results, "trait:clarity").missing == {"error": 1}
    assert trait(results, "trait:short").missing == {"error": 1}


def test_a_trait_that_failed_everywhere_is_not_forgotten() -> None:
    part = RubricPart(metric_trait_scores={"facts": None}, trait_states={"facts": {"state": "error", "reason": "no"}})
    number = trait([result(rubric=part)], "trait:facts")
    assert (number.value, number.items, number.missing) == (None, 0, {"trait error": 1})


def test_every_kind_of_trait_is_measured_in_its_own_way() -> None:
    part = RubricPart(
        llm_trait_scores={"tone": 1, "facts.right": True, "facts.count": 3, "facts.who": "me"},
        llm_trait_labels={"tone": "warm"},
        regex_trait_scores={"short": False},
        metric_trait_scores={"found": {"tp": 1, "fn": 1, "recall": 0.5}},
        trait_scales={
            "tone": {"type": "llm", "kind": "literal", "classes": ["cold", "warm"], **DIRECTED},
            "facts": {"type": "llm", "kind": "template"},
            "short": {"type": "regex", "higher_is_better": False},
        },
        trait_states={"facts": {"state": "ok", "reason": ""}},
    )
    numbers = {n.name: n for n in headline_numbers([result(rubric=part)]).overall.traits}
    assert {name: number.value for name, number in numbers.items()} == {
        "trait:facts.count": 3,
        "trait:facts.right": 1,
        "trait:found.recall": 0.5,
        "trait:short": 0,
        "trait:tone": 1,
        "trait:tone=cold": 0,
        "trait:tone=warm": 1,
    }
    assert numbers["trait:short"].higher_is_better is False
    assert numbers["trait:tone=warm"].higher_is_better is None


def test_numbers_that_cannot_be_computed_with_are_no_scores() -> None:
    part = RubricPart(callable_trait_scores={"size": 10**200, "other": 1})
    numbers = {n.name: n.value for n in headline_numbers([result(rubric=part)]).overall.traits}
    assert numbers == {"trait:other": 1, "trait:size": None}


def test_scores_of_different_scales_are_not_put_together() -> None:
    results = [result("a", rubric=scored(4)), result("b", rubric=scored(9, max=10))]
    found = headline_numbers(results)
    assert (found.overall.traits, [note.partition(":clarity")[0] for note in found.notes]) == ((), ["trait"])
    with pytest.raises(ConfigError, match="several scales"):
        Measures.of(map(Item.of, results)).chosen(["trait:clarity"])


@LAW
@given(st.lists(strategies.rubric_parts(), max_size=5))
def test_scores_are_values_and_nothing_else_is(parts: list[RubricPart]) -> None:
    results = [result(f"q{i}", rubric=part) for i, part in enumerate(parts)]
    measures = Measures.of(map(Item.of, results))
    for item in results:
        traits = {t.name: t for t in read_traits(item.rubric)} if item.rubric else {}
        for name, reading in measures.read(Item.of(item)).items():
            owner = measures.known[name].owner
            if owner is None:
                continue
            assert (reading.value is None) or traits[owner].state == "ok"
            assert traits[owner].state != "skipped"
            if measures.known[name].is_rate and reading.value is not None:
                assert reading.value in (0, 1)


def test_unknown_measures_are_named_with_what_there_is() -> None:
    measures = Measures.of([Item.of(result(rubric=scored(4)))])
    assert [m.name for m in measures.chosen([])] == ["pass_rate"]
    assert [m.name for m in measures.chosen(["trait:*", "trait:clarity"])] == ["trait:clarity"]
    with pytest.raises(ConfigError, match="did you mean 'trait:clarity'"):
        measures.chosen(["trait:clarit"])
    alone = Measures.of([Item.of(result(outcome="scored", rubric=scored(4)))])
    assert [m.name for m in alone.chosen([])] == ["trait:clarity"]


# Groups of questions


def test_questions_are_grouped_by_keyword_function_or_table(tmp_path: Path) -> None:
    results = [
        result("a", metadata={"keywords": ("easy", "doc:1")}),
        result("b", metadata={"keywords": ("doc:1",)}),
        result("c"),
    ]
    assert groups_of(results, by_keyword()) == {"a": "easy", "b": "doc:1"}
    assert groups_of(results, grouping("keyword:doc:")) == {"a": "doc:1", "b": "doc:1"}
    assert groups_of(results, lambda r: r.metadata.question_id if r.metadata.question_id != "c" else None) == {
        "a": "a",
        "b": "b",
    }
    (tmp_path / "groups.json").write_text('{"a": 1, "c": "two", "z": 9}', "utf-8")
    assert groups_of(results, grouping(str(tmp_path / "groups.json"))) == {"a": 1, "c": "two"}
    (tmp_path / "groups.csv").write_text('\ufeffa,1\n"c","two"\n\n', "utf-8")
    assert groups_of(results, grouping(str(tmp_path / "groups.csv"))) == {"a": "1", "c": "two"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.json", "[]", "one JSON object"),
        ("g.json", "{", "no JSON"),
        ("g.json", '{"a": null}', "one JSON object"),
        ("g.csv", "a\n", "line 1: give two columns"),
        ("g.csv", "a,1\na,2\n", "line 2: 'a' has two groups"),
    ],
)
def test_groups_that_cannot_be_read_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=message):
        grouping(str(tmp_path / name))


def test_a_file_of_groups_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="give keyword"):
        grouping("nowhere.csv")


def test_a_question_without_a_group_is_independent() -> None:
    results = outcomes("passed", "failed", "passed", "failed")
    number = headline_numbers(results, cluster={"q0": "g", "q1": "g", "q2": "q3"}).overall.pass_rate
    assert number.clusters == 3  # the group called q3 is not the question q3


# Notes


def test_questions_without_a_group_and_with_several_are_reported() -> None:
    results = [
        result("a", metadata={"keywords": ("one",)}),
        result("a", replicate=2, metadata={"keywords": ("two",)}),
        *(result(f"alone{i}") for i in range(7)),
    ]
    assert headline_numbers(results).notes == ()
    assert groups_of(results, by_keyword()) == {"a": "one"}
    assert headline_numbers(results, cluster=by_keyword()).notes == (
        "7 of 8 questions have no group and count as independent: alone0, alone1, alone2, alone3, alone4 and 2 more",
        "questions in several groups, of which the first by name is taken: a",
    )
    assert headline_numbers(results, cluster=dict.fromkeys(("a", *(f"alone{i}" for i in range(7))), 1)).notes == ()


def test_an_item_that_is_there_twice_is_reported() -> None:
    results = [result(), evolve(result(), metadata=evolve(result().metadata, result_id="again")), result("other")]
    (note,) = headline_numbers(results).notes
    assert note == "1 more items of the same models, question and replicate; they are in the rates, and not in pass@k"
    assert headline_numbers(results).overall.pass_rate.clusters == 2


def test_traits_are_read_once_for_all_that_is_asked_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a rubric costs more than everything else; the trail of an item without scores would read it again."""
    seen: list[RubricPart] = []

    def counted(part: RubricPart) -> Any:
        seen.append(part)
        return read_traits(part)

    monkeypatch.setattr("karenina_compare.measures.read_traits", counted)
    monkeypatch.setattr("karenina_runs.summaries.summary.read_traits", counted)
    results = [result(f"q{i}", rubric=scored(4), metadata={"evaluation_mode": "rubric_only"}) for i in range(5)]
    headline_numbers(results)
    assert len(seen) == 5
    compare(results, results, metrics=["trait:*"])
    assert len(seen) == 5 + 10


def test_models_and_judges_are_no_repeated_answers() -> None:
    """One answer of each model, read by two judges: each model was asked once."""
    results = [
        evolve(one, metadata=evolve(one.metadata, parsing=ModelIdentity("x", judge), result_id=f"{judge}{place}"))
        for place, one in enumerate(outcomes("passed", "failed", "passed", "failed"))
        for judge in ("j", "k")
    ]
    headline = headline_numbers(results)
    assert (headline.overall.repeated, headline.overall.unrepeated) == ((), MIXED)
    assert [(pair.repeated, pair.unrepeated) for pair in headline.pairs] == [((), ""), ((), "")]
    again = [
        evolve(one, metadata=evolve(one.metadata, replicate=2, result_id=f"again{n}")) for n, one in enumerate(results)
    ]
    assert [[r.k for r in pair.repeated] for pair in headline_numbers([*results, *again]).pairs] == [[2], [2]]


def test_items_that_are_there_twice_are_no_repeated_answers() -> None:
    once = outcomes("passed", "failed")
    twice = [*once, *(evolve(r, metadata=evolve(r.metadata, result_id=f"again{n}")) for n, r in enumerate(once))]
    (pair,) = headline_numbers(twice).pairs
    assert (pair.repeated, pair.unrepeated, pair.pass_rate.items) == ((), TWICE, 4)


def test_k_is_every_divisor_and_power_of_two_or_what_was_asked_for() -> None:
    results = [result(q, replicate=r, outcome="passed" if r % 2 else "failed") for q in "ab" for r in range(1, 11)]
    assert [r.k for r in headline_numbers(results).overall.repeated] == [2, 4, 5, 8, 10]
    assert [r.k for r in headline_numbers(results, k=[3, 1, 12]).overall.repeated] == [1, 3]
    assert [r.k for r in headline_numbers(results, k=[10, 11, 0]).overall.repeated] == [10]
    assert headline_numbers([], k=[1]).overall.repeated == ()


def test_rates_by_keyword_and_means_of_keywords_and_questions() -> None:
    def answers(question: str, passes: int, of: int, *words: str) -> list[VerificationResult]:
        return [
            result(
                question, replicate=r + 1, outcome="passed" if r < passes else "failed", metadata={"keywords": words}
            )
            for r in range(of)
        ]

    numbers = headline_numbers(
        [*answers("a", 1, 1, "x"), *answers("b", 1, 4, "x", "y"), *answers("c", 0, 2, "y"), *answers("d", 2, 2)]
    ).overall
    rates = {number.name: (number.value, number.items, number.questions) for number in numbers.by_keyword}
    assert rates == {"x": (2 / 5, 5, 2), "y": (1 / 6, 6, 2)}
    assert numbers.macro_keywords == pytest.approx((2 / 5 + 1 / 6) / 2)
    assert numbers.macro_questions.value == pytest.approx((1 + 1 / 4 + 0 + 1) / 4)
    limits, expected = numbers.macro_questions.interval, mean_interval([1, 1 / 4, 0, 1]).interval
    assert limits is not None
    assert expected is not None
    assert (limits.low, limits.high) == (max(0.0, expected.low), min(1.0, expected.high))
    assert numbers.pass_rate.value == 4 / 9


def test_partial_credit_goes_into_comparisons() -> None:
    def graded(grades: list[float]) -> list[VerificationResult]:
        return [
            result(f"q{n}", outcome="failed", template=TemplatePart(verify_granular_result=grade))
            for n, grade in enumerate(grades)
        ]

    (row,) = compare(graded([0.5] * 12), graded([0.75] * 12), metrics=["partial_credit"]).rows
    assert (row.a, row.b, row.verdict, row.better, row.worse) == (0.5, 0.75, "better", 12, 0)
