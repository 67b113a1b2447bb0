"""ScriptedServer is a real server: seen here from plain sockets, http.client, asyncio and a subprocess."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.message import ToolUseBlock

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}
AS_SCHEMA: dict[str, Any] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
}
AS_TOOL: dict[str, Any] = {
    "tools": [{"type": "function", "function": {"name": "answer", "parameters": SCHEMA}}],
    "tool_choice": {"type": "function", "function": {"name": "answer"}},
}


def connect(server: ScriptedServer, timeout: float = 5.0) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=timeout)


def ask(server: ScriptedServer, text: str = "Capital of France?", **fields: Any) -> http.client.HTTPResponse:
    """One request on a connection of its own, which closes with the response."""
    connection = connect(server)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], **fields})
    connection.request("POST", "/v1/chat/completions", body, {"Connection": "close"})
    return connection.getresponse()


def reply_to(server: ScriptedServer, text: str = "Capital of France?", **fields: Any) -> Any:
    with ask(server, text, **fields) as response:
        assert response.status == 200, response.read()
        return json.loads(response.read())


def message_of(body: Any) -> Any:
    return body["choices"][0]["message"]


def events_of(response: http.client.HTTPResponse) -> list[str]:
    lines = response.read().decode().split("\n\n")
    return [line.removeprefix("data: ") for line in lines if line]


def test_a_text_is_said_by_the_model() -> None:
    with ScriptedServer("Paris, of course.") as server:
        body = reply_to(server)
    assert message_of(body) == {"role": "assistant", "content": "Paris, of course."}
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["model"] == "m"
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


@pytest.mark.parametrize("answer", [{"capital": "Paris"}, Reply({"capital": "Paris"}), '{"capital": "Paris"}'])
def test_an_answer_goes_where_the_request_wants_it(answer: Any) -> None:
    with ScriptedServer(answer) as server:
        as_schema, as_tool = reply_to(server, **AS_SCHEMA), reply_to(server, **AS_TOOL)
    assert json.loads(message_of(as_schema)["content"]) == {"capital": "Paris"}
    call = message_of(as_tool)["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("answer", {"capital": "Paris"})
    assert message_of(as_tool)["content"] is None


def test_a_model_can_be_made_to_ignore_the_forced_tool() -> None:
    with ScriptedServer(Reply("I would rather talk.", in_tool=False)) as server:
        message = message_of(reply_to(server, **AS_TOOL))
    assert message == {"role": "assistant", "content": "I would rather talk."}


def test_a_list_is_served_in_order_and_its_last_reply_repeats() -> None:
    with ScriptedServer(["one", Reply("two"), "three"]) as server:
        said = [message_of(reply_to(server))["content"] for _ in range(5)]
    assert said == ["one", "two", "three", "three", "three"]
    with pytest.raises(ValueError, match="empty list"):
        ScriptedServer([])


def test_a_script_sees_the_request() -> None:
    seen: list[ServedRequest] = []

    async def script(request: ServedRequest) -> str:
        seen.append(request)
        await asyncio.sleep(0)
        return f"{request.model} {request.number} {request.channel}"

    with ScriptedServer(script) as server:
        first = message_of(reply_to(server, "What?"))["content"]
        second = message_of(reply_to(server, **AS_SCHEMA))["content"]
        json_object = message_of(reply_to(server, response_format={"type": "json_object"}))["content"]
        reply_to(server, **AS_TOOL)
        free_tools = message_of(reply_to(server, **{**AS_TOOL, "tool_choice": "auto"}))["content"]
        assert server.requests == seen
    assert (first, second, json_object, free_tools) == ("m 1 text", "m 2 json_schema", "m 3 json_object", "m 5 text")
    assert [request.schema for request in seen] == [None, SCHEMA, None, SCHEMA, None]
    assert seen[0].text == "What?"
    assert seen[0].messages == [{"role": "user", "content": "What?"}]
    assert seen[0].path == "/v1/chat/completions"
    assert seen[0].headers["connection"] == "close"
    assert not seen[0].stream


def test_text_joins_the_messages_and_their_parts() -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": parts}, {"role": "assistant"}]
    assert ServedRequest(body={}, messages=messages).text == "a\nb\nc\n"


def test_an_error_in_the_script_reaches_its_test() -> None:
    def script(request: ServedRequest) -> str:
        raise AssertionError("the question must not be empty")

    def run(script: Any, error: Exception | None = None) -> None:
        with ScriptedServer(script) as server:
            with ask(server) as response:
                assert (response.status, b"the script failed" in response.read()) == (500, True)
            if error:
                raise error

    with pytest.raises(AssertionError, match="must not be empty"):
        run(script)
    with pytest.raises(TypeError, match="not with 7"):
        run(lambda request: 7)
    with pytest.raises(KeyError, match="the test's own"):
        run(script, KeyError("the test's own error wins"))


def test_everything_about_the_model_can_be_set() -> None:
    call = ToolUseBlock("call_9", "search", {"query": "x"})
    reply = Reply("t", tool_calls=[call], usage=(7, 8), model="other", reasoning="hm", headers={"X-Id": "1"})
    with ScriptedServer([reply, Reply("half", finish_reason="length", usage=None)]) as server:
        with ask(server) as response:
            body = json.loads(response.read())
            assert response.getheader("X-Id") == "1"
        cut = reply_to(server)
    message = message_of(body)
    function = {"name": "search", "arguments": '{"query": "x"}'}
    assert message["tool_calls"] == [{"id": "call_9", "type": "function", "function": function}]
    assert (message["content"], message["reasoning_content"], body["model"]) == ("t", "hm", "other")
    assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15}
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert (cut["choices"][0]["finish_reason"], "usage" in cut) == ("length", False)


def test_odd_characters_travel_as_json_escapes() -> None:
    with ScriptedServer("a\ud800b\0c\u202ed") as server, ask(server) as response:
        raw = response.read()
    assert raw.isascii()
    assert rb"a\ud800b\u0000c\u202ed" in raw


def test_errors_carry_status_message_and_retry_after() -> None:
    replies = [Reply.error(429, "slow down", retry_after=1.5), Reply.error(502, "Bad Gateway", html=True)]
    with ScriptedServer(replies) as server:
        with ask(server) as limited:
            assert (limited.status, limited.getheader("Retry-After")) == (429, "1.5")
            assert json.loads(limited.read())["error"]["message"] == "slow down"
        with ask(server) as page:
            assert (page.status, page.getheader("Content-Type")) == (502, "text/html")
            assert b"Bad Gateway" in page.read()


def test_bodies_that_are_no_reply() -> None:
    faults = [Reply.empty(), Reply.garbage(), Reply.invalid_utf8(), Reply.no_choices(), Reply.wrong_content_type()]
    with ScriptedServer(faults) as server:
        responses = [ask(server) for _ in faults]
        empty, garbage, not_utf8, no_choices, page = (response.read() for response in responses)
    content_type = responses[4].getheader("Content-Type")
    assert [response.status for response in responses] == [200] * 5
    assert empty == b""
    with pytest.raises(json.JSONDecodeError):
        json.loads(garbage)
    with pytest.raises(UnicodeDecodeError):
        not_utf8.decode()
    assert json.loads(not_utf8.decode("latin-1"))["choices"]
    assert json.loads(no_choices)["choices"] == []
    assert (content_type, page[:6]) == ("text/html", b"<html>")


def test_reset_truncated_and_hang_break_the_connection() -> None:
    with ScriptedServer([Reply.reset(), Reply.truncated(), Reply.hang(0.05)]) as server:
        with pytest.raises(ConnectionResetError):
            ask(server)
        with ask(server) as half, pytest.raises(http.client.IncompleteRead):
            half.read()
        started = time.monotonic()
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server)
        assert time.monotonic() - started >= 0.05


def test_a_dripping_reply_is_whole_in_the_end() -> None:
    with ScriptedServer(Reply.drip(0.0005)) as server:
        started = time.monotonic()
        body = reply_to(server)
    assert message_of(body)["content"] == "slow"
    assert time.monotonic() - started >= 0.0005 * len(json.dumps(body))


def test_huge_and_bomb_are_valid_replies_of_their_size() -> None:
    with ScriptedServer([Reply.huge(2.5), Reply.gzip_bomb(2.5)]) as server:
        huge = message_of(reply_to(server))["content"]
        with ask(server) as response:
            assert response.getheader("Content-Encoding") == "gzip"
            packed = response.read()
    assert huge == "x" * 2_500_000
    assert len(packed) < 25_000
    assert message_of(json.loads(gzip.decompress(packed)))["content"] == huge


def test_latency_is_waited_before_the_answer() -> None:
    with ScriptedServer(Reply("late", latency=0.1)) as server:
        started = time.monotonic()
        reply_to(server)
    assert 0.1 <= time.monotonic() - started < 2


def test_a_streamed_reply_comes_word_by_word() -> None:
    reply = Reply("one two  three", reasoning="let me think", usage=(1, 2))
    with ScriptedServer(reply) as server, ask(server, stream=True, stream_options={"include_usage": True}) as response:
        assert response.getheader("Content-Type") == "text/event-stream"
        *events, last = events_of(response)
    assert last == "[DONE]"
    chunks = [json.loads(event) for event in events]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == "one two  three"
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "let me think"
    assert sum(1 for delta in deltas if delta.get("content")) == 3
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] == 3
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}


def test_a_streamed_tool_call_comes_in_pieces_and_usage_only_where_asked_for() -> None:
    with ScriptedServer({"capital": "Paris"}) as server, ask(server, stream=True, **AS_TOOL) as response:
        chunks = [json.loads(event) for event in events_of(response)[:-1]]
    calls = [c["choices"][0]["delta"]["tool_calls"][0] for c in chunks if "tool_calls" in c["choices"][0]["delta"]]
    assert calls[0]["function"]["name"] == "answer"
    assert len(calls) > 2
    assert json.loads("".join(call["function"]["arguments"] for call in calls)) == {"capital": "Paris"}
    assert not any("usage" in chunk for chunk in chunks)


def test_a_stream_can_be_cut_and_can_answer_with_an_error() -> None:
    with ScriptedServer([Reply.stream_cut("a b c d e f"), Reply.error(503, "down")]) as server:
        with ask(server, stream=True) as response, pytest.raises(http.client.IncompleteRead) as cut:
            response.read()
        assert b'"a "' in cut.value.partial
        assert b"[DONE]" not in cut.value.partial
        with ask(server, stream=True) as response:
            assert (response.status, json.loads(response.read())["error"]["message"]) == (503, "down")


def test_a_cut_without_a_stream_is_a_truncated_body() -> None:
    with ScriptedServer(Reply.stream_cut()) as server, ask(server) as half, pytest.raises(http.client.IncompleteRead):
        half.read()


def test_one_connection_serves_many_requests() -> None:
    with ScriptedServer(lambda request: str(request.number)) as server:
        connection = connect(server)
        connection.connect()
        port = connection.sock.getsockname()[1]
        for number in range(1, 4):
            connection.request("POST", "/v1/chat/completions", '{"model": "m", "messages": []}')
            assert message_of(json.loads(connection.getresponse().read()))["content"] == str(number)
        assert connection.sock.getsockname()[1] == port
        assert server.connections == 1
        connection.close()


def test_other_requests_are_refused_and_not_counted() -> None:
    with ScriptedServer("x") as server:
        connection = connect(server)
        for method, path, body, status in [
            ("GET", "/v1/chat/completions", None, 405),
            ("POST", "/v1/completions", "{}", 404),
            ("POST", "/v1/chat/completions", "no json", 400),
            ("POST", "/v1/chat/completions", "[]", 400),
            ("POST", "/any/prefix/chat/completions?api-version=1", "{}", 200),
        ]:
            connection.request(method, path, body)
            response = connection.getresponse()
            assert (response.status, bool(response.read())) == (status, True), path
        connection.close()
        assert server.count == 1
        with socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 5) as raw:
            raw.sendall(b"this is not http\r\n\r\n")
            assert raw.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_a_chunked_request_body_is_read() -> None:
    with ScriptedServer("x") as server:
        connection = connect(server)
        pieces = iter([b'{"model": "chun', b'ked", "messages": []}'])
        connection.request(
            "POST", "/v1/chat/completions", pieces, encode_chunked=True, headers={"Transfer-Encoding": "chunked"}
        )
        assert json.loads(connection.getresponse().read())["model"] == "chunked"
        connection.close()


def test_peak_counts_requests_in_flight_at_the_same_time() -> None:
    with ScriptedServer(Reply("x", latency=0.2)) as server, ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(reply_to, server) for _ in range(6)]
        server.wait_for(6)
        assert [future.result()["model"] for future in futures] == ["m"] * 6
        reply_to(server)
        assert (server.count, server.peak) == (7, 6)


def test_wait_for_gives_up_after_its_time() -> None:
    with ScriptedServer("x") as server, pytest.raises(TimeoutError, match=r"0 of 1 requests .* 0\.01 s"):
        server.wait_for(1, timeout=0.01)


def test_a_client_that_leaves_frees_its_place() -> None:
    with ScriptedServer(Reply("never read", latency=30)) as server:
        connection = connect(server)
        connection.request("POST", "/v1/chat/completions", "{}")
        server.wait_for(1)
        assert (server.in_flight, server.connections) == (1, 1)
        connection.close()
        deadline = time.monotonic() + 5
        while server.in_flight or server.connections:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_asyncio_and_subprocess_clients() -> None:
    async def call(url: str) -> bytes:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        head = (
            f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
        )
        writer.write(head.encode() + b"{}")
        reply = await reader.read()
        writer.close()
        await writer.wait_closed()
        return reply

    code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + '/chat/completions', b'{}').read().decode())"
    with ScriptedServer("hello") as server:
        assert b'"hello"' in asyncio.run(call(server.url))
        command = [sys.executable, "-c", code, server.url]
        assert '"hello"' in subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout


def test_stops_cleanly_with_connections_in_every_state() -> None:
    threads = set(threading.enumerate())
    with ScriptedServer([Reply.hang(60), Reply.drip(1), "idle"]) as server:
        port = urlsplit(server.url).port or 0
        connections = [connect(server) for _ in range(4)]
        for number, connection in enumerate(connections[:3], 1):
            connection.request("POST", "/v1/chat/completions", "{}")
            server.wait_for(number)
        connections[2].getresponse().read()
        connections[3].connect()
        started = time.monotonic()
    assert time.monotonic() - started < 2
    assert set(threading.enumerate()) == threads
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    for connection in connections:
        connection.close()


def test_a_server_runs_once_on_the_port_it_is_given() -> None:
    with ScriptedServer("x") as server:
        port = urlsplit(server.url).port or 0
        second = ScriptedServer("y", port=port)
        with pytest.raises(OSError, match="in use"):
            second.__enter__()
        with pytest.raises(RuntimeError, match="once"):
            server.__enter__()
    with ScriptedServer("y", port=port) as again:
        assert urlsplit(again.url).port == port
    with pytest.raises(RuntimeError, match="with statement"):
        _ = ScriptedServer("x").url


def test_importing_the_package_is_free() -> None:
    code = "import sys, karenina_core.testing; assert 'asyncio' not in sys.modules; karenina_core.testing.Reply"
    subprocess.run([sys.executable, "-c", code], timeout=20, check=True)
