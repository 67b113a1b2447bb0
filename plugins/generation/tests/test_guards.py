"""The two guards: exactly when they run, and exactly what they leave behind."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_generation.recursion_limit import RecursionLimitAutoFail
from karenina_generation.trace_validation import TraceValidationAutoFail
from karenina_vocabulary.traces import evaluation_input, render_trace

from karenina_core import ArtifactKeys, Karenina, Question, Stage, VerificationContext
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.values.identity import ModelIdentity, TaskIdentity
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolUseBlock, trace_dicts
from karenina_core.values.result import TrailEntry, VerificationResult

QUICK = settings(database=None, deadline=None, derandomize=True, max_examples=50)
TOOL = Message.tool_result("1", "found")
ASKING = Message.assistant(tool_calls=[ToolUseBlock("1", "find")])
THINKING = Message("assistant", [ThinkingBlock("hm")])
ENDINGS: list[tuple[Message, str | None]] = [
    (Message.assistant("BCL2"), None),
    (Message.assistant("BCL2", [ToolUseBlock("2", "find")]), None),
    (Message.assistant("--- Summary ---\r\nTool Calls:\r\nBCL2"), None),
    (ASKING, "holds no text"),
    (THINKING, "holds no text"),
    (Message.assistant(" \n"), "holds no text"),
    (TOOL, "not from the answering model"),
]


class Last(Stage):
    """Takes the place of the stage that assembles the result."""

    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))


def answered(
    *messages: Message, servers: tuple[str, ...] = ("tools",), limit: bool = False, interface: str = "litellm"
) -> VerificationContext:
    """An item after its answer."""
    model = ModelIdentity(interface, "m")
    task = TaskIdentity("q", "t", model, model)
    about = VerificationContext(question=Question(question="Why?"), task=task, app=Karenina.default())
    about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, render_trace(messages))
    about.set_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, limit)
    about.set_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS, list(servers))
    about.set_result_field("trace_messages", trace_dicts(messages))
    return about


def guarded(about: VerificationContext) -> tuple[VerificationResult, dict[str, TrailEntry]]:
    engine = Engine([RecursionLimitAutoFail(), TraceValidationAutoFail(), Last()])
    result = asyncio.run(engine.run(about))
    return result, {entry.stage: entry for entry in result.trail}


@pytest.mark.parametrize("limit", [True, False])
def test_only_a_limit_that_was_reached_fails_an_answer(limit: bool) -> None:
    about = answered(Message.assistant("BCL2"), limit=limit)
    result, trail = guarded(about)
    assert trail["RecursionLimitAutoFail"].status == ("ran" if limit else "skipped")
    assert (about.verdict.field, about.verdict.verdict) == ((False, False) if limit else (None, None))
    assert about.completed_without_errors
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE), "the trace is kept"
    assert (str(result.outcome) == "auto_failed(RecursionLimitAutoFail)") is limit


def test_both_guards_may_speak_and_the_first_one_names_the_outcome() -> None:
    about = answered(ASKING, TOOL, limit=True)
    result, trail = guarded(about)
    assert [trail[name].status for name in ("RecursionLimitAutoFail", "TraceValidationAutoFail")] == ["ran", "ran"]
    assert [entry.effect["verdict"] for entry in result.ledger] == [False, False]
    assert str(result.outcome) == "auto_failed(RecursionLimitAutoFail)"


@pytest.mark.parametrize(("ending", "problem"), ENDINGS)
@pytest.mark.parametrize(("servers", "interface"), [(("tools",), "litellm"), ((), "litellm"), (("tools",), "manual")])
def test_only_the_trace_of_an_agent_with_tools_must_end_with_an_answer(
    ending: Message, problem: str | None, servers: tuple[str, ...], interface: str
) -> None:
    about = answered(ASKING, TOOL, ending, servers=servers, interface=interface)
    _, trail = guarded(about)
    failed = problem is not None and bool(servers) and interface != "manual"
    error = about.get_artifact(ArtifactKeys.TRACE_VALIDATION_ERROR)
    assert trail["TraceValidationAutoFail"].status == "ran"
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is bool(servers)
    assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED) is failed
    assert about.completed_without_errors
    if failed:
        assert problem is not None
        assert problem in str(error)
        assert about.get_result_field("trace_extraction_error") == error
        assert [(e.field, e.verdict, e.outcome, e.reason) for e in about.effects] == [
            (False, False, "auto_failed", error)
        ]
    else:
        assert (error, about.effects) == (None, ())
        assert "trace_extraction_error" not in about.result_fields


def test_without_structured_messages_the_answer_itself_is_looked_at() -> None:
    for raw, failed in (("--- Tool Message (call_id: 1) ---\nBCL2", False), (" \n", True)):
        about = VerificationContext(question=Question(question="Why?"))
        about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, raw)
        about.set_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, False)
        about.set_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS, ["tools"])
        guarded(about)
        assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED) is failed


def test_after_an_error_no_guard_runs() -> None:
    about = answered(TOOL, limit=True)
    about.mark_error("down", kind="server", stage="GenerateAnswer")
    _, trail = guarded(about)
    assert {trail[name].reason for name in ("RecursionLimitAutoFail", "TraceValidationAutoFail")} == {
        "an error was set by GenerateAnswer"
    }
    assert about.effects == ()


@QUICK
@given(st.lists(st.sampled_from([TOOL, ASKING, THINKING, Message.assistant("x")]), max_size=3), st.text(max_size=20))
def test_the_guard_refuses_exactly_the_traces_that_leave_a_judge_nothing_to_read(
    before: list[Message], answer: str
) -> None:
    messages = [*before, Message("assistant", [TextBlock(answer)])]
    about = answered(*messages)
    guarded(about)
    given_ = evaluation_input(trace_dicts(messages), render_trace(messages), full_trace=False)
    assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED) is (given_.error is not None)
    assert (given_.error is None) is bool(answer.strip())
