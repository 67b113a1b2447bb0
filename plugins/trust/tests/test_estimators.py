"""Corrected means, class rates and agreement: equal to public libraries, and the laws that they keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import StatisticsError, cluster_rate, wilson
from karenina_trust.estimators import (
    COEFFICIENTS,
    ClassRates,
    Ratings,
    Sample,
    agreement,
    alpha,
    class_rates,
    cohen_kappa,
    gwet_ac,
    judge_alone,
    people_alone,
    percent,
    power_tuning,
    ppi,
    ppi_plus,
    rogan_gladen,
    rogan_gladen_of,
    scott_pi,
)
from karenina_trust.estimators.draws import drawn_interval

TABLES = json.loads(Path(__file__).with_name("oracles").joinpath("tables.json").read_text("utf-8"))
ESTIMATORS = {"people": people_alone, "ppi": ppi, "ppi++": ppi_plus}
BITS = st.sampled_from([0.0, 1.0])


def sample_of(case: dict[str, Any]) -> Sample:
    return Sample.of(case["judge"], [*case["people"], *[None] * (len(case["judge"]) - len(case["people"]))])


@pytest.mark.parametrize("number", range(len(TABLES["corrected"])))
@pytest.mark.parametrize("name", ESTIMATORS)
def test_means_are_those_of_ppi_python(name: str, number: int) -> None:
    case = TABLES["corrected"][number]
    found, wanted = ESTIMATORS[name](sample_of(case), small_sample=False), case["estimates"][name]
    assert found.value == pytest.approx(wanted["value"], abs=1e-9)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((wanted["low"], wanted["high"]), abs=1e-9)


@pytest.mark.parametrize("number", range(len(TABLES["rated"])))
@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_agreement_is_that_of_irrcac_krippendorff_and_statsmodels(scale: Any, number: int) -> None:
    case = TABLES["rated"][number]
    ratings = Ratings.of(case["rows"], scale)
    found = {name: COEFFICIENTS[name](ratings) for name in case["coefficients"][scale]}
    assert found == pytest.approx(case["coefficients"][scale], abs=1e-9)


def test_the_interval_of_a_judge_s_corrected_rate_is_that_of_the_published_example() -> None:
    found = rogan_gladen_of(0.4, 1000, ClassRates(sensitivity=0.9, positives=200, specificity=0.7, negatives=200))
    assert found.interval is not None
    numbers = (found.value, found.interval.low, found.interval.high)
    assert numbers == pytest.approx((0.166667, 0.056351, 0.262733), abs=5e-7)


rows = st.lists(
    st.tuples(BITS, st.one_of(st.none(), BITS), st.integers(0, 5), st.integers(0, 1)), min_size=4, max_size=60
)


@given(rows, st.randoms(use_true_random=False))
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_no_order_of_items_and_no_name_of_a_question_or_stratum_changes_a_number(table: Any, random: Any) -> None:
    labelled = [row for row in table if row[1] is not None]
    if len({question for _, _, question, _ in labelled}) < 2:
        return
    if len({stratum for *_, stratum in labelled}) < 2:
        table = [(*row[:3], 0) for row in table]
    shuffled = [(judge, label, f"q{question}", f"s{1 - stratum}") for judge, label, question, stratum in table]
    random.shuffle(shuffled)
    first, second = (Sample.of(*(list(column) for column in zip(*rows, strict=True))) for rows in (table, shuffled))
    for estimator in ESTIMATORS.values():
        one, other = estimator(first), estimator(second)
        assert one.value == pytest.approx(other.value, abs=1e-12)
        assert one.interval is not None
        assert other.interval is not None
        assert (one.interval.low, one.interval.high) == pytest.approx(
            (other.interval.low, other.interval.high), abs=1e-9
        )
        assert 0 <= one.interval.low <= one.interval.high <= 1


@given(st.lists(BITS, min_size=20, max_size=80), st.lists(BITS, min_size=5, max_size=200))
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_a_judge_who_agrees_with_people_narrows_the_interval_and_one_who_guesses_is_ignored(
    people: list[float], others: list[float]
) -> None:
    for said in (1.0, 0.1):  # the sum of tenths is rounded
        constant = Sample.of([said] * (len(people) + len(others)), [*people, *[None] * len(others)])
        assert power_tuning(constant) == 0
        assert ppi_plus(constant).value == pytest.approx(people_alone(constant).value, abs=1e-12)
    agreeing = Sample.of([*people, *others], [*people, *[None] * len(others)])
    assert ppi_plus(agreeing, small_sample=False).standard_error <= (  # type: ignore[operator] # both have one
        people_alone(agreeing, small_sample=False).standard_error + 1e-12  # type: ignore[operator]
    )


@given(st.lists(st.tuples(BITS, st.integers(0, 6)), min_size=3, max_size=60))
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_people_alone_have_the_interval_of_rates(table: list[tuple[float, int]]) -> None:
    values, questions = [value for value, _ in table], [question for _, question in table]
    if len(set(questions)) < 2:
        return
    found = people_alone(Sample.of(values, values, questions))
    wanted = cluster_rate(values, questions)
    if len(set(questions)) == len(questions):
        simple = wilson(int(sum(values)), len(values))
        assert found.interval is not None
        assert simple is not None
        assert (found.interval.low, found.interval.high) == pytest.approx((simple.low, simple.high), abs=1e-12)
    else:
        assert found.standard_error == pytest.approx(wanted.standard_error, abs=1e-9)


def test_strata_count_with_their_shares_of_all_items() -> None:
    """Of 90 passed and 10 failed items, 10 of each are labelled: the failed ones do not count nine times too much."""
    judge = [1.0] * 90 + [0.0] * 10
    people: list[float | None] = [*[1.0] * 9, 0.0, *[None] * 80, *[0.0] * 9, 1.0]
    strata = ["passed"] * 90 + ["failed"] * 10
    found = people_alone(Sample.of(judge, people, strata=strata))
    assert found.value == pytest.approx(0.9 * 0.9 + 0.1 * 0.1)
    assert people_alone(Sample.of(judge, people)).value == pytest.approx(0.5)


def test_what_cannot_be_computed_says_why() -> None:
    with pytest.raises(StatisticsError, match="judge has 2 values and people 1"):
        Sample.of([0, 1], [None])
    with pytest.raises(StatisticsError, match="has no label"):
        Sample.of([0, 1], [1, None], strata=["a", "b"])
    with pytest.raises(StatisticsError, match="these are scores"):
        class_rates(Sample.of([0.5, 1], [1, 0]))
    with pytest.raises(StatisticsError, match="both kinds"):
        class_rates(Sample.of([0, 1], [1, 1]))
    with pytest.raises(StatisticsError, match="two raters"):
        cohen_kappa(Ratings.of([[1, 1, 0]]))
    with pytest.raises(StatisticsError, match="one kind"):
        Ratings.of([["a", 1.0]])
    with pytest.raises(StatisticsError, match="different numbers"):
        Ratings.of([[1], [1, 0]])
    with pytest.raises(StatisticsError, match="needs numbers"):
        Ratings.of([["a", "b"]], "interval")
    assert "other" in people_alone(Sample.of([1, 0], [1, None])).note


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (ClassRates(sensitivity=0.55, positives=200, specificity=0.5, negatives=200), "says little"),
        (ClassRates(sensitivity=0.7, positives=10, specificity=0.6, negatives=10), "says little"),
        (ClassRates(sensitivity=1.0, positives=100, specificity=1.0, negatives=4), "only 4 labels"),
    ],
)
def test_a_judge_who_says_little_corrects_nothing(classes: ClassRates, words: str) -> None:
    found = rogan_gladen_of(0.5, 100, classes)
    assert (found.value, found.interval) == (None, None)
    assert words in found.note


def test_a_draw_has_all_items_of_every_question_in_it() -> None:
    questions = np.array([3, 1, 3, 0, 1, 3])

    def seen(places: Any, drawn: Any) -> float:
        for number in range(3):
            own = places[drawn == number].tolist()
            assert own == np.flatnonzero(questions == questions[own[0]]).tolist()
        return 0.0

    assert drawn_interval(seen, questions, "mean", resamples=100) is not None


def test_questions_are_drawn_whole_for_a_corrected_rate() -> None:
    rng = np.random.default_rng(4)
    people = np.repeat((rng.random(60) < 0.6).astype(float), 10)
    judge = np.repeat(rng.random(60) < 0.85, 10) == people
    labels: list[float | None] = [*people[:300], *[None] * 300]
    clustered = rogan_gladen(Sample.of(judge, labels, np.repeat(np.arange(60), 10)))
    alone = rogan_gladen(Sample.of(judge, labels))
    assert clustered.value == alone.value
    assert clustered.interval is not None
    assert alone.interval is not None
    assert clustered.interval.high - clustered.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


def test_labels_of_few_questions_say_less_of_a_judge_than_as_many_of_others() -> None:
    """The judge is right on all ten answers to a question or on none of them: there are 12 questions to go by."""
    right = [question % 3 > 0 for question in range(12) for _ in range(10)]
    people = [float(place % 2) for place in range(120)]
    judge = [label if own else 1 - label for label, own in zip(people, right, strict=True)]
    apart = class_rates(Sample.of(judge, people))
    together = class_rates(Sample.of(judge, people, [place // 10 for place in range(120)]))
    assert (apart.informed, apart.refusal()) == (pytest.approx(4 / 3), "")
    assert "the judge says little" in together.refusal()
    error = float(np.std([2.0 * own for own in right[::10]], ddof=1)) / 12**0.5  # both rates are 1 or 0 in a question
    assert together.informed_low == pytest.approx(4 / 3 - 2.2009852 * error, abs=1e-6)


ratings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40)


@given(ratings, st.permutations(range(4)))
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_names_of_categories_and_the_order_of_two_raters_do_not_matter(table: Any, names: list[int]) -> None:
    first = Ratings.of(table)
    renamed = Ratings.of([[f"c{names[b]}", f"c{names[a]}"] for a, b in table])
    for name, coefficient in COEFFICIENTS.items():
        one, other = coefficient(first), coefficient(renamed)
        assert (one is None) == (other is None), name
        assert one is None or one == pytest.approx(other, abs=1e-12)


@given(ratings)
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_raters_who_always_agree_have_1_and_no_others_more(table: Any) -> None:
    same = Ratings.of([[a, a] for a, _ in table])
    for coefficient in (percent, cohen_kappa, scott_pi, gwet_ac, alpha):
        assert coefficient(same) in (None, pytest.approx(1.0))
        value = coefficient(Ratings.of(table))
        assert value is None or value <= 1 + 1e-12


def test_agreement_has_an_interval_over_questions() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(40) < 0.5
    pairs = [(bool(t), bool(t) if rng.random() < 0.85 else not t) for t in truth]
    once = agreement(pairs, scott_pi, resamples=500)
    often = agreement(
        [pair for pair in pairs for _ in range(5)], scott_pi, questions=np.repeat(range(40), 5), resamples=500
    )
    assert once.value == pytest.approx(often.value)
    assert once.interval is not None
    assert often.interval is not None
    assert often.interval.high - often.interval.low == pytest.approx(once.interval.high - once.interval.low, abs=0.05)
    assert agreement([(1, 1)] * 9, alpha, resamples=100).note
    assert judge_alone(Sample.of([1, 1, 0], [None, 1, 0])).value == pytest.approx(2 / 3)
