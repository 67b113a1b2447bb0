"""Replies that arrive in pieces, and streams that break off."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from karenina_litellm.port import LiteLLM

from karenina_core.errors import PortError
from karenina_core.ports import LLMResponse
from karenina_core.testing import Reply, ScriptedServer
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, ToolUseBlock

ASK = [Message.user("Say it.")]
PROVIDERS = [None, "deepseek"]


def event(delta: Mapping[str, str], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'object': 'chat.completion.chunk', 'model': 'm', 'choices': [choice]})}\n\n"


async def streamed(url: str, provider: str | None = None, **fields: Any) -> tuple[list[str], LLMResponse | None]:
    port = LiteLLM(
        ModelConfig(
            **{
                "model_name": "m",
                "model_provider": provider,
                "endpoint_base_url": url,
                "request_timeout": 20.0,
                **fields,
            }
        )
    )
    await port.aopen()
    try:
        stream = port.astream(ASK)
        pieces = [piece async for piece in stream]
        assert "".join(pieces) == stream.accumulated_content
        return pieces, stream.response
    finally:
        await port.aclose()


def failure(url: str, provider: str | None = None, **fields: Any) -> PortError:
    with pytest.raises(PortError) as failed:
        asyncio.run(streamed(url, provider, **fields))
    return failed.value


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_reply_arrives_in_pieces_and_then_as_a_whole(provider: str | None) -> None:
    script = Reply("Paris it is", reasoning="Hm, capitals.", model="served-1", usage=(30, 20))
    with ScriptedServer(script) as server:
        pieces, reply = asyncio.run(streamed(server.url, provider))
    assert pieces == ["Paris ", "it ", "is"]
    assert reply is not None
    assert reply.content == "Paris it is"
    assert reply.thinking == "Hm, capitals."
    assert reply.actual_model == "served-1"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 20)
    assert not reply.usage_unavailable
    assert reply.finish_reason == "stop"
    assert server.count == 1
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_usage_that_litellm_counted_itself_is_not_the_servers(provider: str | None) -> None:
    with ScriptedServer(Reply("Paris it is", usage=None)) as server:
        _, reply = asyncio.run(streamed(server.url, provider, model_name="gpt-4o"))
    assert reply is not None
    assert reply.usage_unavailable
    assert (reply.usage.total_tokens, reply.usage.cost_usd) == (0, None)


def test_the_cost_arrives() -> None:
    with ScriptedServer(Reply("x", usage=(100, 20))) as server:
        _, reply = asyncio.run(streamed(server.url, model_name="gpt-4o"))
    assert reply is not None
    assert reply.usage.cost_usd == pytest.approx(100 * 2.5e-6 + 20 * 10e-6)


def test_tool_calls_arrive() -> None:
    with ScriptedServer(Reply(tool_calls=(ToolUseBlock("c1", "look", {"at": [1, 2]}),))) as server:
        pieces, reply = asyncio.run(streamed(server.url))
    assert pieces == []
    assert reply is not None
    assert reply.tool_calls == (ToolUseBlock("c1", "look", {"at": [1, 2]}),)


def test_odd_characters_are_made_writable() -> None:
    with ScriptedServer(Reply("a\ud800b c")) as server:
        pieces, reply = asyncio.run(streamed(server.url))
    assert pieces == ["a\ufffdb ", "c"]
    assert reply is not None
    assert reply.content == "a\ufffdb c"
    assert reply.flags == ("lone_surrogate",)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (Reply.stream_cut(), "connection"),
        (
            Reply(body=(event({"content": "half"})).encode(), headers={"Content-Type": "text/event-stream"}),
            "connection",
        ),
        (Reply.wrong_content_type(), "bad_response"),
        (Reply.error(429, retry_after=3), "rate_limited"),
        (Reply.error(500), "server"),
        (Reply.error(401), "auth"),
        (Reply(delivery="reset"), "connection"),
        (Reply("x " * 500), "too_large"),
    ],
    ids=["cut", "ended without a finish reason", "no stream", "429", "500", "401", "reset", "too large"],
)
def test_a_stream_that_fails_has_its_kind(script: Reply, kind: str, provider: str | None) -> None:
    with ScriptedServer(script) as server:
        error = failure(server.url, provider, extra_kwargs={"max_response_bytes": 500})
    assert error.kind == kind
    assert error.retry_after == (3 if kind == "rate_limited" else None)


def test_the_time_limit_is_for_the_whole_stream() -> None:
    body = "".join(event({"content": f"{n} "}) for n in range(40)) + event({}, "stop") + "data: [DONE]\n\n"
    slow = Reply(body=body.encode(), headers={"Content-Type": "text/event-stream"}, delivery="drip", amount=0.002)
    with ScriptedServer(slow) as server:
        started = time.monotonic()
        error = failure(server.url, request_timeout=1.0)
    assert error.kind == "timeout"
    assert time.monotonic() - started < 4


def test_whoever_stops_reading_closes_the_connection() -> None:
    async def run() -> None:
        port = LiteLLM(ModelConfig(model_name="m", endpoint_base_url=server.url))
        stream = port._pieces(ASK)
        assert await anext(stream) == "one "
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
        for _ in range(100):
            if server.in_flight == 0:
                break
            await asyncio.sleep(0.02)
        assert server.in_flight == 0
        await port.aclose()

    endless = event({"content": "one "}) + event({"content": "two "}) * 400
    script = Reply(body=endless.encode(), headers={"Content-Type": "text/event-stream"}, delivery="drip", amount=0.001)
    with ScriptedServer(script) as server:
        asyncio.run(run())
