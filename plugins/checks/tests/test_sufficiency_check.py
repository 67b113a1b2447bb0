"""SufficiencyCheck: an answer that says enough is evaluated, one that does not is insufficient, and never the other
way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_checks.sufficiency import SufficiencyCheck

from karenina_core import ArtifactKeys, Category, ModelConfig, Question, Stage, VerificationContext
from karenina_core.errors import PortError, TemplateError
from karenina_core.testing import FakeHandle, ScriptedLLM

Verify = Callable[..., Any]
BOTH = {"parsing": {"target": "BCL2", "dose": "BCL2"}}
PATTERNS_ONLY = """
class Answer(BaseAnswer):
    def ground_truth(self):
        self.regex = {"cites": {"pattern": "BCL2", "expected": 1, "match_type": "count"}}
"""
DEFAULTS = """
class Answer(BaseAnswer):
    target: str = VerifiedField(description="x", ground_truth="BCL2", verify_with=ExactMatch(), default="unknown")
    dose: str | None = VerifiedField(description="y", ground_truth="BCL2", verify_with=ExactMatch(), default=None)
    note: str = Field(default="", description="z")
"""


def judged(sufficient: Any, /, **found: Any) -> dict[str, Any]:
    fields = {name: {"evidence": "x" if there else None, "found": there} for name, there in found.items()}
    return {"fields": fields, "reasoning": "because", "sufficient": sufficient}


def judging(*replies: Any) -> dict[str, Any]:
    return {**BOTH, "sufficiency_detection": list(replies)}


def test_a_sufficient_run_that_is_right_is_passed(verify: Verify) -> None:
    done = verify(features=("sufficiency",))
    assert done.outcome == "passed"
    assert done.finding("sufficiency") == (True, True, False, "all is there")
    assert done.result.metadata.evaluation_mode == "template_only"
    assert done.result.metadata.warnings == ()


def test_a_sufficient_run_that_is_wrong_is_failed_and_not_insufficient(verify: Verify) -> None:
    done = verify(replies={"parsing": {"target": "MCL1"}})
    assert (done.outcome, done.finding("sufficiency")[1]) == ("failed", True)


def test_an_insufficient_run_is_insufficient_and_nothing_is_parsed(verify: Verify, template_of: Any) -> None:
    reply = judged(False, target=True, dose=False)
    done = verify(replies=judging(reply), template=template_of("target", "dose"), features=("sufficiency",))
    assert done.outcome == "insufficient"
    assert done.finding("sufficiency") == (True, False, True, "because")
    assert done.result.template.verify_result is False
    assert done.result.metadata.completed_without_errors
    assert done.result.metadata.evaluation_mode == "template_only"
    assert done.llm.asked("parsing") == []
    (entry,) = done.result.ledger
    assert (entry.stage, entry.effect) == ("SufficiencyCheck", {"verdict": False, "outcome": "insufficient"})
    assert entry.reason == "the answer says nothing about: dose"


def test_a_judge_that_fails_to_parse_is_an_error_of_the_judge_and_not_insufficient(verify: Verify) -> None:
    assert verify(replies={"parsing": "no idea"}).outcome == "error(judge)"


@settings(database=None, deadline=None, derandomize=True, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=2))
def test_no_reply_turns_sufficient_into_a_failure_or_insufficient_into_a_pass(
    verify: Verify, template_of: Any, replies: list[tuple[bool, bool, bool]]
) -> None:
    judgments = [judged(sufficient, target=target, dose=dose) for sufficient, target, dose in replies]
    done = verify(replies=judging(*judgments), template=template_of("target", "dose"))
    agreeing = [all(found) for sufficient, *found in replies if sufficient == all(found)]
    if not agreeing:  # no reply that can be believed
        assert (done.outcome, done.finding("sufficiency")) == ("passed", (True, None, False, "because"))
        assert done.result.metadata.caveats == ("contradictory_sufficiency",)
    elif agreeing[0]:
        assert (done.outcome, done.finding("sufficiency")) == ("passed", (True, True, False, "because"))
    else:
        assert (done.outcome, done.finding("sufficiency")) == ("insufficient", (True, False, True, "because"))


@settings(database=None, deadline=None, derandomize=True, max_examples=30)
@given(st.text(max_size=10), st.booleans(), st.booleans(), st.integers(0, 2))
def test_evidence_for_a_field_that_is_not_found_is_shown_to_the_judge_once_and_decides_nothing(
    verify: Verify, evidence: str, sufficient: bool, corrected: bool, retries: int
) -> None:
    odd = {**judged(sufficient, target=False), "fields": {"target": {"evidence": evidence, "found": False}}}
    judgments = [odd, judged(True, target=True)] if corrected else [odd]
    done = verify(replies=judging(*judgments), features=("sufficiency",), model={"max_retries": retries})
    asked = done.llm.asked("sufficiency_detection")
    if not sufficient and not evidence.strip():
        assert (done.outcome, len(asked)) == ("insufficient", 1)
        return
    assert len(asked) == 2
    if evidence.strip():
        assert "there is evidence for fields that were not found: target" in asked[1].text
    assert done.outcome == "passed"
    assert done.finding("sufficiency")[:2] == (True, True if corrected else None)
    assert done.result.metadata.caveats == (() if corrected else ("contradictory_sufficiency",))
    assert [("contradicts itself" in warning) for warning in done.result.metadata.warnings] == [True] * (not corrected)


def test_a_verdict_against_its_own_findings_is_asked_for_again(verify: Verify) -> None:
    done = verify(replies=judging(judged(False, target=True), judged(True, target=True)))
    assert (done.outcome, done.result.metadata.warnings) == ("passed", ())
    assert "every field was found" in done.llm.asked("sufficiency_detection")[1].text
    done = verify(replies=judging(judged(True, target=False), judged(False, target=False)))
    assert done.outcome == "insufficient"
    assert "these fields were not found: target" in done.llm.asked("sufficiency_detection")[1].text


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (PortError("who are you", kind="auth"), "who are you"),
        ("It is sufficient.", "no JSON object"),
        (judged("false", target=False), "sufficient must be boolean"),
        (judged(0, target=False), "sufficient must be boolean"),
        (judged(False), "fields.target is missing"),
        (judged(False, target="no"), "fields.target.found must be boolean"),
        ({**judged(False, target=False), "fields": ["target"]}, "fields must be object"),
        ({"sufficient": False}, "fields is missing"),
    ],
)
def test_a_judge_that_fails_is_a_warning_and_the_answer_counts_as_sufficient(
    verify: Verify, reply: Any, message: str
) -> None:
    done = verify(replies={"sufficiency_detection": reply})
    assert (done.outcome, done.finding("sufficiency")) == ("passed", (False, True, False, None))
    (warning,) = done.result.metadata.warnings
    assert "treated as sufficient" in warning
    assert message in warning


# What is asked


def output_of(done: Any) -> Any:
    """The schema that the judge was given."""
    return done.llm.asked("sufficiency_detection")[0].output.schema


def test_a_field_with_a_default_is_asked_about_where_the_judge_has_to_fill_it_in(verify: Verify) -> None:
    reply = judged(False, target=True, dose=False)
    done = verify(template=DEFAULTS, replies=judging(reply))
    fields = output_of(done)["properties"]["fields"]
    assert list(fields["properties"]) == fields["required"] == ["target", "dose"]
    listed = done.prompt("sufficiency").split("The fields of the record:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split(" (")[0] for line in listed] == ["- target", "- dose"]
    assert done.outcome == "insufficient"


def test_every_field_is_looked_at_before_the_verdict(verify: Verify, template_of: Any) -> None:
    done = verify(template=template_of("dose", "target"), replies=judging(judged(True, target=True, dose=True)))
    schema = output_of(done)
    assert list(schema["properties"]) == schema["required"] == ["fields", "reasoning", "sufficient"]
    assert list(schema["properties"]["fields"]["properties"]) == ["dose", "target"]
    assert list(schema["properties"]["fields"]["properties"]["dose"]["properties"]) == ["evidence", "found"]


def test_the_judge_sees_question_answer_and_schema_and_never_what_is_expected(verify: Verify, template_of: Any) -> None:
    done = verify(template=template_of("target", ground_truth="canary-expected", extraction_hint="a gene symbol"))
    prompt = done.prompt("sufficiency")
    assert "Which protein?" in prompt
    assert "<untrusted-" in prompt
    assert "It is BCL2." in prompt
    assert "The target that the response names" in prompt
    assert "canary-expected" not in "".join(call.text for call in done.llm.calls)
    assert done.llm.asked("sufficiency_detection")[0].temperature == 0.0


WITH_A_TRACE_FIELD = """
class Answer(BaseAnswer):
    target: str = VerifiedField(description="The target", ground_truth="BCL2", verify_with=ExactMatch())
    cites_doi: bool = VerifiedField(
        description="Has a DOI", ground_truth=True, verify_with=TraceContains(substring="doi")
    )
