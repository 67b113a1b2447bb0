"""`karenina show` and the end of a run tell what became of rubric traits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result
from karenina_cli.output import Part, Table
from karenina_cli.show.traits import MOST_LINES, trait_excerpts, trait_parts, trait_totals
from karenina_cli.summary import model_parts
from karenina_runs.results.results import VerificationResultSet
from karenina_runs.summaries.trait_summary import trait_lines
from karenina_vocabulary.evaluation_parts import DeepJudgmentRubricPart
from karenina_vocabulary.quotations import Quotation, quotations
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.convert import unstructure
from karenina_core.values.result import MetadataPart

OK = {"state": "ok", "reason": ""}
TONES = {"type": "llm", "kind": "literal", "classes": ["concise", "wordy"], "higher_is_better": True}
SCALES: Mapping[str, Any] = {
    "Safe": {"type": "llm", "kind": "boolean", "higher_is_better": True},
    "Clarity": {"type": "llm", "kind": "score", "min": 1, "max": 5, "higher_is_better": True},
    "Warmth": {"type": "callable", "kind": "score", "min": -2, "max": 2, "higher_is_better": True},
    "Tone": TONES,
    "Lost": TONES,
    "Claims": {"type": "llm", "kind": "template"},
    "Cites": {"type": "regex"},
    "Coverage": {"type": "metric"},
    "Sources": {"type": "citations"},
}
RUBRIC = RubricPart(
    llm_trait_scores={"Safe": True, "Clarity": 4, "Tone": 0, "Lost": -1, "Claims.approved": True, "Claims.year": 3},
    llm_trait_labels={"Tone": "concise", "Lost": "grumpy"},
    regex_trait_scores={"Cites": False},
    callable_trait_scores={"Warmth": -1},
    metric_trait_scores={"Coverage": {"tp": 2, "fn": 1, "fp": 0, "f1": 0.8}},
    extra_trait_scores={"citations": {"Sources": 3}},
    trait_details={"Sources": {"style": "numbered", "found": [{"mark": "[1]", "ok": True}, {"mark": "[2]"}]}},
    trait_scales=SCALES,
    trait_states={
        **dict.fromkeys(SCALES, OK),
        "Lost": {"state": "invalid", "reason": "no such class"},
        "Dosing": {"state": "skipped", "reason": "not\nspoken of"},
    },
)


def tables(parts: list[Part]) -> dict[str, list[tuple[str, ...]]]:
    return {part.title: [tuple(row) for row in part.rows] for part in parts if isinstance(part, Table)}


def rubric_row(part: RubricPart, name: str) -> tuple[str, ...]:
    return next(row for row in tables(trait_parts(part))["Rubric"] if row[0] == name)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("Safe", ("llm boolean", "true", "ok", "")),
        ("Clarity", ("llm score", "4 of 1-5", "ok", "")),
        ("Warmth", ("callable score", "-1 of -2 to 2", "ok", "")),
        ("Tone", ("llm literal", "concise (0)", "ok", "")),
        ("Lost", ("llm literal", "", "invalid", "no such class; replied: grumpy")),
        ("Claims", ("llm template", "approved true, year 3", "ok", "")),
        ("Cites", ("regex", "false", "ok", "")),
        ("Coverage", ("metric", "tp 2, fp 0, fn 1, f1 0.80", "ok", "")),
        ("Sources", ("citations score", "3", "ok", "")),
        ("Dosing", ("", "", "skipped", "not spoken of")),
    ],
)
def test_a_trait_is_shown_with_its_scale_and_its_state(name: str, row: tuple[str, ...]) -> None:
    assert rubric_row(RUBRIC, name) == (name, *row)


def test_without_traits_nothing_is_shown() -> None:
    assert trait_parts(RubricPart()) == []
    assert trait_totals([]) == []


def test_where_a_trait_came_from_is_shown_unless_all_are_global() -> None:
    part = RubricPart(llm_trait_scores={"a": True, "b": True}, trait_provenance={"a": "global", "b": "global"})
    assert len(rubric_row(part, "a")) == 5
    part = RubricPart(llm_trait_scores={"a": True, "b": True}, trait_provenance={"a": "global", "b": "dynamic"})
    assert rubric_row(part, "b") == ("b", "llm boolean", "true", "ok", "dynamic", "")


def test_details_are_shown_as_they_are() -> None:
    found = tables(trait_parts(RUBRIC))
    assert found["Details"] == [("Sources", "style", "numbered")]
    assert found["Sources: found"] == [("[1]", "true"), ("[2]", "")]


INSTRUCTIONS = [
    {
        "instruction": "names BCL2",
        "bucket": "tp",
        "excerpts": [{"text": "inhibits BCL2", "found": True}, {"text": "BCL-2", "found": False}],
        "wrong_attempts": [],
    },
    {
        "instruction": "gives a year",
        "bucket": "fn",
        "excerpts": [],
        "wrong_attempts": [{"text": "since 2026", "found": True}],
    },
]


def test_metric_traits_show_what_was_found_for_each_instruction() -> None:
    part = RubricPart(
        metric_trait_scores={"m": {"tp": 1, "fn": 1, "fp": 1, "f1": 0.5}},
        metric_trait_confusion_lists={"m": {"tp": ["inhibits BCL2"], "fn": ["gives a year"], "fp": ["since 2026"]}},
        trait_details={"m": {"instructions": INSTRUCTIONS}},
    )
    found = tables(trait_parts(part))
    assert found["What metric traits counted"] == [
        ("m", "names BCL2", "tp", '"inhibits BCL2"; "BCL-2" (not in the answer)'),
        ("m", "gives a year", "fn", ""),
        ("m", "gives a year", "fp", '"since 2026"'),
    ]
    assert list(found) == ["Rubric", "What metric traits counted"]


def test_metric_traits_without_instructions_show_what_was_counted() -> None:
    part = RubricPart(
        metric_trait_scores={"m": {"f1": 0.5}},
        metric_trait_confusion_lists={"m": {"tp": ["inhibits BCL2"], "fn": ["gives a year"]}},
    )
    assert tables(trait_parts(part))["What metric traits counted"] == [
        ("m", "tp", "inhibits BCL2"),
        ("m", "fn", "gives a year"),
    ]


EVIDENCE = DeepJudgmentRubricPart(
    deep_judgment_rubric_performed=True,
    extracted_rubric_excerpts={
        "Safe": [
            {"text": "ask your doctor", "confidence": "high", "similarity_score": 1.0, "hallucination_risk": "low"},
            {"text": "no risk", "confidence": "low", "similarity_score": 0.85},
        ],
        "Clarity": [{"text": "", "confidence": "none", "similarity_score": 0.0, "explanation": "it is one word"}],
    },
    rubric_trait_reasoning={"Safe": "It\nwarns."},
    traits_without_valid_excerpts=["Clarity", "Tone"],
    rubric_hallucination_risk_assessment={"Safe": {"overall_risk": "medium", "per_excerpt_risks": ["low", "medium"]}},
)


def test_the_evidence_of_a_trait_is_shown_and_so_is_its_absence() -> None:
    assert trait_excerpts(DeepJudgmentRubricPart(), []) == []
    assert tables(trait_excerpts(EVIDENCE, quotations(result(), "Please ask your doctor."))) == {
        "Evidence for traits (deep judgment)": [
            ("Safe", "ask your doctor", "yes", "high", "1.00", "low"),
            ("Safe", "no risk", "no", "low", "0.85", ""),
            ("Clarity", "(it is one word)", "", "none", "0.00", ""),
            ("Tone", "(none)", "", "", "", ""),
        ],
        "Reasoning about traits": [("Safe", "medium", "It warns.")],
    }


def test_traits_that_were_scored_in_both_ways_are_compared_and_invented_quotations_named() -> None:
    part = DeepJudgmentRubricPart(
        deep_judgment_rubric_scores={"Safe": True, "Tone": None},
        standard_rubric_scores={"Safe": False, "Other": 3},
        traits_without_valid_excerpts=["Tone"],
        trait_metadata={"Tone": {"excerpt_validation_failed": True}},
    )
    assert tables(trait_excerpts(part, [])) == {
        "Scores of traits that were judged in both ways": [("Safe", "True", "False")],
        "Evidence for traits (deep judgment)": [("Tone", "(only invented ones)", "", "", "", "")],
    }


def result(model: str = "small", rubric: RubricPart | None = RUBRIC) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q-one",
        template_id="t",
        result_id=model,
        question_text="What does it inhibit?",
        answering=ModelIdentity("x", model),
        parsing=ModelIdentity("x", "judge"),
        outcome="scored",
    )
    return VerificationResult(metadata=metadata, rubric=rubric, deep_judgment_rubric=EVIDENCE)


def test_show_prints_traits_and_their_evidence(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps(unstructure(result())) + "\n", "utf-8")
    shown = run("show", tmp_path, "q-one").stdout
    for expected in (
        r"^Rubric$",
        r"Clarity +llm score +4 of 1-5 +ok",
        r"Lost +llm literal +invalid +no such class; replied: grumpy",
        r"Dosing +skipped +not spoken of",
        r"^Evidence for traits \(deep judgment\)$",
        r"Safe +ask your doctor +no +high +1\.00 +low",
        r"Safe +medium +It warns\.",
    ):
        assert re.search(expected, shown, re.M), expected


LINE: Mapping[str, Any] = {
    "trait": "t",
    "type": "llm",
    "kind": "score",
    "n": 19,
    "ok": 17,
    "errors": 2,
    "skipped": 0,
    "higher_is_better": True,
}


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({"kind": "boolean", "rate": 0.84}, "true 84.0 %"),
        ({"kind": "boolean", "rate": 0.84, "higher_is_better": False}, "true 84.0 % (lower is better)"),
        ({"mean": 3.6, "min": 1, "max": 5}, "mean 3.60 of 1-5"),
        ({"mean": 3.6, "min": None, "max": None, "higher_is_better": False}, "mean 3.60, lower is better"),
        ({"kind": "literal", "classes": {"wordy": 2, "concise": 5, "endless": 0}}, "concise 5, wordy 2"),
        ({"type": "metric", "kind": "metric", "metrics": {"f1": 0.714, "recall": None}}, "f1 0.71, recall n/a"),
        ({"ok": 0, "mean": None, "min": 1, "max": 5}, ""),
        ({"type": "citations", "kind": None}, ""),
        ({"type": "colour", "kind": None, "texts": {"red": 9, "blue": 8}, "other_texts": 0}, "red 9, blue 8"),
        ({"type": "colour", "kind": None, "texts": {"x" * 99: 9}, "other_texts": 4}, f"{'x' * 59}… 9, and 4 more"),
    ],
)
def test_what_a_trait_comes_to_is_one_line(more: Mapping[str, Any], value: str) -> None:
    (table,) = trait_totals([{**LINE, **more}])
    assert isinstance(table, Table)
    assert table.rows[0][2] == value


def test_counts_stand_beside_the_value() -> None:
    (table,) = trait_totals([LINE, {**LINE, "errors": 0, "skipped": 3}])
    assert isinstance(table, Table)
    assert [tuple(row[3:]) for row in table.rows] == [("17 of 19", "2"), ("17 of 19, 3 skipped", "")]


def test_a_long_rubric_is_cut_and_says_where_all_of_it_is() -> None:
    lines = [{**LINE, "trait": f"t{number}"} for number in range(MOST_LINES + 3)]
    table, more, _ = trait_totals(lines)
    assert isinstance(table, Table)
    assert len(table.rows) == MOST_LINES
    assert more == "  and 3 more (karenina show DIRECTORY prints all of them)"
    (whole,) = trait_totals(lines, most=None)
    assert isinstance(whole, Table)
    assert len(whole.rows) == MOST_LINES + 3


def test_items_without_scores_are_reported_below_the_table() -> None:
    assert trait_totals([LINE], 1)[1] == "  1 item without a score of any trait"
    assert trait_totals([], 2) == ["  2 items without a score of any trait", ""]


def test_the_list_of_items_ends_with_every_trait(run: Callable[..., Result], tmp_path: Path) -> None:
    scores = {f"trait {number:02}": True for number in range(MOST_LINES + 3)}
    lines = [
        json.dumps(unstructure(result(model, RubricPart(llm_trait_scores=scores)))) for model in ("small", "large")
    ]
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    shown = run("show", tmp_path).stdout
    for model in ("small", "large"):
        assert f"Traits of x:{model}, judged by x:judge" in shown
    for name in scores:
        assert len(re.findall(rf"{name} +llm boolean +true 100\.0 % +1 of 1$", shown, re.M)) == 2
    assert "Traits of" not in run("show", tmp_path, "q-one").stdout
    assert "large" not in run("show", tmp_path, "--model", "small").stdout


def test_without_traits_the_list_of_items_is_all(run: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text(json.dumps(unstructure(result("small", None))) + "\n", "utf-8")
    assert "Traits" not in run("show", tmp_path).stdout


def test_where_only_rubrics_are_evaluated_no_rate_of_verdicts_is_shown() -> None:
    done, lost = result(), result(rubric=None)
    only = [
        evolve(done, metadata=evolve(done.metadata, evaluation_mode="rubric_only")),
        evolve(lost, metadata=evolve(lost.metadata, evaluation_mode="rubric_only", outcome="error")),
    ]
    (found,) = [rows for title, rows in tables(model_parts(VerificationResultSet(only))).items() if "judged" in title]
    assert {row[0]: row[1] for row in found} == {
        "items": "2",
        **dict.fromkeys(("pass rate", "accuracy of answered", "coverage"), "n/a"),
        "rubric scored": "1 of 2 items",
        "outcomes": "error 1, scored 1",
        "errors": "unknown 1",
    }
    failed = evolve(done, metadata=evolve(done.metadata, outcome="failed"))
    parts = model_parts(VerificationResultSet([failed, *only]))
    (found,) = [rows for title, rows in tables(parts).items() if "judged" in title]
    assert ("coverage", "100.0 %") in found


def test_both_tables_say_the_same_words() -> None:
    part = RubricPart(extra_trait_scores={"jargon": {"plain": True}}, trait_scales={"plain": {"type": "jargon"}})
    (table,) = trait_totals(trait_lines([result(rubric=part)]))
    assert isinstance(table, Table)
    assert table.rows[0][1] == rubric_row(part, "plain")[1] == "jargon boolean"
    assert (rubric_row(part, "plain")[2], table.rows[0][2]) == ("true", "true 100.0 %")


def test_fields_without_a_value_are_null() -> None:
    part = RubricPart(llm_trait_scores={"c.year": None, "c.ok": True}, trait_scales={"c": {"kind": "template"}})
    assert rubric_row(part, "c")[2] == "year null, ok true"


def test_labels_of_other_types_stand_beside_the_score_and_nowhere_else() -> None:
    part = RubricPart(
        extra_trait_scores={"levels": {"a": 3, "b": None}},
        trait_details={"a": {"label": "high"}, "b": {"label": "odd", "more": 1}},
        trait_scales={"a": {"type": "levels", "min": 0, "max": 5}, "b": {"type": "levels"}},
        trait_states={"b": {"state": "invalid", "reason": "no level"}},
    )
    assert rubric_row(part, "a")[1:3] == ("levels score", "high (3 of 0-5)")
    assert rubric_row(part, "b")[2:] == ("", "invalid", "no level; replied: odd")
    assert tables(trait_parts(part))["Details"] == [("b", "more", "1")]


def test_long_names_are_cut_in_every_table() -> None:
    name = "n" * 200
    part = RubricPart(
        metric_trait_scores={name: {"tp": 1, "f1": 1.0}},
        metric_trait_confusion_lists={name: {"tp": ["x"]}},
        trait_details={name: {name: 1, "list": [{"a": 1}]}},
    )
    deep = DeepJudgmentRubricPart(
        extracted_rubric_excerpts={name: [{"text": "x"}]}, rubric_trait_reasoning={name: "so"}
    )
    quoted = [Quotation("trait", name, {"text": "x", "search_results": "found"}, None)]
    parts = [*trait_parts(part), *trait_excerpts(deep, quoted), *trait_totals(trait_lines([result(rubric=part)]))]
    found = tables(parts)
    assert len(found) == 8
    assert all(
        name not in text for title, rows in found.items() for text in (title, *(cell for row in rows for cell in row))
    )
    assert found["Traits"][0][0] == "n" * 59 + "…"


def test_every_model_has_a_table_of_traits_where_it_has_traits() -> None:
    parts = model_parts(VerificationResultSet([result(), result("other", None)]))
    assert [part.title for part in parts if isinstance(part, Table)] == [
        "x:small, judged by x:judge",
        "Traits",
        "x:other, judged by x:judge",
    ]
    found = {row[0]: row[2:] for row in tables(parts)["Traits"]}
    assert found["Tone"] == ("concise 1", "1 of 1", "")
    assert found["Lost"] == ("", "0 of 1", "1")
    assert found["Dosing"] == ("", "0 of 0, 1 skipped", "")
