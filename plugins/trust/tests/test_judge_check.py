"""`karenina judge check`: what a judge misreads is found by field and kind, and a perfect one misreads nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_trust.check.check import CORRECTED, NOT_EXTRACTED, REJECTED
from karenina_trust.check.kept import NAME, keep, sections
from karenina_trust.judges.statements import FORMS, REWRITES, pairs_of
from karenina_trust.judges.trials import WHOLE

from karenina_core import Benchmark, Question
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

from .judged_trials import (
    EXPECTED,
    Script,
    benchmark,
    extracted,
    judge_arguments,
    karenina,
    perfect,
    response,
    template,
)

TWO = ("cystic", "huntington")


def check(path: Path, server: ScriptedServer, *more: object) -> tuple[int, Any]:
    ended = karenina("judge", "check", path, *judge_arguments(server), "--quiet", "--json", *more)
    assert ended.stdout, ended.stderr
    return ended.exit_code, json.loads(ended.stdout)


def blind_to_tables(request: ServedRequest) -> Any:
    assert request.schema is not None
    text = response(request)
    return dict.fromkeys(request.schema["properties"]) if text.startswith("|") else perfect(request)


def knows_better(request: ServedRequest) -> Any:
    """Puts in the right gene whatever the answer says."""
    name = next(name for name in EXPECTED if f"known of {name}" in request.text)
    return {**perfect(request), "gene": EXPECTED[name]["gene"]}


def misreads_years(request: ServedRequest) -> Any:
    found = perfect(request)
    return {**found, "year": None if found["year"] is None else found["year"] + 1}


def test_a_perfect_judge_misreads_nothing_and_the_run_is_read_again(tmp_path: Path) -> None:
    path, run = benchmark(tmp_path, *TWO), tmp_path / "run"
    with ScriptedServer(perfect) as server:
        code, found = check(path, server, "--out", run, "--max-misread", 0)
        asked = server.count
        again = check(path, server, "--out", run, "--max-misread", 0)
        assert (again, server.count) == ((code, found), asked)
        other = karenina("judge", "check", path, *judge_arguments(server), "--out", run, "--wrong", 2)
    assert (other.exit_code, "other trials" in other.stderr) == (1, True)
    (judge,) = found["judges"]
    assert (code, judge["misread"]["rate"], judge["misreadings"], judge["errors"]) == (0, 0.0, [], 0)
    # of each question: the reference in five settings, six forms, one wrong value of each of three fields
    assert judge["trials"] == asked == 2 * (1 + len(REWRITES) + len(FORMS) + 3)
    assert judge["consistent"] is None


@pytest.mark.parametrize(
    ("script", "problem", "fields", "kinds"),
    [
        (blind_to_tables, NOT_EXTRACTED, set(EXPECTED["cystic"]), {"right values, table"}),
        (knows_better, CORRECTED, {"gene"}, None),
        (misreads_years, REJECTED, {"year"}, None),
    ],
)
def test_what_is_misread_is_named_by_field_and_kind(
    tmp_path: Path, script: Script, problem: str, fields: set[str], kinds: set[str] | None
) -> None:
    with ScriptedServer(script) as server:
        code, found = check(benchmark(tmp_path, *TWO), server, "--out", tmp_path / "run", "--max-misread", 0.01)
    (judge,) = found["judges"]
    assert code == 4
    assert {row["field"] for row in judge["misreadings"]} == fields
    assert {row["problem"] for row in judge["misreadings"]} == {problem}
    assert {row["field"] for row in judge["by_field"] if row["rate"]} == fields
    if kinds is not None:
        assert {row["kind"] for row in judge["by_kind"] if row["rate"]} == kinds
    low, rate, high = (judge["misread"][name] for name in ("low", "rate", "high"))
    assert low < rate == len(judge["misreadings"]) / judge["readings"] < high


def test_repeated_judgments_say_how_consistent_a_judge_is_and_errors_are_apart(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    def fickle(request: ServedRequest) -> Any:
        text = response(request)
        seen[text] = seen.get(text, 0) + 1
        if text.startswith("{"):
            return Reply("I cannot say")
        found = perfect(request)
        return {**found, "gene": "unsure" if text.startswith("|") and seen[text] > 1 else found["gene"]}

    with ScriptedServer(fickle) as server:
        code, found = check(benchmark(tmp_path, *TWO), server, "--out", tmp_path / "run", "--repeats", 2, "--wrong", 0)
    (judge,) = found["judges"]
    forms = 1 + len(REWRITES) + len(FORMS)
    assert (code, judge["trials"], judge["errors"]) == (3, 2 * 2 * forms, 2 * 2)
    assert judge["consistent"]["n"] == 2 * 3 * (forms - 1)
    assert judge["consistent"]["rate"] == pytest.approx(1 - 1 / (3 * (forms - 1)))
    assert {row["trial"] for row in judge["misreadings"]} == {"right values, table"}


def test_nothing_is_asked_for_an_estimate_or_where_nothing_can_be_tried(tmp_path: Path) -> None:
    with ScriptedServer(perfect) as server:
        line = ("judge", "check", benchmark(tmp_path), *judge_arguments(server))
        ended = karenina(*line, "--estimate", "--questions", "farrow")
        assert (ended.exit_code, "calls   14" in ended.stdout) == (0, True), ended.output
        plain = tmp_path / "plain.csv"
        plain.write_text("question,reference answer\nWhy?,Because\n", "utf-8")
        ended = karenina("judge", "check", plain, *judge_arguments(server))
        assert (ended.exit_code, server.count) == (1, 0)
    assert "has no answer template" in ended.stderr
    assert "karenina benchmark prove" in ended.stderr


CODE = """
class Answer(BaseAnswer):
    gene: str = Field(description="The gene that the response names")
    year: int = Field(description="The year that the response names")

    def ground_truth(self):
        self.correct = {"gene": "CFTR", "year": 1989}

    def verify(self) -> bool:
        return self.gene == self.correct["gene"] and self.year == self.correct["year"]
