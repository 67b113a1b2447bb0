"""`karenina compare`: what it prints in every format, its gates, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_cli.root import karenina
from karenina_compare.comparison import Gate, Limits, compare, compare_models, gates
from karenina_compare.comparison.document import document, github, junit
from karenina_compare.comparison.tables import literal, markdown
from karenina_testing import strategies
from karenina_vocabulary.rubric_part import RubricPart
from markdown_it import MarkdownIt

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.convert import unstructure
from karenina_core.values.result import GenerationPart, MetadataPart

NASTY = "a|b\n::error::<b>*@me*</b>\x1b[31m\x00\ud800`]]>&amp; http://x.y"
ANY = st.lists(strategies.results(), max_size=3)
EVERYTHING = ["trait:*"]
ROW = {"answering", "parsing", "a", "b", "difference", "low", "high", "p_value", "test"}
"""The keys that every reader may rely on."""


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


def run(passes: Any, **facts: Any) -> list[VerificationResult]:
    names = ["error" if value is None else "passed" if value else "failed" for value in passes]
    return [result(f"q{place:03}", outcome=name, **facts) for place, name in enumerate(names)]


def answered(results: list[VerificationResult], text: str) -> list[VerificationResult]:
    return [evolve(r, generation=GenerationPart(raw_llm_response=text)) for r in results]


GOOD, BAD, NOISY = [1] * 30, [0] * 12 + [1] * 18, [0, 0] + [1] * 28


@pytest.fixture
def compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that writes runs, calls the command through `karenina`, and gives what came of it."""
    if not any(point.name == "compare" for point in entry_points(group="karenina.commands")):
        info = tmp_path / "here" / "compare_here-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: compare-here\nVersion: 1\n", "utf-8")
        points = "[karenina.commands]\ncompare = karenina_compare.command:command\n"
        (info / "entry_points.txt").write_text(points, "utf-8")
        monkeypatch.syspath_prepend(info.parent)
    monkeypatch.chdir(tmp_path)

    def call(a: Any, b: Any, *options: str) -> Result:
        names = [write(tmp_path / name, side) for name, side in (("a", a), ("b", b)) if side is not None]
        return CliRunner().invoke(karenina, ["compare", *names, *options])

    return call


def write(directory: Path, results: Any) -> str:
    directory.mkdir(exist_ok=True)
    lines = [json.dumps(unstructure(item)) for item in results]
    (directory / "results.jsonl").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return directory.name


# How it ends


def test_a_regression_fails_the_gate_and_noise_does_not(compared: Any) -> None:
    assert compared(run(GOOD), run(BAD)).exit_code == 0
    failed = compared(run(GOOD), run(BAD), "--fail-on-regression")
    assert failed.exit_code == 4
    assert "regression gate failed: x:m, judged by x:judge: pass_rate: significantly worse: -40.0 pp" in failed.stderr
    assert compared(run(GOOD), run(NOISY), "--fail-on-regression").exit_code == 0
    assert compared(run(BAD), run(GOOD), "--fail-on-regression").exit_code == 0


def test_low_coverage_and_a_low_pass_rate_fail_their_gates(compared: Any) -> None:
    a, b = run(GOOD), run([None] * 3 + [1] * 24 + [0] * 3)
    assert compared(a, b, "--min-coverage", "0.9", "--min-pass-rate", "0.8").exit_code == 0
    assert compared(a, b, "--min-coverage", "0.91").exit_code == 4
    failed = compared(a, b, "--min-pass-rate", "0.91")
    assert (failed.exit_code, "cannot be decided" in failed.stderr) == (4, False)
    undecided = compared(a, b, "--min-pass-rate", "0.88")
    assert undecided.exit_code == 4
    assert (
        "cannot be decided: 88.9 % of 27 items with a verdict pass, at least 88.0 % required; 80.0 % if none of "
        "those without "
        "one passed (error 3)"
    ) in undecided.stderr


def test_a_run_of_which_next_to_nothing_came_back_passes_no_gate(compared: Any) -> None:
    a, b = run([1] * 100), run([1] + [None] * 99)
    for gate in (["--min-pass-rate", "0.9"], ["--min-coverage", "0.9"], ["--fail-on-regression"]):
        assert compared(a, b, *gate).exit_code == 4


