"""What is sent to the Gemini API, what is made of its replies, and what each failure is called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import karenina_gemini
import pytest
from karenina_calls.tools.agent_loop import run_agent_loop
from karenina_gemini.port import GeminiGenerateContent as Port

from karenina_core.errors import PortError
from karenina_core.ports import (
    AgentConfig,
    LLMResponse,
    Message,
    OutputFormat,
    StreamingLLMPort,
    ThinkingBlock,
    Tool,
    ToolOutcome,
    ToolUseBlock,
)
from karenina_core.testing import GeminiGenerateContent, Reply, ScriptedServer
from karenina_core.values.config import ModelConfig

T = TypeVar("T")
KEY = "AIza-canary-0123456789"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"capital": {"type": "string"}, "sure": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["capital", "sure"],
    "additionalProperties": False,
}
ASK = [Message.system("Be exact."), Message.user("Capital of France?")]


def config(url: str, **fields: Any) -> ModelConfig:
    given = {"model_name": "m", "interface": "gemini", "endpoint_base_url": url, "endpoint_api_key": KEY}
    return ModelConfig(**{**given, "request_timeout": 5.0, **fields})


def use(port: Port, work: Callable[[Port], Awaitable[T]]) -> T:
    async def run() -> T:
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


def served(script: Any) -> ScriptedServer:
    return ScriptedServer(script, wire=GeminiGenerateContent())


def ask(server: ScriptedServer, messages: Any = ASK, **fields: Any) -> LLMResponse:
    options = {name: fields.pop(name) for name in ("output", "tools", "temperature_of_call") if name in fields}
    if "temperature_of_call" in options:
        options["temperature"] = options.pop("temperature_of_call")
    return use(Port(config(server.url, **fields)), lambda port: port.ainvoke(messages, **options))


def failure(reply: Reply, **fields: Any) -> PortError:
    with served(reply) as server, pytest.raises(PortError) as failed:
        ask(server, **fields)
    return failed.value


def body_of(parts: list[dict[str, Any]] | None, stop: str | None, **more: Any) -> Reply:
    content = {} if parts is None else {"content": {"role": "model", "parts": parts}}
    candidate = {**content, "finishReason": stop, "index": 0}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
    return Reply(body=json.dumps({"candidates": [candidate], "usageMetadata": usage, **more}).encode())


def test_a_call_sends_the_configuration_and_returns_the_reply() -> None:
    extra = {"generationConfig": {"topP": 0.5, "thinkingConfig": {"includeThoughts": True}}, "safetySettings": []}
    with served(Reply("Paris", usage=(10, 2), cache=(6, 0), model="m-001")) as server:
        reply = ask(server, temperature=0.3, max_tokens=9, extra_kwargs=extra)
        request = server.requests[0]
    assert request.path == "/v1beta/models/m:generateContent"
    assert request.body == {
        "systemInstruction": {"parts": [{"text": "Be exact."}]},
        "contents": [{"role": "user", "parts": [{"text": "Capital of France?"}]}],
        "generationConfig": {
            "temperature": 0.3,
            "maxOutputTokens": 9,
            "topP": 0.5,
            "thinkingConfig": {"includeThoughts": True},
        },
        "safetySettings": [],
    }
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers
    assert "key=" not in request.path
    assert (reply.content, reply.finish_reason, reply.actual_model) == ("Paris", "stop", "m-001")
    used = reply.usage
    assert (used.input_tokens, used.output_tokens, used.total_tokens) == (10, 2, 12)
    assert (used.cache_read_tokens, used.cache_creation_tokens, used.cost_usd) == (6, None, None)


def test_what_is_not_set_is_not_sent_and_a_gateway_may_need_no_key() -> None:
    with served("x") as server:
        ask(server, temperature=None, model_name="gemini:gemini-x", endpoint_api_key=None)
        request = server.requests[0]
    assert (request.model, request.body["generationConfig"]) == ("gemini-x", {})
    assert "x-goog-api-key" not in request.headers


def test_tokens_of_thoughts_are_paid_for_like_those_that_are_said() -> None:
    usage = {"promptTokenCount": 3, "toolUsePromptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 50}
    with served(body_of([{"text": "x"}], "STOP", usageMetadata={**usage, "totalTokenCount": 59})) as server:
        used = ask(server).usage
    assert (used.input_tokens, used.output_tokens, used.total_tokens) == (7, 52, 59)


def test_every_way_to_structured_output() -> None:
    with served({"capital": "Paris", "sure": 5}) as server:
        native = ask(
            server,
            output=OutputFormat("json_schema", SCHEMA),
            temperature_of_call=0.0,
            extra_kwargs={"generationConfig": {"topK": 3}},
        )
        ask(server, output=OutputFormat("json_object", SCHEMA))
        forced = ask(server, output=OutputFormat("tool_call", SCHEMA, name="the answer"))
        by_schema, by_mode, by_tool = server.requests
    assert by_schema.body["generationConfig"] == {
        "temperature": 0.0,
        "topK": 3,
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }
    assert json.loads(native.content) == {"capital": "Paris", "sure": 5}
    assert by_mode.channel == "json_object"
    assert (by_tool.tool_name, by_tool.schema) == ("the_answer", SCHEMA)
    assert by_tool.body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == ["the_answer"]
    assert json.loads(forced.structured or "") == {"capital": "Paris", "sure": 5}
    assert (forced.content, forced.finish_reason) == ("", "tool_calls")


async def look_up(given: Any) -> ToolOutcome:
    return ToolOutcome("no such country", is_error=True) if given["of"] == "Atlantis" else ToolOutcome("Paris")


TOOL = Tool(name="look_up", description="Capitals.", input_schema=SCHEMA, run=look_up)


async def work_with_tools(port: Port) -> Any:
    return await run_agent_loop(
        lambda messages, tools: port.ainvoke(messages, tools=tools), ASK, [TOOL], AgentConfig(max_turns=3)
    )


def test_tools_and_signed_thoughts_in_the_loop_of_an_agent() -> None:
    calls = [ToolUseBlock("a:1", "look_up", {"of": "Atlantis"}), ToolUseBlock("b", "look_up", {"of": "France"})]
    with served([Reply("Let me see.", tool_calls=calls, reasoning="Two countries."), "Paris."]) as server:
        result = use(Port(config(server.url)), work_with_tools)
        first, second = server.requests
    assert (result.final_response, result.turns) == ("Paris.", 2)
    assert first.body["tools"] == [
        {"functionDeclarations": [{"name": "look_up", "description": "Capitals.", "parametersJsonSchema": SCHEMA}]}
    ]
    _, asked, answered = second.body["contents"]
    assert asked == {
        "role": "model",
        "parts": [
            {"text": "Let me see."},
            {
                "functionCall": {"id": "a:1", "name": "look_up", "args": {"of": "Atlantis"}},
                "thoughtSignature": "c2lnbmVk",
            },
            {"functionCall": {"id": "b", "name": "look_up", "args": {"of": "France"}}},
        ],
    }
    assert answered == {
        "role": "user",
        "parts": [
            {"functionResponse": {"id": "a:1", "name": "look_up", "response": {"error": "no such country"}}},
            {"functionResponse": {"id": "b", "name": "look_up", "response": {"output": "Paris"}}},
        ],
    }
    assert result.trace_messages[0].content[0] == ThinkingBlock("Two countries.", "call/a:1:c2lnbmVk")


def test_calls_without_ids_are_answered_by_name_and_no_made_up_id_is_sent() -> None:
    def calling(of: str, tool: str) -> Reply:
        return body_of([{"functionCall": {"name": tool, "args": {"of": of}}}], "STOP")

    with served([calling("Peru", "look_up"), calling("France", "look_up"), "Paris."]) as server:
        result = use(Port(config(server.url)), work_with_tools)
        third = server.requests[2].body["contents"]
    assert result.final_response == "Paris."
    assert [part for content in third[1:] for part in content["parts"]] == [
        {"functionCall": {"name": "look_up", "args": {"of": "Peru"}}},
        {"functionResponse": {"name": "look_up", "response": {"output": "Paris"}}},
        {"functionCall": {"name": "look_up", "args": {"of": "France"}}},
        {"functionResponse": {"name": "look_up", "response": {"output": "Paris"}}},
    ]


def test_a_signature_of_text_goes_back_with_the_text_and_those_of_others_do_not() -> None:
    parts = [{"text": "Hm.", "thought": True}, {"text": "Paris", "thoughtSignature": "YWJj"}]
    with served([body_of(parts, "STOP"), "x"]) as server:
        first = ask(server)
        thoughts = (*first.thinking_blocks, ThinkingBlock("loud"), ThinkingBlock("foreign", "c2lnbmVk"))
        history = [*ASK, Message("assistant", (*thoughts, *Message.assistant("Paris").content)), Message.user("Sure?")]
        ask(server, history)
        ask(server, [*ASK, Message("assistant", first.thinking_blocks), Message.user("Sure?")])
        whole, silent = (request.body["contents"][1]["parts"] for request in server.requests[1:])
    assert (first.content, first.thinking) == ("Paris", "Hm.")
    assert first.thinking_blocks == (ThinkingBlock("Hm.", "text:YWJj"),)
    assert whole == [{"text": "Paris", "thoughtSignature": "YWJj"}]
    assert silent == [{"text": "", "thoughtSignature": "YWJj"}]


@pytest.mark.parametrize(
    ("stop", "finish", "is_partial"),
    [
        ("STOP", "stop", False),
        ("MAX_TOKENS", "length", True),
        ("SAFETY", "content_filter", True),
        ("RECITATION", "content_filter", True),
        ("PROHIBITED_CONTENT", "content_filter", True),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL", True),
        ("SOMETHING_NEW", "SOMETHING_NEW", False),
    ],
)
def test_finish_reasons(stop: str, finish: str, is_partial: bool) -> None:
    with served(body_of([{"text": "half"}], stop)) as server:
        reply = ask(server)
    assert (reply.finish_reason, reply.is_partial, reply.content) == (finish, is_partial, "half")
    assert ("refusal" in reply.flags) == (finish == "content_filter")


def test_an_empty_reply_is_one_only_where_the_model_ended_it() -> None:
    with served(body_of(None, "STOP")) as server:
        assert ask(server).content == ""
    assert failure(body_of(None, "MAX_TOKENS")).kind == "bad_response"
    assert "raise max_tokens" in str(failure(body_of(None, "MAX_TOKENS")))
    thought = failure(body_of([{"text": "Hm.", "thought": True}], "MAX_TOKENS"))
    assert thought.kind == "bad_response"
    assert failure(body_of(None, "SAFETY")).kind == "content_filter"


def test_a_prompt_that_is_refused_says_why() -> None:
    blocked = {"promptFeedback": {"blockReason": "BLOCKLIST"}, "usageMetadata": {"promptTokenCount": 3}}
    error = failure(Reply(body=json.dumps(blocked).encode()))
    assert (error.kind, "BLOCKLIST" in str(error)) == ("content_filter", True)


def test_a_call_that_cannot_be_read_is_no_call() -> None:
    with served(body_of([{"functionCall": {"name": "t", "args": "no data"}}, {"text": 7}], "STOP")) as server:
        reply = ask(server)
    assert (reply.malformed_calls, reply.tool_calls[0].input) == ((0,), {})
    assert "invalid_tool_arguments" in reply.flags


def google_error(code: int, status: str, message: str, *details: dict[str, Any]) -> bytes:
    return json.dumps({"error": {"code": code, "status": status, "message": message, "details": details}}).encode()


INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
OVER_QUOTA = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.25s"}
FAULTS = [
    (Reply.error(503, "overloaded"), "server", 503),
    (Reply.error(504, "too slow"), "server", 504),
    (Reply.error(413, "too long"), "invalid_request", 413),
    (Reply(status=400, body=google_error(400, "INVALID_ARGUMENT", "API key not valid", INVALID_KEY)), "auth", 400),
    (Reply(body=google_error(429, "RESOURCE_EXHAUSTED", "slow down", OVER_QUOTA)), "rate_limited", 429),
    (Reply(status=404, body=b"[" + google_error(404, "NOT_FOUND", "no such model") + b"]"), "invalid_request", 404),
    (Reply(body=b'{"candidates":"Paris"}'), "bad_response", None),
    (Reply(body=b'{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}'), "bad_response", None),
]


@pytest.mark.parametrize(("reply", "kind", "status"), FAULTS, ids=[str(index) for index in range(len(FAULTS))])
def test_faults(reply: Reply, kind: str, status: int | None) -> None:
    error = failure(reply)
    assert (error.kind, error.status) == (kind, status)
    assert "/v1beta/models/m:generateContent" in str(error)


@pytest.mark.parametrize(("wait", "seconds"), [("17.25s", 17.25), ("3s", 3.0), ("soon", None), (5, None)])
def test_the_wait_that_an_error_asks_for(wait: Any, seconds: float | None) -> None:
    body = google_error(429, "RESOURCE_EXHAUSTED", "slow down", {**OVER_QUOTA, "retryDelay": wait})
    assert failure(Reply(status=429, body=body)).retry_after == seconds


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
        found = use(port, work)
        assert server.requests[0].stream
        assert server.requests[0].path.endswith(":streamGenerateContent?alt=sse")
    return found


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
    assert whole.thinking_blocks == (ThinkingBlock("let me think", "call/a:c2lnbmVk"),)


def events_of(*bodies: dict[str, Any]) -> Reply:
    sent = b"".join(b"data: " + json.dumps(body).encode() + b"\r\n\r\n" for body in bodies)
    return Reply(headers={"Content-Type": "text/event-stream"}, body=sent)


def test_a_signature_that_comes_after_the_text_is_kept_with_it() -> None:
    def part(**fields: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"parts": [fields]}}]}

    last = {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "YWJj"}]}, "finishReason": "STOP"}]}
    pieces, response = streamed(events_of(part(text="Par"), part(text="is"), last))
    assert (pieces, response.content) == (["Par", "is"], "Paris")
    assert response.thinking_blocks == (ThinkingBlock("", "text:YWJj"),)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply.stream_cut("a b c d e f"), "connection"),
        (events_of({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}), "connection"),
        (events_of({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}), "server"),
        (events_of({"promptFeedback": {"blockReason": "SAFETY"}}), "content_filter"),
        (Reply(headers={"Content-Type": "text/event-stream"}, body=b"data: [1]\n\n"), "bad_response"),
        (Reply.error(429, retry_after=3), "rate_limited"),
    ],
)
def test_a_stream_that_fails(reply: Reply, kind: str) -> None:
    with pytest.raises(PortError) as failed:
        streamed(reply)
    assert failed.value.kind == kind


def test_a_gateway_that_does_not_stream_answers_at_once() -> None:
    pieces, response = streamed(body_of([{"text": "Paris"}], "STOP"))
    assert (pieces, response.content) == (["Paris"], "Paris")


def test_which_names_are_served_here() -> None:
    assert karenina_gemini.karenina_resolve_model("gemini:gemini-x") == "gemini"
    assert karenina_gemini.karenina_resolve_model("gemini/gemini-x") is None
    assert karenina_gemini.karenina_resolve_model("llama3:8b") is None
