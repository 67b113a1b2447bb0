"""The stages that obtain an answer and guard it, each alone on a real engine."""

from __future__ import annotations

import asyncio
from typing import Any

import karenina_generation.generate_answer
import karenina_generation.recursion_limit
import karenina_generation.trace_validation
import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_generation.generate_answer import GenerateAnswer
from karenina_generation.recursion_limit import RecursionLimitAutoFail
from karenina_generation.trace_validation import TraceValidationAutoFail

from karenina_core import (
    ArtifactKeys,
    FewShotConfig,
    Karenina,
    ModelConfig,
    Question,
    Stage,
    VerificationConfig,
    VerificationContext,
)
from karenina_core.errors import PortError
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import ScriptedLLM
from karenina_core.values.message import Message, UsageMetadata
from karenina_core.values.result import TrailEntry

RAW = ArtifactKeys.RAW_LLM_RESPONSE


def context(llm: ScriptedLLM | None = None, **facts: Any) -> VerificationContext:
    calls: list[Any] = []
    set_ = {name: facts.pop(name, None) for name in ("system_prompt", "max_tokens")}
    config = ModelConfig(model_name="m", interface="scripted", **set_)
    client = ModelClient(Model(config=config, llm=llm or ScriptedLLM()), calls)
    return VerificationContext(
        question=facts.pop("question", Question(question="Why?")), answering=client, calls=calls, **facts
    )


class Last(Stage):
    """Takes the place of the stage that assembles the result."""

    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))


def run(stage: Stage, about: VerificationContext) -> TrailEntry:
    """What became of the stage, run alone: what it requires is in the context already."""
    return asyncio.run(Engine([stage, Last()]).run(about)).trail[0]


def test_they_are_three_plugins() -> None:
    modules = (
        karenina_generation.generate_answer,
        karenina_generation.recursion_limit,
        karenina_generation.trace_validation,
    )
    app = Karenina({module.__name__: module for module in modules})
    assert list(app.stages) == ["GenerateAnswer", "RecursionLimitAutoFail", "TraceValidationAutoFail"]
    assert {plugin.state for plugin in app.plugins} == {"active"}


# GenerateAnswer


def test_the_answer_and_everything_about_it_is_kept() -> None:
    about = context(ScriptedLLM("It is BCL2.", usage=UsageMetadata(3, 4, 7)))
    assert run(GenerateAnswer(), about).status == "ran"
    assert about.get_artifact(RAW) == "It is BCL2."
    assert about.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED) is False
    assert about.get_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS) == []
    (row,) = about.get_result_field("trace_messages")
    assert (row["role"], row["content"], row["usage_metadata"]["total_tokens"]) == ("assistant", "It is BCL2.", 7)
    assert [m["role"] for m in about.get_result_field("conversation_context")] == ["system", "user"]


def test_the_system_prompt_of_the_user_takes_the_place_of_the_default() -> None:
    for own, expected in ((None, "You are an expert assistant."), ("Be brief.", "Be brief.")):
        llm = ScriptedLLM("x")
        run(GenerateAnswer(), context(llm, system_prompt=own))
        assert llm.calls[0].messages[0].text.startswith(expected)


def test_examples_come_before_the_question() -> None:
    llm = ScriptedLLM("x")
    few = FewShotConfig(global_examples=[{"question": "1+1?", "answer": "2"}])
    about = context(llm, config=VerificationConfig(few_shot_config=few))
    run(GenerateAnswer(), about)
    assert llm.calls[0].messages[1].text == "Question: 1+1?\nAnswer: 2\n\nQuestion: Why?\nAnswer:"
    assert about.get_result_field("few_shot_example_count") == 1


def test_thinking_is_kept_apart_from_the_answer() -> None:
    about = context(ScriptedLLM(LLMResponse(content="BCL2", thinking="Let me see.")))
    run(GenerateAnswer(), about)
    (row,) = about.get_result_field("trace_messages")
    assert (row["content"], row["thinking"]["thinking"]) == ("BCL2", "Let me see.")
    assert about.get_artifact(RAW) == "BCL2"


def test_recorded_messages_become_a_trace() -> None:
    messages = (Message.assistant("let me look"), Message.tool_result("1", "found"), Message.assistant("BCL2"))
    about = context(ScriptedLLM(LLMResponse(content="BCL2", raw=messages)))
    run(GenerateAnswer(), about)
    assert [row["role"] for row in about.get_result_field("trace_messages")] == ["assistant", "tool", "assistant"]
    assert "--- Tool Message (call_id: 1) ---\nfound" in about.get_artifact(RAW)


@pytest.mark.parametrize(
    ("reply", "flags", "words"),
    [
        (LLMResponse(content=""), ["empty"], "the answer is empty"),
        (LLMResponse(content=" \n", finish_reason="stop"), ["empty"], "the answer is empty"),
        (LLMResponse(content="", finish_reason="length"), ["truncated", "empty"], "all its tokens were used before it"),
    ],
)
def test_an_empty_answer_is_asked_for_once_more_and_is_then_wrong(
    reply: LLMResponse, flags: list[str], words: str
) -> None:
    about = context(ScriptedLLM(reply, reply))
    assert run(GenerateAnswer(), about).status == "ran"
    assert words in about.effects[0].reason
    assert (str(about.outcome), about.verdict.field) == ("failed", False)
    assert about.get_artifact(RAW) == reply.content
    assert about.get_result_field("text_flags") == flags
    assert len(about.calls) == 2