def test_a_regression_is_not_ruled_out_by_leaving_answers_out(compared: Any) -> None:
    """Eight answers of thirty are lost on each side, so that neither loses more; the lost answers could be a
    significant difference."""
    a, b = run([None] * 8 + [1] * 22), run([1] * 22 + [None] * 8)
    failed = compared(a, b, "--fail-on-regression")
    assert failed.exit_code == 4
    assert "cannot be decided: B would be significantly worse if every answer without a value were" in failed.stderr
    assert compared(run([None] * 2 + [1] * 28), run([1] * 28 + [None] * 2), "--fail-on-regression").exit_code == 0


def test_runs_that_cannot_be_read_are_no_failed_gate(compared: Any, tmp_path: Path) -> None:
    result = compared(run(GOOD), None, "nowhere", "--fail-on-regression")
    assert result.exit_code == 1
    assert "nowhere" in result.stderr
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.jsonl").write_text("{\n{}\n", "utf-8")
    assert compared(run(GOOD), None, "broken", "--fail-on-regression").exit_code == 1
    empty = compared(run(GOOD), [])
    assert (empty.exit_code, "holds no results" in empty.stderr) == (1, True)


def test_groups_that_no_question_is_in_are_refused(compared: Any) -> None:
    result = compared(run(GOOD), run(GOOD), "--cluster-by", "keyword")
    assert (result.exit_code, "no question of these runs has a group" in result.stderr) == (1, True)


def test_one_model_alone_has_nothing_to_be_compared_with(compared: Any) -> None:
    result = compared(run(GOOD), None, "--min-coverage", "0")
    assert (result.exit_code, "no two models have the same parsing model" in result.stderr) == (4, True)


def test_unknown_metrics_models_and_groups_are_refused_before_anything_is_compared(compared: Any) -> None:
    for options in (("--metric", "trait:x"), ("--models", "z"), ("--cluster-by", "no.csv")):
        result = compared(run(GOOD), run(GOOD), *options)
        assert (result.exit_code, result.stdout) == (1, ""), options


def test_wrong_usage_ends_with_2(compared: Any) -> None:
    assert compared(run(GOOD), run(GOOD), "--json", "--format", "junit").exit_code == 2
    assert compared(run(GOOD), None, "--judges", "a=b").exit_code == 2
    assert compared(run(GOOD), None, "--fail-on-regression").exit_code == 2
    assert compared(run(GOOD), run(GOOD), "--min-coverage", "90").exit_code == 2
    for option in ("--alpha", "--min-coverage", "--min-pass-rate"):
        assert compared(run(GOOD), run(GOOD), option, "nan").exit_code == 2


def test_a_file_that_cannot_be_written_is_reported(compared: Any) -> None:
    result = compared(run(GOOD), run(GOOD), "--format", "junit", "-o", "no/where.xml")
    assert (result.exit_code, "choose another (-o FILE)" in result.stderr) == (1, True)


# Gates fail closed


def test_too_few_questions_fail_the_gate(compared: Any) -> None:
    result = compared(run([1] * 5), run([1] * 5), "--fail-on-regression")
    assert result.exit_code == 4
    assert "cannot be decided: no result of 5 questions could be significant" in result.stderr


def test_a_model_that_is_missing_in_b_fails_the_gate_unless_others_are_named(compared: Any) -> None:
    a = [*run(GOOD), *run(GOOD, model="gone")]
    assert compared(a, run(GOOD), "--fail-on-regression").exit_code == 4
    assert compared(a, run(GOOD), "--fail-on-regression", "--models", "x:m").exit_code == 0


def test_no_common_model_fails_every_gate() -> None:
    comparison = compare(run(GOOD), run(GOOD, model="other"))
    found = gates(comparison, Limits(no_regression=True, coverage=0.5))
    assert found
    assert not any(gate.passed for gate in found)
    none = compare([], [])
    assert [g.passed for g in gates(none, Limits(no_regression=True, coverage=0, pass_rate=0))] == [False] * 3


def test_errors_cannot_hide_a_regression() -> None:
    """Not compared is not failed, but a run that loses many questions to errors does not pass either."""
    comparison = compare(run(GOOD), run([None] * 8 + [1] * 22))
    (gate,) = gates(comparison, Limits(no_regression=True))
    assert comparison.rows[0].verdict == "no difference found"
    assert not gate.passed
    assert "significantly more answers without a value: more than A on 8 questions, less on 0" in gate.message
    (back,) = gates(compare(run([None] * 8 + [1] * 22), run(GOOD)), Limits(no_regression=True))
    assert back.passed
    (subset,) = gates(compare(run(GOOD), run(GOOD[:20])), Limits(no_regression=True))
    assert subset.passed  # B was not asked the others


def test_errors_in_some_replicates_cannot_hide_a_regression() -> None:
    """One of three answers is left of every question, the one that passes."""
    a = [r for replicate in (1, 2, 3) for r in run(GOOD, replicate=replicate)]
    b = [r for replicate in (1, 2, 3) for r in run(GOOD if replicate == 1 else [None] * 30, replicate=replicate)]
    regression, coverage = gates(compare(a, b), Limits(no_regression=True, coverage=0.9))
    assert not regression.passed
    assert "significantly more answers without a value" in regression.message
    assert (coverage.passed, "33.3 %, with the answers that have no value" in coverage.message) == (False, True)
    assert all(gate.passed for gate in gates(compare(a, a), Limits(no_regression=True, coverage=1)))
    back = gates(compare(b, a), Limits(no_regression=True))
    assert [gate.passed for gate in back] == [True]


def test_a_coverage_is_not_missed_by_a_rounding_error() -> None:
    names = ["passed"] * 7 + ["error"] * 3
    side = [result(f"q{q}", replicate=r, outcome=name) for q in range(3) for r, name in enumerate(names)]
    comparison = compare(side, side)
    assert (comparison.rows[0].coverage or 0) < 0.7  # by a rounding error
    for least, passes in ((0.7, True), (0.701, False)):
        (gate,) = gates(comparison, Limits(coverage=least))
        assert gate.passed is passes


def test_a_difference_without_a_direction_cannot_pass_for_no_regression() -> None:
    def lengths(value: int) -> list[VerificationResult]:
        part = RubricPart(
            llm_trait_scores={"length": value},
            trait_scales={"length": {"type": "llm", "kind": "score", "min": 0, "max": 10, "higher_is_better": None}},
        )
        return [evolve(r, rubric=part) for r in run(GOOD)]

    (gate,) = gates(compare(lengths(2), lengths(9), metrics=["trait:length"]), Limits(no_regression=True))
    assert not gate.passed
    assert "cannot be decided: significantly different, and which value is better is unknown" in gate.message
    (same,) = gates(compare(lengths(2), lengths(2), metrics=["trait:length"]), Limits(no_regression=True))
    assert same.passed


def test_items_without_any_verdict_fail_the_pass_rate() -> None:
    (gate,) = gates(compare(run([1]), run([None])), Limits(pass_rate=0.0))
    assert (gate.passed, gate.message) == (False, "cannot be decided: none of 1 item has a verdict")


def test_no_limits_are_no_gates() -> None:
    assert gates(compare(run([1]), run([0])), Limits()) == ()


# Formats


@settings(
    max_examples=settings().max_examples // 6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(ANY, ANY)
def test_all_results_can_be_compared_and_reported_in_every_format(a: Any, b: Any) -> None:
    for comparison in (compare(a, [*a, *b], metrics=EVERYTHING), compare_models([*a, *b])):
        asked = gates(comparison, Limits(no_regression=True, coverage=0.5, pass_rate=0.5))
        json.dumps(document(comparison, asked), allow_nan=False)
        ElementTree.fromstring(junit(comparison, asked).encode("utf-8"))
        markdown(comparison, asked).encode("utf-8")
        assert all(line.startswith("::") for line in github(comparison, asked).splitlines())


def test_the_document_has_the_keys_that_are_promised(compared: Any) -> None:
    result = compared(run(GOOD), run(BAD), "--json", "--fail-on-regression")
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["passed"], shown["pairs"]) == (4, False, 30)
    assert {"pairs", "rows", "flipped", "gates", "ties", "numbers_a", "numbers_b", "notes"} <= set(shown)
    (row,) = shown["rows"]
    assert set(row) >= ROW
    assert (row["answering"], row["a"], row["b"], row["difference"]) == ("x:m", 1.0, 0.6, -0.4)
    assert row["low"] < -0.4 < row["high"] < 0
    assert (row["test"], row["verdict"], row["coverage"]) == ("mcnemar", "worse", 1.0)
    assert len(shown["flipped"]) == 12
    assert {"question_id", "a", "b", "change", "answer_a", "answer_b", "outcomes_b"} <= set(shown["flipped"][0])
    assert shown["numbers_b"]["overall"]["pass_rate"]["value"] == 0.6


def test_every_key_is_documented_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "comparisons.md").read_text("utf-8")
    shown = document(compare(run([1, 0]), run([0, None])))
    parts = {"The document": shown, "A row": shown["rows"][0], "A changed question": shown["flipped"][0]}
    parts["Numbers of one run"] = shown["numbers_a"]["overall"]["pass_rate"]
    for title, part in parts.items():
        section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
        rows = [line.split(" | ")[0:2] for line in section.splitlines() if line.startswith("| `")]
        keys = {key for first, _ in rows for key in re.findall(r"`(\w+)`", first)}
        mentioned = {key for _, text in rows for key in re.findall(r"`(\w+)`", text)}
        assert keys <= set(part), title
        assert set(part) <= keys | mentioned, title


