"""How many labels are needed: the plan keeps what it promises, and is honest about what a judge can save."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from karenina_compare.statistics.inputs import StatisticsError
from karenina_trust.estimators import Sample, people_alone, ppi_plus
from karenina_trust.planning import LEAST, Design, Situation, assumed, likeness, observed

from .judged_trials import karenina
from .test_panel_command import labels, results, written

SHARE = st.floats(0.02, 0.98)


@given(SHARE, SHARE, SHARE, st.integers(30, 3000))
def test_more_labels_never_widen_and_the_fewest_are_found(passed: float, yes: float, no: float, items: int) -> None:
    found = Situation(items=items, questions=items, passed=passed, right_passed=yes, right_failed=no)
    designs: tuple[Design, ...] = ("people", "random", "by outcome")
    for design in designs:
        widths = [found.width(n, design) for n in {2, items // 3 + 2, items}]
        assert sorted(widths, reverse=True) == [found.width(n, design) for n in sorted({2, items // 3 + 2, items})]
        for wanted in (0.1, 0.3):
            needed = found.labels(wanted, design)
            if needed is None:
                assert found.width(items, design) > wanted
            else:
                assert found.width(needed, design) <= wanted
                assert needed == LEAST or found.width(needed - 1, design) > wanted
    assert found.width(items // 2, "random") <= found.width(items // 2, "people") + 1e-12


@given(st.floats(0.5, 0.98), st.floats(0.02, 1), st.floats(0.02, 1))
def test_a_judge_no_better_than_the_model_saves_at_most_half(
    rate: float, sensitivity: float, specificity: float
) -> None:
    """The theorem of arXiv:2410.13341, for the numbers that are computed here."""
    assume(sensitivity + specificity > 1)
    passed = rate * sensitivity + (1 - rate) * (1 - specificity)
    found = Situation(
        items=100_000,
        questions=100_000,
        passed=passed,
        right_passed=min(rate * sensitivity / passed, 1.0),
        right_failed=min((1 - rate) * specificity / (1 - passed), 1.0) if passed < 1 else 0.0,
    )
    assert found.rate == pytest.approx(rate)
    if found.accuracy < rate:
        assert found.no_better_than_the_model
        assert found.explained <= 0.5 + 1e-9
        people, judged = found.labels(0.1, "people"), found.labels(0.1, "random")
        assert people is not None
        assert judged is not None
        assert 2 * judged >= people - 2 or judged == LEAST


def world(rng: np.random.Generator, items: int, each: int) -> tuple[Any, Any, list[str]]:
    """What people and a judge say; several answers to a question are right together more often than not."""
    base = rng.beta(3, 1.2, items // each).repeat(each)
    truth = rng.random(items) < base
    judge = np.where(truth, rng.random(items) < 0.9, rng.random(items) > 0.8)
    return truth, judge, [f"q{number // each}" for number in range(items)]


@pytest.mark.parametrize(("design", "each"), [("people", 1), ("random", 1), ("by outcome", 1), ("random", 4)])
def test_the_planned_labels_give_the_wanted_width(design: Design, each: int) -> None:
    """The mean width over draws is the wanted one, within a tenth."""
    rng = np.random.default_rng(11)
    truth, judge, questions = world(rng, 1200, each)
    known = observed([bool(v) for v in judge], [bool(v) for v in truth], questions)
    wanted = 0.12
    needed = known.labels(wanted, design)
    assert needed is not None
    widths, covered = [], 0
    for _ in range(60):
        truth, judge, questions = world(rng, 1200, each)
        drawn = rng.permutation(1200)[:needed]
        if design == "by outcome":
            half, ordered = needed // 2, rng.permutation(1200)
            drawn = np.concatenate([ordered[judge[ordered]][:half], ordered[~judge[ordered]][: needed - half]])
        people: list[float | None] = [None] * 1200
        for place in drawn:
            people[place] = float(truth[place])
        strata = judge.tolist() if design == "by outcome" else None
        sample = Sample.of([float(v) for v in judge], people, questions, strata)
        found = (people_alone if design == "people" else ppi_plus)(sample)
        assert found.interval is not None
        widths.append(found.interval.high - found.interval.low)
        covered += found.interval.low <= 3 / 4.2 <= found.interval.high
    assert np.mean(widths) == pytest.approx(wanted, rel=0.1)
    assert covered >= 51


def test_few_labels_make_no_judge_perfect_and_impossible_judges_are_refused() -> None:
    judge = [True] * 60 + [False] * 40
    people: list[bool | None] = [True] * 10 + [None] * 50 + [False] * 10 + [None] * 30
    found = observed(judge, people)
    assert (found.right_passed, found.right_failed) == (10.5 / 11, 10.5 / 11)
    with pytest.raises(StatisticsError, match="both kinds"):
        observed(judge, [True] * 10 + [None] * 90)
    with pytest.raises(StatisticsError, match="would not pass"):
        assumed([True] * 97 + [False] * 3, 0.7, 0.7)
    with pytest.raises(StatisticsError, match="guesses"):
        assumed(judge, 0.5, 0.5)
    same = assumed(judge, 0.9, 0.8)
    assert same.rate == pytest.approx((0.6 + 0.8 - 1) / 0.7)


@given(st.integers(0, 1000), st.integers(2, 6))
@settings(max_examples=20)
def test_answers_that_are_always_alike_count_once(seed: int, each: int) -> None:
    verdicts = np.random.default_rng(seed).random(60) < 0.6
    assume(0 < verdicts.sum() < 60)
    questions = np.arange(60).repeat(each).tolist()
    assert likeness(verdicts.repeat(each).tolist(), questions) == pytest.approx(1.0, abs=0.02)
    assert likeness(verdicts.tolist(), list(range(60))) == 0.0


def planned(*line: object) -> tuple[int, Any]:
    ended = karenina("judge", "labels", *line, "--json")
    return ended.exit_code, json.loads(ended.stdout) if ended.stdout else ended.stderr


def test_the_command_plans_from_labels_from_assumptions_and_says_the_line_to_type(tmp_path: Path) -> None:
    truth = [number % 4 > 0 for number in range(400)]
    votes = [right if number % 10 else not right for number, right in enumerate(truth)]
    rows = results("x:judge", votes)
    run, people = written(tmp_path, "run", rows), labels(tmp_path, rows[:80], truth[:80])
    code, found = planned(run, "--width", 0.1, "--labels", people)
    (row,) = found["rows"]
    assert (code, row["items"], row["basis"]) == (0, 400, "80 labels")
    assert row["accuracy"] == pytest.approx(0.9, abs=0.03)
    assert row["labels"]["random"] < row["labels"]["people"] < 400
    best = min(row["labels"], key=lambda name: row["labels"][name])
    shown = karenina("judge", "labels", run, "--width", 0.1, "--labels", people).stdout
    more = " --stratify outcome" if best == "by outcome" else ""
    assert f"To draw them, type: karenina label {run} --n {row['labels'][best]}{more} --annotator NAME" in shown
    code, found = planned(run, "--width", 0.1)
    assert [row["basis"][-4:] for row in found["rows"]] == ["0.80", "0.90", "0.95"]
    assert [row["no_better_than_the_model"] for row in found["rows"]] == [True, False, False]
    shown = karenina("judge", "labels", run, "--width", 0.1).stdout
    assert "no method saves more than half" in shown
    assert "sensitivity 0.70 and specificity 0.70 would not pass 75.0%" in shown
    code, found = planned(run, "--width", 0.01, "--sensitivity", 0.9, "--specificity", 0.8)
    assert (code, found["rows"][0]["labels"]) == (4, {"people": None, "random": None, "by outcome": None})
    assert planned(run, "--width", 0.1, "--judge", "other")[0] == 1
    assert karenina("judge", "labels", run, "--width", 0.1, "--sensitivity", 0.9).exit_code == 2
