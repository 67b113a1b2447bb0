"""What a certificate says of labels beside a judge: which number, why, and why none."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_runs.summaries.intervals import wilson
from karenina_trust.certificates.certify import certify, check_labels
from karenina_trust.certificates.document import document, read_certificate
from karenina_trust.certificates.readings import CAUSES, FieldCheck, findings, same_reading
from karenina_trust.certificates.rows import Row, exact_chance, row_of
from karenina_trust.certificates.samples import Beside, beside
from karenina_trust.estimators import Sample, people_alone, ppi_plus
from karenina_trust.labels.answers import answers_of
from karenina_trust.labels.file import Label, LabelFile, read_labels
from karenina_trust.labels.plan import draw
from karenina_trust.labels.templates import Templates

from karenina_core import VerificationResultSet
from karenina_core.errors import ConfigError


def table(
    said: Sequence[float],
    people: Mapping[int, float | Mapping[str, float]],
    questions: Sequence[str] | None = None,
    strata: Sequence[str] | None = None,
) -> Beside:
    own = [people.get(place, {}) for place in range(len(said))]
    return Beside(
        target="verdict",
        judge="j",
        model="m",
        ids=tuple(f"i{place}" for place in range(len(said))),
        said=tuple(map(float, said)),
        people=tuple(one if isinstance(one, Mapping) else {"ann": float(one)} for one in own),
        questions=tuple(questions or (f"q{place}" for place in range(len(said)))),
        strata=tuple(strata or ["all"] * len(said)),
    )


def world(items: int, labels: int, good: float, seed: int = 3) -> Beside:
    """A judge that is right with this chance, and labels of the first items."""
    chance = Random(seed)
    truth = [float(chance.random() < 0.7) for _ in range(items)]
    said = [value if chance.random() < good else 1 - value for value in truth]
    return table(said, dict(enumerate(truth[:labels])))


def test_the_five_estimates_stand_side_by_side_and_ppi_plus_is_recommended() -> None:
    found = world(400, 80, 0.9)
    row = row_of(found, drawn=True)
    assert list(row.estimates) == ["people", "judge", "ppi", "ppi++", "rogan-gladen"]
    assert all(estimate.interval is not None for estimate in row.estimates.values())
    assert row.recommended == "ppi++"
    assert row.certified == ppi_plus(found.sample())
    assert re.search(
        r"uses the judge as far as it correlates with people's labels \(0\.\d\d of its correction\)", row.reason
    )
    error = row.certified.standard_error
    assert sum(value**2 for value in row.influence.values()) == pytest.approx(error**2)


@pytest.mark.parametrize(
    ("found", "drawn", "reason"),
    [
        (world(100, 12, 0.9), True, "too few labels: 12; label at least 8 more"),
        (world(100, 60, 0.9), False, "the answers were chosen by hand"),
        (
            table([1, 0] * 30, dict.fromkeys(range(30), 1.0), ["one"] * 30 + [f"q{n}" for n in range(30)]),
            True,
            "labels of one question say nothing about others",
        ),
        (
            table([1, 0] * 30, dict.fromkeys(range(30), 1.0), strata=["a"] * 30 + ["b"] * 30),
            True,
            "a part of the answers has no label: stratum 1 has no label",
        ),
    ],
)
def test_nothing_is_certified_where_labels_do_not_carry_it(found: Beside, drawn: bool, reason: str) -> None:
    row = row_of(found, drawn=drawn)
    assert row.recommended is row.certified is None
    assert row.reason.startswith(reason)


def test_a_judge_that_guesses_counts_for_nothing() -> None:
    found = world(400, 100, 0.5)
    row = row_of(found, drawn=True)
    assert row.recommended == "people"
    assert row.certified == people_alone(found.sample())
    assert row.reason.startswith("the judge says little")
    assert row.estimates["rogan-gladen"].value is None


def test_strata_count_with_their_shares_and_say_nothing_of_sensitivity_in_general() -> None:
    """Half of the labels are of answers that the judge failed, which are a fifth."""
    chance = Random(4)
    said = [1.0] * 320 + [0.0] * 80
    truth = [float(chance.random() < (0.9 if value else 0.15)) for value in said]
    people = {place: truth[place] for place in (*range(40), *range(320, 360))}
    row = row_of(table(said, people, strata=["passed"] * 320 + ["failed"] * 80), drawn=True)
    weighted = 0.8 * sum(truth[:40]) / 40 + 0.2 * sum(truth[320:360]) / 40
    assert row.certified is not None
    assert row.certified.value == pytest.approx(weighted)  # within strata of the verdict, the judge adds nothing
    assert row.recommended == "people"
    assert row.estimates["rogan-gladen"].value is row.classes is None
    assert "strata drew some kinds of answers more often" in row.estimates["rogan-gladen"].note
    assert "which strata drew unevenly" in row.warnings[-1]


def test_few_labels_of_scores_have_the_wider_interval_and_say_so() -> None:
    """Intervals of passes and failures are of no normal theory, and wide enough as they are."""
    chance = Random(2)
    scores = [chance.choice((0.0, 0.0, 0.0, 1.0, 5.0)) for _ in range(300)]
    found = table(scores, {place: score if place % 9 else 5 - score for place, score in enumerate(scores[:25])})
    row = row_of(found, drawn=True)
    plain, wide = ppi_plus(found.sample()).interval, row.estimates["ppi++"].interval
    assert plain is not None
    assert wide is not None
    assert (wide.low, wide.high) != (plain.low, plain.high)
    assert wide.low <= plain.low <= plain.high <= wide.high
    assert "few labels (25)" in row.warnings[-1]
    passes = row_of(world(300, 25, 0.85), drawn=True)
    assert passes.certified == ppi_plus(world(300, 25, 0.85).sample())
    assert not passes.warnings


def test_labels_drawn_by_verdict_use_the_judge_without_a_correction() -> None:
    found = world(300, 300, 0.9)
    labels = {place: own for place, own in enumerate(found.people) if place < 120}
    by_verdict = table(found.said, labels, strata=[str(said) for said in found.said])
    row = row_of(by_verdict, drawn=True)
    assert row.recommended == "people"
    assert "answers were drawn by the judge's outcome" in row.reason
    wide = people_alone(evolve(by_verdict, strata=("all",) * 300).sample()).interval
    assert row.certified is not None
    assert row.certified.interval is not None
    assert wide is not None
    assert row.certified.interval.high - row.certified.interval.low < 0.8 * (wide.high - wide.low)


def test_labels_that_look_like_no_draw_are_named() -> None:
    said = [1.0] * 60 + [0.0] * 240
    row = row_of(table(said, {place: float(place % 4 > 0) for place in range(60)}), drawn=True)
    assert "the judge passes the labelled answers at another rate than the rest" in " ".join(row.warnings)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
@settings(max_examples=settings().max_examples // 2, deadline=None)
def test_the_chance_of_a_draw_is_fishers(drawn: int, others: int, data: st.DataObject) -> None:
    items = drawn + others
    passes = data.draw(st.integers(0, items))
    seen = data.draw(st.integers(max(0, passes - others), min(drawn, passes)))
    ways = [math.comb(passes, k) * math.comb(items - passes, drawn - k) for k in range(min(drawn, passes) + 1)]
    expected = sum(own for own in ways if own <= ways[seen]) / math.comb(items, drawn)
    assert exact_chance(seen, drawn, passes, items) == pytest.approx(expected, rel=1e-7)


def test_labels_of_several_people_on_an_answer_are_one_to_rates_by_class() -> None:
    """Three people who say the same make no interval narrower than one of them."""
    found = world(300, 80, 0.85)
    thrice = tuple(dict.fromkeys(("ann", "bob", "cid"), own["ann"]) if own else {} for own in found.people)
    one, three = (
        row_of(evolve(each, model=None), drawn=True).agreement for each in (found, evolve(found, people=thrice))
    )
    for name in ("sensitivity", "specificity", "positive predictive value", "negative predictive value"):
        alone, together = one[name], three[name]
        assert together.value == pytest.approx(alone.value)
        assert alone.interval is not None
        assert together.interval is not None
        assert alone.interval == wilson(alone.value or 0.0, alone.n)
        assert together.interval.high - together.interval.low >= alone.interval.high - alone.interval.low


def test_no_more_labels_are_asked_for_than_there_are_answers() -> None:
    row = row_of(world(19, 19, 0.9), drawn=True)
    assert row.reason == "too few labels: 19 of 19 answers; 20 are needed, so judge more answers"


def test_where_every_answer_is_labelled_the_judge_is_not_blamed() -> None:
    row = row_of(world(60, 60, 0.9), drawn=True)
    assert (row.recommended, row.reason) == ("people", "every answer is labelled, so the judge has nothing to add")


def test_people_of_two_minds_count_half_and_are_named() -> None:
    chance = Random(5)
    said = [float(chance.random() < 0.7) for _ in range(200)]
    split = {place: {"ann": said[place], "bob": 1 - said[place]} for place in range(40)}
    row = row_of(table(said, {**split, **{place: said[place] for place in range(40, 60)}}), drawn=True)
    assert row.estimates["people"].value == pytest.approx((40 * 0.5 + sum(said[40:60])) / 60)
    assert "people disagree with each other (100% of pairs) more than with the judge (40%)" in " ".join(row.warnings)


def test_what_most_people_say_decides_on_the_class_of_an_answer() -> None:
    found = world(300, 80, 0.9)
    split = [{"ann": v, "bob": v, "cid": 1 - v} if own else {} for own in found.people for v in [own.get("ann", 0.0)]]
    row, plain = row_of(evolve(found, people=tuple(split)), drawn=True), row_of(found, drawn=True)
    assert row.classes == plain.classes
    assert row.estimates["rogan-gladen"] == plain.estimates["rogan-gladen"]
    assert row.estimates["people"].value != plain.estimates["people"].value


@pytest.fixture(scope="session")
def certificate(labelled_run: Any) -> Any:
    file = read_labels(labelled_run.path / "labels.json")
    return certify(VerificationResultSet.load(labelled_run.path), labelled_run.path, file)


def test_a_certificate_has_the_verdict_every_field_and_all_fields(certificate: Any, labelled_run: Any) -> None:
    rows = {row.target: row for row in certificate.rows}
    assert list(rows) == ["verdict", "field:dose", "field:gene", "all fields"]
    for target, row in rows.items():
        assert row.recommended == "ppi++", target
        assert set(row.agreement) >= {"cohen kappa", "scott pi", "krippendorff alpha", "gwet ac", "sensitivity"}
        assert all(found.interval is not None for found in row.agreement.values()), target
    verdict = rows["verdict"]
    labelled = [one.item for one in read_labels(labelled_run.path / "labels.json").plan.items]
    known = {a.id: a.question_id for a in answers_of(VerificationResultSet.load(labelled_run.path))}
    right = sum(labelled_run.right(known[item]) for item in labelled)
    assert verdict.estimates["people"].value == pytest.approx(right / 60)
    assert rows["all fields"].labels == 120
    assert rows["all fields"].questions == 60


def test_what_is_written_is_what_is_read(certificate: Any, labelled_run: Any, command: Callable[..., Any]) -> None:
    path = labelled_run.path / "certificate.json"
    done = command("certify", labelled_run.path)
    assert done.exit_code == 0, done.output
    assert "ppi++" in done.output
    held = read_certificate(path)
    assert [(row.target, row.value) for row in held.rows] == [
        (row.target, row.certified.value) for row in certificate.rows
    ]
    assert held.content["rows"] == json.loads(json.dumps(document(certificate)["rows"]))
    assert set(held.content["holds_for"]) == {"judge", "prompt", "template", "rubric", "model"}


def test_models_are_certified_together_and_each(labelled_run: Any) -> None:
    file, answers = read_labels(labelled_run.path / "labels.json"), labelled_answers(labelled_run)
    half = [evolve(a, model=f"model {place % 2}") for place, a in enumerate(answers)]
    check = FieldCheck(Templates(labelled_run.path))
    found, models = beside(file, half, "verdict", "manual:manual", check)
    each = [row_of(found.of_model(name, models), drawn=True) for name in sorted(set(models))]
    whole = row_of(found, drawn=True)
    assert [row.model for row in each] == ["model 0", "model 1"]
    assert sum(row.labels for row in each) == whole.labels == 60
    assert sum(row.items for row in each) == whole.items == 120


def test_traits_are_certified_as_verdicts_are_and_classes_have_agreement_alone(labelled_run: Any) -> None:
    file = read_labels(labelled_run.path / "labels.json")
    name, chance = "trait:names a unit", Random(1)
    labels = [
        Label(item=one.item, annotator="ann", target=name, value=float(chance.random() < 0.9))
        for one in file.plan.items
    ]
    found = certify(
        VerificationResultSet.load(labelled_run.path), labelled_run.path, evolve(file, labels=tuple(labels))
    )
    (row,) = found.rows
    assert (row.target, row.labels, row.recommended) == (name, 60, "people")  # the pattern says the same of all
    assert row.estimates["people"].value == sum(label.value for label in labels) / 60
    words = evolve(
        world(100, 60, 0.9),
        model=None,
        said=("good",) * 50 + ("poor",) * 50,
        people=tuple({"ann": "good" if place % 5 else "poor"} for place in range(100)),
    )
    row = row_of(words, drawn=True)
    assert (row.recommended, row.reason) == (
        None,
        "classes have no mean; look at the agreement of the judge with people",
    )
    assert row.agreement["percent"].value == pytest.approx(0.5)
    assert "sensitivity" not in row.agreement


def test_another_judge_changes_no_stratum_and_another_verdict_does(
    labelled_run: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "strata.json"
    own = ("--labels", path, "--n", "6", "--stratify", "outcome", "--annotator", "ann")
    assert command("label", labelled_run.path, *own, typed="q\n").exit_code == 0
    file, answers = read_labels(path), labelled_answers(labelled_run)
    harsh = [
        evolve(a, judged={**a.judged, "x:harsh": evolved(a.judged["manual:manual"], outcome="failed")}) for a in answers
    ]
    check_labels(file, labelled_run.path, harsh)
    other = [evolve(a, judged={j: evolved(r, outcome="failed") for j, r in a.judged.items()}) for a in answers]
    with pytest.raises(ConfigError, match="verdicts have changed since the answers were drawn"):
        check_labels(file, labelled_run.path, other)


def evolved(result: Any, **about: Any) -> Any:
    return evolve(result, metadata=evolve(result.metadata, **about))


def labelled_answers(run: Any) -> list[Any]:
    return answers_of(VerificationResultSet.load(run.path))


def with_annotators(file: LabelFile, wrong: Mapping[str, float]) -> LabelFile:
    """The labels again, by people who err so often."""
    chance, labels = Random(9), []
    for label in (label for label in file.labels if label.target == "verdict"):
        for name, rate in wrong.items():
            labels.append(evolve(label, annotator=name, value=label.value ^ (chance.random() < rate)))
    return evolve(file, labels=tuple(labels))


@pytest.mark.parametrize(
    ("people", "passed"),
    [({"ann": 0.25, "bob": 0.25, "cid": 0.25}, True), ({"ann": 0.0, "bob": 0.0, "cid": 0.0}, True), ({"a": 0.0}, None)],
)
def test_three_annotators_are_asked_whether_the_judge_may_replace_one(
    labelled_run: Any, people: dict[str, float], passed: bool | None
) -> None:
    file = with_annotators(read_labels(labelled_run.path / "labels.json"), people)
    found = certify(VerificationResultSet.load(labelled_run.path), labelled_run.path, file)
    assert [trial.test.passed if trial.test else None for trial in found.trials] == ([] if passed is None else [passed])


def test_labels_by_hand_give_agreement_and_no_rate(
    labelled_run: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    answers = labelled_answers(labelled_run)[:30]
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("item,verdict\n" + "".join(f"{a.id},right\n" for a in answers), "utf-8")
    own = ("--labels", tmp_path / "own.json")
    read = command("label", labelled_run.path, "--import", sheet, "--annotator", "ann", *own)
    assert "count as chosen by hand" in read.output
    done = command("certify", labelled_run.path, *own, "-o", tmp_path / "c.json")
    assert done.exit_code == 1
    assert "chosen by hand: this is agreement on these answers, no rate of all" in done.output
    assert "Nothing is certified" in done.output
    assert not (tmp_path / "c.json").exists()
    (tmp_path / "c.json").write_text("{}", "utf-8")
    again = command("certify", labelled_run.path, *own, "-o", tmp_path / "c.json")
    assert f"{tmp_path / 'c.json'} belongs to earlier labels: remove it." in again.output
    printed = command("certify", labelled_run.path, *own, "--json").output
    (row,) = json.loads(printed[: printed.rindex("}") + 1])["rows"]
    assert (row["recommended"], row["labels"], row["estimates"]) == (None, 30, {})
    drawn = command("label", labelled_run.path, "--annotator", "ann", *own)
    assert "chosen by hand; draw in another" in drawn.output


def test_a_certificate_needs_labels_of_this_run(labelled_run: Any, command: Callable[..., Any], tmp_path: Path) -> None:
    missing = command("certify", labelled_run.path, "--labels", tmp_path / "none.json")
    assert missing.exit_code == 1
    assert "there is no file of labels" in missing.output
    assert "the results" in command("certify", tmp_path / "nowhere").output
    (tmp_path / "else.json").write_text("{}", "utf-8")
    said = command("certify", labelled_run.path, "--labels", tmp_path / "else.json").output
    assert "is not a file of labels: it has no 'labels'; karenina label" in said
    empty = tmp_path / "empty.json"
    command("label", labelled_run.path, "--labels", empty, "--n", "5", "--annotator", "ann", typed="q\n")
    assert "nothing is labelled yet" in command("certify", labelled_run.path, "--labels", empty).output
    content = json.loads(empty.read_text("utf-8"))
    content["plan"]["population"] = "0" * 16
    empty.write_text(json.dumps(content), "utf-8")
    assert (
        "the answers of the run have changed since" in command("certify", labelled_run.path, "--labels", empty).output
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("BCL2", " bcl2 ", True),
        ("BCL2", "BCL-2", False),
        (200, 200.0, True),
        (200, "200", True),
        (None, "", True),
        (["a", "b"], ["B", "A"], True),
        (["a"], ["a", "b"], False),
        (True, False, False),
    ],
)
def test_when_two_readings_say_the_same(one: Any, other: Any, same: bool) -> None:
    assert same_reading(one, other) is same


# Field by field: planted errors of extraction in a replayed benchmark.

EXPECTED = {"gene": "BCL2", "dose": 200}
MISLABELLED = 0.02
"""How often the person who reads the causes errs."""


@pytest.fixture(scope="module")
def replayed(planted_run: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One run of 200 answers; which of them are drawn and how they are read differs by seed."""
    return planted_run(tmp_path_factory.mktemp("fields"), 200, seed=11)


