"""Answers of models that work with tools: what they are given, what is kept, and what is no answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_generation.generate_answer import GenerateAnswer
from karenina_generation.recursion_limit import RecursionLimitAutoFail
from karenina_generation.tool_answers import trace_text, worked
from karenina_generation.trace_validation import TraceValidationAutoFail

from karenina_core import ArtifactKeys, FewShotConfig, ModelConfig, Question, Stage, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.engine import Engine
from karenina_core.ports.values import AgentResult, LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.testing import ScriptedLLM
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata
from karenina_core.values.result import TrailEntry, VerificationResult

USAGE = UsageMetadata(10, 2, 12)
HAS_WORKSPACES = pytest.mark.skipif(os.name == "nt", reason="folders cannot be confined there")


class Worker:
    """A model with tools that says these things in turn."""

    def __init__(self, *replies: LLMResponse | Exception, **able: Any) -> None:
        self.capabilities = PortCapabilities(**{"supports_tools": True, **able})
        self.replies = list(replies)
        self.seen: list[list[Message]] = []
        self.offered: list[list[str]] = []

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, tools: Any = (), call: Any = None
    ) -> LLMResponse:
        self.seen.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def aclose(self) -> None: ...


class Agent:
    """An agent of its own."""

    def __init__(self, result: AgentResult, **able: Any) -> None:
        self.capabilities = PortCapabilities(**able)
        self.result = result
        self.given: dict[str, Any] = {}

    async def arun(
        self, messages: Any, tools: Any = (), mcp_servers: Any = None, config: Any = None, *, call: Any = None
    ) -> AgentResult:
        self.given = {"messages": messages, "tools": [tool.name for tool in tools], "config": config}
        return self.result

    async def aclose(self) -> None: ...


class Last(Stage):
    """Takes the place of the stage that assembles the result."""

    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))


def reply(text: str = "", *calls: tuple[str, Mapping[str, Any]], **facts: Any) -> LLMResponse:
    blocks = tuple(ToolUseBlock(f"c{number}", name, given) for number, (name, given) in enumerate(calls))
    return LLMResponse(content=text, tool_calls=blocks, usage=USAGE, **facts)


async def look(given: Mapping[str, Any]) -> ToolOutcome:
    return ToolOutcome(f"looked at {given.get('at')}")


LOOK = Tool(name="look", run=look)


def context(port: Any, *, tools: tuple[Tool, ...] = (LOOK,), **facts: Any) -> VerificationContext:
    calls: list[Any] = []
    settings = facts.pop("settings", {})
    role = "agent" if isinstance(port, Agent) else "llm"
    servers = facts.pop("servers", ("library",) if tools else ())
    model = Model(
        config=ModelConfig(**{"model_name": "m", "interface": "any", **settings}),
        tools=tools,
        servers=servers,
        **{role: port},
    )
    return VerificationContext(
        question=Question(question="Why?"), answering=ModelClient(model, calls), calls=calls, **facts
    )


def run(about: VerificationContext) -> tuple[VerificationResult, dict[str, TrailEntry]]:
    engine = Engine([GenerateAnswer(), RecursionLimitAutoFail(), TraceValidationAutoFail(), Last()])
    result = asyncio.run(engine.run(about))
    return result, {entry.stage: entry for entry in result.trail}


def test_the_trace_of_the_work_is_the_answer() -> None:
    about = context(Worker(reply("Let me look.", ("look", {"at": "it"})), reply("Because.", flags=("nul",))))
    _, trail = run(about)
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == (
        "--- AI Message ---\nLet me look.\nTool Calls:\n  look (call_c0)\n   Call ID: c0\n   Args: {'at': 'it'}\n\n"
        "--- Tool Message (call_id: c0) ---\nlooked at it\n\n--- AI Message ---\nBecause."
    )
    assert about.get_artifact(ArtifactKeys.ANSWERING_MCP_SERVERS) == ["library"]
    assert about.get_artifact(ArtifactKeys.RECURSION_LIMIT_REACHED) is False
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is True
    assert about.get_artifact(ArtifactKeys.TRACE_VALIDATION_FAILED) is False
    assert [row["role"] for row in about.get_result_field("trace_messages")] == ["assistant", "tool", "assistant"]
    assert [row["role"] for row in about.get_result_field("conversation_context")] == ["system", "user"]
    assert about.get_result_field("text_flags") == ["nul"]
    assert about.get_result_field("agent_metrics")["tool_call_counts"] == {"look": 1}
    (call,) = about.calls
    assert (call.task, call.usage.total_tokens, call.attempts) == ("generation", 24, 2)
    assert trail["GenerateAnswer"].reason == "worked with 1 tool: 1 call in 2 turns"


@pytest.mark.parametrize("known", [True, False])
def test_what_the_work_cost_is_unknown_where_one_reply_does_not_say_it(known: bool) -> None:
    first = reply("", ("look", {"at": "it"}), usage_unavailable=not known)
    about = context(Worker(first, reply("Because.")))
    run(about)
    assert about.get_result_field("usage_unavailable") is not known
    cached = asyncio.run(worked(context(Worker(first, reply("Because."))), [Message.user("Why?")]))
    assert cached.usage_unavailable is not known


def test_a_single_message_that_calls_a_tool_is_shown_with_its_call() -> None:
    calling = Message.assistant("Let me look.", tool_calls=[ToolUseBlock("c0", "look", {"at": "it"})])
    assert "Tool Calls:\n  look" in trace_text([calling])
    assert trace_text([Message.assistant("Because.")]) == "Because."


def test_an_answer_without_any_call_is_stored_as_it_is() -> None:
    about = context(Worker(reply("Because.")))
    run(about)
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "Because."
    assert about.get_result_field("agent_metrics")["iterations"] == 1


def test_a_model_without_tools_is_asked_once_and_has_no_metrics() -> None:
    worker = Worker(reply("Because."))
    about = context(worker, tools=())
    run(about)
    assert worker.offered == [[]]
    assert about.get_result_field("agent_metrics") is None
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is False


def test_servers_without_any_tool_still_count_as_servers() -> None:
    about = context(Worker(reply("Because.")), tools=(), servers=("library",))
    run(about)
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is True


def test_the_examples_come_before_the_question_of_an_agent_too() -> None:
    worker = Worker(reply("Because."))
    few = FewShotConfig(global_examples=[{"question": "1+1?", "answer": "2"}])
    run(context(worker, config=VerificationConfig(few_shot_config=few)))
    assert worker.seen[0][1].text == "Question: 1+1?\nAnswer: 2\n\nQuestion: Why?\nAnswer:"


@pytest.mark.parametrize("turns", [1, 2])
def test_a_limit_fails_the_verdict_is_named_and_costs_no_trace(turns: int) -> None:
    calls = [reply("", ("look", {"at": str(n)})) for n in range(turns)]
    about = context(Worker(*calls), settings={"agent_max_turns": turns})
    result, trail = run(about)
    assert str(result.outcome) == "auto_failed(RecursionLimitAutoFail)"
    assert about.completed_without_errors
    assert about.get_result_field("agent_metrics")["limit"] == "turns"
    assert len(about.get_result_field("trace_messages")) == 2 * turns
    assert "its limit of turns" in result.ledger[0].reason
    assert "ended by its limit of turns" in trail["GenerateAnswer"].reason


@pytest.mark.parametrize("granted", [7, None])
@pytest.mark.parametrize("text_so_far", ["", "Let me see."])
@pytest.mark.parametrize(
    ("limit", "setting", "kind"),
    [
        ("time", "agent_timeout", "timeout"),
        ("tokens", "agent_max_total_tokens", "budget"),
        ("cost", "agent_max_cost_usd", "budget"),
    ],
)
def test_what_the_user_grants_is_no_fault_of_the_model(
    limit: Any, setting: str, kind: str, text_so_far: str, granted: int | None
) -> None:
    agent = Agent(AgentResult(final_response=text_so_far, limit=limit))
    about = context(agent, settings={setting: granted})
    result, trail = run(about)
    assert str(result.outcome) == f"error({kind})"
    advice = f"; raise {setting} ({granted})" if granted else ""
    assert str(about.error).endswith(f"ended by its limit of {limit} before it was done{advice}")
    assert not about.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    assert trail["RecursionLimitAutoFail"].status == "skipped"
    assert [row["content"] for row in about.get_result_field("trace_messages", [])] == [text_so_far][
        : bool(text_so_far)
    ]
    if text_so_far:
        assert about.get_result_field("agent_metrics")["limit"] == limit


@pytest.mark.parametrize("limit", ["turns", "tool_calls", "repeated_calls"])
def test_a_model_that_does_not_come_to_an_end_has_failed_also_where_it_gave_no_text(limit: Any) -> None:
    result, _ = run(context(Agent(AgentResult(final_response="", limit=limit))))
    assert str(result.outcome) == "auto_failed(RecursionLimitAutoFail)"


@pytest.mark.parametrize("port", [Worker(reply(" "), reply("")), Agent(AgentResult(final_response=""))])
def test_an_agent_that_says_nothing_twice_has_answered_wrongly(port: Any) -> None:
    about = context(port)
    result, _ = run(about)
    assert str(result.outcome) == "failed"
    assert result.ledger[0].reason == "the answer is empty"
    assert about.get_result_field("text_flags") == ["empty"]
    assert sum(call.attempts for call in about.calls) == 2


def test_an_agent_that_says_nothing_at_first_is_asked_once_more() -> None:
    about = context(Worker(reply(""), reply("Because.")))
    run(about)
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "Because."
    assert about.get_result_field("text_flags") == []


def test_what_was_done_before_a_failure_is_kept_and_is_no_answer() -> None:
    about = context(Worker(reply("", ("look", {})), PortError("away", kind="auth")))
    result, trail = run(about)
    assert str(result.outcome) == "error(auth)"
    assert not about.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    assert [row["role"] for row in about.get_result_field("trace_messages")] == ["assistant", "tool"]
    assert about.get_result_field("agent_metrics")["tool_calls"] == 1
    assert about.calls[0].usage.total_tokens == 12
    assert trail["TraceValidationAutoFail"].status == "skipped"


# Agents of their own


def test_an_agent_gets_the_question_the_tools_and_the_limits() -> None:
    trace = (Message.assistant("Hm."), Message.assistant("Because."))
    agent = Agent(AgentResult(final_response="Because.", trace_messages=trace, turns=2, flags=("nul",)))
    about = context(agent, settings={"agent_max_turns": 9, "agent_timeout": None})
    run(about)
    assert agent.given["tools"] == ["look"]
    assert (agent.given["config"].max_turns, agent.given["config"].timeout) == (9, None)
    assert "--- AI Message ---\nBecause." in about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)


def test_an_agent_that_keeps_its_messages_to_itself_has_its_last_output_stored() -> None:
    about = context(Agent(AgentResult(final_response="Because.")), tools=())
    run(about)
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "Because."
    assert [row["content"] for row in about.get_result_field("trace_messages")] == ["Because."]


def test_whatever_agent_made_a_trace_it_must_end_with_an_answer() -> None:
    """Also one without any server."""
    trace = (Message.assistant("Hm.", [ToolUseBlock("a", "shell")]), Message.tool_result("a", "found"))
    about = context(Agent(AgentResult(final_response="", trace_messages=trace)), tools=())
    result, _ = run(about)
    assert str(result.outcome) == "auto_failed(TraceValidationAutoFail)"
    assert about.get_artifact(ArtifactKeys.MCP_ENABLED) is False


# Workspaces


@HAS_WORKSPACES
def test_a_model_in_a_workspace_sees_its_path_and_works_in_it(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("42")
    calls = ("read_file", {"path": "data.txt"}), ("write_file", {"path": "out.txt", "content": "43"})
    worker = Worker(reply("", *calls), reply("Because."))
    about = context(worker, workspace=tmp_path)
    run(about)
    assert worker.offered[0] == ["look", "list_files", "read_file", "search_files", "write_file"]
    system = worker.seen[0][0].text
    assert 'its root is "."' in system
    assert "nothing can be executed" in system
    assert str(tmp_path) not in system
    answers = [row["content"] for row in about.get_result_field("trace_messages") if row["role"] == "tool"]
    assert "42" in answers[0]
    assert (tmp_path / "out.txt").read_text() == "43"


@HAS_WORKSPACES
@pytest.mark.parametrize(
    ("limits", "there", "size", "written"),
    [
        ({"workspace_max_bytes": 100}, 60, 40, True),
        ({"workspace_max_bytes": 100}, 60, 41, False),
        ({"workspace_max_bytes": 100}, 0, 100, True),
        ({"workspace_max_bytes": 100}, 101, 41, True),  # too much was there before: it is not copied
        ({"workspace_max_files": 2}, 5, 5, True),
        ({"workspace_max_files": 1}, 5, 5, False),
    ],
)
def test_a_model_writes_no_more_into_a_workspace_than_can_be_copied(
    limits: dict[str, Any], there: int, size: int, written: bool, tmp_path: Path
) -> None:
    (tmp_path / "old.txt").write_text("o" * there)
    writing = reply("", ("write_file", {"path": "new.txt", "content": "n" * size}))
    about = context(Worker(writing, reply("Done.")), tools=(), workspace=tmp_path, config=VerificationConfig(**limits))
    run(about)
    assert (tmp_path / "new.txt").exists() is written
    (outcome,) = (row for row in about.get_result_field("trace_messages") if row["role"] == "tool")
    assert outcome["tool_result"]["is_error"] is not written


@HAS_WORKSPACES
def test_a_tool_of_a_server_keeps_its_name_beside_that_of_the_workspace(tmp_path: Path) -> None:
    worker = Worker(reply("", ("read_file", {"at": "x"})), reply("Because."))
    about = context(worker, tools=(Tool(name="read_file", run=look),), workspace=tmp_path)
    run(about)
    assert worker.offered[0] == ["read_file", "list_files", "workspace__read_file", "search_files", "write_file"]
    assert "looked at x" in about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)


@HAS_WORKSPACES
@pytest.mark.parametrize(
    ("able", "tools", "words"),
    [
        ({}, 4, "nothing can be executed"),
        ({"supports_file_tools": True}, 0, "nothing can be executed"),
        ({"supports_file_tools": True, "supports_code_execution": True}, 0, "You can execute code in it."),
        (
            {"supports_file_tools": True, "supports_code_execution": True, "uses_sandboxed_execution": True},
            0,
            "inside a sandbox",
        ),
    ],
)
def test_an_agent_with_file_tools_uses_its_own(able: dict[str, bool], tools: int, words: str, tmp_path: Path) -> None:
    agent = Agent(AgentResult(final_response="Because."), **able)
    run(context(agent, tools=(), workspace=tmp_path))
    assert len(agent.given["tools"]) == tools
    assert agent.given["config"].workspace_path == tmp_path
    assert words in agent.given["messages"][0].text


@pytest.mark.parametrize(("interface", "warned"), [("any", True), ("manual", False)])
def test_a_model_that_takes_no_tools_is_asked_without_its_workspace_with_a_warning(
    interface: str, warned: bool, tmp_path: Path
) -> None:
    llm = ScriptedLLM("Because.")
    settings = {"interface": interface, "manual_traces": {"q": "a"}} if interface == "manual" else {}
    about = context(llm, tools=(), workspace=tmp_path, settings=settings)
    run(about)
    assert about.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE) == "Because."
    assert "working folder" not in llm.calls[0].text
    assert any("does not see the question's workspace" in text for text in about.warnings) is warned
