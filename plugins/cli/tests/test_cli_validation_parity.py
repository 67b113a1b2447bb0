"""`benchmark validate` reports what is wrong with a template before a run, in the words of the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core import Benchmark, Question, VerificationResultSet

Run = Callable[..., Result]
FIELD = {
    "name": "target",
    "type": "str",
    "description": "The protein",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}


def of_field(**facts: Any) -> str:
    return json.dumps({"fields": [{**FIELD, **facts}]})


def of_trace(**facts: Any) -> str:
    return of_field(type="bool", ground_truth=True, is_trace=True, verify_with={"type": "TraceRegex", **facts})


BROKEN = {
    "no JSON": "{",
    "no field": '{"fields": []}',
    "an unknown primitive": of_field(verify_with={"type": "RegexMatsch", "pattern": "x"}),
    "an unknown parameter": of_trace(pattern="x", flag=["IGNORECASE"]),
    "an unknown flag": of_trace(pattern="x", flags=["IGNORCASE"]),
    "a bad pattern": of_trace(pattern="("),
    "a pattern for every text": of_trace(pattern="x*"),
    "a pattern that cannot be searched for": of_trace(pattern="(?:(?:ab){999}){999}"),
    "a pattern that never ends": of_trace(pattern="(?:(?:(?:|x){25}){25}){25}$"),
    "a range without bounds": of_field(type="float", ground_truth="N/A", verify_with={"type": "NumericRange"}),
    "a ground truth of another type": of_field(type="int"),
    "a trace check of a value": of_field(is_trace=True),
    "Python that does not compile": "class Answer(BaseAnswer:",
    "Python without a template": "x = 1",
    "self.regex that cannot be searched for": (
        "class Answer(BaseAnswer):\n    def ground_truth(self):\n"
        '        self.regex = {"x": {"pattern": "(", "expected": "x"}}'
    ),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_template_is_reported_of_before_a_run(text: str, run: Run, tmp_path: Path) -> None:
    language = "karenina-template" if text.startswith("{") else "python"
    question = Question(id="q", question="?", raw_answer="x", answer_template=text, template_language=language)
    Benchmark.create("b").with_questions([question]).save("b.jsonld")
    Path("answers.json").write_text('{"q": "x"}', "utf-8")
    checked = run("benchmark", "validate", "b.jsonld", "--trust", "--json")
    assert checked.exit_code == 1
    (printed,) = json.loads(checked.stdout)["questions"]
    assert printed["state"] == "unusable"
    manual = ["--answering-interface", "manual", "--manual-traces", "answers.json", "--trust"]
    assert run("verify", "b.jsonld", *manual, "--out", "run", "--quiet").exit_code == 3
    (result,) = VerificationResultSet.load("run")
    assert str(result.outcome) == "error(template)"
    assert str(result.metadata.error).endswith(printed["reason"])


def test_a_missing_embedder_is_a_note_on_the_templates_that_need_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not more: another one may be configured for the run."""
    texts = of_field(verify_with={"type": "SemanticMatch"}), of_field()
    questions = [
        Question(id=f"q{n}", question=f"{n}?", answer_template=text, template_language="karenina-template")
        for n, text in enumerate(texts)
    ]
    Benchmark.create("b").with_questions(questions).save("b.jsonld")
    monkeypatch.setenv("KARENINA_DISABLE", "embedder-minilm")
    checked = run("benchmark", "validate", "b.jsonld", "--json")
    assert checked.exit_code == 0, checked.output
    needing, other = json.loads(checked.stdout)["questions"]
    assert "target: SemanticMatch needs the embedder 'minilm'" in needing["warnings"][0]
    assert other["warnings"] == []


def test_flags_are_those_of_both_primitives(run: Run) -> None:
    loud = of_trace(pattern="bcl2", flags=["IGNORECASE"])
    question = Question(
        id="q", question="?", raw_answer="x", answer_template=loud, template_language="karenina-template"
    )
    Benchmark.create("b").with_questions([question]).save("b.jsonld")
    Path("answers.json").write_text('{"q": "It is BCL2."}', "utf-8")
    assert run("benchmark", "validate", "b.jsonld").exit_code == 0
    manual = ["--answering-interface", "manual", "--manual-traces", "answers.json"]
    assert run("verify", "b.jsonld", *manual, "--out", "run", "--quiet").exit_code == 0
    assert [str(result.outcome) for result in VerificationResultSet.load("run")] == ["passed"]
