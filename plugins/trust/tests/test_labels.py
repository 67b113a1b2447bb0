"""Which answers are drawn, what people are shown, and a file of labels that is whole at any time."""

from __future__ import annotations

import csv
import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_trust.labels import command as command_module
from karenina_trust.labels.answers import Answer, answers_of
from karenina_trust.labels.asking import KINDS
from karenina_trust.labels.file import Label, add_labels, read_labels, verdicts_of_people
from karenina_trust.labels.plan import FEATURES, draw
from karenina_trust.labels.status import status_of
from karenina_trust.planning import observed

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import ConfigError
from karenina_core.values.result import GenerationPart, MetadataPart


def result(question: str, outcome: Any, judge: str = "judge", model: str = "m") -> VerificationResult:
    about = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{judge}-{model}",
        question_text="?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", judge),
        outcome=outcome,
    )
    return VerificationResult(metadata=about, generation=GenerationPart(raw_llm_response=f"{question} by {model}"))


def answers(passes: list[bool], models: int = 1) -> list[Answer]:
    return answers_of(
        result(f"q{place}", "passed" if ok else "failed", model=f"m{number}")
        for place, ok in enumerate(passes)
        for number in range(models)
    )


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 3), st.integers(4, 50), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_a_larger_draw_begins_with_a_smaller_one_and_probabilities_are_shares(
    passes: list[bool], models: int, size: int, seed: int
) -> None:
    every = answers(passes, models)
    small, large = (draw(every, count, ["outcome"], seed) for count in (size, size + 5))
    assert [one.item for one in small.items] == [one.item for one in large.items][: len(small.items)]
    taken = Counter(one.stratum for one in large.items)
    assert len({one.item for one in large.items}) == len(large.items) == min(size + 5, len(every))
    assert all(one.probability == taken[one.stratum] / large.strata[one.stratum] for one in large.items)
    assert sum(large.strata.values()) == len(every)
    counts = sorted(min(taken[name], large.strata[name]) for name in large.strata)
    full = [name for name in large.strata if taken[name] == large.strata[name]]
    assert full or counts[-1] - counts[0] <= 1  # as many of each, as far as there are


def test_every_answer_is_drawn_as_often_as_the_others() -> None:
    every = answers([True] * 8 + [False] * 4)
    often = Counter(one.item for seed in range(3000) for one in draw(every, 3, seed=seed).items)
    assert set(often) == {answer.id for answer in every}
    assert max(abs(count - 750) for count in often.values()) < 5 * (3000 * 0.25 * 0.75) ** 0.5


def test_strata_are_what_judges_say_and_errors_are_in_none() -> None:
    both = [
        result(question, outcome, judge)
        for question, pair in {"a": ("passed", "passed"), "b": ("passed", "failed"), "c": ("failed", "error")}.items()
        for judge, outcome in zip(("j", "k"), pair, strict=True)
    ]
    found = answers_of([*both, result("d", "error")])
    assert [answer.question_id for answer in sorted(found, key=lambda a: a.question_id)] == ["a", "b", "c"]
    assert draw(found, 9, ["disagreement"]).strata == {"disagreement: agree": 2, "disagreement: disagree": 1}
    assert draw(found, 9, ["outcome", "model"]).strata == {
        "outcome: not passed, model: x:m": 2,
        "outcome: passed, model: x:m": 1,
    }
    with pytest.raises(ConfigError, match="no answer that a judge has judged"):
        draw([], 5)
    with pytest.raises(ConfigError, match="makes no strata; available: outcome"):
        draw(found, 5, ["colour"])
    with pytest.raises(ConfigError, match=r"2 strata need 4 labels at least; draw more \(--n 4\)"):
        draw(answers([True, False] * 5), 3, ["outcome"])


@pytest.fixture
def run(labelled_run: Any, tmp_path: Path) -> Path:
    """A copy of the run without its labels."""
    path = tmp_path / "run"
    shutil.copytree(labelled_run.path, path)
    (path / "labels.json").unlink()
    return path


