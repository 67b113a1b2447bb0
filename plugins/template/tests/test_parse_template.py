"""ParseTemplate: why it runs, skips or fails, and what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen
from karenina_judging.judgment import REGEX_ONLY, TRACE_ONLY, Judgment
from karenina_template.parse import ParseTemplate
from karenina_template.validate import ValidateTemplate

from karenina_core import ArtifactKeys, Karenina, VerificationConfig, hookimpl
from karenina_core.errors import PortError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
PATTERNS_ONLY = """
class Answer(BaseAnswer):
    def ground_truth(self):
        self.regex = {"cites": {"pattern": r"\\[\\d+\\]", "expected": 1, "match_type": "count"}}
"""
FIELD = {
    "name": "target",
    "type": "str",
    "description": "The protein that the response names",
    "ground_truth": "canary-expected",
    "verify_with": {"type": "ExactMatch"},
    "extraction_hint": "a gene symbol",
}
READS: list[tuple[dict[Any, Any], str]] = [
    ({ArtifactKeys.RECURSION_LIMIT_REACHED: True}, "the answering agent reached its limit"),
    ({ArtifactKeys.TRACE_VALIDATION_FAILED: True}, "the trace is not valid"),
    ({ArtifactKeys.ABSTENTION_DETECTED: True}, "the model abstained"),
    ({ArtifactKeys.SUFFICIENCY_DETECTED: False}, "the answer is insufficient"),
]
FINE: list[dict[Any, Any]] = [
    {ArtifactKeys.RECURSION_LIMIT_REACHED: False},
    {ArtifactKeys.TRACE_VALIDATION_FAILED: False},
    {ArtifactKeys.ABSTENTION_DETECTED: None},
    {ArtifactKeys.ABSTENTION_DETECTED: False},
    {ArtifactKeys.SUFFICIENCY_DETECTED: None},
    {ArtifactKeys.SUFFICIENCY_DETECTED: True},
]


@pytest.mark.parametrize(("artifacts", "reason"), READS)
def test_parsing_is_skipped_with_its_reason(context: Make, run: Make, artifacts: dict[Any, Any], reason: str) -> None:
    judge = ScriptedLLM()
    about = context(judge=judge)
    for key, value in artifacts.items():
        about.set_artifact(key, value)
    trail = run(about)
    assert trail["ParseTemplate"] == ("skipped", reason)
    assert trail["VerifyTemplate"][0] == "skipped"
    assert (judge.calls, about.error) == ([], None)
    assert str(about.outcome) == "skipped(no stage gave a verdict)"


@pytest.mark.parametrize("artifacts", FINE)
def test_parsing_runs_when_the_checks_found_nothing(context: Make, run: Make, artifacts: dict[Any, Any]) -> None:
    about = context()
    for key, value in artifacts.items():
        about.set_artifact(key, value)
    assert run(about)["ParseTemplate"] == ("ran", "")


def test_without_an_answer_or_a_template_there_is_nothing_to_parse(context: Make, run: Make) -> None:
    assert run(context(answer=None), ValidateTemplate(), ParseTemplate())["ParseTemplate"] == (
        "skipped",
        "there is no raw_llm_response",
    )
    assert run(context(), ParseTemplate())["ParseTemplate"] == ("skipped", "there is no Answer")


def test_a_template_without_fields_needs_no_judge(context: Make, run: Make) -> None:
    judge = ScriptedLLM()
    for answer, verdict in (("as shown [1]", True), ("no citation", False)):
        about = context(PATTERNS_ONLY, judge, answer)
        assert {status for status, _ in run(about).values()} == {"ran"}
        assert (about.verdict.field, about.verdict.verdict) == (True, verdict)
        assert about.get_artifact(ArtifactKeys.PARSING_MODEL_STR) == REGEX_ONLY
        assert about.get_artifact(ArtifactKeys.TEMPLATE_EVALUATOR) is None
        assert about.get_result_field("regex_overall_success") is verdict
    assert about.effects[0].reason == "patterns failed: cites"
    assert judge.calls == []


MARKED = {
    "name": "cites",
    "type": "bool",
    "description": "a citation",
    "ground_truth": True,
    "verify_with": {"type": "TraceRegex", "pattern": r"\[\d+\]"},
    "is_trace": True,
}


def test_a_template_that_looks_at_the_trace_alone_needs_no_judge(context: Make, run: Make) -> None:
    judge = ScriptedLLM()
    for answer, verdict in (("as shown [1]", True), ("no citation", False)):
        about = context(json.dumps({"fields": [MARKED]}), judge, answer)
        assert {status for status, _ in run(about).values()} == {"ran"}
        assert (about.verdict.field, about.verdict.verdict) == (verdict, verdict)
        assert about.get_artifact(ArtifactKeys.PARSING_MODEL_STR) == TRACE_ONLY == "trace_only (no LLM)"
        assert about.get_result_field("field_results") == {"cites": verdict}
        assert about.get_artifact(ArtifactKeys.VERIFY_GRANULAR_RESULT) == float(verdict)
    assert judge.calls == []


ROWS = [{"role": "assistant", "content": "let me look"}, {"role": "assistant", "content": "It is BCL2."}]


@pytest.mark.parametrize("full", [True, False])
def test_the_judge_reads_the_final_message_or_the_whole_trace(context: Make, run: Make, full: bool) -> None:
    judge = ScriptedLLM({"target": "BCL2"})
    config = VerificationConfig(use_full_trace_for_template=full)
    about = context(judge=judge, answer="let me look ... It is BCL2.", config=config)
    about.set_result_field("trace_messages", ROWS)
    run(about)
    assert ("let me look" in judge.calls[0].text) is full
    assert about.get_result_field("used_full_trace") is full
    assert about.get_result_field("evaluation_input") == ("let me look ... It is BCL2." if full else "It is BCL2.")
    assert about.get_result_field("trace_extraction_error") is None


def test_a_trace_without_a_final_message_is_an_error_not_a_wrong_answer(context: Make, run: Make) -> None:
    judge = ScriptedLLM()
    about = context(judge=judge)
    about.set_result_field("trace_messages", [{"role": "tool", "content": "found"}])
    assert run(about)["ParseTemplate"][0] == "failed"
    assert str(about.outcome) == "error(agent)"
    assert "not from the answering model" in about.get_result_field("trace_extraction_error")
    assert (judge.calls, about.effects) == ([], ())


TRACE_TEMPLATE = {
    "fields": [
        {
            "name": "searched",
            "type": "bool",
            "description": "The search was used",
            "ground_truth": True,
            "verify_with": {"type": "TraceContains", "substring": "search"},
            "is_trace": True,
        }
    ]
}


def test_what_code_reads_off_the_trace_needs_no_final_message(context: Make, run: Make) -> None:
    judge = ScriptedLLM()
    about = context(json.dumps(TRACE_TEMPLATE), judge=judge, answer="called search")
    about.set_result_field("trace_messages", [{"role": "tool", "content": "found"}])
    run(about)
    assert str(about.outcome) == "passed"
    assert "not from the answering model" in about.get_result_field("trace_extraction_error")
    assert "code alone reads this template's answers" in about.warnings[0]
    assert judge.calls == []


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("no idea", "error(judge)"),
        ({"protein": "BCL2"}, "error(judge)"),
        ({"target": ["BCL2"]}, "error(judge)"),
        (PortError("down", kind="connection"), "error(connection)"),
    ],
)
def test_a_judge_that_fails_is_never_a_wrong_answer(context: Make, run: Make, reply: Any, outcome: str) -> None:
    about = context(judge=ScriptedLLM(lambda call: reply))
    trail = run(about)
    assert (trail["ParseTemplate"][0], trail["VerifyTemplate"][0]) == ("failed", "skipped")
    assert (str(about.outcome), about.effects) == (outcome, ())


def test_the_judge_s_channel_and_repairs_are_kept(context: Make, run: Make) -> None:
    about = context(judge=ScriptedLLM("no idea", {"target": "BCL2"}, channels=["json_object"]), max_retries=1)
    run(about)
    assert (about.get_result_field("judge_channel"), about.get_result_field("judge_repairs")) == ("json_object", 1)


def test_the_judge_never_sees_what_is_expected(context: Make, run: Make) -> None:
    judge = ScriptedLLM({"target": "x"})
    run(context(json.dumps({"fields": [FIELD]}), judge))
    assert "canary-expected" not in judge.calls[0].text
    assert "a gene symbol" in judge.calls[0].text


@pytest.mark.parametrize(
    ("extracted", "nowhere"), [("BCL2", ()), ("bcl-2", ()), ("{{value}}", ("target",)), (None, ())]
)
def test_a_value_that_the_answer_does_not_hold_is_marked_without_a_call(
    context: Make, run: Make, extracted: str | None, nowhere: tuple[str, ...]
) -> None:
    judge = ScriptedLLM({"target": extracted})
    about = context(json.dumps({"fields": [FIELD]}), judge, answer="It binds BCL2.")
    run(about)
    assert tuple(about.get_result_field("ungrounded_values")) == nowhere
    assert list(about.get_result_field("caveats", ())) == (["ungrounded_values"] if nowhere else [])
    assert (len(judge.calls), str(about.outcome), about.warnings) == (1, "failed", []), "a mark, and no verdict"


def listing(name: str, expected: list[str]) -> dict[str, Any]:
    return {
        **FIELD,
        "name": name,
        "type": "list_str",
        "ground_truth": expected,
        "verify_with": {"type": "SetContainment"},
    }


@pytest.mark.parametrize(("most", "limited"), [(1, True), (128, True), (129, False), (300, False)])
def test_lists_of_the_judge_have_an_end_unless_long_ones_are_expected(
    context: Make, run: Make, most: int, limited: bool
) -> None:
    fields = [FIELD, listing("drugs", ["x"]), listing("genes", [f"g{n}" for n in range(most)])]
    many = [f"g{n}" for n in range(300)]
    judge = ScriptedLLM({"target": "x", "drugs": ["x"], "genes": many}, channels=["json_schema"])
    about = context(json.dumps({"fields": fields}), judge)
    run(about)
    assert judge.calls[0].output is not None
    assert str(judge.calls[0].output.schema).count("'maxItems': 256") == 2 * limited
    assert str(judge.calls[0].output.schema).count("maxItems") == 2 * limited
    assert ("maxItems" in judge.calls[0].text) is limited
    assert about.get_result_field("parsed_llm_response")["genes"] == many, "a judge that says more is taken at its word"


def test_the_prompt_lists_every_field_once_unless_a_tool_shows_them(context: Make, run: Make) -> None:
    fields = [{**FIELD, "name": f"target_{n}", "description": f"The protein number {n}"} for n in range(8)]
    prompts = {}
    for channel in ("json_schema", "tool_call", "json_object", "text"):
        judge = ScriptedLLM({f"target_{n}": "x" for n in range(8)}, channels=[channel])
        run(context(json.dumps({"fields": fields}), judge))
        prompts[channel] = judge.calls[0].text
    assert "additionalProperties" not in "".join(prompts.values())
    assert [prompts["json_schema"].count(f"The protein number {n}") for n in range(8)] == [1] * 8
    assert prompts["text"] == prompts["json_object"]
    assert len(prompts["text"]) == len(prompts["json_schema"])
    assert len(prompts["tool_call"]) < len(prompts["json_schema"])


@frozen
class Deep:
    name: str = "deep_judgment"

    async def fill(self, context: Any, handle: Any, given: Any) -> Judgment:
        evidence = {ArtifactKeys.DEEP_JUDGMENT_PERFORMED: True, ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS: ["target"]}
        return Judgment(filled=await handle.build({"target": "BCL2"}), evidence=evidence)


def test_another_strategy_leaves_its_evidence(context: Make, run: Make) -> None:
    class Strategies:
        @hookimpl
        def karenina_register_strategies(self, registry: Any) -> None:
            registry.add(Deep, name="deep_judgment")

    config = VerificationConfig(deep_judgment_enabled=True)
    about = context(config=config, app=Karenina({"deep": Strategies()}))
    run(about)
    assert about.get_artifact(ArtifactKeys.TEMPLATE_EVALUATOR) == "deep_judgment"
    assert about.get_artifact(ArtifactKeys.DEEP_JUDGMENT_PERFORMED) is True
    assert about.get_artifact(ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS) == ["target"]
    assert about.get_artifact(ArtifactKeys.DEEP_JUDGMENT_MODEL_CALLS) == 0