"""


def test_a_template_that_is_code_is_tried_in_the_sandbox_and_counts_as_a_whole(tmp_path: Path) -> None:
    question = Question(id="cystic", question="What is known of cystic?", raw_answer="", answer_template=CODE)
    path = Benchmark.create("Code").with_questions([question]).save(tmp_path / "code.jsonld")
    with ScriptedServer(knows_better) as server:
        _, found = check(path, server, "--out", tmp_path / "run")
    (judge,) = found["judges"]
    assert judge["trials"] == len(FORMS) + 2
    assert {row["field"] for row in judge["by_field"]} == {WHOLE}
    (row,) = judge["misreadings"]
    assert (row["problem"], row["trial"].partition(":")[0]) == (CORRECTED, "wrong value of gene")


def test_a_run_of_trials_is_resumed_like_any_other(tmp_path: Path) -> None:
    path, run = benchmark(tmp_path, "cystic"), tmp_path / "run"
    with ScriptedServer(perfect) as server:
        line = ("judge", "check", path, *judge_arguments(server), "--out", run, "--quiet")
        begun = karenina(*line, "--budget-tokens", 1)
        assert begun.exit_code == 3, begun.stderr
        left = karenina(*line)
        assert (left.exit_code, f"karenina resume {run}" in left.stderr) == (1, True), left.stderr
        resumed = karenina("resume", run, "--budget-tokens", 1_000_000, "--quiet")
        assert resumed.exit_code == 0, resumed.stderr
        asked = server.count
        ended = karenina(*line)
        assert (ended.exit_code, server.count) == (0, asked)
    assert "misread    0.0%" in ended.stdout
    assert asked == 1 + len(REWRITES) + len(FORMS) + 3


WORD = st.from_regex(r"[A-Z]{2,6}", fullmatch=True)


@given(gene=WORD, year=st.integers(1000, 2100), approved=st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_form_says_the_same(gene: str, year: int, approved: bool) -> None:
    values = {"gene": gene, "year": year, "approved": approved}
    pairs = pairs_of(values)
    for name, form in FORMS.items():
        assert extracted(form(pairs), values) == values, name
    text = f"Gene: {gene}. Year: {year}. {FORMS['sentences'](pairs[2:])}"
    for name, rewrite in REWRITES.items():
        assert extracted(rewrite(text), values) == values, name


def test_a_run_of_the_same_templates_shows_the_check_in_its_report(tmp_path: Path) -> None:
    path, run, checked = benchmark(tmp_path, *TWO), tmp_path / "run", tmp_path / "checked"
    page = run / "report.html"

    def answers(request: ServedRequest) -> Any:
        return misreads_years(request) if request.schema else "Gene: CFTR. Year: 1989. Approved: yes."

    with ScriptedServer(answers) as server:
        judge = judge_arguments(server)
        assert karenina("verify", path, *judge, "--out", run, "--quiet").exit_code == 0
        asked = server.count
        (other := tmp_path / "other").mkdir()
        changed = Benchmark.create("Genes").with_questions(
            evolve(question, answer_template=template({"gene": "CFTR"})) for question in Benchmark.load(path)
        )
        for file, model, why in (
            (benchmark(other, "farrow"), "m", "has none of the questions that are checked"),
            (changed.save(other / "changed.jsonld"), "m", "has another template of 'cystic'"),
            (path, "stranger", "openai_endpoint:stranger is not a judge of"),
        ):
            refused = karenina("judge", "check", file, *judge_arguments(server, model), "--for", run)
            assert (refused.exit_code, why in refused.stderr, server.count) == (1, True, asked), refused.stderr
        karenina("report", run)
        assert "Check of the judge" not in page.read_text("utf-8")
        _, found = check(path, server, "--out", checked, "--for", run)
    karenina("report", run)
    shown, misread = page.read_text("utf-8"), found["judges"][0]["misread"]
    assert "Check of the judge" in shown
    assert f"{misread['rate']:.1%}" in shown
    assert "cystic: year" in shown
    assert "cystic: gene" not in shown
    assert "no longer holds" not in shown
    assert "other settings" not in shown
    fingerprint = json.loads((run / "fingerprint.json").read_text("utf-8"))
    fingerprint["models"]["parsing"]["openai_endpoint:m"]["temperature"] = 1.5
    (run / "fingerprint.json").write_text(json.dumps(fingerprint), "utf-8")
    judge = found["judges"][0]
    keep(run, {**found, "judges": [{**judge, "errors": 2}]})
    (section,) = sections(run)
    trials = judge["trials"]
    assert f"m: 2 of {trials} answers have no usable reply and are in no rate." in " ".join(section.before)
    assert section.before[0].startswith(
        "The judge had other settings in the check: the parsing model openai_endpoint:m"
    )
    fingerprint["settings"]["features"] = ["abstention"]
    (run / "fingerprint.json").write_text(json.dumps(fingerprint), "utf-8")
    assert sections(run)[0].before[-1].startswith("This check no longer holds: the setting features was")
    (run / "fingerprint.json").unlink()
    assert "no longer holds" in sections(run)[0].before[-1]
    assert "has no fingerprint.json, which says what its judge" in sections(run)[0].before[-1]
    (run / NAME).write_text("{}", "utf-8")
    assert f"{run / NAME} cannot be read: 'judges'" in sections(run)[0].before[0]