"""


def test_a_field_that_the_trace_decides_is_not_asked_about(verify: Verify) -> None:
    done = verify(template=WITH_A_TRACE_FIELD, replies={"generation": "It is BCL2 (doi:10/x)."})
    assert (done.outcome, done.finding("sufficiency")[:2]) == ("passed", (True, True))
    assert "cites_doi" in done.result.template.field_results, "the template has it"
    prompt = done.prompt("sufficiency")
    assert "cites_doi" not in prompt
    assert "Has a DOI" not in prompt
    assert prompt.split("The fields of the record:\n")[1].split("\n\n")[0].count("- ") == 1
    assert list(output_of(done)["properties"]["fields"]["properties"]) == ["target"]


# When it has nothing to do


def test_a_template_that_asks_a_judge_for_nothing_skips_the_check(verify: Verify) -> None:
    done = verify(template=PATTERNS_ONLY, features=("sufficiency",))
    assert done.trail["SufficiencyCheck"] == ("skipped", "the template asks a judge for nothing")
    assert (done.outcome, [call.task for call in done.llm.calls]) == ("passed", ["generation"])
    assert done.finding("sufficiency") == (False, None, False, None)


def test_whoever_has_decided_already_spares_the_call(verify: Verify) -> None:
    class TooShort(Stage):
        category = Category.GUARD
        requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

        def execute(self, context: VerificationContext) -> None:
            context.record(verdict=False, reason="too short")

    done = verify(TooShort, features=("sufficiency",))
    assert done.trail["SufficiencyCheck"] == ("skipped", "TooShort has decided already")
    assert done.outcome == "auto_failed(TooShort)"


@frozen(kw_only=True)
class OddHandle(FakeHandle):
    """A template whose schema is as given, or cannot be had."""

    given: Mapping[str, Any] | None = None

    def schema(self) -> dict[str, Any]:
        if self.given is None:
            raise TemplateError("there is none")
        return dict(self.given)


@pytest.mark.parametrize(
    ("handle", "answer", "message"),
    [
        (OddHandle(), "BCL2", "there is none"),
        (OddHandle(given={"type": "object"}), "BCL2", "requires no field"),
        (OddHandle(given={"properties": {"a": {}}, "required": []}), "BCL2", "requires no field"),
        (FakeHandle(), " \n", "the trace is empty"),
    ],
)
def test_without_a_schema_or_an_answer_nothing_is_found_out(handle: FakeHandle, answer: str, message: str) -> None:
    llm = ScriptedLLM()
    client = ModelClient(Model(config=ModelConfig(model_name="j", interface="scripted"), llm=llm), [])
    context = VerificationContext(question=Question(question="Which?"), parsing=client)
    context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, answer)
    context.set_artifact(ArtifactKeys.ANSWER, handle)
    stage = SufficiencyCheck()
    with context.acting(stage):
        assert stage.should_run(context) is True
        asyncio.run(stage.execute(context))
    assert [context.result_fields[str(key)] for key in stage.produces] == [False, None, False, None]
    assert (llm.calls, context.effects, context.error) == ([], (), None)
    assert message in context.warnings[0]


@pytest.mark.parametrize("missing", [ArtifactKeys.RAW_LLM_RESPONSE, ArtifactKeys.ANSWER])
def test_without_an_answer_or_a_template_there_is_nothing_to_check(missing: str) -> None:
    context = VerificationContext(question=Question(question="Which?"))
    for key, value in ((ArtifactKeys.RAW_LLM_RESPONSE, "BCL2"), (ArtifactKeys.ANSWER, FakeHandle())):
        if key != missing:
            context.set_artifact(key, value)
    assert getattr(SufficiencyCheck().should_run(context), "reason", "") == f"there is no {missing}"