def test_invisible_characters_of_an_answer_are_counted_and_left_where_they_are() -> None:
    text = "It is MCL1.\U000e0042\U000e0043\u200b \U0001f468\u200d\U0001f469"
    about = context(ScriptedLLM(text))
    assert run(GenerateAnswer(), about).status == "ran"
    assert about.get_result_field("caveats") == ["invisible_characters"]
    assert [effect.reason for effect in about.effects] == []
    assert "the answer has 3 invisible characters: tag 2, zero width 1" in about.warnings
    assert about.get_artifact(RAW) == text
    again = context(ScriptedLLM(""), cached_answer_data=CachedAnswer(raw_llm_response=text))
    run(GenerateAnswer(), again)
    assert again.get_result_field("caveats") == ["invisible_characters"]


@pytest.mark.parametrize(
    ("most", "limit"), [(64, "max_tokens of the model, 64"), (None, "the server's own limit, no max_tokens is set")]
)
def test_an_answer_whose_tokens_were_used_before_it_names_the_limit_that_was_sent(most: int | None, limit: str) -> None:
    reply = LLMResponse(content="", finish_reason="length")
    about = context(ScriptedLLM(reply, reply), max_tokens=most)
    assert run(GenerateAnswer(), about).reason == f"the answer is empty; all its tokens were used before it ({limit})"


def test_a_second_reply_takes_the_place_of_an_empty_one() -> None:
    about = context(ScriptedLLM("", "BCL2"))
    run(GenerateAnswer(), about)
    assert (about.get_artifact(RAW), about.effects, len(about.calls)) == ("BCL2", (), 2)


def test_where_no_verdict_is_due_an_empty_answer_has_none() -> None:
    about = context(ScriptedLLM("", ""), mode="rubric_only")
    run(GenerateAnswer(), about)
    assert (about.effects, about.get_result_field("text_flags")) == ((), ["empty"])


@pytest.mark.parametrize("first", ["", "half a "])
def test_what_a_content_filter_cut_off_is_an_error_and_not_asked_for_again(first: str) -> None:
    about = context(ScriptedLLM(LLMResponse(content=first, finish_reason="content_filter"), "BCL2"))
    run(GenerateAnswer(), about)
    assert (str(about.outcome), len(about.calls)) == ("error(content_filter)", 1)


def test_a_provider_failure_keeps_its_kind() -> None:
    about = context(ScriptedLLM(PortError("who are you", kind="auth")))
    run(GenerateAnswer(), about)
    assert str(about.outcome) == "error(auth)"


def test_a_given_answer_is_taken_as_it_is() -> None:
    given = CachedAnswer(
        raw_llm_response="of old",
        recursion_limit_reached=True,
        answering_mcp_servers=("tools",),
        usage_metadata={"generation": {"total_tokens": 9}},
        text_flags=("nul",),
    )
    llm = ScriptedLLM()
    about = context(llm, cached_answer_data=given)
    assert run(GenerateAnswer(), about).status == "ran"
    assert llm.calls == []
    assert about.get_artifact(RAW) == "of old"
    assert about.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED) is True
    assert about.get_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS) == ["tools"]
    assert about.get_result_field("usage_metadata") == {"generation": {"total_tokens": 9}}
    assert about.get_result_field("text_flags") == ["nul"]


def test_after_an_error_no_model_is_asked() -> None:
    llm = ScriptedLLM()
    about = context(llm)
    about.mark_error("the template cannot be used", kind="template", stage="ValidateTemplate")
    entry = run(GenerateAnswer(), about)
    assert (entry.status, entry.reason) == ("skipped", "an error was set by ValidateTemplate")
    assert llm.calls == []


# RecursionLimitAutoFail


@pytest.mark.parametrize(("reached", "status"), [(True, "ran"), (False, "skipped")])
def test_an_agent_that_ran_into_its_limit_fails(reached: bool, status: str) -> None:
    about = context()
    about.set_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED, reached)
    entry = run(RecursionLimitAutoFail(), about)
    assert entry.status == status
    if reached:
        assert str(about.outcome) == "auto_failed(RecursionLimitAutoFail)"
        assert (about.verdict.field, about.verdict.verdict) == (False, False)
        assert about.completed_without_errors
    else:
        assert entry.reason == "no limit was reached"
        assert about.effects == ()


# TraceValidationAutoFail

ROWS: list[tuple[list[dict[str, Any]], str | None]] = [
    ([{"role": "assistant", "content": "BCL2"}], None),
    ([{"role": "tool", "content": "found"}, {"role": "assistant", "content": "BCL2"}], None),
    ([{"role": "assistant", "content": "x"}, {"role": "tool", "content": "found"}], "not from the answering model"),
    ([{"role": "assistant", "content": ""}], "holds no text"),
]


@pytest.mark.parametrize(("rows", "problem"), ROWS)
@pytest.mark.parametrize("servers", [[], ["tools"]])
def test_the_trace_of_an_agent_with_tools_ends_with_an_answer(
    rows: list[dict[str, Any]], problem: str | None, servers: list[str]
) -> None:
    about = context()
    about.set_artifact(RAW, "BCL2")
    about.set_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS, servers)
    about.set_result_field("trace_messages", rows)
    assert run(TraceValidationAutoFail(), about).status == "ran"
    failed = bool(servers) and problem is not None
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is bool(servers)
    assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED) is failed
    if failed:
        assert problem is not None
        assert problem in str(about.get_artifact(ArtifactKeys.TRACE_VALIDATION_ERROR))
        assert str(about.outcome) == "auto_failed(TraceValidationAutoFail)"
    else:
        assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_ERROR) is None
        assert about.effects == ()


def test_without_an_answer_there_is_no_trace_to_check() -> None:
    entry = run(TraceValidationAutoFail(), context())
    assert (entry.status, entry.reason) == ("skipped", "there is no answer")