def test_every_document_is_json(compared: Any) -> None:
    for a, b in ((GOOD, [None] * 30), ([None], [None]), ([1], [0])):
        json.dumps(document(compare(run(a), run(b))), allow_nan=False)


def test_the_table_says_who_what_and_how_sure(compared: Any) -> None:
    shown = compared(run(GOOD), run(BAD)).stdout
    assert "100.0 %  60.0 %  -40.0 pp" in shown
    assert "Changed: 12" in shown
    assert "1 comparison: 1 worse (differences: B - A; p-values adjusted: holm)" in shown


def test_one_run_compares_its_models(compared: Any) -> None:
    shown = compared([*run(GOOD), *run(BAD, model="n")], None).stdout
    assert "x:m → x:n, judged by x:judge" in shown
    assert "A and B: models of a" in shown
    assert "Ranks that the comparisons leave open" in shown


def test_what_a_run_has_not_finished_is_reported(compared: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    planned = {"items": 60, "questions": [f"q{i:03}" for i in range(30)], "config": {"replicate_count": 1}}
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(planned), "utf-8")
    notes = json.loads(compared(run(GOOD), run(GOOD), "--json").stdout)["notes"]
    assert notes == ["A: 30 of 60 planned items have a result"]
    assert "30 of 60 planned items have a result" in compared(run(GOOD), None).stdout
    planned["items"] = 30
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(planned), "utf-8")
    assert json.loads(compared(run(GOOD), run(GOOD), "--json").stdout)["notes"] == []


