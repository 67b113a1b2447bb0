"""The adapter against a real server: what it sends, what it makes of replies, and what it calls each failure."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from karenina_calls.wire.bodies import _Unpacker
from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core.errors import ConfigError, PortError
from karenina_core.ports import LLMPort, LLMResponse, OutputFormat, StreamingLLMPort
from karenina_core.testing import Reply, ScriptedServer
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

T = TypeVar("T")
KEY = "sk-canary-0123456789"
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}
ASK = [Message.system("Be exact."), Message.user("Capital of France?")]


def config(url: str, **fields: Any) -> ModelConfig:
    return ModelConfig(
        **{
            "model_name": "m",
            "interface": "openai_endpoint",
            "endpoint_base_url": url,
            "endpoint_api_key": KEY,
            "request_timeout": 5.0,
            **fields,
        }
    )


def use(port: OpenAIEndpoint, work: Callable[[OpenAIEndpoint], Awaitable[T]]) -> T:
    async def run() -> T:
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


def ask(server: ScriptedServer, output: OutputFormat | None = None, **fields: Any) -> LLMResponse:
    return use(OpenAIEndpoint(config(server.url, **fields)), lambda port: port.ainvoke(ASK, output=output))


def failure(server_or_url: ScriptedServer | str, **fields: Any) -> PortError:
    url = server_or_url if isinstance(server_or_url, str) else server_or_url.url
    with pytest.raises(PortError) as failed:
        use(OpenAIEndpoint(config(url, **fields)), lambda port: port.ainvoke(ASK))
    return failed.value


async def streamed(port: OpenAIEndpoint) -> tuple[list[str], LLMResponse]:
    stream = port.astream(ASK)
    pieces = [piece async for piece in stream]
    assert stream.response is not None
    assert "".join(pieces) == stream.accumulated_content
    return pieces, stream.response


def test_it_is_both_ports_and_says_what_it_can() -> None:
    port = OpenAIEndpoint(config("http://localhost:1"))
    assert isinstance(port, LLMPort)
    assert isinstance(port, StreamingLLMPort)
    assert port.capabilities.output_channels == ("json_schema", "tool_call", "json_object", "text")
    assert port.capabilities.supports_structured_output
    assert port.capabilities.supports_streaming


def test_a_call_sends_the_configuration_and_returns_the_reply() -> None:
    extra = {"top_p": 0.5, "endpoint_base_url_mode": "auto_v1", "max_response_bytes": 10_000}
    with ScriptedServer(Reply("Paris", usage=(7, 2), model="m-2026")) as server:
        reply = ask(server, temperature=0.3, max_tokens=99, extra_kwargs=extra)
        request = server.requests[0]
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Capital of France?"}],
        "temperature": 0.3,
        "max_tokens": 99,
        "top_p": 0.5,
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert (reply.content, reply.finish_reason, reply.actual_model) == ("Paris", "stop", "m-2026")
    assert reply.usage == UsageMetadata(7, 2, 9, model="m-2026")
    assert reply.usage.cost_usd is None


def test_what_is_not_configured_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(Reply("x", usage=None)) as server:
        reply = ask(server, temperature=None, max_tokens=None, endpoint_api_key=None)
        monkeypatch.setenv("MY_KEY", " from-environment\n")
        ask(server, endpoint_api_key=None, api_key_env="MY_KEY")
        silent, named = server.requests
    assert set(silent.body) == {"model", "messages"}
    assert "authorization" not in silent.headers
    assert named.headers["authorization"] == "Bearer from-environment"
    assert reply.usage_unavailable


def test_the_temperature_of_a_call_wins() -> None:
    async def work(port: OpenAIEndpoint) -> None:
        await port.ainvoke(ASK, temperature=0.9)
        await port.ainvoke(ASK, temperature=0.0)

    with ScriptedServer("x") as server:
        use(OpenAIEndpoint(config(server.url, temperature=0.3, extra_kwargs={"temperature": 0.5})), work)
        assert [request.body["temperature"] for request in server.requests] == [0.9, 0.0]


def test_every_channel_of_structured_output() -> None:
    with ScriptedServer({"capital": "Paris"}) as server:
        replies = {
            channel: ask(server, OutputFormat(channel, SCHEMA))
            for channel in OpenAIEndpoint(config(server.url)).capabilities.output_channels
        }
        by_schema, by_tool, by_object, by_text = server.requests
    assert by_schema.schema == {**SCHEMA, "additionalProperties": False}
    assert by_schema.body["response_format"]["json_schema"]["strict"] is True
    assert (by_tool.schema, by_tool.channel) == (SCHEMA, "tool_call")
    assert (by_object.channel, by_text.channel) == ("json_object", "text")
    assert json.loads(replies["tool_call"].structured or "") == {"capital": "Paris"}
    assert replies["tool_call"].content == ""
    for channel in ("json_schema", "json_object", "text"):
        assert json.loads(replies[channel].content) == {"capital": "Paris"}
        assert replies[channel].structured is None


def test_a_tool_call_goes_there_and_back() -> None:
    wanted = ToolUseBlock("call_1", "search", {"query": "Paris", "limit": 3})

    async def work(port: OpenAIEndpoint) -> LLMResponse:
        first = await port.ainvoke(ASK)
        assert first.tool_calls == (wanted,)
        history = [*ASK, Message.assistant(first.content, first.tool_calls), Message.tool_result("call_1", "found it")]
        return await port.ainvoke(history)

    with ScriptedServer([Reply(tool_calls=[wanted]), "Done."]) as server:
        assert use(OpenAIEndpoint(config(server.url)), work).content == "Done."
        messages = server.requests[1].messages
    assert messages[2]["tool_calls"][0]["id"] == "call_1"
    assert json.loads(messages[2]["tool_calls"][0]["function"]["arguments"]) == {"query": "Paris", "limit": 3}
    assert messages[3] == {"role": "tool", "tool_call_id": "call_1", "content": "found it"}


FAULTS: list[tuple[Reply, str, str]] = [
    (Reply.error(429, "slow down", retry_after=2), "rate_limited", "HTTP 429: slow down"),
    (Reply.error(401, "no such key"), "auth", "check the key"),
    (Reply.error(403, "not for you"), "auth", "check the key"),
    (Reply.error(408, "too slow"), "timeout", "HTTP 408"),
    (Reply.error(400, "bad field"), "invalid_request", "bad field"),
    (Reply.error(404, "no such model"), "invalid_request", "check endpoint_base_url"),
    (Reply.error(413, "too much text"), "invalid_request", "too much text"),
    (Reply.error(422, "no"), "invalid_request", "HTTP 422"),
    (Reply.error(400, "flagged", code="content_filter"), "content_filter", "flagged"),
    (Reply.error(500, "oops"), "server", "HTTP 500: oops"),
    (Reply.error(502, "Bad Gateway", html=True), "server", "HTTP 502: 502 Bad Gateway"),
    (Reply.error(503, "down"), "server", "HTTP 503"),
    (Reply(status=500, body=b"\xff\xfe broken"), "server", "HTTP 500"),
    (Reply(status=429, body=b"", headers={"Content-Encoding": "gzip"}), "rate_limited", "HTTP 429"),
    (Reply(status=503, body=b"not gzip", headers={"Content-Encoding": "gzip"}), "server", "HTTP 503"),
    (
        Reply(status=307, body=b"", headers={"Location": "http://evil/?k=1"}),
        "invalid_request",
        "redirects to http://evil/;",
    ),
    (Reply.reset(), "connection", "check that the server runs"),
    (Reply.truncated(), "connection", "connection failed"),
    (Reply.hang(0.01), "connection", "connection failed"),
    (Reply.empty(), "bad_response", "is empty"),
    (Reply.garbage(), "bad_response", "is not JSON"),
    (Reply.invalid_utf8(), "bad_response", "is not UTF-8"),
    (Reply.no_choices(), "bad_response", "no choices"),
    (Reply.wrong_content_type(), "bad_response", "is not JSON"),
    (Reply(body=b"[]"), "bad_response", "not a JSON object"),
    (Reply(None, finish_reason="tool_calls"), "bad_response", "neither text nor a tool call"),
    (Reply(None, finish_reason="length"), "bad_response", "raise max_tokens"),
    (Reply(None, finish_reason="content_filter"), "content_filter", "withheld"),
    (Reply(body=b'{"error": {"message": "overloaded", "code": 503}}'), "server", "overloaded"),
    (Reply(body=b"packed?", headers={"Content-Encoding": "gzip"}), "bad_response", "is broken"),
    (Reply(body=gzip.compress(b"{}")[:-9], headers={"Content-Encoding": "gzip"}), "bad_response", "ends too early"),
    (Reply(body=b"{}", headers={"Content-Encoding": "br"}), "bad_response", "'br'"),
    (Reply.huge(9), "too_large", "8000000 bytes"),
]


@pytest.mark.parametrize(
    ("reply", "kind", "words"), FAULTS, ids=[f"{kind}-{n}" for n, (_, kind, _) in enumerate(FAULTS)]
)
def test_every_failure_has_its_kind(reply: Reply, kind: str, words: str) -> None:
    with ScriptedServer(reply) as server:
        error = failure(server)
        assert server.count == 1, "an adapter makes one attempt"
    assert (error.kind, words in str(error)) == (kind, True), str(error)
    assert f"POST {server.url}/chat/completions" in str(error)
    assert error.status == (reply.status if reply.status != 200 else 503 if "overloaded" in str(error) else None)


def test_a_refused_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    error = failure(f"http://127.0.0.1:{port}")
    assert error.kind == "connection"
    assert f"http://127.0.0.1:{port}/v1/chat/completions" in str(error)


def test_a_server_that_is_no_http_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def work(port: OpenAIEndpoint) -> None:
            calling = asyncio.create_task(port.ainvoke(ASK))
            client, _ = await asyncio.to_thread(listener.accept)
            with client:
                await asyncio.to_thread(client.recv, 65536)
                client.sendall(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
                with pytest.raises(PortError, match="HTTP exchange failed") as failed:
                    await calling
            assert failed.value.kind == "bad_response"
            assert "hidden" not in str(failed.value)

        use(OpenAIEndpoint(config(f"http://127.0.0.1:{listener.getsockname()[1]}?key=hidden")), work)


def test_what_came_back_is_kept_up_to_64_kb() -> None:
    with ScriptedServer(Reply(body=b"<html>" + b"y" * 100_000)) as server:
        error = failure(server)
    assert error.raw is not None
    assert error.raw.startswith("<html>yyy")
    assert len(error.raw) == 65536


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (Reply.error(429, retry_after=1.5), 1.5),
        (Reply.error(503, retry_after="7"), 7.0),
        (Reply(status=429, body=b"{}", headers={"retry-after-ms": "250", "Retry-After": "9"}), 0.25),
        (Reply.error(429, retry_after="Fri, 31 Dec 1999 23:59:59 GMT"), 0.0),
        (Reply.error(429, retry_after="soon"), None),
        (Reply.error(429), None),
    ],
)
def test_retry_after_travels_with_the_error(reply: Reply, seconds: float | None) -> None:
    with ScriptedServer(reply) as server:
        assert failure(server).retry_after == seconds


@pytest.mark.parametrize(
    "reply", [Reply.hang(30), Reply.drip(0.05), Reply("late", latency=30)], ids=["hang", "slow-loris", "latency"]
)
def test_a_call_ends_at_its_time_limit(reply: Reply) -> None:
    with ScriptedServer(reply) as server:
        started = time.monotonic()
        error = failure(server, request_timeout=0.3)
        assert 0.3 <= time.monotonic() - started < 1.5
    assert (error.kind, "within 0.3 s" in str(error)) == ("timeout", True)


def test_a_server_that_accepts_and_says_nothing_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert failure(f"http://127.0.0.1:{silent.getsockname()[1]}", request_timeout=0.2).kind == "timeout"


@pytest.mark.parametrize("reply", [Reply.huge(60), Reply.gzip_bomb(60)], ids=["huge", "bomb"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_beyond_the_limit_is_stopped_with_little_memory(reply: Reply, stream: bool) -> None:
    async def work(port: OpenAIEndpoint) -> None:
        with pytest.raises(PortError, match=r"larger than 500000 bytes; .*max_response_bytes") as failed:
            await (streamed(port) if stream else port.ainvoke(ASK))
        assert failed.value.kind == "too_large"

    with ScriptedServer(reply) as server:
        tracemalloc.start()
        use(OpenAIEndpoint(config(server.url, extra_kwargs={"max_response_bytes": 500_000})), work)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8_000_000  # the server's own buffers are counted too


def test_a_size_beyond_the_limit_is_believed_before_it_is_read() -> None:
    with ScriptedServer(Reply(body=b"{", headers={"Content-Length": "8000001"})) as server:
        assert failure(server, request_timeout=2.0).kind == "too_large"


def test_a_large_reply_below_the_limit_is_read_whole() -> None:
    with ScriptedServer([Reply.huge(3), Reply.gzip_bomb(3)]) as server:
        assert [len(ask(server).content) for _ in range(2)] == [3_000_000, 3_000_000]


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", _raw_deflate), ("identity", bytes)],
    ids=["gzip", "zlib", "raw-deflate", "identity"],
)
@pytest.mark.parametrize("size", [1, 65536, 65537, 300_000, 1_000_001])
def test_packed_replies_of_every_sort(encoding: str, pack: Callable[[bytes], bytes], size: int) -> None:
    text = "é" * size
    body = pack(json.dumps({"choices": [{"message": {"content": text}}]}, ensure_ascii=False).encode())
    with ScriptedServer(Reply(body=body, headers={"Content-Encoding": encoding})) as server:
        assert ask(server).content == text


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, _raw_deflate], ids=["gzip", "zlib", "raw-deflate"])
def test_unpacking_gives_back_every_byte(pack: Callable[[bytes], bytes]) -> None:
    """Around the size of a piece, where the last bytes may still be inside zlib when all input has gone in."""
    for size in range(65200, 66200, 7):
        unpacker = _Unpacker(raw_allowed=pack is _raw_deflate)
        assert b"".join(unpacker.feed(pack(b"x" * size))) == b"x" * size
        assert unpacker.finished


def test_a_body_in_two_gzip_members() -> None:
    body = gzip.compress(b'{"choices": [{"message": ') + gzip.compress(b'{"content": "two"}}]}')
    with ScriptedServer(Reply(body=body, headers={"Content-Encoding": "gzip"})) as server:
        assert ask(server).content == "two"


def test_odd_text_is_kept_writable_and_flagged() -> None:
    with ScriptedServer(Reply("a\ud800\0\u202e" + "\U0001f600" * 100_000, reasoning="think")) as server:
        reply = ask(server)
    assert reply.content == "a\ufffd\0\u202e" + "\U0001f600" * 100_000
    assert set(reply.flags) == {"lone_surrogate", "nul", "bidi_control"}
    assert reply.thinking == "think"


def test_questions_with_lone_surrogates_can_be_asked() -> None:
    extra = {"note": "x\ud800"}
    with ScriptedServer(lambda request: request.text) as server:
        port = OpenAIEndpoint(config(server.url, extra_kwargs=extra))
        assert use(port, lambda port: port.ainvoke([Message.user("a\ud800é")])).content == "a\ufffdé"


ECHOES = [
    Reply.error(401, f"Incorrect API key provided: {KEY}"),
    Reply.error(500, f"<h1>header was Bearer {KEY}</h1>", html=True),
    Reply(body=f"not json {KEY}".encode()),
    Reply(body=json.dumps({"error": {"message": f"you sent {KEY}"}}).encode()),
    Reply(body=json.dumps({"choices": [], "debug": KEY}).encode()),
    Reply(status=302, body=b"", headers={"Location": f"http://x/{KEY}"}),
]


@pytest.mark.parametrize("reply", ECHOES)
def test_the_key_is_in_no_error(reply: Reply) -> None:
    with ScriptedServer(reply) as server:
        error = failure(server)
    assert KEY not in f"{error} {error!r} {error.raw} {error.args}"
    assert KEY not in repr(OpenAIEndpoint(config(server.url)).__dict__["config"])


def test_neither_query_nor_proxy_nor_netrc_nor_cookies_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    replies = [Reply("x", headers={"Set-Cookie": "id=1"}), Reply.error(500)]

    async def work(port: OpenAIEndpoint) -> PortError:
        await port.ainvoke(ASK)
        with pytest.raises(PortError) as failed:
            await port.ainvoke(ASK)
        return failed.value

    with ScriptedServer(replies) as server:
        port = OpenAIEndpoint(config(f"{server.url}?token=hidden", endpoint_api_key=None))
        assert "hidden" not in str(use(port, work))
        assert all(request.path == "/v1/chat/completions?token=hidden" for request in server.requests)
        assert all(not request.headers.keys() & {"authorization", "cookie"} for request in server.requests)


def test_calls_share_connections_and_closing_is_repeatable() -> None:
    async def work(port: OpenAIEndpoint) -> None:
        await port.aopen()
        for _ in range(5):
            await port.ainvoke(ASK)
        assert server.connections == 1
        await port.aclose()
        await port.aclose()
        await port.ainvoke(ASK)  # a closed port opens again

    with ScriptedServer("x") as server:
        port = OpenAIEndpoint(config(server.url))
        use(port, work)
        use(port, lambda port: port.ainvoke(ASK))  # in another event loop
        assert server.count == 7


def test_many_calls_are_in_flight_at_once() -> None:
    async def work(port: OpenAIEndpoint) -> None:
        replies = await asyncio.gather(*(port.ainvoke([Message.user(str(n))]) for n in range(150)))
        assert [reply.content for reply in replies] == [str(n) for n in range(150)]

    with ScriptedServer(lambda request: Reply(request.text, latency=0.5)) as server:
        use(OpenAIEndpoint(config(server.url)), work)
        assert server.peak == 150


def _disconnected(server: ScriptedServer) -> bool:
    deadline = time.monotonic() + 3
    while server.connections and time.monotonic() < deadline:
        time.sleep(0.005)
    return server.connections == 0


@pytest.mark.parametrize("reply", [Reply("late", latency=30), Reply.drip(0.02), Reply.drip(0.02, "a b c d")])
@pytest.mark.parametrize("stream", [False, True])
def test_a_cancelled_call_ends_at_once_and_leaves_no_connection(reply: Reply, stream: bool) -> None:
    async def work(port: OpenAIEndpoint) -> None:
        call = asyncio.create_task(streamed(port) if stream else port.ainvoke(ASK))
        await asyncio.to_thread(server.wait_for, 1)
        await asyncio.sleep(0.05)
        started = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - started < 0.5
        assert await asyncio.to_thread(_disconnected, server), "the connection is closed before the session is"

    with ScriptedServer(reply) as server:
        use(OpenAIEndpoint(config(server.url)), work)


def test_a_limit_around_the_call_is_not_mistaken_for_its_own() -> None:
    async def work(port: OpenAIEndpoint) -> None:
        with pytest.raises(TimeoutError) as late:
            async with asyncio.timeout(0.1):
                await port.ainvoke(ASK)
        assert not isinstance(late.value, PortError)

    with ScriptedServer(Reply.hang(30)) as server:
        use(OpenAIEndpoint(config(server.url)), work)


def test_a_streamed_reply_arrives_in_pieces() -> None:
    reply = Reply("one two three", reasoning="hm hm", usage=(4, 3), model="m-1")
    with ScriptedServer(reply) as server:
        pieces, response = use(OpenAIEndpoint(config(server.url, extra_kwargs={"top_p": 1})), streamed)
        sent = server.requests[0].body
    assert pieces == ["one ", "two ", "three"]
    assert (response.content, response.thinking, response.finish_reason) == ("one two three", "hm hm", "stop")
    assert response.usage == UsageMetadata(4, 3, 7, model="m-1")
    assert (sent["stream"], sent["stream_options"], sent["top_p"]) == (True, {"include_usage": True}, 1)


def test_the_first_piece_does_not_wait_for_the_last() -> None:
    async def work(port: OpenAIEndpoint) -> None:
        started = time.monotonic()
        async for piece in port.astream(ASK):
            assert (piece, time.monotonic() - started < 3) == ("word ", True)
            break
        assert await asyncio.to_thread(_disconnected, server), (
            "a stream that is left early is closed before the session is"
        )

    with ScriptedServer(Reply.drip(0.002, "word " * 40)) as server:
        use(OpenAIEndpoint(config(server.url)), work)


def test_a_streamed_tool_call_is_put_together() -> None:
    calls = [ToolUseBlock("a", "f", {"text": "one two three"}), ToolUseBlock("b", "g", {"n": 1})]
    with ScriptedServer(Reply(tool_calls=calls, usage=None)) as server:
        pieces, response = use(OpenAIEndpoint(config(server.url)), streamed)
    assert pieces == []
    assert response.tool_calls == tuple(calls)
    assert (response.finish_reason, response.usage_unavailable) == ("tool_calls", True)


def _events(*events: Any, end: str = "\n\n") -> Reply:
    lines = (f"data: {event if isinstance(event, str) else json.dumps(event)}{end}" for event in events)
    return Reply(body="".join(lines).encode(), headers={"Content-Type": "text/event-stream"})


def _delta(content: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


COMMENTED = b': keep-alive\r\n\r\nevent: message\r\ndata:{"choices": [{"delta": {"content": "a"}}]}\r\n\r\n'
COMMENTED += b'data:{"choices": [{"delta": {"content": "b"}}]}\r\n\r\ndata: [DONE]'
ODD: list[Any] = [{"choices": []}, {"choices": [{}]}, _delta(None), _delta("b"), _delta("\ud800", "length"), "[DONE]"]


@pytest.mark.parametrize(
    ("reply", "content"),
    [
        (Reply(body=COMMENTED, headers={"Content-Type": "text/event-stream; charset=utf-8"}), "ab"),
        (_events('{"choices":\ndata: [{"delta": {"content": "two lines"}}]}', "[DONE]"), "two lines"),
        (_events(*ODD), "b\ufffd"),
        (_events(_delta("no done", "stop")), "no done"),
        (_events(_delta("no blank line at the end", "stop"), end="\n"), "no blank line at the end"),
        (Reply(body=b'{"choices": [{"message": {"content": "not streamed"}}]}'), "not streamed"),
    ],
)
def test_streams_as_other_servers_send_them(reply: Reply, content: str) -> None:
    with ScriptedServer(reply) as server:
        assert use(OpenAIEndpoint(config(server.url)), streamed)[1].content == content


STREAM_FAULTS: list[tuple[Reply, str]] = [
    (Reply.stream_cut(), "connection"),
    (Reply.truncated("a b c"), "connection"),
    (Reply.reset(), "connection"),
    (Reply.error(429, retry_after=3), "rate_limited"),
    (Reply.error(503), "server"),
    (Reply.hang(30), "timeout"),
    (Reply.drip(0.05), "timeout"),
    (_events(_delta("half")), "connection"),
    (_events(_delta("half"), '{"choices": [{"del', end=""), "connection"),
    (_events(_delta("half"), {"error": {"message": "engine died", "code": 500}}), "server"),
    (_events(_delta("half"), "{broken"), "bad_response"),
    (_events("[1]"), "bad_response"),
    (_events("[DONE]"), "bad_response"),
    (_events(_delta(None, "content_filter"), "[DONE]"), "content_filter"),
    (Reply.garbage(), "bad_response"),
    (Reply.empty(), "bad_response"),
]


@pytest.mark.parametrize(("reply", "kind"), STREAM_FAULTS, ids=[f"{k}-{n}" for n, (_, k) in enumerate(STREAM_FAULTS)])
def test_every_failure_of_a_stream_has_its_kind(reply: Reply, kind: str) -> None:
    with ScriptedServer(reply) as server, pytest.raises(PortError, match="chat/completions") as failed:
        use(OpenAIEndpoint(config(server.url, request_timeout=0.5)), streamed)
    assert failed.value.kind == kind


def test_time_spent_between_the_pieces_is_not_the_servers() -> None:
    async def run() -> str:
        read = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
            writer.write(_events(_delta("slow ")).body or b"")
            await read.wait()
            writer.write(_events(_delta("reader", "stop"), "[DONE]").body or b"")
            writer.close()
            await writer.wait_closed()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            host, number = server.sockets[0].getsockname()
            port = OpenAIEndpoint(config(f"http://{host}:{number}", request_timeout=0.5))
            stream = port.astream(ASK)
            async for _ in stream:
                await asyncio.sleep(0 if read.is_set() else 0.7)
                asyncio.get_running_loop().call_later(0.05, read.set)
            await port.aclose()
            return stream.accumulated_content

    assert asyncio.run(run()) == "slow reader"


def test_a_configuration_that_cannot_work_opens_no_port() -> None:
    port = OpenAIEndpoint(ModelConfig(model_name="m", interface="openai_endpoint"))
    with pytest.raises(ConfigError, match="--answering-base-url"):
        asyncio.run(port.aopen())


def test_nothing_heavy_happens_before_the_first_call() -> None:
    code = (
        "import sys, karenina_openai_endpoint as p\n"
        "assert not {'aiohttp', 'pydantic', 'asyncio', 'ssl'} & set(sys.modules), sorted(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr


def test_a_large_request_is_sent_whole_and_in_pieces() -> None:
    text = "🧬" * 400_000

    async def work(port: OpenAIEndpoint) -> None:
        await port.ainvoke([Message.user(text)])

    with ScriptedServer("Seen.") as server:
        use(OpenAIEndpoint(config(server.url)), work)
        assert server.requests[0].text == text
        assert "content-length" in {name.lower() for name in server.requests[0].headers}
