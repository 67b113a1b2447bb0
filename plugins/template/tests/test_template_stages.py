"""ValidateTemplate and VerifyTemplate: why they run, skip or fail, on real templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from karenina_judging.services import LOAD_TEMPLATE
from karenina_template.verify import VerifyTemplate

from karenina_core import ArtifactKeys
from karenina_core.errors import TemplateError
from karenina_core.testing import ScriptedLLM
from karenina_core.values.question import TemplateSource

Make = Callable[..., Any]
RAISING = """
class Answer(BaseAnswer):
    target: str = Field(description="x")

    def verify(self):
        raise ZeroDivisionError("a bug")
"""
HALF = """
class Answer(BaseAnswer):
    target: str = Field(description="x")

    def verify(self):
        return True

    def verify_granular(self):
        raise ZeroDivisionError("a bug")
"""


# The way of a good item


@pytest.mark.parametrize(("extracted", "verdict"), [("BCL2", True), ("MCL1", False)])
def test_code_decides_what_the_judge_extracted(context: Make, run: Make, extracted: str, verdict: bool) -> None:
    about = context(judge=ScriptedLLM({"target": extracted}))
    assert {status for status, _ in run(about).values()} == {"ran"}
    assert (about.verdict.field, about.verdict.verdict) == (verdict, verdict)
    assert str(about.outcome) == ("passed" if verdict else "failed")
    assert about.get_result_field("parsed_llm_response") == {"target": extracted}
    assert about.get_result_field("parsed_gt_response") == {"target": "BCL2"}
    assert about.get_result_field("field_results") == {"target": verdict}
    assert about.effects[0].reason == ("" if verdict else "wrong: target")
    assert about.get_artifact(ArtifactKeys.PARSING_MODEL_STR) == str(about.task.parsing)
    assert about.get_artifact(ArtifactKeys.TEMPLATE_EVALUATOR) == "standard"


def test_deep_judgment_defaults_to_not_performed(context: Make, run: Make) -> None:
    about = context()
    run(about)
    assert about.get_artifact(ArtifactKeys.DEEP_JUDGMENT_PERFORMED) is False
    assert about.get_artifact(ArtifactKeys.EXTRACTED_EXCERPTS) == {}
    assert about.get_result_field("deep_judgment_model_calls") == 0


def test_what_the_judge_did_not_find_is_recorded_as_null(context: Make, run: Make) -> None:
    about = context(judge=ScriptedLLM({"target": None}))
    run(about)
    assert about.get_result_field("field_results") == {"target": None}
    assert (str(about.outcome), about.effects[0].reason) == ("failed", "not found: target")


# ValidateTemplate


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (None, "the question has no answer template"),
        ("{}", "fields"),
        ('{"fields": [', "not JSON"),
        ("class Answer(BaseAnswer:\n    pass", "line 1"),
        ("class Answer(BaseAnswer):\n    target: str = 1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_template_that_cannot_be_used_is_an_error_and_costs_nothing(
    context: Make, run: Make, template: str | None, words: str
) -> None:
    judge = ScriptedLLM()
    about = context(template, judge)
    trail = run(about)
    assert trail["ValidateTemplate"][0] == "failed"
    assert {trail[name] for name in ("ParseTemplate", "VerifyTemplate")} == {
        ("skipped", "an error was set by ValidateTemplate")
    }
    assert words in (about.error or "")
    assert words in str(about.get_artifact(ArtifactKeys.TEMPLATE_VALIDATION_ERROR))
    assert str(about.outcome) == "error(template)"
    assert (judge.calls, about.effects) == ([], ())


# VerifyTemplate


def test_a_template_that_raises_is_an_error_without_a_verdict(context: Make, run: Make) -> None:
    about = context(RAISING)
    assert run(about)["VerifyTemplate"][0] == "failed"
    assert (str(about.outcome), about.effects) == ("error(template)", ())
    assert "ZeroDivisionError" in about.get_result_field("field_verification_error")
    assert not about.completed_without_errors


def test_partial_credit_that_raises_is_a_warning_and_the_verdict_is_kept(context: Make, run: Make) -> None:
    about = context(HALF)
    assert run(about)["VerifyTemplate"] == ("ran", "")
    assert str(about.outcome) == "passed"
    assert about.get_artifact(ArtifactKeys.VERIFY_GRANULAR_RESULT, 0.0) is None
    assert "verify_granular failed" in about.warnings[0]


ONE = 'class Answer(BaseAnswer):\n    target: str = Field(description="x")\n'
PATTERN = (
    ONE
    + """
    def ground_truth(self):
        self.regex = {"a": {"pattern": "BCL2", "expected": "BCL2"}, "said": {"pattern": self.target, "expected": "It"}}

    def verify(self):
        return True
