"""Replicates that ended alike are shown once, with how many they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_cli.summary import not_passed, replicates_text

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.values.convert import unstructure
from karenina_core.values.result import GenerationPart, MetadataPart


def result(question: str, replicate: int, outcome: Any, answer: str = "no", judge: str = "j") -> VerificationResult:
    return VerificationResult(
        metadata=MetadataPart(
            question_id=question,
            template_id="t",
            result_id=f"{question}-{replicate}-{judge}",
            question_text=f"What is {question}?",
            answering=ModelIdentity("x", "m"),
            parsing=ModelIdentity("x", judge),
            outcome=outcome,
            outcome_detail="timeout" if outcome == "error" else None,
            replicate=replicate,
            error="GenerateAnswer: too late" if outcome == "error" else None,
        ),
        generation=GenerationPart(raw_llm_response=answer),
    )


TEN = [
    *(result("q0", n, "failed") for n in range(1, 8)),
    *(result("q0", n, "error", answer="") for n in (8, 9)),
    result("q0", 10, "passed", answer="yes"),
    *(result("q1", n, "passed", answer="yes") for n in range(1, 11)),
]


@pytest.mark.parametrize(("numbers", "text"), [([1], "1"), ([1, 2, 3, 7], "1-3, 7"), ([5, 4], "4-5"), ([1, 3], "1, 3")])
def test_numbers_of_replicates_are_ranges(numbers: list[int], text: str) -> None:
    assert replicates_text(numbers) == text


def test_equal_failures_are_one_row_after_a_run() -> None:
    (table,) = not_passed(VerificationResultSet(TEN))
    assert not isinstance(table, str)
    assert table.title == "Not passed: 9 of 20"  # type: ignore[union-attr] # a table
    assert table.columns == ("question", "replicates", "outcome", "why")  # type: ignore[union-attr] # a table
    assert [row[:3] for row in table.rows] == [  # type: ignore[union-attr] # a table
        ("q0", "1-7", "failed"),
        ("q0", "8-9", "error(timeout)"),
    ]
    (_, more) = not_passed(VerificationResultSet(TEN), most=1)
    assert more == "  and 2 more"


def test_errors_that_differ_by_the_question_alone_are_one_row_however_it_is_quoted() -> None:
    texts = {f"q{n}": f"What is the {n}th of many long questions, whose text is quoted in part?" for n in range(240)}

    def failed(question: str, message: str) -> VerificationResult:
        about = evolve(result(question, 1, "error").metadata, question_text=texts[question], error=message)
        return evolve(result(question, 1, "error"), metadata=about)

    refused = [
        failed(q, f"GenerateAnswer: nothing for {q!r} ({text[: 50 - len(q)]}…); refused") for q, text in texts.items()
    ]
    other = failed("q7", "GenerateAnswer: connection lost")
    (table,) = not_passed(VerificationResultSet([*refused, other]))
    assert [(row[0], row[-1][-9:]) for row in table.rows] == [  # type: ignore[union-attr] # a table
        ("q0 and 239 others", "; refused"),
        ("q7", "tion lost"),
    ]
    wrong = [result(q, 1, "failed") for q in ("q1", "q2")]
    (table,) = not_passed(VerificationResultSet(wrong))
    assert [row[0] for row in table.rows] == ["q1", "q2"], "each wrong answer is one of its own"  # type: ignore[union-attr] # a table


def test_two_judges_of_an_answer_are_no_replicates() -> None:
    both = VerificationResultSet([result("q0", 1, "failed"), result("q0", 1, "failed", judge="k")])
    (table,) = not_passed(both)
    assert [row[:2] for row in table.rows] == [("q0", "x:j"), ("q0", "x:k")]  # type: ignore[union-attr] # a table


@pytest.fixture
def shown(tmp_path: Path) -> Any:
    file = tmp_path / "results.jsonl"
    file.write_text("".join(f"{json.dumps(unstructure(r))}\n" for r in TEN), "utf-8")
    return lambda *options: CliRunner().invoke(karenina, ["show", str(file), *options]).stdout


def test_show_has_a_line_for_those_that_ended_alike_and_one_explanation(shown: Any) -> None:
    listed = [line.split()[:5] for line in shown().splitlines() if line.startswith("  q")][1:]
    assert listed == [
        ["q0", "x:m", "x:j", "1-7", "failed"],
        ["q0", "x:m", "x:j", "8-9", "error(timeout)"],
        ["q0", "x:m", "x:j", "10", "passed"],
        ["q1", "x:m", "x:j", "1-10", "passed"],
    ]
    explained = shown("q0")
    assert explained.count("What is q0?") == 3
    assert "This is replicate 1. Replicates 2-7: the same answer and outcome (--replicate N shows one" in explained
    assert "This is replicate 8. Replicate 9: " in explained
    assert "This is replicate" not in shown("q0", "--replicate", "3")
