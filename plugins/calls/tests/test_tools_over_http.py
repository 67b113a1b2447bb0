"""Tools over HTTP, by every adapter that speaks it: what the server is sent, and what is made of its calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from karenina_calls.tools.agent_loop import run_agent_loop

from karenina_core.ports import AgentConfig, AgentResult, Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

ASK = [Message.system("Be exact."), Message.user("What is the capital of France?")]
SCHEMA = {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]}


async def look_up(given: Mapping[str, Any]) -> ToolOutcome:
    capitals = {"France": "Paris", "Peru": "Lima"}
    if given.get("country") not in capitals:
        raise KeyError(given.get("country"))
    return ToolOutcome(capitals[given["country"]])


LOOK_UP = Tool(name="look_up", description="The capital of a country.", input_schema=SCHEMA, run=look_up)
PLAIN = Tool(name="plain", description="Takes nothing.")


PORTS = {"litellm": "karenina_litellm.port:LiteLLM", "openai_endpoint": "karenina_openai_endpoint.port:OpenAIEndpoint"}
Work = Callable[..., AgentResult]


@pytest.fixture(params=PORTS)
def work(request: pytest.FixtureRequest) -> Work:
    """`work(server, *tools, **limits)`: an agent of the adapter works until it answers."""
    module, _, name = PORTS[request.param].partition(":")
    return partial(worked, getattr(import_module(module), name))


def worked(made: Callable[[ModelConfig], Any], server: ScriptedServer, *tools: Tool, **limits: Any) -> AgentResult:
    async def run() -> AgentResult:
        port = made(ModelConfig(model_name="m", endpoint_base_url=server.url, endpoint_api_key="k"))
        try:
            await port.aopen()
            return await run_agent_loop(
                lambda messages, tools: port.ainvoke(messages, tools=tools), ASK, tools, AgentConfig(**limits)
            )
        finally:
            await port.aclose()

    return asyncio.run(run())


def calls(*countries: str, prefix: str = "c") -> Reply:
    blocks = [ToolUseBlock(f"{prefix}{n}", "look_up", {"country": country}) for n, country in enumerate(countries)]
    return Reply(tool_calls=blocks, usage=(7, 2))


def raw(arguments: Any, identifier: str | None = "c0") -> Reply:
    """A call of look_up whose arguments travel as they are."""
    call = {"id": identifier, "type": "function", "function": {"name": "look_up", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(body=json.dumps(body).encode())


PARIS = Reply("Paris", usage=(9, 1))


def tool_messages(request: ServedRequest) -> list[tuple[str, str]]:
    return [(m["tool_call_id"], m["content"]) for m in request.messages if m["role"] == "tool"]


def test_the_tools_are_sent_and_what_they_answer(work: Work) -> None:
    with ScriptedServer([calls("France"), PARIS]) as server:
        result = work(server, LOOK_UP, PLAIN)
        first, second = server.requests
    assert first.body["tools"] == second.body["tools"]
    assert [tool["function"] for tool in first.body["tools"]] == [
        {"name": "look_up", "description": "The capital of a country.", "parameters": SCHEMA},
        {"name": "plain", "description": "Takes nothing.", "parameters": {"type": "object", "properties": {}}},
    ]
    assert "tool_choice" not in first.body
    assert tool_messages(second) == [("c0", "Paris")]
    (call,) = second.messages[-2]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("c0", "look_up")
    assert json.loads(call["function"]["arguments"]) == {"country": "France"}
    assert (result.final_response, result.turns, result.limit) == ("Paris", 2, None)


def test_without_tools_nothing_of_them_is_sent(work: Work) -> None:
    with ScriptedServer(PARIS) as server:
        work(server)
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & server.requests[0].body.keys()


def test_the_usage_of_each_turn_is_kept_and_added_up(work: Work) -> None:
    with ScriptedServer([calls("France"), PARIS]) as server:
        result = work(server, LOOK_UP)
    turns = [m.usage_metadata for m in result.trace_messages if m.role == "assistant"]
    counted = [(u.input_tokens, u.output_tokens, u.total_tokens) for u in turns if u is not None]
    assert counted == [(7, 2, 9), (9, 1, 10)]
    assert (result.usage.input_tokens, result.usage.output_tokens) == (16, 3)
    assert not result.usage_unavailable


def test_usage_that_one_turn_does_not_report_is_unknown(work: Work) -> None:
    with ScriptedServer([raw('{"country": "France"}'), PARIS]) as server:
        result = work(server, LOOK_UP)
    assert result.usage_unavailable
    assert isinstance(result.usage, UsageMetadata)


def test_all_calls_of_a_reply_are_answered_in_their_order(work: Work) -> None:
    with ScriptedServer([calls("Peru", "France"), PARIS]) as server:
        work(server, LOOK_UP)
        assert tool_messages(server.requests[1]) == [("c0", "Lima"), ("c1", "Paris")]


@pytest.mark.parametrize("arguments", ['{"country": "Fra', "[1]", "null", "NaN", '{"country": Infinity}'])
def test_arguments_that_are_no_object_are_returned_to_the_model_as_an_error(work: Work, arguments: str) -> None:
    with ScriptedServer([raw(arguments), calls("France", prefix="d"), PARIS]) as server:
        result = work(server, LOOK_UP)
        ((_, shown),) = tool_messages(server.requests[1])
    assert "no JSON object" in shown
    assert (result.final_response, result.turns) == ("Paris", 3)
    assert "invalid_tool_arguments" in result.flags


def test_the_failure_of_a_tool_is_returned_to_the_model(work: Work) -> None:
    with ScriptedServer([calls("Atlantis"), PARIS]) as server:
        result = work(server, LOOK_UP)
        ((_, shown),) = tool_messages(server.requests[1])
    assert "the tool failed: KeyError" in shown
    assert result.final_response == "Paris"


@pytest.mark.parametrize(
    ("limits", "limit", "asked"),
    [
        ({"max_turns": 2}, "turns", 2),
        ({"max_tool_calls": 3}, "tool_calls", 4),
        ({"max_total_tokens": 20}, "tokens", 3),
        ({"max_repeated_calls": 1}, "repeated_calls", 2),
    ],
)
def test_a_limit_ends_the_work_and_is_named(work: Work, limits: dict[str, int], limit: str, asked: int) -> None:
    with ScriptedServer(calls("France")) as server:
        result = work(server, LOOK_UP, **{"max_repeated_calls": None, "max_tool_calls": None, **limits})
        assert server.count == asked
    assert result.limit == limit
    assert result.trace_messages
    assert result.final_response == ""


def test_a_slow_server_is_given_up_at_the_limit_of_time(work: Work) -> None:
    with ScriptedServer([calls("France"), Reply.hang(20)]) as server:
        result = work(server, LOOK_UP, timeout=1.0)
    assert (result.limit, result.timeout_reached) == ("time", True)
    assert [message.role for message in result.trace_messages] == ["assistant", "tool"]
