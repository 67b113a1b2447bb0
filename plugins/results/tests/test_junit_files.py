"""The format junit: a test for each question, and nothing that is missing passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_results.formats.junit_file import JunitFile

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import MetadataPart

MODEL, JUDGE = ModelIdentity("scripted", "m"), ModelIdentity("scripted", "j")
PAIR = [str(MODEL), str(JUDGE)]


def result(question: str, outcome: Any, replicate: int = 1, **facts: Any) -> VerificationResult:
    about = MetadataPart(
        result_id=f"{question}-{replicate}",
        question_id=question,
        question_text="Why?",
        template_id="t",
        outcome=outcome,
        replicate=replicate,
        answering=MODEL,
        parsing=JUDGE,
        execution_time=0.25,
        **facts,
    )
    return VerificationResult(metadata=about)


def written(path: Path, results: list[VerificationResult], **manifest: Any) -> ElementTree.Element:
    file = path / "run.xml"
    JunitFile().write(results, file, manifest)
    return ElementTree.fromstring(file.read_bytes())


def states(root: ElementTree.Element) -> dict[str, str]:
    return {
        str(case.get("name")): next((part.tag for part in case if part.tag != "properties"), "passed")
        for case in root.iter("testcase")
    }


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [
        (["passed"], "passed"),
        (["failed"], "failure"),
        (["abstained"], "failure"),
        (["insufficient"], "failure"),
        (["auto_failed"], "failure"),
        (["error"], "error"),
        (["scored"], "skipped"),
        (["passed", "passed"], "passed"),
        (["passed", "error"], "error"),
        (["failed", "error"], "failure"),
        (["passed", "failed", "passed"], "failure"),
    ],
)
def test_what_becomes_of_a_question(outcomes: list[str], state: str, tmp_path: Path) -> None:
    root = written(tmp_path, [result("q", outcome, number) for number, outcome in enumerate(outcomes, 1)])
    assert states(root) == {"q": state}
    (suite,) = root
    counts = {name: int(suite.get(name, "-1")) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {
        "tests": 1,
        "failures": int(state == "failure"),
        "errors": int(state == "error"),
        "skipped": int(state == "skipped"),
    }
    properties = [(part.get("name"), part.get("value")) for part in root.iter("property")]
    expected = [(f"replicate {number}", outcome) for number, outcome in enumerate(outcomes, 1)]
    assert properties == (expected if len(outcomes) > 1 else [])
    assert float(suite.get("time", "0")) == 0.25 * len(outcomes)


def test_the_reason_and_how_many_passed_are_the_message(tmp_path: Path) -> None:
    root = written(
        tmp_path, [result("q", "passed", 1), result("q", "error", 2, outcome_detail="timeout", error="late")]
    )
    (error,) = root.iter("error")
    assert error.attrib == {"type": "error", "message": "1 of 2 replicates passed; error: late"}


def test_what_was_planned_and_has_no_result_is_an_error(tmp_path: Path) -> None:
    config = {"replicate_count": 2}
    pairs = [PAIR, ["scripted:other", PAIR[1]]]
    root = written(
        tmp_path, [result("a", "passed"), result("a", "passed", 2)], config=config, questions=["a", "b"], pairs=pairs
    )
    assert [(suite.get("name"), suite.get("tests"), suite.get("errors")) for suite in root] == [
        (f"{PAIR[0]}, judged by {PAIR[1]}", "2", "1"),
        (f"scripted:other, judged by {PAIR[1]}", "2", "2"),
    ]
    assert root.get("errors") == "3"
    assert {part.get("message") for part in root.iter("error")} == {"0 of 2 replicates passed; error: no result"}


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_xml(tmp_path_factory: pytest.TempPathFactory, question: str, error: str) -> None:
    root = written(tmp_path_factory.mktemp("xml"), [result(question, "error", error=error, outcome_detail="server")])
    assert len(list(root.iter("testcase"))) == 1