def test_replicates_traits_and_groups_reach_the_command(compared: Any, tmp_path: Path) -> None:
    part = RubricPart(regex_trait_scores={"short": True})
    side = [evolve(r, rubric=part) for replicate in (1, 2) for r in run(GOOD, replicate=replicate)]
    (tmp_path / "groups.csv").write_text("".join(f"q{i:03},{i // 3}\n" for i in range(30)), "utf-8")
    options = ("--metric", "trait:*", "--metric", "pass_rate", "--cluster-by", "groups.csv", "--json")
    rows = json.loads(compared(side, side, *options).stdout)["rows"]
    assert [(row["metric"], row["clusters"], row["replicates_a"]) for row in rows] == [
        ("trait:short", 10, 2),
        ("pass_rate", 10, 2),
    ]


def test_a_format_goes_to_the_file_and_the_table_or_the_document_to_stdout(compared: Any, tmp_path: Path) -> None:
    options = ("--format", "markdown", "-o", "out.md", "--fail-on-regression")
    shown = compared(run(GOOD), run(BAD), *options)
    assert "## ❌ 1 of 1 gates failed" in (tmp_path / "out.md").read_text("utf-8")
    assert "Gates" in shown.stdout
    assert json.loads(compared(run(GOOD), run(BAD), *options, "--json").stdout)["passed"] is False
    compared(run(GOOD), run(BAD), "-o", "out.txt")
    assert "Changed: 12" in (tmp_path / "out.txt").read_text("utf-8")


def cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)\|", line.strip())[1:-1]


