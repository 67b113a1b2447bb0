"""Every number that is shown is the one that the lines of results.jsonl give, and the same in every place.

The oracle reads the lines and the manifest as JSON and knows nothing of karenina. Worlds are generated: several models
and judges, replicates, right and wrong answers, answers without what was expected, guards, checks, errors, items that
never came, traits that failed.
"""

from __future__ import annotations

import csv
import json
import math
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from html import unescape
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import scipy
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_cli.output import Table
from karenina_cli.summary import model_parts
from karenina_compare.comparison import Limits, compare, gates
from karenina_compare.comparison.document import document
from karenina_compare.comparison.wording import line as wording
from karenina_compare.numbers import headline_numbers
from karenina_report import write_report
from karenina_runs.results.exports import export_results, ready_format, with_columns
from karenina_runs.results.lines import record
from karenina_runs.results.stored import stored_results
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResultSet
from karenina_core.testing import application
from karenina_core.values.result import LedgerEntry, MetadataPart, TrailEntry, VerificationResult

Line = Mapping[str, Any]
LAW = settings(
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
APP = application(installed=True)
QUESTIONS, MODELS, JUDGES, REPLICATES = "abcde", "mn", "jk", (1, 2, 3)
KEYWORDS = {"a": ["easy"], "b": ["easy", "long"], "c": [], "d": ["long"], "e": ["easy"]}
DECIDED = ("passed", "failed", "auto_failed", "abstained", "insufficient")

# How an item may end: outcome, detail, fields, granular score

ENDINGS: Sequence[tuple[str, str | None, dict[str, bool | None] | None, float | None]] = (
    ("passed", None, {"x": True, "y": True}, 1.0),
    ("passed", None, None, None),
    ("failed", None, {"x": True, "y": False}, 0.5),
    ("failed", None, {"x": False, "y": None}, 0.0),
    ("failed", None, {"x": True, "y": None}, 0.75),
    ("auto_failed", "DeepJudgmentAutoFail", {"x": True, "y": True}, 1.0),
    ("auto_failed", "RecursionLimitAutoFail", None, None),
    ("abstained", None, None, None),
    ("insufficient", None, None, None),
    ("error", "timeout", None, None),
    ("error", "judge", None, None),
    ("skipped", "no stage gave a verdict", None, None),
)
SCORED: Sequence[tuple[str, str | None]] = (
    ("scored", None),
    ("scored", None),
    ("error", "auth"),
    ("error", "server"),
    ("abstained", None),
    ("auto_failed", "TraceValidationAutoFail"),
)
STATES = st.sampled_from(["ok", "ok", "error", "invalid", "skipped"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[VerificationResult], dict[str, Any]]:
    """The results of a run, in any order, and its manifest: some items never came."""
    mode = draw(st.sampled_from(["template_only", "template_and_rubric", "rubric_only"]))
    questions = QUESTIONS[: draw(st.integers(1, 5))]
    models, judges = MODELS[: draw(st.integers(1, 2))], JUDGES[: draw(st.integers(1, 2))]
    replicates = REPLICATES[: draw(st.integers(1, 3))]
    tasks = [(q, m, j, r) for q in questions for m in models for j in judges for r in replicates]
    made = [draw(items(task, mode)) for task in tasks if draw(st.integers(0, 9))]
    manifest = {
        "questions": list(questions),
        "items": len(tasks),
        "pairs": [[f"x:{model}", f"x:{judge}"] for model in models for judge in judges],
        "config": {"replicate_count": len(replicates)},
    }
    lost = draw(
        st.sampled_from(
            [None, None, *(("answering", model) for model in models), *(("replicate", r) for r in replicates)]
        )
    )
    made = [result for result in made if lost is None or (lost != ("replicate", result.metadata.replicate)
            and lost != ("answering", result.metadata.answering.model_name))]  # fmt: skip
    return draw(st.permutations(made)), manifest


@st.composite
def items(draw: st.DrawFn, task: tuple[str, str, str, int], mode: str) -> VerificationResult:
    question, model, judge, replicate = task
    if mode == "rubric_only":
        (outcome, detail), fields, granular = draw(st.sampled_from(SCORED)), None, None
    else:
        outcome, detail, fields, granular = draw(st.sampled_from(ENDINGS))
    states = {} if outcome == "error" and draw(st.booleans()) else {"clear": draw(STATES), "kind": draw(STATES)}
    if outcome == "error" and mode == "rubric_only":
        states = dict.fromkeys(states, "error")
    rubric = RubricPart(
        rubric_evaluation_performed=True,
        llm_trait_scores={name: draw(st.booleans()) if state == "ok" else None
                          for name, state in states.items() if state != "skipped"},
        trait_scales={name: {"type": "llm", "kind": "boolean", "higher_is_better": True} for name in states},
        trait_states={name: {"state": state, "reason": "" if state == "ok" else "why"}
                      for name, state in states.items()},
    )  # fmt: skip
    return VerificationResult(
        metadata=MetadataPart(
            question_id=question,
            template_id="t",
            result_id=f"{ord(question):04x}{ord(model):04x}{ord(judge):04x}{replicate:04x}",
            question_text="?",
            keywords=tuple(KEYWORDS[question]),
            answering=ModelIdentity("x", model),
            parsing=ModelIdentity("x", judge),
            replicate=replicate,
            outcome=outcome,  # type: ignore[arg-type]  # one of the lists above
            outcome_detail=detail,
            completed_without_errors=outcome != "error",
            evaluation_mode=mode,
            caveats=("odd",) if draw(st.booleans()) else (),
        ),
        template=None
        if mode == "rubric_only"
        else TemplatePart(field_results=fields, verify_granular_result=granular, verify_result=outcome == "passed"),
        rubric=rubric if mode != "template_only" and states else None,
        ledger=(LedgerEntry("VerifyTemplate", {"verdict": False, "outcome": "failed"}),) if outcome == "failed" else (),
        trail=(TrailEntry("RubricEvaluation", "ran"),) if mode != "template_only" else (),
    )


def written(world: tuple[list[VerificationResult], dict[str, Any]], folder: str) -> Path:
    results, manifest = world
    directory = Path(folder)
    (directory / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (directory / "results.jsonl").write_text("".join(f"{record(result)}\n" for result in results), "utf-8")
    return directory


class Oracle:
    """What the lines of a run say, computed from nothing else."""

    def __init__(self, directory: Path) -> None:
        lines = (directory / "results.jsonl").read_text("utf-8").splitlines()
        self.lines: list[Line] = [json.loads(line) for line in lines]
        self.manifest = json.loads((directory / "manifest.json").read_text("utf-8"))

    def pairs(self) -> dict[tuple[str, str], list[Line]]:
        found: dict[tuple[str, str], list[Line]] = {}
        for line in self.lines:
            names = tuple(f"x:{line['metadata'][side]['model_name']}" for side in ("answering", "parsing"))
            found.setdefault((names[0], names[1]), []).append(line)
        return found

    def absent(self, lines: Sequence[Line]) -> int:
        return len(self.manifest["questions"]) * self.manifest["config"]["replicate_count"] - len(lines)


def outcome(line: Line) -> str:
    found: str = line["metadata"]["outcome"]
    return found


def due(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line["metadata"]["evaluation_mode"] != "rubric_only"]


def verdicts(lines: Sequence[Line]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in due(lines):
        if outcome(line) in DECIDED:
            found.setdefault(line["metadata"]["question_id"], []).append(int(outcome(line) == "passed"))
    return found


def credits(lines: Sequence[Line]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for line in due(lines):
        if outcome(line) in DECIDED:
            granular = line["template"]["verify_granular_result"]
            earned = float(outcome(line) == "passed") if granular is None else granular
            earned = earned if outcome(line) in ("passed", "failed") else 0.0
            found.setdefault(line["metadata"]["question_id"], []).append(earned)
    return found


def share(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def mean(groups: Mapping[str, Sequence[float]]) -> float | None:
    values = [value for group in groups.values() for value in group]
    return fmean(values) if values else None


def robust_error(groups: Mapping[str, Sequence[float]]) -> float:
    middle, number = mean(groups) or 0.0, sum(map(len, groups.values()))
    squares = sum(sum(value - middle for value in group) ** 2 for group in groups.values())
    return math.sqrt(len(groups) / (len(groups) - 1) * squares) / number


def rate_limits(groups: Mapping[str, Sequence[float]]) -> tuple[float, float] | tuple[None, None]:
    """Wilson's interval, for as many items as the questions are worth where one has several."""
    rate, number = mean(groups), sum(map(len, groups.values()))
    several = any(len(group) > 1 for group in groups.values())
    if rate is None or (several and len(groups) < 2):
        return None, None
    z, n = scipy.stats.norm.ppf(0.975), float(number)
    if several:
        error = robust_error(groups)
        n = min(n, rate * (1 - rate) / error**2) if error > 1e-12 else n
        n = len(groups) if rate in (0, 1) else n * (z / scipy.stats.t.ppf(0.975, len(groups) - 1)) ** 2
    centre, scale = rate + z * z / (2 * n), 1 + z * z / n
    spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def mean_limits(groups: Mapping[str, Sequence[float]]) -> tuple[float, float] | tuple[None, None]:
    if len(groups) < 2 or robust_error(groups) < 1e-12:
        return None, None
    middle, half = mean(groups) or 0.0, scipy.stats.t.ppf(0.975, len(groups) - 1) * robust_error(groups)
    return max(0.0, middle - half), min(1.0, middle + half)


def rates(lines: Sequence[Line], absent: int) -> dict[str, Any]:
    counts = Counter(map(outcome, due(lines)))
    answered, passes, earned = counts["passed"] + counts["failed"], verdicts(lines), credits(lines)
    low, high = rate_limits(passes)
    whole = all(credit in (0, 1) for group in earned.values() for credit in group)
    credit_low, credit_high = rate_limits(earned) if whole else mean_limits(earned)
    return {
        "pass_rate": mean(passes),
        "pass_rate_low": low,
        "pass_rate_high": high,
        "partial_credit": mean(earned),
        "partial_credit_low": credit_low,
        "partial_credit_high": credit_high,
        "answered_accuracy": share(counts["passed"], answered),
        "coverage": share(answered, counts.total() + absent if counts else 0),
    }


def failures(lines: Sequence[Line]) -> dict[str, int]:
    fields = [list(line["template"]["field_results"].values()) for line in lines if outcome(line) == "failed"]
    found = Counter("wrong" if False in values else "not_found" for values in fields)
    return dict(found)


def check_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Every number of `expected`, to nine digits."""
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)), name


def percent(rate: float | None) -> str:
    return "n/a" if rate is None else f"{100 * rate:.1f} %"


# Places


def terminal(results: VerificationResultSet) -> Iterator[tuple[str, dict[str, str]]]:
    """The table of rates of every pair of models."""
    for part in model_parts(results):
        if isinstance(part, Table) and ", judged by " in (part.title or ""):
            yield part.title or "", {row[0]: row[1] for row in part.rows}


def interval_text(found: Mapping[str, Any], name: str) -> str:
    low, high = found[f"{name}_low"], found[f"{name}_high"]
    return percent(found[name]) + ("" if low is None else f" (95 %: {percent(low)} to {percent(high)})")


@LAW
@given(worlds())
def test_summary_terminal_views_headline_and_comparison_say_what_the_lines_say(world: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, APP:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        rows = {(row["answering"], row["parsing"]): row for row in results.get_summary()["models"]}
        shown = dict(terminal(results))
        groups = results.get_template_results().aggregate_pass_rate(by=["answering_model", "parsing_model"])
        headline = {(found.answering, found.parsing): found for found in headline_numbers(results).pairs}
        compared = document(compare(results, results))["numbers_b"]["pairs"]
        comparison = {(found["answering"], found["parsing"]): found for found in compared}
        assert groups.keys() == headline.keys() == comparison.keys() == oracle.pairs().keys()
        assert list(rows) == [tuple(pair) for pair in oracle.manifest["pairs"]]
        for names in rows.keys() - oracle.pairs().keys():
            assert (rows[names]["items"], rows[names]["absent"]) == (0, oracle.absent([]))
            assert shown[f"{names[0]}, judged by {names[1]}"]["absent"] == str(oracle.absent([]))
        for names, lines in oracle.pairs().items():
            absent = oracle.absent(lines)
            expected, row, numbers = rates(lines, absent), rows[names], headline[names]
            check_same(row, expected)
            check_same(groups[names], expected)
            models = dict(zip(("answering_models", "parsing_models"), names, strict=True))
            check_same(results.filter(**models).get_summary()["models"][0], expected | {"absent": absent})
            (model,) = (
                model
                for model in results.group_by_model()[names[0]].get_summary()["models"]
                if model["parsing"] == names[1]
            )
            check_same(model, expected | {"absent": absent})
            for name in ("pass_rate", "partial_credit", "answered_accuracy", "coverage"):
                assert row[name] == getattr(numbers, name).value == comparison[names][name]["value"]
                if name in ("pass_rate", "partial_credit"):
                    found = getattr(numbers, name).interval
                    limits = (found.low, found.high) if found else (None, None)
                    assert limits == (row[f"{name}_low"], row[f"{name}_high"])
            broken = [line["metadata"]["outcome_detail"] for line in lines if outcome(line) == "error"]
            counts = {
                "items": len(lines),
                "absent": absent,
                "outcomes": dict(Counter(map(outcome, lines))),
                "errors": dict(Counter(broken)),
                "failures": failures(lines),
                "caveats": {"odd": n} if (n := sum(bool(line["metadata"]["caveats"]) for line in lines)) else {},
            }
            assert {name: row[name] for name in counts} == counts
            for name in ("items", "absent", "outcomes", "errors", "failures"):
                assert getattr(numbers, name) == comparison[names][name] == counts[name]
            cells = shown[f"{names[0]}, judged by {names[1]}"]
            assert cells["pass rate"] == interval_text(expected, "pass_rate")
            assert cells.get("partial credit", interval_text(expected, "partial_credit")) == interval_text(
                expected, "partial_credit"
            )
            assert (cells["coverage"], cells["accuracy of answered"]) == (
                percent(expected["coverage"]),
                percent(expected["answered_accuracy"]),
            )
            assert cells.get("absent", "0") == str(absent)


@settings(LAW, max_examples=settings().max_examples // 2)
@given(worlds())
def test_groups_keywords_and_replicates_say_what_the_lines_say(world: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, APP:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        view = results.get_template_results()
        by_keyword = view.aggregate_pass_rate(by="keywords")
        absent = oracle.manifest["items"] - len(oracle.lines)
        unknown = {"coverage": None} if absent else {}
        words = {word for line in oracle.lines for word in line["metadata"]["keywords"] or [None]}
        assert by_keyword.keys() == words
        for word in words:
            lines = [line for line in oracle.lines if word in (line["metadata"]["keywords"] or [None])]
            check_same(by_keyword[word], rates(lines, 0) | unknown)
        overall = headline_numbers(results).overall
        shares = {number.name: number.value for number in overall.by_keyword}
        shares_of_words = {word: row["pass_rate"] for word, row in by_keyword.items() if word is not None}
        check_same(shares, {word: rate for word, rate in shares_of_words.items() if rate is not None})
        known = [rate for rate in shares.values() if rate is not None]
        assert overall.macro_keywords == (pytest.approx(fmean(known)) if known else None)
        questions = [fmean(group) for group in verdicts(oracle.lines).values()]
        expected = pytest.approx(fmean(questions)) if questions else None
        assert overall.macro_questions.value == expected
        if len({len(group) for group in verdicts(oracle.lines).values()}) == 1:
            found = overall.macro_questions.interval
            limits = (found.low, found.high) if found else (None, None)
            assert limits == pytest.approx(rate_limits(verdicts(oracle.lines)))
        assert view.macro_average("question_id") == expected
        stats = results.get_summary()["replicate_stats"]
        assert [row["replicate"] for row in stats] == [*range(1, oracle.manifest["config"]["replicate_count"] + 1)]
        for row in stats:
            lines = [line for line in oracle.lines if line["metadata"]["replicate"] == row["replicate"]]
            missing = len(oracle.manifest["questions"]) * len(oracle.manifest["pairs"]) - len(lines)
            check_same(row, rates(lines, missing) | {"absent": missing, "items": len(lines)})
            if lines:
                check_same(view.aggregate_pass_rate(by="replicate")[row["replicate"]], rates(lines, missing))
        check_same(view.get_template_summary(), rates(oracle.lines, absent))
        assert (overall.absent, overall.items) == (absent, len(oracle.lines))
        assert overall.coverage.value == view.get_template_summary()["coverage"]
        failed = view.get_template_summary()["num_failed"]
        assert (
            failed
            == sum(outcome(line) in DECIDED[1:] for line in due(oracle.lines))
            == len(view.filter(failed_only=True))
        )


@settings(LAW, max_examples=settings().max_examples // 5)
@given(worlds())
def test_tables_and_files_count_what_the_lines_say(world: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, APP:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        stored, file = stored_results(folder), Path(folder) / "out.csv"
        export_results(stored, file, with_columns(ready_format(APP, file), "full"), stored.manifest)
        with file.open(encoding="utf-8-sig", newline="") as lines:
            table = list(csv.DictReader(lines))
        frame = results.get_template_results().to_dataframe()
        of_items = frame.drop_duplicates("result_id") if len(frame) else frame
        expected = Counter(map(outcome, oracle.lines))
        assert Counter(row["outcome"] for row in table) == Counter(of_items.get("outcome", ())) == expected
        found = Counter(row["failure_group"] for row in table if row["outcome"] == "failed")
        export_results(stored, json_file := Path(folder) / "out.json", ready_format(APP, json_file), stored.manifest)
        rows = json.loads(json_file.read_text("utf-8"))["results"]
        assert Counter(map(outcome, rows)) == expected
        answers = [line["generation"]["raw_llm_response"] for line in oracle.lines]
        # also where only a rubric is evaluated
        assert [row["template"]["raw_llm_response"] for row in rows] == answers
        judged = [row["template"]["verify_result"] is True for row in rows]
        assert judged == [outcome(line) == "passed" for line in oracle.lines]
        assert VerificationResultSet.load(json_file).get_summary()["outcomes"] == dict(expected)
        groups = {"wrong": "content", "not_found": "not_found"}
        assert found == {groups[name]: number for name, number in failures(oracle.lines).items()}


@settings(LAW, max_examples=settings().max_examples // 2)
@given(worlds())
def test_traits_say_what_the_lines_say(world: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, APP:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        summary = results.get_summary()
        headline = {(found.answering, found.parsing): found for found in headline_numbers(results).pairs}
        scores = results.get_rubric_results().aggregate_llm_traits(by=["answering_model", "parsing_model"])
        notes = []
        for row in summary["models"]:
            names = (row["answering"], row["parsing"])
            lines = oracle.pairs().get(names, [])
            states: dict[str, Counter[str]] = {}
            values: dict[str, list[bool]] = {}
            unscored = 0
            for line in lines:
                states_of = {} if line["rubric"] is None else line["rubric"]["trait_states"]
                due_states = [entry["state"] for entry in states_of.values() if entry["state"] != "skipped"]
                expects = line["metadata"]["evaluation_mode"] != "template_only"
                unscored += expects and "ok" not in due_states and (bool(due_states) or not states_of)
                for name, entry in states_of.items():
                    states.setdefault(name, Counter())[entry["state"]] += 1
                    if entry["state"] == "ok":
                        values.setdefault(name, []).append(line["rubric"]["llm_trait_scores"][name])
            assert row["items_without_scores"] == unscored
            lines_of = {found["trait"]: found for found in row["traits"]}
            assert lines_of.keys() == states.keys()
            numbers = {number.name: number for number in headline[names].traits} if lines else {}
            for name, counted in states.items():
                failed = counted["error"] + counted["invalid"]
                found = lines_of[name]
                assert (found["ok"], found["errors"], found["skipped"]) == (counted["ok"], failed, counted["skipped"])
                rate = pytest.approx(fmean(values[name])) if name in values else None
                assert found.get("rate") == rate
                if name in values:
                    assert numbers[f"trait:{name}"].value == scores[names][name].value == rate
                    assert (scores[names][name].n, scores[names][name].errors) == (counted["ok"], failed)
            total = sum((counted for counted in states.values()), Counter[str]())
            if not total["ok"] and total["error"] + total["invalid"]:
                notes.append(names)
        assert [note for note in summary["notes"] if "every score of the llm traits failed" in note] == [
            note for names in notes for note in summary["notes"] if note.endswith(f": {names[0]}, judged by {names[1]}")
        ]
        assert len(notes) == sum("every score" in note for note in summary["notes"])


@settings(LAW, max_examples=settings().max_examples // 2)
@given(worlds(), worlds())
def test_better_and_worse_questions_are_those_whose_means_differ(one: Any, other: Any) -> None:
    """In the row, among the changed questions, in the headings and in the table, with any number of replicates."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second, APP:
        sides = [Oracle(written(world, folder)) for world, folder in ((one, first), (other, second))]
        comparison = compare(VerificationResultSet.load(first), VerificationResultSet.load(second))
        table = document(comparison)
        for row, found in zip(comparison.rows, table["rows"], strict=True):
            if row.metric != "pass_rate":
                continue
            names = (row.pair.answering, row.pair.parsing)
            a, b = (verdicts(side.pairs()[names]) for side in sides)
            differences = [Fraction(sum(b[q]), len(b[q])) - Fraction(sum(a[q]), len(a[q])) for q in a.keys() & b.keys()]
            expected = (sum(change > 0 for change in differences), sum(change < 0 for change in differences))
            changed = [flip for flip in table["flipped"] if (flip["answering"], flip["parsing"]) == names]
            changes = Counter(flip["change"] for flip in changed if flip["metric"] == row.metric)
            assert (row.better, row.worse) == (found["better"], found["worse"]) == expected
            assert (changes["better"], changes["worse"]) == expected
            assert wording(row).counts == f"{expected[0]} / {expected[1]}"


@LAW
@given(worlds(), st.sampled_from([0.0, 0.25, 0.5, 0.75, 0.9, 1.0]))
def test_gates_are_decided_by_the_worst_case(world: Any, least: float) -> None:
    with tempfile.TemporaryDirectory() as folder, APP:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        comparison = compare(results, results)
        found = {gate.about: gate.passed for gate in gates(comparison, Limits(pass_rate=least))}
        for (answering, parsing), lines in oracle.pairs().items():
            passed, number = Counter(map(outcome, due(lines)))["passed"], len(due(lines))
            worst = passed / (number + oracle.absent(lines)) if any(verdicts(lines).values()) else -1.0
            assert found[f"{answering}, judged by {parsing}"] is (worst >= least - 1e-9)


@settings(LAW, max_examples=settings().max_examples // 6)
@given(worlds())
def test_the_report_says_what_the_lines_say(world: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        oracle, results = Oracle(written(world, folder)), VerificationResultSet.load(folder)
        page = write_report(results, Path(folder) / "report.html", manifest=oracle.manifest).read_text("utf-8")
    big = [unescape(text) for text in re.findall(r'<span class="big">([^<]*)</span>', page)]
    order = list(oracle.pairs().values())
    expected = [rates(lines, oracle.absent(lines)) for lines in order]
    assert big == [percent(found["pass_rate"]) for found in expected]
    shown = unescape(re.sub("<[^>]*>", "", page))
    for names in oracle.manifest["pairs"]:
        note = f"{names[0]}, judged by {names[1]}: none of {oracle.absent([])} planned item"
        assert (note in shown) is (tuple(names) not in oracle.pairs())
    table = page[page.index('<table class="rates">') :].partition("</table>")[0] if order else ""
    for found in expected:
        assert percent(found["coverage"]) in table
        if found["pass_rate_low"] is not None:
            low, high = percent(found["pass_rate_low"]).removesuffix(" %"), percent(found["pass_rate_high"])
            assert f"{low} to {high}" in table