def planted_labels(answers: Sequence[Any], truth: Mapping[str, Any], seed: int, wrong: float = 0.0) -> LabelFile:
    """80 answers, read by a person who errs so often, and writes names in small letters half of the time."""
    chance, labels = Random(seed), []
    plan = draw(answers, 80, seed=seed)
    known = {answer.id: answer for answer in answers}
    for one in plan.items:
        for name, value in truth[known[one.item].question_id].items():
            read: Any = "nothing of the kind" if name == "gene" else -1
            read = read if chance.random() < wrong else value
            read = read.lower() if name == "gene" and chance.random() < 0.5 else read
            labels.append(Label(item=one.item, annotator="ann", target=f"field:{name}", value={"reading": read}))
    return LabelFile(
        run_id="r", binding={"models": {"parsing": {"manual:manual": {}}}}, plan=plan, labels=tuple(labels)
    )


def reassigned(answers: Sequence[Any], run: Any, seed: int) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """The answers of the run in a world of its own: 200 drawn anew of them, each as the answer to another question."""
    chance = Random(seed)
    drawn = [chance.choice(answers) for _ in answers]
    found, truth, read = [], {}, {}
    for place, answer in enumerate(drawn):
        found.append(evolve(answers[place], judged=answer.judged))
        truth[answers[place].question_id] = run.truth[answer.question_id]
        read[answers[place].question_id] = run.read[answer.question_id]
    return found, truth, read


