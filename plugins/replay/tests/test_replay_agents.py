"""What an agent of its own did comes back from a recording as it went in, also where it failed in the middle."""

from __future__ import annotations

import json
from pathlib import Path

from karenina_calls.ports.port_calls import AgentCall
from karenina_calls.records.requests import agent_from, agent_to, error_from, error_to

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import AgentConfig, AgentResult, CallContext, Tool
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

TARGET = CallTarget.of_model("agent", ModelConfig(model_name="m", interface="own"))
DONE = AgentResult(
    final_response="42",
    raw_trace="I looked.",
    trace_messages=(
        Message.assistant("I look.", [ToolUseBlock("c", "read", {"path": "a"})]),
        Message.tool_result("c", "6 * 7"),
        Message.assistant("42"),
    ),
    usage=UsageMetadata(7, 3, 10, 0.5),
    turns=2,
    limit="cost",
    usage_unavailable=True,
    flags=("nul",),
    session_id="s",
    actual_model="m-1",
)


def test_the_work_of_an_agent_comes_back_as_it_was() -> None:
    assert agent_from(json.loads(json.dumps(agent_to(DONE)))) == DONE


def test_a_failure_keeps_what_was_done_until_then() -> None:
    error = PortError("broken off", kind="agent")
    error.evidence = {"agent_result": DONE}
    found = error_from(json.loads(json.dumps(error_to(error))))
    assert (found.kind, found.final, found.evidence) == ("agent", True, {"agent_result": DONE})


def test_the_folder_is_no_part_of_the_call_and_all_else_is() -> None:
    def key(folder: str, text: str = "Look into {}.", task: str = "t", tools: tuple[Tool, ...] = ()) -> str:
        config = AgentConfig(workspace_path=Path(folder))
        asked = [Message.user(text.format(folder))]
        return AgentCall(TARGET, asked, tools, None, config, CallContext(task)).request.key

    assert key("/tmp/one") == key("/tmp/two")
    others = {key("/tmp/one", "See {}."), key("/tmp/one", task="u"), key("/tmp/one", tools=(Tool(name="x"),))}
    assert len(others | {key("/tmp/one")}) == 4
