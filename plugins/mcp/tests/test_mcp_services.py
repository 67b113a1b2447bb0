"""Servers on the web: streamable HTTP and server-sent events."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import pytest
from karenina_mcp.server import McpServer

from karenina_core.errors import PortError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason='the SDK is missing: pip install "karenina-mcp[sdk]"'
)

Connect = Callable[..., Any]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("streamable", "http://127.0.0.1:{}/mcp"),
        ("json", "http://127.0.0.1:{}/mcp"),
        ("sse", "http://127.0.0.1:{}/sse"),
        ("sse", "sse+http://127.0.0.1:{}/sse?mode=plain"),
    ],
)
def test_tools_of_a_service_are_called_by_several_tasks_at_once(
    connect: Connect, on_http: Any, kind: str, address: str
) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        together = [tools["meet"].run({"others": 5}) for _ in range(5)]
        sums = [tools["add"].run({"a": n, "b": n}) for n in range(10)]
        answers = await asyncio.gather(*together, *sums)
        assert [answer.content for answer in answers] == ["met"] * 5 + [str(2 * n) for n in range(10)]

    connect(address.format(on_http.start(kind)), use)


@pytest.mark.parametrize("kind", ["streamable", "json", "sse"])
def test_a_huge_answer_of_a_service_is_an_error_and_is_not_kept(
    connect: Connect, on_http: Any, most_memory: Any, kind: str
) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        with most_memory() as most:
            outcome = await tools["large"].run({"characters": 48 * 1024 * 1024})
        assert outcome.is_error
        assert most[0] < 40 * 1024**2
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    connect(f"http://127.0.0.1:{on_http.start(kind)}/{'sse' if kind == 'sse' else 'mcp'}", use)


def test_a_service_that_is_killed_during_a_call_is_connected_to_again(connect: Connect, on_http: Any) -> None:
    port = on_http.start()

    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        call = asyncio.create_task(tools["slow"].run({"seconds": 20}))
        await asyncio.sleep(0.3)
        on_http.kill()
        assert (await call).is_error
        unreachable = await tools["add"].run({"a": 1, "b": 1})
        assert unreachable.is_error
        on_http.start(port=port)
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    started = time.monotonic()
    connect(f"http://127.0.0.1:{port}/mcp", use)
    assert time.monotonic() - started < 15


def test_a_service_that_is_late_costs_its_call_alone(connect: Connect, on_http: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        late = await tools["slow"].run({"seconds": 20})
        assert (late.content, late.is_error) == ("the tool gave no answer within 0.5 s", True)
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    connect(f"http://127.0.0.1:{on_http.start()}/mcp", use, call_seconds=0.5)


def test_a_token_opens_a_guarded_service(connect: Connect, on_http: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://127.0.0.1:{on_http.start('guarded')}/mcp"
    monkeypatch.setenv("WEB_TOKEN", "let-me-in")

    async def use(client: McpServer, tools: dict[str, Any]) -> str:
        return str((await tools["add"].run({"a": 1, "b": 1})).content)

    with pytest.raises(PortError, match="token_env") as caught:
        connect(address, use)
    assert (caught.value.kind, caught.value.status) == ("auth", 401)
    assert connect(address, use, token_env={"tools": "WEB_TOKEN"}) == "2"


def test_a_service_that_is_not_there_is_a_connection_error_without_secrets(connect: Connect) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None: ...

    with pytest.raises(PortError, match="cannot be reached") as caught:
        connect("http://user:hunter2@127.0.0.1:9/mcp?key=hunter2", use)
    assert caught.value.kind == "connection"
    assert "hunter2" not in str(caught.value)


ADDRESSES = [
    ("streamable", "http://127.0.0.1:{}/mcp"),
    ("older", "http://127.0.0.1:{}/mcp"),
    ("sse", "http://127.0.0.1:{}/sse"),
]


@pytest.mark.parametrize(("kind", "address"), ADDRESSES)
def test_a_service_that_was_restarted_between_calls_costs_no_call(
    connect: Connect, on_http: Any, kind: str, address: str
) -> None:
    """Also where it has forgotten the session: it did nothing then, and is asked once more in a new one."""
    port = on_http.start(kind)

    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"
        on_http.kill()
        on_http.start(kind, port)
        await asyncio.sleep(0.3)
        answers = await asyncio.gather(*(tools["add"].run({"a": 1, "b": n}) for n in range(5)))
        assert [answer.content for answer in answers] == ["1", "2", "3", "4", "5"]
        assert {answer.warning for answer in answers} == {None}

    connect(address.format(port), use)


def test_a_stream_of_events_that_is_killed_during_a_call_is_connected_to_again(connect: Connect, on_http: Any) -> None:
    port = on_http.start("sse")

    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        call = asyncio.create_task(tools["slow"].run({"seconds": 20}))
        await asyncio.sleep(0.3)
        on_http.kill()
        broken = await call
        assert (broken.content, broken.is_error) == (
            "the connection to the server of this tool broke during the call",
            True,
        )
        on_http.start("sse", port)
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    started = time.monotonic()
    connect(f"http://127.0.0.1:{port}/sse", use)
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("mute", ["silent", "headers"])
@pytest.mark.parametrize("path", ["mcp", "sse"])
def test_a_service_that_never_answers_is_given_up(connect: Connect, on_http: Any, mute: str, path: str) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None: ...

    started = time.monotonic()
    with pytest.raises(PortError) as caught:
        connect(f"http://127.0.0.1:{on_http.mute(mute)}/{path}", use, start_seconds=1)
    assert caught.value.kind == "timeout"
    assert "raise start_seconds" in str(caught.value)
    assert time.monotonic() - started < 8


@pytest.mark.parametrize(("kind", "address"), ADDRESSES)
def test_a_service_that_is_silent_in_the_middle_of_an_answer_is_waited_for_as_long_as_read_seconds_says(
    connect: Connect, on_http: Any, kind: str, address: str
) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        started = time.monotonic()
        silent = await tools["slow"].run({"seconds": 20})
        assert silent.is_error
        assert time.monotonic() - started < 12
        assert (await tools["slow"].run({"seconds": 0.1})).content == "late"

    connect(address.format(on_http.start(kind)), use, read_seconds=1)


def test_silence_between_calls_costs_no_call(connect: Connect, on_http: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        first = client._session
        await asyncio.sleep(1.8)
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"
        assert client._session is not first

    connect(f"http://127.0.0.1:{on_http.start('sse')}/sse", use, read_seconds=1)