def test_corrected_field_accuracy_covers_and_causes_are_told_apart(replayed: Any, long: bool) -> None:
    answers, templates = labelled_answers(replayed), Templates(replayed.path)
    seeds, covered, rows, right, cases, naive = 500 if long else 40, 0, 0, 0, 0, 0
    true_rate = {name: sum(own[name] == EXPECTED[name] for own in replayed.truth.values()) / 200 for name in EXPECTED}
    for seed in range(seeds):
        own, truth, read = reassigned(answers, replayed, seed)
        file = planted_labels(own, truth, seed)
        check = FieldCheck(templates)
        for name in EXPECTED:
            found, models = beside(file, own, f"field:{name}", "manual:manual", check)
            row: Row = row_of(found.of_model(models[0], models), drawn=True)
            assert row.certified is not None
            interval, judge = row.certified.interval, row.estimates["judge"].interval
            assert interval is not None
            assert judge is not None
            covered += interval.low <= true_rate[name] <= interval.high
            naive += judge.low <= true_rate[name] <= judge.high
            rows += 1
        for finding in findings(planted_labels(own, truth, seed, MISLABELLED), own, check):
            value, seen = truth[finding.question_id][finding.field], read[finding.question_id][finding.field]
            right += finding.cause == CAUSES[value == EXPECTED[finding.field], seen == value]
            cases += 1
    assert covered / rows >= (0.93 if long else 0.88)  # of 80 draws at 95 %, fewer come up once in a hundred
    assert right / cases >= 0.95
    assert naive / rows < 0.7  # what the judge alone says
    print(f"{rows} intervals: {covered / rows:.1%} cover, of the judge {naive / rows:.1%}; causes {right / cases:.1%}")


def test_a_reading_that_fits_no_field_and_a_changed_template_are_named(
    replayed: Any, command: Callable[..., Any], tmp_path: Path
) -> None:
    answers, templates = labelled_answers(replayed), Templates(replayed.path)
    result = answers[0].judged["manual:manual"]
    with pytest.raises(ConfigError, match="does not fit the field"):
        templates.passes(result, "dose", "a lot")
    text = replayed.benchmark.read_text("utf-8")
    (tmp_path / "other.jsonld").write_text(text.replace("that the response names", "that it names"), "utf-8")
    with pytest.raises(ConfigError, match="has another template in the benchmark than in the run"):
        Templates(replayed.path, tmp_path / "other.jsonld").passes(result, "dose", 200)


def test_sample_takes_strata_and_questions_from_the_plan() -> None:
    found = table([1, 0, 1, 0], {0: 1.0, 1: 0.0}, ["a", "a", "b", "b"], ["x", "y", "x", "y"])
    sample: Sample = found.sample()
    assert sample.questions.tolist() == [0, 0, 1, 1]
    assert sample.strata.tolist() == [0, 1, 0, 1]