def test_a_person_sees_neither_models_nor_verdicts_and_continues_where_they_ended(
    run: Path, command: Callable[..., Any], labelled_run: Any
) -> None:
    begin = ("label", run, "--n", "5", "--annotator", "ann", "--stratify", "outcome")
    first = command(*begin, typed="right\nnonsense\nw\n?\nq\n")
    assert first.exit_code == 0, first.output
    assert "3 answers labelled" in first.output
    assert "'nonsense' is not a verdict: type right or wrong" in first.output
    assert "BCL2, 200 mg" in first.output  # the reference answer, beside a verdict
    assert not {word for word in ("manual", "passed", "failed", "outcome") if word in first.output}
    file = read_labels(run / "labels.json")
    assert [label.value for label in file.labels] == [True, False, None]
    assert [label.item for label in file.labels] == [one.item for one in file.plan.items[:3]]
    second = command(*begin, typed="y\nn\n")
    assert "2 answers labelled" in second.output
    assert "Answer 1 of 2" in second.output
    again = command(*begin)
    assert "0 answers labelled" in again.output
    fields = command("label", run, "--annotator", "ann", "--what", "fields", typed="-\nmuch\n200\nq\n")
    assert "What does it say about gene: The gene that the response names (str)?" in fields.output
    assert "'much' is not a number" in fields.output
    assert "BCL2, 200 mg" not in fields.output  # what it should say is not shown to who reads what it says
    file = read_labels(run / "labels.json")
    item = file.plan.items[0].item
    assert file.by_target("field:gene")[item] == {"ann": {"reading": None}}
    assert file.by_target("field:dose")[item] == {"ann": {"reading": 200}}
    more = command("label", run, "--n", "8", "--annotator", "ann", typed="q\n")
    assert "Answer 1 of 3" in more.output


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_a_sheet_goes_out_blank_and_comes_back_filled_in(
    run: Path, command: Callable[..., Any], tmp_path: Path, suffix: str
) -> None:
    sheet = tmp_path / f"sheet{suffix}"
    what = ("--what", "verdict", "--what", "fields", "--what", "traits")
    done = command("label", run, "--n", "4", "--annotator", "bob", "--export", sheet, *what)
    assert "4 answers to label" in done.output
    columns = ["item", "question", "reference answer", "answer", "annotator", "verdict", "field gene", "field dose",
               "trait names a unit"]  # fmt: skip
    values = {"verdict": "wrong", "field gene": " bcl2 ", "field dose": "-", "trait names a unit": "yes"}
    if suffix == ".xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.load_workbook(sheet)
        page = book.active
        assert [cell.value for cell in page[1]] == columns
        for name, value in values.items():
            page.cell(2, columns.index(name) + 1).value = value
        book.save(sheet)
    else:
        mark = "\t" if suffix == ".tsv" else ","
        rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines(), delimiter=mark))
        assert list(rows[0]) == columns
        assert {row["annotator"] for row in rows} == {"bob"}
        assert not [row for row in rows if any(row[name] for name in values)]
        rows[0] |= values
        with sheet.open("w", encoding="utf-8", newline="") as out:
            writer = csv.DictWriter(out, columns, delimiter=mark)
            writer.writeheader()
            writer.writerows(rows)
    done = command("label", run, "--import", sheet)
    assert "4 labels read" in done.output, done.output
    found = {label.target: label.value for label in read_labels(run / "labels.json").labels}
    assert found == {
        "verdict": False,
        "field:gene": {"reading": "bcl2"},
        "field:dose": {"reading": None},
        "trait:names a unit": 1.0,
    }


def test_a_sheet_that_does_not_fit_is_refused_whole(run: Path, command: Callable[..., Any], tmp_path: Path) -> None:
    command("label", run, "--n", "2", "--annotator", "ann", typed="q\n")
    drawn = [one.item for one in read_labels(run / "labels.json").plan.items]
    other = next(a.id for a in answers_of(VerificationResultSet.load(run)) if a.id not in drawn)
    lines = ["item,annotator,verdict,field colour", f"{drawn[0]},ann,perhaps,", f"{other},ann,right,",
             "0123456789abcdef,ann,right,", f"{drawn[1]},,wrong,", f"{drawn[1]},ann,wrong,red"]  # fmt: skip
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("\n".join(lines), "utf-8")
    done = command("label", run, "--import", sheet)
    assert done.exit_code == 1
    for text in (
        "row 2, column 'verdict': 'perhaps' is not a verdict",
        "row 3, column 'item': ",
        "was not drawn; its label would say nothing of the others",
        "row 4, column 'item': '0123456789abcdef' is not an answer of this run",
        "row 5, column 'annotator': it is blank; say who labelled",
        "row 6, column 'field colour': no judge of this run says anything about it",
    ):
        assert text in done.output, done.output
    assert read_labels(run / "labels.json").labels == ()


