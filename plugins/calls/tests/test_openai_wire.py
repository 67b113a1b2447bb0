"""The chat completions protocol: what goes out, what comes back, and what servers say instead."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.wire.openai_errors import error_from_wire, json_from_wire, kind_of_status, retry_after_seconds
from karenina_calls.wire.openai_wire import messages_to_wire, output_to_wire, reply_from_wire, tools_to_wire

from karenina_core.errors import PortError
from karenina_core.ports.values import OutputFormat, Tool
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
AS_TOOL = OutputFormat("tool_call", SCHEMA)


def body(message: dict[str, Any], finish: str | None = "stop", **fields: Any) -> dict[str, Any]:
    return {"model": "m-1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **fields}


def call(arguments: Any, name: str = "answer", identifier: str | None = "c1") -> dict[str, Any]:
    return {"id": identifier, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_messages_of_every_role() -> None:
    messages = [
        Message.system("Be exact."),
        Message.user("What is it?"),
        Message.assistant("Let me look.", [ToolUseBlock("c1", "search", {"q": "é"})]),
        Message.tool_result("c1", "found"),
        Message.assistant("It is this."),
    ]
    assert messages_to_wire(messages) == [
        {"role": "system", "content": "Be exact."},
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call('{"q": "é"}', "search")]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": "It is this."},
    ]


def test_blocks_that_the_protocol_orders_otherwise() -> None:
    thinking = Message("assistant", (ThinkingBlock("hm", "sig"), TextBlock("a"), TextBlock("b")))
    results = Message("tool", (ToolResultBlock("c1", "x"), ToolResultBlock("c2", "y", is_error=True)))
    mixed = Message("user", (ToolResultBlock("c3", "z"), TextBlock("go on")))
    assert messages_to_wire([thinking, results, mixed]) == [
        {"role": "assistant", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
        {"role": "tool", "tool_call_id": "c2", "content": "[ERROR] y"},
        {"role": "tool", "tool_call_id": "c3", "content": "z"},
        {"role": "user", "content": "go on"},
    ]
    assert messages_to_wire([Message.assistant("", [ToolUseBlock("c", "f", {})])])[0]["content"] is None
    assert messages_to_wire([Message("user", (ToolResultBlock("c", "only"),))]) == [
        {"role": "tool", "tool_call_id": "c", "content": "only"}
    ]
    with pytest.raises(PortError, match="tool result") as refused:
        messages_to_wire([Message("tool", (TextBlock("lost"),))])
    assert refused.value.kind == "invalid_request"


TEXTS = st.text(st.characters(), max_size=20)
CLEAN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=5,
    )


JSON_VALUES = json_values(TEXTS)


@settings(max_examples=50)
@given(CLEAN, st.dictionaries(CLEAN, json_values(CLEAN), max_size=3))
def test_an_assistant_message_survives_the_way_out_and_back(text: str, arguments: dict[str, Any]) -> None:
    original = Message.assistant(text, [ToolUseBlock("c1", "search", arguments)])
    wire = json.loads(json.dumps(messages_to_wire([original])[0]))
    reply = reply_from_wire(body(wire))
    assert Message.assistant(reply.content, reply.tool_calls) == original


@given(st.text(st.characters(categories=["Cs", "Lu"]), min_size=1))
def test_messages_can_always_be_sent_as_utf8(text: str) -> None:
    block = ToolUseBlock("c", "f", {"q": text})
    wires = messages_to_wire([Message.user(text), Message.assistant(text, [block]), Message.tool_result("c", text)])
    json.dumps(wires, ensure_ascii=False).encode("utf-8")


def test_outputs() -> None:
    assert output_to_wire(None) == output_to_wire(OutputFormat("text", SCHEMA)) == {}
    assert output_to_wire(OutputFormat("json_object", SCHEMA)) == {"response_format": {"type": "json_object"}}
    wanted = output_to_wire(OutputFormat("json_schema", SCHEMA, "my answer"))["response_format"]["json_schema"]
    assert wanted == {"name": "my_answer", "strict": True, "schema": {**SCHEMA, "additionalProperties": False}}
    free = {"type": "object", "properties": {"a": {"type": "object"}}}
    wanted = output_to_wire(OutputFormat("json_schema", free))["response_format"]["json_schema"]
    assert (wanted["strict"], wanted["schema"]) == (False, free)
    forced = output_to_wire(AS_TOOL)
    assert forced["tools"][0]["function"]["parameters"] == SCHEMA
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "answer"}}


def test_tools() -> None:
    wires = tools_to_wire([Tool(name="a", description="does a", input_schema=SCHEMA), Tool(name="b")])
    assert wires[0] == {"type": "function", "function": {"name": "a", "description": "does a", "parameters": SCHEMA}}
    assert wires[1]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_a_plain_reply() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    reply = reply_from_wire(body({"role": "assistant", "content": "Paris", "reasoning_content": "hm"}, usage=usage))
    assert (reply.content, reply.thinking, reply.finish_reason, reply.actual_model) == ("Paris", "hm", "stop", "m-1")
    assert reply.usage == UsageMetadata(10, 5, 15, cache_read_tokens=4, model="m-1")
    assert (reply.usage.cost_usd, reply.usage_unavailable, reply.is_partial, reply.flags) == (None, False, False, ())


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": None}, {"prompt_tokens": "7"}, "many", {"prompt_tokens": -1}]
)
def test_usage_that_says_nothing_is_unavailable(usage: Any) -> None:
    reply = reply_from_wire(body({"content": "x"}, usage=usage))
    assert reply.usage_unavailable
    assert reply.usage == UsageMetadata(model="m-1")


def test_a_missing_total_is_the_sum() -> None:
    assert (
        reply_from_wire(body({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 4})).usage.total_tokens
        == 7
    )


def test_the_shapes_in_which_text_comes() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert reply_from_wire(body({"content": parts})).content == "ab"
    assert reply_from_wire(body({"content": ""})).content == ""
    assert reply_from_wire(body({"content": "x", "reasoning": "r"})).thinking == "r"
    refused = reply_from_wire(body({"content": None, "refusal": "I will not."}))
    assert (refused.content, refused.flags) == ("I will not.", ("refusal",))
    cut = reply_from_wire(body({"content": "half of"}, "length"))
    assert (cut.finish_reason, cut.is_partial) == ("length", True)
    assert reply_from_wire(body({"content": "some"}, "content_filter")).is_partial


def test_text_is_made_writable_and_flagged() -> None:
    reply = reply_from_wire(body({"content": "a\ud800\0\u202e", "reasoning": "\udfff"}))
    assert reply.content == "a\ufffd\0\u202e"
    assert reply.thinking == "\ufffd"
    assert set(reply.flags) == {"lone_surrogate", "nul", "bidi_control"}
    inner = reply_from_wire(body({"tool_calls": [call('{"k\\ud800": ["v\\ud800"]}')]}))
    assert inner.tool_calls[0].input == {"k\ufffd": ["v\ufffd"]}
    assert inner.flags == ("lone_surrogate",)


def test_tool_calls() -> None:
    wires = [call('{"q": 1}', "search"), call({"b": 2}, "other", None), call("", "bare", "c3")]
    reply = reply_from_wire(body({"content": None, "tool_calls": wires}, "tool_calls"))
    assert reply.tool_calls == (
        ToolUseBlock("c1", "search", {"q": 1}),
        ToolUseBlock("call_1", "other", {"b": 2}),
        ToolUseBlock("c3", "bare", {}),
    )
    assert (reply.content, reply.structured, reply.flags) == ("", None, ())


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", '{"a": NaN}', "9" * 5000, "[" * 100_000])
def test_arguments_that_are_no_object_are_flagged_and_kept_as_text(arguments: str) -> None:
    reply = reply_from_wire(body({"tool_calls": [call(arguments)]}), AS_TOOL)
    assert (reply.tool_calls[0].input, reply.flags) == ({}, ("invalid_tool_arguments",))
    assert reply.structured == arguments


def test_the_structured_text_is_that_of_the_tool_that_was_asked_for() -> None:
    wires = [call('{"x": 1}', "think"), call('{"a":  1}')]
    assert reply_from_wire(body({"tool_calls": wires}), AS_TOOL).structured == '{"a":  1}'
    assert reply_from_wire(body({"tool_calls": wires[:1]}), AS_TOOL).structured == '{"x": 1}'
    assert reply_from_wire(body({"content": "no tool"}), AS_TOOL).structured is None
    assert reply_from_wire(body({"content": '{"a": 1}'}), OutputFormat("json_schema", SCHEMA)).structured is None


BROKEN: list[dict[str, Any]] = [
    {},
    {"choices": []},
    {"choices": None},
    {"choices": {}},
    {"choices": ["x"]},
    {"choices": [{}]},
    {"choices": [{"message": None}]},
    body({"role": "assistant"}, "length"),
    body({"content": None}, None),
    body({"content": 7}),
    body({"content": []}, "tool_calls"),
    body({"content": None, "tool_calls": []}, "length"),
    body({"tool_calls": ["x"]}),
    body({"tool_calls": "xy"}),
    body({"tool_calls": 7}),
    body({"tool_calls": [{"id": "c"}]}),
    body({"tool_calls": [{"id": "c", "function": {"name": None}}]}),
]


@pytest.mark.parametrize(
    "message", [{"role": "assistant"}, {"content": None, "reasoning": "Hm."}, {"content": []}], ids=json.dumps
)
def test_a_model_that_stops_without_a_text_has_given_an_empty_one(message: dict[str, Any]) -> None:
    assert reply_from_wire(body(message)).content == ""


@pytest.mark.parametrize("broken", BROKEN, ids=json.dumps)
def test_a_body_without_a_usable_reply_is_a_bad_response(broken: dict[str, Any]) -> None:
    with pytest.raises(PortError) as failed:
        reply_from_wire(broken)
    assert failed.value.kind == "bad_response"
    assert failed.value.raw


@given(JSON_VALUES, JSON_VALUES, JSON_VALUES)
def test_no_body_makes_anything_but_a_reply_or_a_port_error(first: Any, second: Any, third: Any) -> None:
    message = {"content": first, "tool_calls": second, "refusal": third, "reasoning": first}
    for candidate in (
        {"choices": first, "usage": second},
        {"choices": [first]},
        {"error": first},
        body(message, usage={"prompt_tokens": first, "prompt_tokens_details": second}),
        body({"content": first, "tool_calls": [{"id": second, "function": {"name": third, "arguments": first}}]}),
    ):
        try:
            reply_from_wire(candidate).content.encode()
        except PortError as error:
            str(error).encode()


def test_a_withheld_reply_is_a_content_filter() -> None:
    with pytest.raises(PortError) as withheld:
        reply_from_wire(body({"content": None}, "content_filter"))
    assert withheld.value.kind == "content_filter"


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "busy", "code": 429}, "rate_limited", 429),
        ({"message": "down", "code": "503"}, "server", 503),
        ({"message": "no", "code": "invalid_key"}, "server", None),
        ({"message": "no", "code": 7}, "server", None),
        ({"message": "no", "type": "content_filter"}, "content_filter", None),
        ("out of memory", "server", None),
    ],
)
def test_an_error_inside_a_good_status(error: Any, kind: str, status: int | None) -> None:
    with pytest.raises(PortError) as failed:
        reply_from_wire({"error": error})
    assert (failed.value.kind, failed.value.status) == (kind, status)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, "invalid_request"),
        (400, "invalid_request"),
        (401, "auth"),
        (402, "auth"),
        (403, "auth"),
        (404, "invalid_request"),
        (408, "timeout"),
        (413, "invalid_request"),
        (422, "invalid_request"),
        (429, "rate_limited"),
        (500, "server"),
        (503, "server"),
        (529, "server"),
    ],
)
def test_the_kind_of_each_status(status: int, kind: str) -> None:
    assert kind_of_status(status) == kind
    assert error_from_wire(status, {"error": {"message": "m"}}).kind == kind


def test_an_error_names_place_status_and_the_servers_words() -> None:
    error = error_from_wire(
        400, {"error": {"message": "no  such\nfield " * 100}}, where="POST http://x", retry_after=2.0
    )
    assert str(error).startswith("POST http://x: HTTP 400: no such field no such")
    assert len(str(error)) <= len("POST http://x: HTTP 400: ") + 300
    assert (error.status, error.retry_after) == (400, 2.0)
    assert error.raw is not None
    assert "such" in error.raw


def _nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    ("original", "words"),
    [
        (_nested(100_000), "HTTP 502"),
        ("<html><head><title>502 Bad Gateway</title></head></html>", "502 Bad Gateway"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"error": "model not found"}, "model not found"),
        ({"object": "error", "message": "too long", "code": 400}, "too long"),
        ("", "HTTP 502"),
        (None, "HTTP 502"),
        ({"error": {}}, "HTTP 502"),
        ("<" * 100_000, "<"),
    ],
)
def test_error_bodies_of_all_sorts(original: Any, words: str) -> None:
    assert words in str(error_from_wire(502, original))


@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"])
def test_a_content_filter_hides_behind_400(code: str) -> None:
    assert error_from_wire(400, {"error": {"message": "m", "code": code}}).kind == "content_filter"


@pytest.mark.parametrize("raw", ["[" * 100 + "]" * 100, '{"a": "\\ud800"}', "\ufeff{}", " 1 "])
def test_json_bodies(raw: str) -> None:
    assert json_from_wire(raw.encode()) == json.loads(raw.removeprefix("\ufeff"))


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"a": ', "is not JSON"),
        (b"<html>", "is not JSON"),
        (b"[NaN]", "is not JSON"),
        (b"[" * 200_000, "is not JSON"),
        (b'{"a": "\xff"}', "is not UTF-8"),
        (b"x" * 200_000, "is not JSON"),
    ],
)
def test_bodies_that_are_not_json(data: bytes, fault: str) -> None:
    with pytest.raises(PortError, match=fault) as failed:
        json_from_wire(data)
    assert failed.value.kind == "bad_response"
    assert failed.value.raw == data[:65536].decode("utf-8", "replace")


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"RETRY-AFTER": " 3. "}, 3.0),
        ({"Retry-After": "5", "retry-after-ms": "1500"}, 1.5),
        ({"Retry-After": "5", "retry-after-ms": "soon"}, 5.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:01:30 GMT"}, 90.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:00:10 -0000"}, 10.0),
        ({"Retry-After": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "Sun, 01 Mar 2026 12:61:00 GMT"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "1e9"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers, NOW.timestamp()) == seconds


@given(st.text(max_size=40))
def test_no_retry_after_header_is_an_error(value: str) -> None:
    seconds = retry_after_seconds({"Retry-After": value}, NOW.timestamp())
    assert seconds is None or seconds >= 0


@given(st.integers(0, 10**6))
def test_dates_and_seconds_agree(wait: int) -> None:
    later = format_datetime(datetime.fromtimestamp(NOW.timestamp() + wait, UTC), usegmt=True)
    assert retry_after_seconds({"Retry-After": later}, NOW.timestamp()) == wait
