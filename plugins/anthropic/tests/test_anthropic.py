"""What is sent to the Messages API, what is made of its replies, and what each failure is called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import karenina_anthropic
import pytest
from karenina_anthropic.port import AnthropicMessages as Port
from karenina_calls.tools.agent_loop import run_agent_loop

from karenina_core.errors import PortError
from karenina_core.ports import (
    AgentConfig,
    CallContext,
    LLMResponse,
    Message,
    OutputFormat,
    StreamingLLMPort,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolOutcome,
    ToolUseBlock,
)
from karenina_core.testing import AnthropicMessages, Reply, ScriptedServer
from karenina_core.values.config import ModelConfig

T = TypeVar("T")
KEY = "sk-ant-canary-0123456789"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"capital": {"type": "string"}, "sure": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["capital", "sure"],
    "additionalProperties": False,
}
ASK = [Message.system("Be exact."), Message.user("Capital of France?")]
EPHEMERAL = {"type": "ephemeral"}


def config(url: str, **fields: Any) -> ModelConfig:
    given = {"model_name": "m", "interface": "anthropic", "endpoint_base_url": url, "endpoint_api_key": KEY}
    return ModelConfig(**{**given, "request_timeout": 5.0, **fields})


def use(port: Port, work: Callable[[Port], Awaitable[T]]) -> T:
    async def run() -> T:
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


def served(script: Any) -> ScriptedServer:
    return ScriptedServer(script, wire=AnthropicMessages())


def ask(server: ScriptedServer, messages: Any = ASK, call: CallContext | None = None, **fields: Any) -> LLMResponse:
    output = fields.pop("output", None)
    port = Port(config(server.url, **fields))
    return use(port, lambda port: port.ainvoke(messages, output=output, call=call))


def failure(reply: Reply, **fields: Any) -> PortError:
    with served(reply) as server, pytest.raises(PortError) as failed:
        ask(server, **fields)
    return failed.value


def body_of(content: list[dict[str, Any]], stop: str | None, **more: Any) -> Reply:
    usage = {"input_tokens": 3, "output_tokens": 2}
    message = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage, **more}
    return Reply(body=json.dumps(message).encode())


def test_a_call_sends_the_configuration_and_returns_the_reply() -> None:
    with served(Reply("Paris", usage=(10, 2), cache=(6, 1), model="m-2026")) as server:
        reply = ask(server, temperature=0.3, extra_kwargs={"top_p": 0.5, "anthropic_beta": ["one", "two"]})
        request = server.requests[0]
    assert request.path == "/v1/messages"
    assert request.body == {
        "model": "m",
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "Be exact.", "cache_control": EPHEMERAL}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Capital of France?"}]}],
        "temperature": 0.3,
        "top_p": 0.5,
    }
    assert request.headers["x-api-key"] == KEY
    assert (request.headers["anthropic-version"], request.headers["anthropic-beta"]) == ("2023-06-01", "one,two")
    assert "authorization" not in request.headers
    assert (reply.content, reply.finish_reason, reply.actual_model) == ("Paris", "stop", "m-2026")
    used = reply.usage
    assert (used.input_tokens, used.output_tokens, used.total_tokens) == (10, 2, 12)
    assert (used.cache_read_tokens, used.cache_creation_tokens, used.cost_usd) == (6, 1, None)


def test_what_is_set_otherwise_is_sent_otherwise() -> None:
    extra = {"auth": "bearer", "anthropic_version": "2030-01-01", "prompt_caching": False}
    with served("x") as server:
        ask(server, max_tokens=9, temperature=None, model_name="anthropic:claude", extra_kwargs=extra)
        request = server.requests[0]
    assert (request.model, request.body["max_tokens"], request.temperature) == ("claude", 9, None)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in request.headers
    assert request.headers["anthropic-version"] == "2030-01-01"
    assert "cache_control" not in json.dumps(request.body)
    assert not {"auth", "anthropic_version", "prompt_caching"} & request.body.keys()


def test_native_output_has_bounds_in_words_and_a_forced_tool_has_the_schema_as_it_is() -> None:
    with served({"capital": "Paris", "sure": 5}) as server:
        native = ask(
            server, output=OutputFormat("json_schema", SCHEMA), extra_kwargs={"output_config": {"effort": "low"}}
        )
        forced = ask(server, output=OutputFormat("tool_call", SCHEMA, name="the answer"))
        by_schema, by_tool = server.requests
    assert by_schema.body["output_config"]["effort"] == "low"
    assert by_schema.schema is not None
    assert by_schema.schema["properties"]["sure"] == {"type": "integer", "description": "(minimum: 1, maximum: 5)"}
    assert by_schema.schema["additionalProperties"] is False
    assert json.loads(native.content) == {"capital": "Paris", "sure": 5}
    assert (by_tool.tool_name, by_tool.schema) == ("the_answer", SCHEMA)
    assert by_tool.body["tool_choice"]["disable_parallel_tool_use"] is True
    assert json.loads(forced.structured or "") == {"capital": "Paris", "sure": 5}
    assert forced.content == ""


def test_a_property_may_be_called_like_a_bound() -> None:
    schema = {**SCHEMA, "properties": {"minimum": {"type": "number", "minimum": 0}}, "required": ["minimum"]}
    with served("{}") as server:
        ask(server, output=OutputFormat("json_schema", schema))
        sent = server.requests[0].schema
    assert sent is not None
    assert sent["properties"] == {"minimum": {"type": "number", "description": "(minimum: 0)"}}


def test_tools_thinking_and_the_cache_in_the_loop_of_an_agent() -> None:
    async def look_up(given: Any) -> ToolOutcome:
        return ToolOutcome("no such country", is_error=True) if given["of"] == "Atlantis" else ToolOutcome("Paris")

    tool = Tool(name="look_up", description="Capitals.", input_schema=SCHEMA, run=look_up)
    calls = [ToolUseBlock("a", "look_up", {"of": "Atlantis"}), ToolUseBlock("b", "look_up", {"of": "France"})]

    async def work(port: Port) -> Any:
        return await run_agent_loop(
            lambda messages, tools: port.ainvoke(messages, tools=tools), ASK, [tool], AgentConfig(max_turns=3)
        )

    with served([Reply("Let me see.", tool_calls=calls, reasoning="Two countries."), "Paris."]) as server:
        result = use(Port(config(server.url)), work)
        first, second = server.requests
    assert (result.final_response, result.turns) == ("Paris.", 2)
    assert first.body["tools"] == [{"name": "look_up", "description": "Capitals.", "input_schema": SCHEMA}]
    _, asked, answered = second.body["messages"]
    assert [block["type"] for block in asked["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert asked["content"][0] == {"type": "thinking", "thinking": "Two countries.", "signature": "c2lnbmVk"}
    assert answered["role"] == "user"
    assert answered["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "no such country", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": "Paris", "cache_control": EPHEMERAL},
    ]
    assert second.body["system"][0]["cache_control"] == EPHEMERAL
    assert result.trace_messages[0].content[0] == ThinkingBlock("Two countries.", "c2lnbmVk")


def test_thinking_that_only_the_provider_reads_goes_back_and_what_is_not_signed_does_not() -> None:
    blocks = [{"type": "redacted_thinking", "data": "abc"}, {"type": "text", "text": "Paris"}]
    with served([body_of(blocks, "end_turn"), "x"]) as server:
        first = ask(server)
        thought = (*first.thinking_blocks, ThinkingBlock("loud"))
        history = [*ASK, Message("assistant", (*thought, *Message.assistant("Paris").content)), Message.user("Sure?")]
        ask(server, history)
        sent = server.requests[1].body["messages"][1]["content"]
    assert first.thinking is None
    assert sent == [{"type": "redacted_thinking", "data": "abc"}, {"type": "text", "text": "Paris"}]


def test_the_cache_ends_with_what_several_calls_begin_with() -> None:
    several = Message("user", (TextBlock("<answer>It is Paris.</answer>\n"), TextBlock("Is it polite?")))
    correction = [Message.assistant("Perhaps."), Message.user("That reply cannot be used.")]
    with served("x") as server:
        ask(server, [Message.system("Judge."), several])
        ask(server, [several, *correction])
        ask(server, [Message.user("What else?")])
        contents = [[turn["content"] for turn in request.body["messages"]] for request in server.requests]
    marked = [
        {"type": "text", "text": "<answer>It is Paris.</answer>\n", "cache_control": EPHEMERAL},
        {"type": "text", "text": "Is it polite?"},
    ]
    assert contents[0] == [marked]
    assert contents[1][0] == marked
    assert not any("cache_control" in block for content in contents[1][1:] for block in content)
    assert contents[2] == [[{"type": "text", "text": "What else?"}]]


@pytest.mark.parametrize(
    ("stop", "finish", "is_partial"),
    [
        ("end_turn", "stop", False),
        ("stop_sequence", "stop", False),
        ("max_tokens", "length", True),
        ("model_context_window_exceeded", "length", True),
        ("refusal", "content_filter", True),
        ("pause_turn", "pause_turn", True),
        ("something_new", "something_new", False),
    ],
)
def test_stop_reasons(stop: str, finish: str, is_partial: bool) -> None:
    with served(body_of([{"type": "text", "text": "half"}], stop)) as server:
        reply = ask(server)
    assert (reply.finish_reason, reply.is_partial, reply.content) == (finish, is_partial, "half")
    assert ("refusal" in reply.flags) == (stop == "refusal")


def test_an_empty_reply_is_one_only_where_the_model_ended_it() -> None:
    with served(body_of([], "end_turn")) as server:
        assert ask(server).content == ""
    assert failure(body_of([], "max_tokens")).kind == "bad_response"
    assert "raise max_tokens" in str(failure(body_of([], "max_tokens")))
    assert failure(body_of([], "refusal")).kind == "content_filter"


def test_a_call_that_was_cut_off_or_cannot_be_read_is_no_call() -> None:
    cut = [
        {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}},
        {"type": "tool_use", "id": "b", "name": "t", "input": {}},
    ]
    odd = [{"type": "tool_use", "id": "a", "name": "t", "input": "no data"}]
    with served([body_of(cut, "max_tokens"), body_of(odd, "tool_use")]) as server:
        first, second = ask(server), ask(server)
        third = ask(server)
    assert (first.malformed_calls, second.malformed_calls, second.tool_calls[0].input) == ((1,), (0,), {})
    assert "invalid_tool_arguments" in first.flags
    assert third.finish_reason == "tool_calls"


FAULTS = [
    (Reply.error(529, "Overloaded"), "server", 529),
    (Reply.error(402, "no credit"), "auth", 402),
    (Reply.error(413, "too long"), "invalid_request", 413),
    (Reply.error(504, "too slow"), "server", 504),
    (Reply(body=b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'), "server", 529),
    (Reply(body=b'{"type":"message","content":"Paris"}'), "bad_response", None),
    (Reply(body=b'{"type":"message","content":[{"type":"tool_use"}]}'), "bad_response", None),
]


@pytest.mark.parametrize(("reply", "kind", "status"), FAULTS, ids=[str(index) for index in range(len(FAULTS))])
def test_faults(reply: Reply, kind: str, status: int | None) -> None:
    error = failure(reply)
    assert (error.kind, error.status) == (kind, status)
    assert "/v1/messages" in str(error)


def test_a_tool_message_needs_an_answer() -> None:
    with served("x") as server, pytest.raises(PortError) as failed:
        ask(server, [Message("tool", ())])
    assert failed.value.kind == "invalid_request"


def streamed(reply: Reply) -> tuple[list[str], LLMResponse]:
    async def work(port: Port) -> tuple[list[str], LLMResponse]:
        stream = port.astream(ASK)
        pieces = [piece async for piece in stream]
        assert stream.response is not None
        return pieces, stream.response

    with served(reply) as server:
        port = Port(config(server.url))
        assert isinstance(port, StreamingLLMPort)
        return use(port, work)


def test_a_streamed_reply_is_the_same_as_a_whole_one() -> None:
    reply = Reply(
        "one two three",
        reasoning="let me think",
        tool_calls=[ToolUseBlock("a", "t", {"x": [1, 2]})],
        usage=(10, 4),
        cache=(5, 1),
    )
    pieces, response = streamed(reply)
    with served(reply) as server:
        whole = ask(server)
    assert pieces == ["one ", "two ", "three"]
    assert response == whole
    assert whole.thinking_blocks == (ThinkingBlock("let me think", "c2lnbmVk"),)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply.stream_cut("a b c d e f"), "connection"),
        (
            Reply(
                headers={"Content-Type": "text/event-stream"},
                body=b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
            ),
            "server",
        ),
        (Reply(headers={"Content-Type": "text/event-stream"}, body=b"data: [1]\n\n"), "bad_response"),
        (Reply.error(429, retry_after=3), "rate_limited"),
    ],
)
def test_a_stream_that_fails(reply: Reply, kind: str) -> None:
    with pytest.raises(PortError) as failed:
        streamed(reply)
    assert failed.value.kind == kind


def test_a_gateway_that_does_not_stream_answers_at_once() -> None:
    pieces, response = streamed(body_of([{"type": "text", "text": "Paris"}], "end_turn"))
    assert (pieces, response.content) == (["Paris"], "Paris")


def test_which_names_are_served_here() -> None:
    assert karenina_anthropic.karenina_resolve_model("anthropic:claude-x") == "anthropic"
    assert karenina_anthropic.karenina_resolve_model("anthropic/claude-x") is None
    assert karenina_anthropic.karenina_resolve_model("llama3:8b") is None