"""
)
FAILURES = [
    ("class Answer(BaseAnswer", None, "error(template)", None, {"template_validation_error": "line 1"}),
    (ONE, None, "error(template)", None, {"template_validation_error": "there is no verify()"}),
    (ONE + "    def verify(self): return True", {"target": 3}, "error(judge)", None, {}),
    (
        ONE + "    def verify(self): return 1 / 0",
        {"target": "a"},
        "error(template)",
        None,
        {"field_verification_error": "Zero"},
    ),
    (
        ONE + "    def verify(self): return 1",
        {"target": "a"},
        "error(template)",
        None,
        {"field_verification_error": "returned 1"},
    ),
    (
        ONE + "    def verify(self): pass",
        {"target": "a"},
        "error(template)",
        None,
        {"field_verification_error": "None"},
    ),
    (HALF, {"target": "a"}, "passed", True, {}),
    (PATTERN, {"target": "I."}, "passed", True, {}),
    (PATTERN, {"target": "("}, "failed", False, {}),
]


@pytest.mark.parametrize(
    ("template", "reply", "outcome", "verdict", "reasons"),
    FAILURES,
    ids=["syntax", "rule", "reply", "raises", "number", "nothing", "credit", "pattern", "broken pattern"],
)
def test_each_failure_of_a_template_has_its_own_end_and_none_is_a_wrong_answer(
    context: Make, run: Make, template: str, reply: Any, outcome: str, verdict: bool | None, reasons: dict[str, str]
) -> None:
    about = context(template, ScriptedLLM(lambda call: reply))
    run(about)
    assert (str(about.outcome), about.verdict.verdict) == (outcome, verdict)
    assert about.completed_without_errors is not outcome.startswith("error")
    assert about.get_result_field("verify_granular_result") is None
    for field, words in reasons.items():
        assert words in about.get_result_field(field)
    if outcome == "failed":
        assert about.get_result_field("regex_validation_results") == {"a": True, "said": False}
        assert "error" in about.get_result_field("regex_validation_details")["said"]
        assert about.effects[0].reason == "patterns failed: said"


def test_a_null_is_taken_as_it_is_and_no_placeholder_is_ever_asked_for(context: Make, run: Make) -> None:
    judge = ScriptedLLM({"target": None})
    about = context(judge=judge, max_retries=3)
    run(about)
    assert len(judge.calls) == 1
    assert about.get_result_field("field_results") == {"target": None}
    judge = ScriptedLLM({"target": 3}, {"target": None})
    run(context(judge=judge, max_retries=3))
    asked_again = judge.calls[1].messages[-1].text
    assert "target" in asked_again
    assert not [word for word in ("placeholder", '""', "N/A", "zero") if word in asked_again]


@pytest.mark.parametrize(
    ("artifacts", "reason"),
    [
        ({ArtifactKeys.RECURSION_LIMIT_REACHED: True}, "the answering agent reached its limit"),
        ({ArtifactKeys.ABSTENTION_DETECTED: True}, "the model abstained"),
        ({}, "there is no parsed answer"),
    ],
    ids=["limit", "abstained", "none"],
)
def test_verification_is_skipped_with_its_reason(
    context: Make, run: Make, artifacts: dict[Any, Any], reason: str
) -> None:
    about = context()
    for key, value in artifacts.items():
        about.set_artifact(key, value)
    assert run(about, VerifyTemplate())["VerifyTemplate"] == ("skipped", reason)


def test_a_runtime_that_breaks_is_distinguished_from_a_template_that_does(context: Make, run: Make) -> None:
    async def broken(source: TemplateSource) -> Any:
        raise RuntimeError("the runtime has a bug")

    about = context()
    about._services = {LOAD_TEMPLATE: broken}
    run(about)
    assert str(about.outcome) == "error(stage)"

    async def refused(source: TemplateSource) -> Any:
        raise TemplateError("the template has a bug")

    about = context()
    about._services = {LOAD_TEMPLATE: refused}
    run(about)
    assert str(about.outcome) == "error(template)"
