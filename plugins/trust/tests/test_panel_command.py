"""`karenina panel`: what judges of the same answers say together, whatever the order of the runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_runs.results.lines import record
from karenina_trust.labels.answers import answer_id
from karenina_trust.labels.file import Label, LabelFile, write_labels
from karenina_trust.labels.plan import BY_HAND, Plan
from karenina_trust.panel.panel import panel_of
from karenina_trust.panel.votes import ballot_of

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.values.result import GenerationPart, MetadataPart

from .judged_trials import karenina

RIGHT = [True] * 12 + [False] * 8
"""Whether the answer to each of twenty questions is right."""


def results(judge: str, votes: Iterable[bool | None], *, text: str = "") -> list[VerificationResult]:
    """Of one judge, an answer to a question each; None is an error."""
    return [
        VerificationResult(
            metadata=MetadataPart(
                question_id=f"q{number:02}",
                template_id="t",
                result_id=hashlib.sha256(f"{judge}{number}{text}".encode()).hexdigest()[:16],
                question_text=f"question {number}",
                answering=ModelIdentity("x", "model"),
                parsing=ModelIdentity("x", judge.removeprefix("x:")),
                replicate=1,
                outcome="error" if vote is None else "passed" if vote else "failed",
                evaluation_mode="template_only",
            ),
            generation=GenerationPart(raw_llm_response=f"answer {number}{text}"),
        )
        for number, vote in enumerate(votes)
    ]


def turned(*places: int) -> list[bool]:
    """The right verdicts but for these."""
    return [right is not (number in places) for number, right in enumerate(RIGHT)]


def written(folder: Path, name: str, *found: Sequence[VerificationResult]) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("".join(f"{record(result)}\n" for part in found for result in part), "utf-8")
    return path


def labels(folder: Path, rows: Sequence[VerificationResult], truth: Sequence[bool]) -> Path:
    said = zip(map(answer_id, rows), truth, strict=True)
    return labelled(
        folder, *(Label(item=item, annotator="anna", target="verdict", value=value) for item, value in said)
    )


def labelled(folder: Path, *said: Label) -> Path:
    plan = Plan(kind=BY_HAND, strata={}, population="")
    write_labels(path := folder / "labels.json", LabelFile(run_id="run", binding={}, plan=plan, labels=said))
    return path


def panel(*line: object) -> Any:
    ended = karenina("panel", *line, "--json")
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


GOOD, WEAK, WEAKER, CONTRARY = (
    turned(3), turned(0, 1, 2, 4, 12, 13), turned(0, 1, 2, 5, 12, 13, 14), [not right for right in turned(6)],
)  # fmt: skip


def test_a_panel_that_is_worse_than_its_best_member_says_so(tmp_path: Path) -> None:
    rows = [results("x:good", GOOD), results("x:weak", WEAK), results("x:weaker", WEAKER)]
    run, people = written(tmp_path, "run", *rows), labels(tmp_path, rows[0], RIGHT)
    found = panel(run, "--labels", people)
    assert found["best"] == "x:good"
    assert found["majority"]["right"]["rate"] == 15 / 20  # 0, 1, 2, 12 and 13: both weak ones err
    (warning,) = [line for line in found["warnings"] if line.startswith("the majority")]
    assert "worse than its best member x:good" in warning
    assert "which chance may explain" in warning, "four answers against none: p = 0.22 of five lost and one won"
    assert found["errors_against"] == "labels"
    assert 1 < found["effective_votes"] < 3
    assert found["inverted"] == {}
    shown = karenina("panel", run, "--labels", people).stdout
    assert "effective votes: " in shown
    assert " of 3 (errors correlate by " in shown


def test_without_labels_an_inverted_judge_is_named_and_never_turned_round(tmp_path: Path) -> None:
    run = written(tmp_path, "run", results("x:good", GOOD), results("x:other", turned(9)),
                  results("x:third", turned(15)), results("x:contrary", CONTRARY))  # fmt: skip
    found = panel(run)
    assert list(found["inverted"]) == ["x:contrary"]
    assert "left out of the weighted verdicts" in found["warnings"][0]
    without = panel(written(tmp_path, "three", results("x:good", GOOD), results("x:other", turned(9)),
                            results("x:third", turned(15))))  # fmt: skip
    chances = [[row["probability"] for row in each["verdicts"]] for each in (found, without)]
    assert chances[0] == pytest.approx(chances[1], abs=1e-9)
    assert [row["weighted"] for row in found["verdicts"]] == RIGHT
    assert found["errors_against"] == "weighted verdicts"
    assert (found["votes"], found["effective_votes"]) == (3, pytest.approx(without["effective_votes"]))
    assert "at most" in karenina("panel", run).stdout


@given(
    st.permutations([0, 1, 2]),
    st.lists(st.lists(st.sampled_from([True, False, None]), min_size=12, max_size=12), min_size=3, max_size=3),
    st.lists(st.sampled_from([True, False, None]), min_size=12, max_size=12),
)
@settings(max_examples=15, deadline=None)
def test_the_order_of_runs_makes_no_difference(
    order: list[int], votes: list[list[bool | None]], truth: list[bool | None]
) -> None:
    rows = [results(judge, said) for judge, said in zip(("x:b", "x:a", "x:b"), votes, strict=True)]
    rows[1] = rows[1][::-1]
    people = {answer_id(result): label for result, label in zip(rows[0], truth, strict=True) if label is not None}
    runs = [(f"run{number}", found) for number, found in enumerate(rows)]
    try:
        first = panel_of(ballot_of(runs), people).document()
    except ConfigError:  # no answer with two votes
        return
    assert panel_of(ballot_of([runs[place] for place in order]), people).document() == first


def test_a_judge_in_two_runs_has_two_votes_only_on_the_same_answers(tmp_path: Path) -> None:
    half = results("x:good", GOOD)
    one, other = written(tmp_path, "one", half[:10]), written(tmp_path, "other", half[10:], results("x:weak", WEAK))
    assert [row["judge"] for row in panel(one, other)["judges"]] == ["x:good", "x:weak"]
    again = written(tmp_path, "again", half)
    assert [row["judge"] for row in panel(one, again, again)["judges"]] == [f"x:good in {again}", f"x:good in {one}"]


@pytest.mark.parametrize("second", ["same judge", "other answers"])
def test_no_panel_without_two_judges_of_an_answer(tmp_path: Path, second: str) -> None:
    one = written(tmp_path, "one", results("x:good", GOOD))
    judge = "x:good" if second == "same judge" else "x:weak"
    other = one if second == "same judge" else written(tmp_path, "other", results(judge, WEAK, text=" more"))
    ended = karenina("panel", one, other)
    assert ended.exit_code == 1
    assert "karenina verify BENCHMARK --answers RUN" in ended.stderr


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ((), "has no verdict"),
        ((Label(item="x", annotator="a", target="trait:y", value=3),), "has no verdict"),
        ((Label(item="x", annotator="a", target="verdict", value=True),), "no label in"),
        (None, "is not a file of labels"),
    ],
)
def test_labels_that_say_nothing_of_these_answers_are_refused(tmp_path: Path, said: Any, problem: str) -> None:
    run = written(tmp_path, "run", results("x:good", GOOD), results("x:weak", WEAK))
    people = labelled(tmp_path, *(said or ()))
    if said is None:
        people.write_text("{}", "utf-8")
    ended = karenina("panel", run, "--labels", people)
    assert (ended.exit_code, problem in ended.stderr) == (1, True), ended.stderr