def nasty() -> Any:
    a = answered([evolve(r, metadata=evolve(r.metadata, question_id=NASTY + r.metadata.question_id)) for r in
                  run(GOOD, model=NASTY)], NASTY)  # fmt: skip
    b = answered([evolve(r, metadata=evolve(r.metadata, question_id=NASTY + r.metadata.question_id)) for r in
                  run(BAD, model=NASTY)], NASTY)  # fmt: skip
    return compare(a, b, names=(NASTY, NASTY))


def test_names_cannot_break_a_table_of_markdown() -> None:
    text = markdown(nasty(), [Gate("regression", NASTY, False, NASTY)])
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(cells(line)) for line in tables} == {9, 4, 5}
    assert len(tables) == 3 + 3 + 2 + 12
    without_code = re.sub(r"<code>.*?</code>", "", text)
    for part in ("<b>", "@me", "http", "::error", "\x1b"):
        assert part not in without_code
    inside = "".join(re.findall(r"<code>(.*?)</code>", text))
    assert not re.search(r"[<>|`*@]|://|&(?!#\d+;)", inside)


def test_what_markdown_shows_is_the_text_itself() -> None:
    html = MarkdownIt("commonmark").enable("table").render(markdown(nasty(), []))
    assert len(re.findall(r"<td", html)) == 9 + 12 * 5
    shown = [unescape(cell) for cell in re.findall(r"<td><code>(.*?)</code></td>", html)]
    written = " ".join(NASTY.replace("\x1b", "\\x1b").replace("\x00", "\\x00").replace("\ud800", "\\ud800").split())
    assert shown.count(written) == 2 * 12
    assert "<b>" not in html


@settings(max_examples=settings().max_examples, deadline=None, derandomize=True)
@given(st.text(max_size=40))
def test_texts_are_shown_in_one_line_and_as_they_are(text: str) -> None:
    shown = literal(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search(r"[<>|`*_\[\]~@\\$]", shown.removeprefix("<code>").removesuffix("</code>"))


def test_junit_is_xml_with_a_case_for_each_gate_and_question() -> None:
    a, b = run([1, 1, 0, 1, None, 1]), [*run([0, 1, 1, None, 1]), result("new")]
    comparison = compare(a, b)
    asked = gates(comparison, Limits(no_regression=True, pass_rate=0.1))
    root = ElementTree.fromstring(junit(comparison, asked))
    assert (root.tag, [suite.get("name") for suite in root]) == (
        "testsuites",
        ["gates", "x:m, judged by x:judge: pass_rate"],
    )
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "9",
        "failures": "2",
        "errors": "1",
    }
    assert root[1].get("skipped") == "3"
    cases = {case.get("name"): [child.tag for child in case] for case in root[1]}
    assert cases == {
        "new": ["skipped"],
        "q000": ["failure"],
        "q001": [],
        "q002": ["system-out"],
        "q003": ["error"],
        "q004": ["skipped"],
        "q005": ["skipped"],
    }
    assert [len(gate.findall("failure")) for gate in root[0]] == [1, 0]


def test_an_error_on_both_sides_is_nothing_that_b_did_in_junit() -> None:
    root = ElementTree.fromstring(junit(compare(run([None, 1, None]), run([None, None, 1])), ()))
    assert [[child.tag for child in case] for case in root[0]] == [["skipped"], ["error"], ["skipped"]]


JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"testsuite"}, set(), {"name", "time", "tests", "failures", "disabled", "errors"}),
    "testsuite": (
        {"properties", "testcase", "system-out", "system-err"},
        {"name", "tests"},
        {"failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
    ),
    "testcase": (
        {"skipped", "error", "failure", "system-out", "system-err"},
        {"name"},
        {"assertions", "time", "classname", "status"},
    ),
    "failure": (set(), set(), {"type", "message"}),
    "error": (set(), set(), {"type", "message"}),
    "skipped": (set(), set(), {"type", "message"}),
    "system-out": (set(), set(), set()),
}
"""What an element may hold, must say and may say: the schema that Jenkins and others read by."""


def misfits(element: ElementTree.Element) -> list[str]:
    inside, required, optional = JUNIT[element.tag]
    given = set(element.attrib)
    wrong = [f"{element.tag}: {name}" for name in (required - given) | (given - required - optional)]
    wrong += [f"{element.tag} in {child.tag}" for child in element if child.tag not in inside]
    for child in element:
        wrong += misfits(child)
    return wrong


