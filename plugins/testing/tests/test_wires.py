"""One script over every wire: requests of each protocol are read alike, replies are written in its own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest

from karenina_core.ports import ToolUseBlock
from karenina_core.testing import (
    AnthropicMessages,
    ChatCompletions,
    GeminiGenerateContent,
    Reply,
    ScriptedServer,
    ServedRequest,
    Spoken,
    Wire,
)

SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}
GEMINI = "/v1beta/models/m:generateContent"
PATHS = {"chat": "/v1/chat/completions", "anthropic": "/v1/messages", "gemini": GEMINI}
WIRES: dict[str, Wire] = {
    "chat": ChatCompletions(),
    "anthropic": AnthropicMessages(),
    "gemini": GeminiGenerateContent(),
}
KEYS = {
    "chat": {"Authorization": "Bearer secret"},
    "anthropic": {"x-api-key": "secret"},
    "gemini": {"x-goog-api-key": "secret"},
}
WITH_TOOLS: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "m",
        "temperature": 0.5,
        "messages": [
            {"role": "system", "content": "Be exact."},
            {"role": "user", "content": "Capital of France?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"of": "France"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "Paris"},
        ],
        "tools": [{"type": "function", "function": {"name": "look_up", "parameters": SCHEMA}}],
    },
    "anthropic": {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be exact."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Capital of "}, {"type": "text", "text": "France?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "tool_use", "id": "a", "name": "look_up", "input": {"of": "France"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "Paris"}]},
        ],
        "tools": [{"name": "look_up", "input_schema": SCHEMA}],
    },
    "gemini": {
        "systemInstruction": {"parts": [{"text": "Be exact."}]},
        "generationConfig": {"temperature": 0.5},
        "contents": [
            {"role": "user", "parts": [{"text": "Capital of France?"}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"id": "a", "name": "look_up", "args": {"of": "France"}}}],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "a", "name": "look_up", "response": {"output": "Paris"}}}],
            },
        ],
        "tools": [{"functionDeclarations": [{"name": "look_up", "parametersJsonSchema": SCHEMA}]}],
    },
}
NATIVE: dict[str, dict[str, Any]] = {
    "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}},
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "gemini": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
}
FORCED: dict[str, dict[str, Any]] = {
    "chat": {"tool_choice": {"type": "function", "function": {"name": "look_up"}}},
    "anthropic": {"tool_choice": {"type": "tool", "name": "look_up"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look_up"]}}},
}
STREAMED: dict[str, dict[str, Any]] = {
    "chat": {"stream": True, "stream_options": {"include_usage": True}},
    "anthropic": {"stream": True},
}
EVERY = pytest.mark.parametrize("name", WIRES)


def post(
    server: ScriptedServer, name: str, body: Mapping[str, Any], path: str = ""
) -> tuple[int, Mapping[str, str], bytes]:
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    connection.request("POST", path or PATHS[name], json.dumps(body), {"Connection": "close", **KEYS[name]})
    response = connection.getresponse()
    with response:
        return response.status, {key.lower(): value for key, value in response.getheaders()}, response.read()


def asked(name: str, script: Any, more: Mapping[str, Any] | None = None) -> tuple[Any, ServedRequest]:
    with ScriptedServer(script, wire=WIRES[name]) as server:
        status, _, body = post(server, name, {**WITH_TOOLS[name], **(more or {})})
        assert status == 200, body
        return json.loads(body), server.requests[0]


@EVERY
def test_requests_are_read_alike(name: str) -> None:
    _, request = asked(name, "Paris")
    call = {"id": "a", "type": "function", "function": {"name": "look_up", "arguments": '{"of": "France"}'}}
    assert request.messages == WITH_TOOLS["chat"]["messages"]
    assert request.messages[2]["tool_calls"] == [call]
    assert (request.model, request.temperature, request.key, request.stream) == ("m", 0.5, "secret", False)
    assert (request.tools, request.tool_name, request.channel) == ({"look_up": SCHEMA}, None, "text")
    assert request.text == "Be exact.\nCapital of France?\n\nParis"


@EVERY
def test_structured_output_is_read_alike(name: str) -> None:
    _, native = asked(name, "{}", NATIVE[name])
    _, forced = asked(name, "{}", FORCED[name])
    assert (native.channel, native.schema, native.tool_name) == ("json_schema", SCHEMA, None)
    assert (forced.channel, forced.schema, forced.tool_name) == ("tool_call", SCHEMA, "look_up")


FULL = Reply(
    "Paris.", tool_calls=[ToolUseBlock("b", "look_up", {"of": "Peru"})], reasoning="Hm.", usage=(10, 2), cache=(6, 3)
)


def test_anthropic_replies_are_those_of_its_documentation() -> None:
    body, _ = asked("anthropic", FULL)
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use"]
    assert body["content"][2] == {"type": "tool_use", "id": "b", "name": "look_up", "input": {"of": "Peru"}}
    assert (body["type"], body["role"], body["stop_reason"], body["stop_sequence"]) == (
        "message",
        "assistant",
        "tool_use",
        None,
    )
    assert body["usage"] == {
        "input_tokens": 1,
        "cache_creation_input_tokens": 3,
        "cache_read_input_tokens": 6,
        "output_tokens": 2,
    }
    for reason, word in (("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("odd", "odd")):
        assert asked("anthropic", Reply("x", finish_reason=reason))[0]["stop_reason"] == word


def test_gemini_replies_are_those_of_its_documentation() -> None:
    body, _ = asked("gemini", FULL)
    thought, text, call = body["candidates"][0]["content"]["parts"]
    assert (thought, text) == ({"text": "Hm.", "thought": True}, {"text": "Paris."})
    assert call["functionCall"] == {"id": "b", "name": "look_up", "args": {"of": "Peru"}}
    assert body["candidates"][0]["finishReason"] == "STOP"
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12, "cachedContentTokenCount": 6}
    assert body["usageMetadata"] == counts
    assert asked("gemini", Reply("x", finish_reason="length"))[0]["candidates"][0]["finishReason"] == "MAX_TOKENS"


@EVERY
def test_a_forced_tool_gets_the_data_and_errors_are_the_protocols_own(name: str) -> None:
    forced, _ = asked(name, {"capital": "Paris"}, FORCED[name])
    assert '{"capital": "Paris"}' in json.dumps(forced).replace('\\"', '"')
    with ScriptedServer(
        [Reply.error(429, "slow", retry_after=7.5), Reply.error(529, "busy")], wire=WIRES[name]
    ) as server:
        limited, busy = (post(server, name, WITH_TOOLS[name]) for _ in range(2))
    assert (limited[0], busy[0]) == (429, 529)
    error = json.loads(limited[2])["error"]
    assert error["message"] == "slow"
    if name == "gemini":
        assert (error["status"], error["details"][0]["retryDelay"]) == ("RESOURCE_EXHAUSTED", "7.5s")
        assert "retry-after" not in limited[1]
    else:
        assert limited[1]["retry-after"] == "7.5"
    if name == "anthropic":
        assert error["type"] == "rate_limit_error"
        assert json.loads(busy[2])["error"]["type"] == "overloaded_error"


def test_a_filter_refuses_as_the_provider_does() -> None:
    def refused(name: str) -> tuple[int, Any]:
        with ScriptedServer(Reply.error(400, code="content_filter"), wire=WIRES[name]) as server:
            status, _, body = post(server, name, WITH_TOOLS[name])
        return status, json.loads(body)

    assert refused("chat")[1]["error"]["code"] == "content_filter"
    assert "content filtering policy" in refused("anthropic")[1]["error"]["message"]
    assert refused("gemini")[0] == 200
    assert refused("gemini")[1]["promptFeedback"]["blockReason"]


@EVERY
def test_streams_add_up_to_the_whole_reply_and_can_be_cut(name: str) -> None:
    path = PATHS[name].replace(":generateContent", ":streamGenerateContent?alt=sse")
    body = {**WITH_TOOLS[name], **STREAMED.get(name, {})}
    with ScriptedServer([FULL, Reply.stream_cut("a b c d e f g h")], wire=WIRES[name]) as server:
        _, headers, received = post(server, name, body, path)
        assert headers["content-type"] == "text/event-stream"
        with pytest.raises(IncompleteRead):
            post(server, name, body, path)
        assert server.requests[0].stream
    events = [event.split("data: ", 1)[1] for event in received.decode().split("\n\n") if event]
    data = [json.loads(event) for event in events if event != "[DONE]"]
    if name == "anthropic":
        lines = received.decode().splitlines()
        assert [line.removeprefix("event: ") for line in lines if line.startswith("event: ")] == [
            event["type"] for event in data
        ]
        assert (data[0]["type"], data[-1]["type"]) == ("message_start", "message_stop")
        deltas = [event["delta"] for event in data if event["type"] == "content_block_delta"]
        assert {delta["type"] for delta in deltas} == {
            "thinking_delta",
            "signature_delta",
            "text_delta",
            "input_json_delta",
        }
        assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"of": "Peru"}
        assert data[-2]["delta"]["stop_reason"] == "tool_use"
        assert data[-2]["usage"]["output_tokens"] == 2
    elif name == "gemini":
        assert data[-1]["usageMetadata"]["totalTokenCount"] == 12
        assert not any("usageMetadata" in event for event in data[:-1])
    else:
        assert data[-1]["usage"]["total_tokens"] == 12


@EVERY
def test_faults_are_faults_of_the_protocol(name: str) -> None:
    faults = [Reply.no_choices(), Reply.invalid_utf8(), Reply.huge(1)]
    with ScriptedServer(faults, wire=WIRES[name]) as server:
        nothing, odd, huge = (post(server, name, WITH_TOOLS[name])[2] for _ in faults)
        assert post(server, name, {}, "/v1/other")[0] == 404
    assert "Paris" not in nothing.decode()
    json.loads(nothing)
    with pytest.raises(UnicodeDecodeError):
        odd.decode()
    json.loads(odd.decode("latin-1"))
    assert huge.count(b"x" * 1_000_000) == 1
    json.loads(huge)


def test_a_wire_that_cannot_read_is_an_error_of_the_test() -> None:
    class Broken(Wire):
        suffix = "/generate"

        def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
            return ServedRequest(body=body, model=body["engine"])

        def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
            return {"out": reply.text}

    def use() -> None:
        with ScriptedServer("x", wire=Broken()) as server:
            assert json.loads(post(server, "chat", {"engine": "m"}, "/generate")[2]) == {"out": "x"}
            assert post(server, "chat", {}, "/generate")[0] == 500

    with pytest.raises(KeyError, match="engine"):
        use()
