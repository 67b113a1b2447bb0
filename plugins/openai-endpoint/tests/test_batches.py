"""The batch interface against a real server that plays it: what is sent, what comes of replies and of every fault."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeVar

import pytest
from karenina_calls.ports.batch import BatchCall, BatchState
from karenina_openai_endpoint.batches import OpenAIBatches
from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core.errors import PortError
from karenina_core.ports import OutputFormat
from karenina_core.testing import Reply, ScriptedBatches, ScriptedServer, ServedRequest
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

T = TypeVar("T")
KEY = "sk-canary-0123456789"
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}
ASK = [Message.system("Be exact."), Message.user("Capital of France?")]
AS_DATA = OutputFormat("json_schema", SCHEMA)
BY_TOOL = OutputFormat("tool_call", SCHEMA)
LARGE, PAUSE, LIMIT = 20, 0.03, 1.5
"""Megabytes of a file, seconds before each quarter of one, and those that a request may take."""


def config(url: str, **fields: Any) -> ModelConfig:
    facts = {"interface": "openai_endpoint", "endpoint_base_url": url, "endpoint_api_key": KEY, "request_timeout": 5.0}
    return ModelConfig(model_name="m", batch=True, **{**facts, **fields})


def use(url: str, work: Callable[[OpenAIBatches], Awaitable[T]], **fields: Any) -> T:
    async def run() -> T:
        port = OpenAIBatches(config(url, **fields))
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


def calls(port: OpenAIBatches, count: int, output: OutputFormat | None = None) -> list[BatchCall]:
    return [
        BatchCall(f"call-{n}", port.encode([Message.user(f"Question {n} — é?")], output=output)) for n in range(count)
    ]


async def over(port: OpenAIBatches, batch_id: str) -> BatchState:
    while (state := await port.poll(batch_id)).status == "running":
        await asyncio.sleep(0.01)
    return state


async def fetched(port: OpenAIBatches, batch_id: str) -> list[tuple[str, Any]]:
    return [found async for found in port.fetch(batch_id)]


def together(server: ScriptedBatches, count: int = 3, **fields: Any) -> tuple[BatchState, dict[str, Any]]:
    """Send calls, wait until they are over, fetch what came of them."""

    async def work(port: OpenAIBatches) -> tuple[BatchState, dict[str, Any]]:
        batch_id = await port.submit("name", calls(port, count))
        return await over(port, batch_id), dict(await fetched(port, batch_id))

    return use(server.url, work, **fields)


def failure(server: ScriptedBatches, work: Callable[[OpenAIBatches], Awaitable[Any]], **fields: Any) -> PortError:
    with pytest.raises(PortError) as caught:
        use(server.url, work, **fields)
    return caught.value


def echo(request: ServedRequest) -> str:
    return f"To {request.text}"


def test_calls_are_sent_as_a_file_and_their_replies_come_back_by_their_ids() -> None:
    with ScriptedBatches(echo, polls=2) as server:
        state, found = together(server)
        assert (state.status, state.completed, state.failed) == ("ended", 3, 0)
        port = OpenAIBatches(config(server.url))
        assert {name: port.decode(reply).content for name, reply in found.items()} == {
            f"call-{n}": f"To Question {n} — é?" for n in range(3)
        }
        (batch,) = server.batches
        assert [(call["custom_id"], call["method"], call["url"]) for call in batch.calls] == [
            (f"call-{n}", "POST", "/v1/chat/completions") for n in range(3)
        ]
        assert batch.facts["metadata"] == {"karenina_batch": "name"}


@pytest.mark.parametrize("output", [None, AS_DATA, BY_TOOL])
def test_a_call_says_the_same_in_a_batch_as_alone(output: OutputFormat | None) -> None:
    fields: dict[str, Any] = {"temperature": 0.3, "max_tokens": 99, "extra_kwargs": {"top_p": 0.5}}

    async def alone(url: str) -> None:
        port = OpenAIEndpoint(config(url, **fields))
        try:
            await port.ainvoke(ASK, output=output, temperature=0.7)
        finally:
            await port.aclose()

    with ScriptedServer("Paris") as server:
        asyncio.run(alone(server.url))
        sent = server.requests[0].body
    body = OpenAIBatches(config("http://127.0.0.1:9", **fields)).encode(ASK, output=output, temperature=0.7)
    assert json.loads(body) == sent


@pytest.mark.parametrize("output", [AS_DATA, BY_TOOL])
def test_structured_replies_come_back_as_they_would_alone(output: OutputFormat) -> None:
    async def work(port: OpenAIBatches) -> Any:
        batch_id = await port.submit("name", calls(port, 1, output))
        await over(port, batch_id)
        ((_, reply),) = await fetched(port, batch_id)
        return port.decode(reply, output)

    with ScriptedBatches({"capital": "Paris"}) as server:
        reply = use(server.url, work)
    assert json.loads(reply.structured or reply.content) == {"capital": "Paris"}


def test_one_failed_call_is_the_error_of_that_call() -> None:
    def script(request: ServedRequest) -> Any:
        if "Question 1" in request.text:
            return Reply.error(400, "the schema is not supported")
        return Reply.error(429, "too many tokens") if "Question 2" in request.text else echo(request)

    with ScriptedBatches(script) as server:
        state, found = together(server)
    assert (state.completed, state.failed) == (1, 2)
    refused, limited = found["call-1"], found["call-2"]
    assert (refused.kind, refused.status) == ("invalid_request", 400)
    assert "the schema is not supported" in str(refused)
    assert (limited.kind, limited.status) == ("rate_limited", 429)


def line(custom_id: Any = "call-0", **facts: Any) -> bytes:
    return json.dumps({"id": "l", "custom_id": custom_id, "response": None, "error": None, **facts}).encode() + b"\n"


LINES: list[tuple[bytes, str | None]] = [
    (line(error={"code": "batch_expired", "message": "too late"}), "timeout"),
    (line(error={"code": "batch_cancelled", "message": "stopped"}), "cancelled"),
    (line(error={"code": "server_error", "message": "oops"}), "server"),
    (line(error={"code": "content_filter", "message": "no"}), "content_filter"),
    (line(error="text"), "server"),
    (line(response={"status_code": 500, "body": None}), "server"),
    (line(response={"status_code": 401, "body": {"error": {"message": "key"}}}), "auth"),
    (line(response={"status_code": 200, "body": "text"}), "bad_response"),
    (line(response={"status_code": 200}), "bad_response"),
    (line(response="x"), "bad_response"),
    (line(), "bad_response"),
    (b'{"custom_id": "call-0", "response": {"status_c\n', "bad_response"),
    (b'{"custom_id": "call-0", "response": "\xff"}\n', "bad_response"),
    (b'{"custom_id": "call-0", "x": ' + b"[" * 200_000 + b"\n", "bad_response"),
    (line(custom_id=7), None),
    (b"[]\n", None),
    (b"\n", None),
    (b"nothing at all\n", None),
]


@pytest.mark.parametrize(("raw", "kind"), LINES, ids=[f"{n}-{kind}" for n, (_, kind) in enumerate(LINES)])
def test_every_line_is_a_reply_or_an_error_of_a_kind_or_says_of_no_call(raw: bytes, kind: str | None) -> None:
    with ScriptedBatches(echo, output=lambda lines: [raw, *lines[1:]]) as server:
        _, found = together(server, 2)
    assert "choices" in found["call-1"], "which costs no other call its reply"
    if kind is None:
        assert set(found) == {"call-1"}
    else:
        assert found["call-0"].kind == kind


def test_replies_in_any_order_twice_and_to_nothing_all_come_through() -> None:
    def muddled(lines: list[bytes]) -> list[bytes]:
        return [*reversed(lines), lines[0], line("never-asked", response={"status_code": 200, "body": {}})]

    async def work(port: OpenAIBatches) -> list[str]:
        batch_id = await port.submit("name", calls(port, 3))
        await over(port, batch_id)
        return [name for name, _ in await fetched(port, batch_id)]

    with ScriptedBatches(echo, output=muddled) as server:
        assert use(server.url, work) == ["call-2", "call-1", "call-0", "call-0", "never-asked"]


class HugeFile(BaseHTTPRequestHandler):
    """A batch that is over, with 100 replies of a megabyte, none of which is kept."""

    def do_GET(self) -> None:
        begin, end = b'{"custom_id": "call-', b'", "response": {"status_code": 200, "body": {"choices": "'
        over = b'"}}}\n'
        body = json.dumps({"id": "b", "status": "completed", "output_file_id": "f"}).encode()
        line = len(begin) + 2 + len(end) + 1_000_000 + len(over)
        self.send_response(200)
        if not self.path.endswith("/content"):
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Content-Length", str(100 * line))
        self.end_headers()
        for number in range(100):
            for part in (begin, b"%02d" % number, end, *[b"x" * 1000] * 1000, over):
                self.wfile.write(part)

    def log_message(self, *arguments: Any) -> None: ...


def test_a_huge_file_is_never_held_as_a_whole() -> None:
    async def work(port: OpenAIBatches) -> tuple[int, int]:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        count = 0
        async for name, reply in port.fetch("b"):
            count += name == f"call-{count:02}" and len(reply["choices"]) == 1_000_000
        return count, tracemalloc.get_traced_memory()[1] - before

    with ThreadingHTTPServer(("127.0.0.1", 0), HugeFile) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            count, peak = use(f"http://127.0.0.1:{server.server_port}/v1", work, request_timeout=30.0)
        finally:
            tracemalloc.stop()
            server.shutdown()
    assert count == 100
    assert peak < 15_000_000


def test_a_reply_that_is_too_long_is_refused_and_the_next_one_is_read() -> None:
    def script(request: ServedRequest) -> str:
        return "x" * 400_000 if "Question 1" in request.text else "short"

    with ScriptedBatches(script) as server:
        _, found = together(server, extra_kwargs={"max_response_bytes": 100_000})
    assert found["call-1"].kind == "too_large"
    assert "max_response_bytes" in str(found["call-1"])
    assert "choices" in found["call-0"]
    assert "choices" in found["call-2"]


def test_packed_files_are_unpacked() -> None:
    def packed(method: str, path: str, number: int) -> Reply | None:
        if not path.endswith("-output/content"):
            return None
        body = gzip.compress(b"".join(server.batches[0].answers[0]))
        return Reply(body=body, headers={"Content-Encoding": "gzip"})

    with ScriptedBatches(echo, fault=packed) as server:
        assert len(together(server)[1]) == 3


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((name, "running") for name in ("validating", "in_progress", "finalizing", "cancelling", "something_new")),
        *(("completed", "ended"), ("failed", "failed"), ("expired", "expired"), ("cancelled", "cancelled")),
    ],
)
def test_every_status_is_one_of_five(status: str, state: str) -> None:
    with ScriptedBatches(
        echo, fault=lambda *asked: Reply(body=json.dumps({"id": "b", "status": status}).encode())
    ) as s:
        assert use(s.url, lambda port: port.poll("b")).status == state


def test_a_refused_batch_says_why_and_which_calls_are_to_blame() -> None:
    errors = [
        {"code": "invalid_json_line", "message": "line 2 is bad", "line": 2, "param": None},
        {"code": "token_limit_exceeded", "message": "enqueued tokens", "line": None},
    ]
    with ScriptedBatches(echo, ends="failed", errors=errors) as server:
        state, found = together(server)
    assert (state.status, found) == ("failed", {})
    assert {place: error.kind for place, error in state.lines.items()} == {1: "invalid_request"}
    assert "line 2 is bad" in str(state.problem)


def test_a_batch_can_be_found_by_its_name_and_cancelled() -> None:
    async def work(port: OpenAIBatches) -> tuple[Any, ...]:
        first = await port.submit("first", calls(port, 1))
        await port.submit("second", calls(port, 1))
        found = await port.find("first"), await port.find("third")
        await port.cancel(first)
        return (*found, (await port.poll(first)).status)

    with ScriptedBatches(echo, held=True) as server:
        assert use(server.url, work) == ("batch_0", None, "cancelled")


def test_a_list_in_pages_is_looked_through() -> None:
    def pages(method: str, path: str, number: int) -> Reply | None:
        if (method, path) != ("GET", "/batches"):
            return None
        name = "wanted" if number == 3 else "other"
        listed = [{"id": f"b{number}/?", "metadata": {"karenina_batch": name}}]
        return Reply(body=json.dumps({"data": listed, "has_more": number < 5}).encode())

    with ScriptedBatches(echo, fault=pages) as server:
        assert use(server.url, lambda port: port.find("wanted")) == "b3/?"
        assert len(server.asked) == 3


def test_without_a_list_of_batches_it_is_unknown_whether_there_is_one() -> None:
    with ScriptedBatches(echo, fault=lambda *asked: Reply.error(405)) as server:
        assert use(server.url, lambda port: port.find("wanted")) is None


FAULTS: list[tuple[Reply, str]] = [
    (Reply.error(429, retry_after=7), "rate_limited"),
    (Reply.error(500, html=True), "server"),
    (Reply.error(503), "server"),
    (Reply.error(401), "auth"),
    (Reply.error(404), "invalid_request"),
    (Reply(status=307, headers={"Location": "http://127.0.0.1:9/elsewhere"}, body=b""), "invalid_request"),
    (Reply(body=b"<html>"), "bad_response"),
    (Reply(body=b"[]"), "bad_response"),
    (Reply(body=b""), "bad_response"),
    (Reply.reset(), "connection"),
]


@pytest.mark.parametrize("step", ["/files", "/batches", "/batches/batch_0"])
@pytest.mark.parametrize(("reply", "kind"), FAULTS, ids=[f"{reply.status}-{kind}" for reply, kind in FAULTS])
def test_a_fault_of_any_request_has_its_kind_and_names_the_request_and_no_key(
    step: str, reply: Reply, kind: str
) -> None:
    async def work(port: OpenAIBatches) -> None:
        await port.poll(await port.submit("name", calls(port, 1)))

    with ScriptedBatches(echo, fault=lambda method, path, number: reply if path == step else None) as server:
        error = failure(server, work)
    assert error.kind == kind
    assert error.retry_after == (7 if kind == "rate_limited" else None)
    assert f"{server.url}{step}" in str(error)
    assert KEY not in f"{error}{error.raw}"


def test_an_answer_without_an_id_is_no_answer() -> None:
    with ScriptedBatches(echo, fault=lambda *asked: Reply(body=b'{"object": "file"}')) as server:
        error = failure(server, lambda port: port.submit("name", calls(port, 1)))
    assert (error.kind, "gives the file no id" in str(error)) == ("bad_response", True)


def test_a_file_that_was_sent_is_not_sent_again_when_only_the_batch_could_not_be_made() -> None:
    async def work(port: OpenAIBatches) -> str:
        with pytest.raises(PortError):
            await port.submit("name", calls(port, 2))
        return await port.submit("name", calls(port, 2))

    def fault(method: str, path: str, number: int) -> Reply | None:
        return Reply.error(503) if path == "/batches" and number == 1 else None

    with ScriptedBatches(echo, fault=fault) as server:
        assert use(server.url, work) == "batch_0"
        assert server.asked.count(("POST", "/files")) == 1


def test_the_key_and_the_place_are_those_of_the_model() -> None:
    with ScriptedBatches(echo) as server:
        url = f"{server.url.removesuffix('/v1')}/v1/chat/completions"
        assert use(url, lambda port: port.submit("name", calls(port, 1))) == "batch_0"
        assert [path for _, path in server.asked] == ["/files", "/batches"]


class SlowReader(BaseHTTPRequestHandler):
    """Takes what is sent in pieces, with a pause before each, up to a number of bytes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, SlowServer)
        left = int(self.headers["Content-Length"])
        while left and server.taken < server.most:
            time.sleep(PAUSE)
            left -= (count := len(self.rfile.read(min(left, 256 * 1024))))
            server.taken += count
        if left:
            server.over.wait(60.0)
            return
        body = json.dumps({"id": "slow"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None: ...


class SlowServer(ThreadingHTTPServer):
    def __init__(self, most: int) -> None:
        super().__init__(("127.0.0.1", 0), SlowReader, bind_and_activate=False)
        self.most, self.taken, self.over, self.hung_up = most, 0, threading.Event(), threading.Event()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # what is not read is not sent either
        self.server_bind()
        self.server_activate()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.hung_up.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def sent_to(self, request_timeout: float) -> str:
        """Send a large batch there."""
        large = [BatchCall(f"call-{n}", json.dumps("x" * 1_000_000)) for n in range(LARGE)]

        async def work(port: OpenAIBatches) -> str:
            try:
                return await port.submit("name", large)
            except PortError:  # let the connection end before its loop does
                self.over.set()
                await asyncio.to_thread(self.hung_up.wait, 60.0)
                for _ in range(10):
                    await asyncio.sleep(0)
                raise

        return use(f"http://127.0.0.1:{self.server_port}/v1", work, request_timeout=request_timeout)


def test_a_large_file_may_take_longer_than_a_request_as_long_as_it_moves() -> None:
    assert LARGE * 1_000_000 / (256 * 1024) * PAUSE > 1.5 * LIMIT, "it takes longer than the limit"
    with SlowServer(most=10**12) as server:
        assert server.sent_to(LIMIT) == "slow"
        assert server.taken > LARGE * 1_000_000


def test_a_file_that_stalls_is_given_up_after_the_time_limit_of_a_request() -> None:
    with SlowServer(most=1_000_000) as server, pytest.raises(PortError) as caught:
        server.sent_to(0.5)
    assert caught.value.kind == "timeout"
    assert "within 0.5 s (request_timeout)" in str(caught.value)