@settings(
    max_examples=settings().max_examples // 4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(ANY, ANY)
def test_junit_fits_the_schema_and_its_counts_are_true(a: Any, b: Any) -> None:
    comparison = compare([*a, *run([1, 1, None, 0])], [*b, *run([0, None, 1, 1])])
    root = ElementTree.fromstring(junit(comparison, gates(comparison, Limits(no_regression=True))))
    assert misfits(root) == []
    for suite in root:
        assert int(suite.attrib["tests"]) == len(suite)
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[key]) == len(suite.findall(f"testcase/{tag}"))
    for key in ("tests", "failures", "errors"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


def test_junit_stays_xml_whatever_the_texts_are() -> None:
    text = junit(nasty(), [Gate("regression", NASTY, False, NASTY + "\ufffe")])
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert root.get("failures") == "13"
    assert "\\x1b[31m" in (root[0][0][0].get("message") or "")


def test_annotations_are_one_command_a_line_and_escaped() -> None:
    lines = github(nasty(), [Gate("regression", NASTY, False, f"{NASTY}\n100 %")]).splitlines()
    assert all(re.fullmatch(r"::(error|warning|notice) title=[^:,\n]*::[^\r\n]*", line) for line in lines)
    levels = [line.split(" ")[0] for line in lines]
    assert (levels.count("::error"), levels.count("::warning"), levels.count("::notice")) == (1, 10, 2)
    assert lines[0].endswith("100 %25")
    assert lines[-2].startswith("::notice title=x%3Aa|b %3A%3Aerror%3A%3A")


def many(passes: Any, models: int, **facts: Any) -> list[VerificationResult]:
    return [r for number in range(models) for r in run(passes, model=f"provider/a-long-name-of-a-model-{number:03}")]


@pytest.mark.parametrize("models", [9, 10, 11, 30])
def test_no_more_annotations_than_are_shown(models: int) -> None:
    """A step shows ten of a kind; the last one says how many there are."""
    comparison = compare(many([1] * 12, models), many([0] * 12, models))
    asked = gates(comparison, Limits(no_regression=True))
    lines = github(comparison, asked).splitlines()
    levels = [line.split(" ")[0] for line in lines]
    assert max(levels.count(f"::{level}") for level in ("error", "warning", "notice")) <= 10
    errors = [line for line in lines if line.startswith("::error")]
    assert len(errors) == min(models, 10)
    if models > 10:
        assert errors[-1].endswith(f"::{models} gates failed, 9 of them are shown")


def test_what_matters_most_is_annotated_first() -> None:
    sides = [[*many(GOOD, 12), *run(last, model="z")] for last in (GOOD, BAD)]
    notices = [line for line in github(compare(*sides), []).splitlines() if line.startswith("::notice")]
    assert "worse" in notices[0]


def test_a_comment_of_a_pull_request_holds_the_largest_comparison() -> None:
    """Hosts of code take 65,536 characters. What is left out is counted, and what failed is not left out."""
    sides = [[*many(GOOD, 150), *run(last, model="z")] for last in (GOOD, [0] * 18 + [1] * 12)]
    sides = [answered(side, "A *long* answer, as models give them. " * 50) for side in sides]
    comparison = compare(*sides)
    asked = gates(comparison, Limits(no_regression=True, coverage=0.9, pass_rate=0.5))
    text = markdown(comparison, asked)
    assert len(text) < 65_536
    assert sum(line.startswith("- ") for line in text.splitlines()) == 40
    assert "And 111 more; `--json` has all." in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "x:z" in rows[2]
    assert "worse" in rows[2]
    failed = [line for line in rows if "**failed**" in line]
    assert len(failed) == sum(not gate.passed for gate in asked) == 2


def test_gates_of_the_later_run_are_those_of_verify(compared: Any) -> None:
    twice = [*run([1, 1, 0]), *run([1, None, 1], replicate=2)]
    before = [*run([1, 1, 1]), *run([1, 1, 1], replicate=2)]
    passing = ("--must-pass", "q000", "--max-errors", "1", "--min-pass-per-question", "1/2")
    result = compared(before, twice, *passing, "--json")
    assert (result.exit_code, {g["name"] for g in json.loads(result.stdout)["gates"]}) == (
        0,
        {"must pass", "errors", "passes per question"},
    )
    for failing in (("--must-pass", "q002"), ("--max-errors", "0"), ("--min-pass-per-question", "2/2")):
        assert compared(before, twice, *failing).exit_code == 4, failing
    for models, code in (((), 4), (("--models", "m=m"), 0)):  # those that are not compared are no part of B
        both = [*before, *run([0, 0, 0], model="n")]
        assert compared(both, both, "--must-pass", "q000", *models).exit_code == code
    for senseless in (("--must-pass", "q9"), ("--min-pass-per-question", "1/3")):
        assert compared(before, twice, *senseless).exit_code == 1, senseless


def test_the_policy_comes_from_a_file_or_a_setting(compared: Any) -> None:
    a, b, gate = run([1] * 6), run([1] * 3 + [0] * 3), "--fail-on-regression"
    assert compared(a, b, gate).exit_code == 4
    Path("k.toml").write_text("[plugins.compare]\nundecided = 'warn'\n", "utf-8")
    warned = compared(a, b, gate, "--config", "k.toml", "--format", "github")
    assert (warned.exit_code, warned.stderr.startswith("Warning: the regression gate cannot be decided")) == (0, True)
    assert "::warning title=regression gate::" in warned.stdout
    quiet = compared(a, b, gate, "--set", "plugins.compare.undecided=pass")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    assert "cannot be decided" in quiet.stdout
    limited = compared(a, b, "--set", "plugins.compare.max_drop=0.4")
    assert (limited.exit_code, "drop gate failed" in limited.stderr) == (4, True)
    assert compared(a, b, "--set", "plugins.compare.max_drop=0.4", "--max-drop", "0.5").exit_code == 0
    wrong = compared(a, b, gate, "--set", "plugins.compare.undecided=never")
    assert (wrong.exit_code, "plugins.compare.undecided" in wrong.stderr) == (1, True)


def test_two_runs_of_one_model_each_are_compared_whatever_it_is_called(compared: Any) -> None:
    result = compared(run(GOOD), run(BAD, model="new"), "--fail-on-regression")
    assert (result.exit_code, "x:m → x:new, judged by x:judge" in result.stdout) == (4, True)
    several = [*run(BAD, model="new"), *run(BAD, model="newer")]
    nothing = compared(run(GOOD), several)
    assert (nothing.exit_code, "name those that belong together (--models A=B" in nothing.stdout) == (1, True)


def test_two_runs_whose_judges_differ_too_are_not_compared_and_the_options_that_do_are_said(compared: Any) -> None:
    a, b = run(GOOD), run(BAD, model="new", metadata={"parsing": ModelIdentity("x", "other")})
    nothing = compared(a, b)
    options = nothing.stdout.partition("type: ")[2].split("\n  Only")[0].split()
    assert (nothing.exit_code, options) == (1, ["--models", "x:m=x:new", "--judges", "x:judge=x:other"])
    assert compared(a, b, *options).exit_code == 0


def test_junit_of_one_run_has_a_test_for_each_question(compared: Any) -> None:
    result = compared([*run([1, 0]), *run([1, 1], replicate=2)], None, "--format", "junit", "--min-pass-rate", "0.9")
    root = ElementTree.fromstring(result.stdout)
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("gates", "1", "1"),
        ("x:m, judged by x:judge", "2", "1"),
    ]
    assert (root.get("tests"), root.get("failures")) == ("3", "2")
    assert [p.get("value") for p in root.iterfind(".//testcase[@name='q001']/properties/property")] == [
        "failed",
        "passed",
    ]


def test_nothing_to_compare_says_why_and_what_to_do(compared: Any) -> None:
    assert "no two models have the same parsing model" in compared(run(GOOD), None).stdout
    shown = compared(run(GOOD), run(GOOD), "--metric", "trait:*", "--fail-on-regression")
    assert (shown.exit_code, "nothing is measured that could be compared" in shown.stderr) == (4, True)
    text = markdown(compare(run([1]), run([1], model="n")), [])
    assert "Nothing could be compared: the models of A and B differ" in unescape(text)


def test_the_command_is_light_to_import() -> None:
    heavy = "{'numpy', 'scipy', 'pandas'}"
    code = f"import sys, karenina_compare.command; print(sorted(set(sys.modules) & {heavy}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"
