"""Drift: few false alarms over a thousand looks, alarms soon after a judge becomes worse, and the command."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics.inputs import StatisticsError
from karenina_trust.drift.sequence import BETS, Look, evidence, floor_of, monitored

from .judged_trials import karenina
from .test_panel_command import labels, results, written

LOOKS, ITEMS, WORLDS = 1000, 40, 400
HARD = np.concatenate([np.full(20, 1.0), np.linspace(0.55, 0.98, 20)])
"""How often a judge agrees with the label of each answer: half are always judged alike, the others by chance."""


def agreed(rng: np.random.Generator, chances: Any, looks: int, worlds: int = WORLDS) -> Any:
    """How many of the answers agree, shape (worlds, looks)."""
    total = np.zeros((worlds, looks))
    for chance in chances:
        total += rng.random((worlds, looks)) < chance
    return total


def test_a_thousand_looks_give_few_false_alarms() -> None:
    """Where nothing changes: 5 % at most, with the floor from the first look; a test that is repeated at every look has
    far more (`pytest -s` prints both)."""
    rng = np.random.default_rng(3)
    counts = agreed(rng, HARD, LOOKS)
    alarms = 0
    for first in np.unique(counts[:, 0]):
        rows = counts[counts[:, 0] == first, 1:]
        floor = floor_of([Look(int(first), ITEMS)], 0.025)
        alarms += int((evidence(rows, np.full(rows.shape, float(ITEMS)), floor) >= 40).any(axis=1).sum())
    judged = ITEMS * np.arange(1, LOOKS + 1)
    so_far = np.cumsum(counts, axis=1) / judged
    error = np.sqrt(so_far * (1 - so_far) / judged)
    naive = int((so_far + 1.645 * error < HARD.mean()).any(axis=1).sum())
    print(f"false alarms: {alarms / WORLDS:.3f}, of a repeated one-sided test with the known mean {naive / WORLDS:.3f}")
    assert alarms <= scipy.stats.binom.ppf(0.99, WORLDS, 0.05)
    assert naive > 3 * alarms


def test_the_limit_is_kept_where_the_floor_is_the_very_mean() -> None:
    """The hardest case: no slack between the floor and the truth, and answers that are equally hard."""
    rng = np.random.default_rng(4)
    counts = rng.binomial(ITEMS, 0.8, (WORLDS, LOOKS)).astype(float)
    found = evidence(counts, np.full(counts.shape, float(ITEMS)), 0.8)
    reached = (found >= 20).any(axis=1).mean()
    assert 0 < reached <= scipy.stats.binom.ppf(0.99, WORLDS, 0.05) / WORLDS


@pytest.mark.parametrize(("before", "worse", "soon"), [(5, 0.25, 8), (60, 0.25, 12), (5, 0.5, 3)])
def test_a_judge_that_becomes_worse_is_found_soon(before: int, worse: float, soon: int) -> None:
    """In nine of ten worlds within so many looks, long after the beginning, too."""
    rng = np.random.default_rng(5)
    counts = np.concatenate([agreed(rng, HARD, before, 60), agreed(rng, np.clip(HARD - worse, 0, 1), soon, 60)], axis=1)
    found = [monitored([Look(int(n), ITEMS) for n in row], baseline=min(before, 5)).alarm for row in counts]
    assert sum(alarm is not None and alarm >= before for alarm in found) >= 54


@given(st.lists(st.integers(0, 20), min_size=1, max_size=12), st.floats(0.1, 0.9))
@settings(max_examples=30, deadline=None)
def test_evidence_is_the_mixture_written_out(counts: list[int], floor: float) -> None:
    found = evidence(np.asarray(counts, dtype=float), np.full(len(counts), 20.0), floor)
    for looks in range(1, len(counts) + 1):
        total = 0.0
        for begin in range(1, looks + 1):
            for share in BETS:
                bet, product = floor * share, 1.0
                for count in counts[begin - 1 : looks]:
                    product *= (bet / floor) ** count * ((1 - bet) / (1 - floor)) ** (20 - count)
                total += product / len(BETS) / (begin * (begin + 1))
        assert found[looks - 1] == pytest.approx(total + 1 / (looks + 1), rel=1e-6)


@given(st.integers(1, 39), st.floats(0.05, 0.95))
def test_one_look_more_that_agrees_never_adds_evidence(count: int, floor: float) -> None:
    judged = np.full(2, 40.0)
    values = [evidence(np.asarray([count, more], dtype=float), judged, floor)[1] for more in (0, 20, 40)]
    assert all(less >= more for less, more in pairwise(values))


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(
        StatisticsError, match=r"one look is too few: the first look says .* give more runs, or --floor"
    ):
        monitored([Look(9, 10)])
    with pytest.raises(StatisticsError, match="no verdict"):
        monitored([Look(9, 10), Look(0, 0, 10)])
    with pytest.raises(StatisticsError, match="no label"):
        monitored([Look(0, 10), Look(9, 10)])
    assert monitored([Look(9, 10)], floor=0.5).alarm is None


def test_the_command_says_which_run_is_the_first_with_an_alarm(tmp_path: Path) -> None:
    truth = [number % 3 > 0 for number in range(60)]
    votes = [list(truth) for _ in range(6)]
    for look, wrong in ((3, 20), (4, 24), (5, 22)):
        votes[look][:wrong] = [not right for right in truth[:wrong]]
    people = labels(tmp_path, results("x:judge", truth), truth)
    runs = [
        written(tmp_path, f"look{number}", results("x:judge", [None, *said[1:]] if number == 1 else said))
        for number, said in enumerate(votes)
    ]
    line = ("judge", "drift", *runs, "--labels", people)
    ended = karenina(*line, "--json")
    (judge,) = json.loads(ended.stdout)["judges"]
    assert ended.exit_code == 4
    assert judge["alarm"] == str(runs[3])
    assert [look["agreed"] for look in judge["looks"]] == [60, 59, 60, 40, 36, 38]
    assert [look["errors"] for look in judge["looks"]] == [0, 1, 0, 0, 0, 0]
    assert judge["looks"][0]["evidence"] is None
    assert len(judge["changed"]) == 22
    before = karenina("judge", "drift", *runs[:3], "--labels", people)
    assert (before.exit_code, "alarm    none" in before.stdout) == (0, True)
    assert karenina(*line, "--floor", 0.5).exit_code == 0
    assert karenina(*line, "--floor", 0.5, "--baseline", 2).exit_code == 2
    other = written(tmp_path, "other", results("x:judge", truth, text=" another"))
    ended = karenina("judge", "drift", runs[0], other, "--labels", people)
    assert (ended.exit_code, "none of the labelled answers" in ended.stderr) == (1, True)


def test_runs_are_taken_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    truth = [number % 3 > 0 for number in range(60)]
    people = labels(tmp_path, results("x:judge", truth), truth)
    folders = []
    for number, wrong in ((1, 0), (2, 30)):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        said = [not right if place < wrong else right for place, right in enumerate(truth)]
        written(folder, "results", results("x:judge", said))
        (folder / "manifest.json").write_text(json.dumps({"created_at": f"2026-01-0{number}"}), "utf-8")
        folders.append(folder)
    ended = karenina("judge", "drift", *folders[::-1], "--labels", people, "--json")
    (judge,) = json.loads(ended.stdout)["judges"]
    assert [look["run"] for look in judge["looks"]] == [str(folder) for folder in folders]
    assert (ended.exit_code, judge["alarm"]) == (4, str(folders[1]))


def again(run: Path, to: Path, part: str, name: str, value: Any) -> Path:
    """The same results, of a run whose questions or settings were others."""
    shutil.copytree(run, to)
    found = json.loads((to / "fingerprint.json").read_text("utf-8"))
    found[part][name] = {**found[part][name], **value} if isinstance(value, dict) else value
    (to / "fingerprint.json").write_text(json.dumps(found), "utf-8")
    return to


@pytest.mark.parametrize(("part", "named"), [("text", "text"), ("template", "template"), ("rubric", "")])
def test_labels_of_other_questions_are_refused_by_what_uses_them(
    labelled_run: Any, tmp_path: Path, part: str, named: str
) -> None:
    """A rubric does not decide whether an answer is right."""
    other = again(labelled_run.path, tmp_path / "other", "questions", "q003", {part: "changed"})
    labels = ("--labels", labelled_run.path / "labels.json")
    for line in (
        ("panel", labelled_run.path, other),
        ("judge", "drift", labelled_run.path, other),
        ("judge", "labels", other, "--width", 0.3),
    ):
        ended = karenina(*line, *labels)
        assert ended.exit_code == (1 if named else 0), ended.stderr
        assert (f"other questions than {other} has: the question 'q003' has another {named};" in ended.stderr) is bool(
            named
        )


def test_a_look_that_was_judged_otherwise_is_named(labelled_run: Any, tmp_path: Path) -> None:
    other = again(labelled_run.path, tmp_path / "other", "settings", "features", ["abstention"])
    line = ("judge", "drift", labelled_run.path, other, "--labels", labelled_run.path / "labels.json")
    found = json.loads(karenina(*line, "--json").stdout)
    assert found["judged_otherwise"] == {str(other): ['the setting features was [] and is ["abstention"]']}
    assert "the setting features was []" in karenina(*line).stdout
    assert json.loads(karenina(*line[:3], *line[4:], "--floor", 0.5, "--json").stdout)["judged_otherwise"] == {}


def test_a_judge_of_one_run_alone_does_not_end_the_test_of_the_others(tmp_path: Path) -> None:
    truth = [number % 3 > 0 for number in range(60)]
    people = labels(tmp_path, results("x:judge", truth), truth)
    one = written(tmp_path, "one", results("x:judge", truth))
    two = written(tmp_path, "two", results("x:judge", truth), results("x:late", truth))
    ended = karenina("judge", "drift", one, two, "--labels", people, "--json")
    found = json.loads(ended.stdout)
    assert ([judge["judge"] for judge in found["judges"]], found["not_tested"]) == (["x:judge"], ["x:late"])
    assert "x:late is not tested: it judged in too few of the runs" in ended.stderr
    ended = karenina("judge", "drift", one, "--labels", people)
    assert (ended.exit_code, "one look is too few" in ended.stderr) == (1, True)