def test_two_people_label_at_a_time_and_nothing_is_lost(run: Path, command: Callable[..., Any]) -> None:
    command("label", run, "--n", "20", "--annotator", "ann", typed="q\n")
    path, items = run / "labels.json", [one.item for one in read_labels(run / "labels.json").plan.items]

    def work(name: str) -> None:
        for item in items:
            add_labels(path, [Label(item=item, annotator=name, target="verdict", value=True)])

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_labels(path).by_target("verdict")
    assert {item: set(own) for item, own in found.items()} == {item: {"ann", "bob"} for item in items}


def test_status_says_what_is_labelled_and_what_more_would_buy(labelled_run: Any, command: Callable[..., Any]) -> None:
    found = json.loads(command("label", labelled_run.path, "--status", "--json").output)
    assert found["strata"] == [{"stratum": "all answers", "answers": 120, "drawn": 60, "labelled": 60}]
    assert [row["target"] for row in found["precision"]] == ["verdict", "field:dose", "field:gene"]
    row = found["precision"][0]
    assert row["labels"] == 60
    judged, people = (
        answers_of(VerificationResultSet.load(labelled_run.path)),
        verdicts_of_people(labelled_run.path / "labels.json", [labelled_run.path]),
    )
    known = observed([answer.passes == 1 for answer in judged], [people.get(answer.id) for answer in judged])
    assert row["with"]["120"] == pytest.approx(row["half_width"] * known.width(120) / known.width(60))
    assert row["half_width"] / 2**0.5 < row["with"]["120"] < row["half_width"]
    assert found["labels"] == [
        {"annotator": "ann", "target": target, "labels": 60} for target in ("field:dose", "field:gene", "verdict")
    ]
    assert found["open"] == {"ann": 0}
    shown = command("label", labelled_run.path, "--status").output
    assert "60 answers drawn (random, seed 0)" in shown
    assert f"±{100 * row['half_width']:.1f}          ±{100 * row['with']['120']:.1f} with 120" in shown


def test_status_speaks_of_each_target_with_its_own_labels(labelled_run: Any, tmp_path: Path) -> None:
    """Half of the verdicts are labelled, so that there are other numbers of labels to come than of fields."""
    judged, file = (
        answers_of(VerificationResultSet.load(labelled_run.path)),
        read_labels(labelled_run.path / "labels.json"),
    )
    drawn = {one.item for one in file.plan.items[:25]}
    kept = tuple(label for label in file.labels if label.target != "verdict" or label.item in drawn)
    found = status_of(evolve(file, labels=kept), judged, labelled_run.path)
    assert [list(row["with"]) for row in found["precision"]] == [["50", "100"], ["120"], ["120"]]
    everything = tuple(
        Label(item=answer.id, annotator="ann", target="verdict", value=answer.passes == 1) for answer in judged
    )
    found = status_of(evolve(file, plan=draw(judged, 120), labels=everything), judged, labelled_run.path)
    assert [row["with"] for row in found["precision"]] == [{}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--n", "5"], "say who labels: --annotator NAME"),
        (["--annotator", "  "], "say who labels: --annotator NAME"),
        (["--status", "--export", "x.csv"], "give one"),
        (["--annotator", "ann", "--json"], "--json belongs to --status"),
    ],
)
def test_wrong_usage_says_what_to_type(
    labelled_run: Any, command: Callable[..., Any], arguments: list[str], message: str
) -> None:
    done = command("label", labelled_run.path, *arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_labels_stay_with_their_plan_and_their_run(run: Path, command: Callable[..., Any], tmp_path: Path) -> None:
    command("label", run, "--n", "4", "--annotator", "ann", typed="q\n")
    other = command("label", run, "--annotator", "ann", "--seed", "7")
    assert other.exit_code == 1
    assert "has another plan (--seed 0, strata by nothing): what is drawn stays drawn" in other.output
    lines = (run / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[1:]), "utf-8")
    fewer = command("label", run, "--annotator", "ann")
    assert "was drawn from other answers than the run has now" in fewer.output
    (run / "labels.json").write_text("{}", "utf-8")
    broken = command("label", run, "--annotator", "ann")
    assert broken.exit_code == 1
    assert "is not a file of labels" in broken.output


def test_the_id_of_an_answer_changes_with_its_text() -> None:
    one = result("q", "passed")
    other = evolve(one, generation=GenerationPart(raw_llm_response="something else"))
    assert answers_of([one])[0].id != answers_of([other])[0].id


def test_the_command_offers_what_there_is() -> None:
    """It says so itself, so that its help imports nothing."""
    assert tuple(FEATURES) == command_module.FEATURES
    assert command_module.KINDS == KINDS
