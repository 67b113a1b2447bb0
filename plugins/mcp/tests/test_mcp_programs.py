"""Servers that are programs: what they are given, what they answer, and how they end."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.tools.agent_loop import run_agent_loop
from karenina_calls.tools.tool_servers import ToolServer
from karenina_mcp.server import McpServer
from karenina_mcp.settings import McpSettings

from karenina_core.errors import PortError
from karenina_core.ports.values import AgentConfig, LLMResponse, Tool
from karenina_core.values.message import Message, ToolUseBlock

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason='the SDK is missing: pip install "karenina-mcp[sdk]"'
)


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def has_ended(pid: int, seconds: float = 3.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pid)


def test_tools_are_listed_and_called(on_stdio: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        assert isinstance(client, ToolServer)
        add = tools["add"]
        assert (add.description, sorted(add.input_schema["properties"])) == ("Add two numbers.", ["a", "b"])
        assert (await add.run({"a": 2, "b": 3})).content == "5"
        picture = await tools["picture"].run({})
        assert (picture.content, picture.is_error) == ("a picture\n[image: image/png, 300 bytes]", False)
        failed = await tools["fail"].run({})
        assert failed.is_error
        assert "fail" in failed.content
        refused = await add.run({"a": "two"})
        assert refused.is_error

    on_stdio.use(use)


def test_a_model_works_with_the_tools_of_a_server(quick: Any) -> None:
    calls = (
        ToolUseBlock("1", "add", {"a": 20, "b": 22}),
        ToolUseBlock("2", "fail", {}),
        ToolUseBlock("3", "slow", {"seconds": 0.1}),
    )

    async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> LLMResponse:
        assert "add" in {tool.name for tool in tools}
        asked = messages[-1].role == "tool"
        return LLMResponse(content="it is 42") if asked else LLMResponse(content="", tool_calls=calls)

    async def use(client: McpServer, tools: dict[str, Tool]) -> Any:
        return await run_agent_loop(ask, [Message.user("20 + 22?")], tuple(tools.values()), AgentConfig())

    result = quick.use(use)
    assert result.final_response == "it is 42"
    results = [block for message in result.trace_messages[1:4] for block in message.content]
    assert [block.tool_use_id for block in results] == ["1", "2", "3"]
    assert [block.is_error for block in results] == [False, True, False]
    assert (results[0].content, results[2].content) == ("42", "late")


def test_several_tasks_share_one_program(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        started = time.monotonic()
        late = [tools["slow"].run({"seconds": 0.4}) for _ in range(10)]
        sums = [tools["add"].run({"a": n, "b": n}) for n in range(30)]
        answers = await asyncio.gather(*late, *sums)
        assert [answer.content for answer in answers] == ["late"] * 10 + [str(2 * n) for n in range(30)]
        assert time.monotonic() - started < 2.0
        cancelled = asyncio.create_task(tools["slow"].run({"seconds": 30}))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        assert cancelled.cancelled()
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    quick.use(use)
    assert len(quick.processes()) == 1


def test_a_program_is_given_few_variables_and_no_keys(quick: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("SEARCH_KEY", "for the server alone")

    async def use(client: McpServer, tools: dict[str, Any]) -> dict[str, str]:
        return dict(json.loads((await tools["environment"].run({})).content))

    names = ("PYTHONPATH", "SEARCH_KEY")
    seen = quick.use(use, environment={"tools": names, "another": ("OPENAI_API_KEY",)})
    assert seen["SEARCH_KEY"] == "for the server alone"
    assert seen.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "TMPDIR", "KARENINA_TOOL_SERVER", *names}
    assert "sk-secret" not in seen.values()


def test_a_program_that_is_killed_during_a_call_is_started_again_at_the_next(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        died, beside = await asyncio.gather(tools["die"].run({}), tools["slow"].run({"seconds": 20}))
        assert died.is_error
        assert beside.is_error
        assert "broke" in died.content
        answers = await asyncio.gather(*(tools["add"].run({"a": 1, "b": n}) for n in range(5)))
        assert [answer.content for answer in answers] == ["1", "2", "3", "4", "5"]

    started = time.monotonic()
    quick.use(use)
    assert time.monotonic() - started < 15
    assert len(quick.processes()) == 2
    assert all(has_ended(pid) for pid in quick.processes())


def test_a_program_that_was_killed_between_calls_costs_no_call(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> str:
        os.kill(quick.processes()[0], 9)
        await asyncio.sleep(0.3)
        return (await tools["add"].run({"a": 1, "b": 1})).content

    assert quick.use(use) == "2"


def test_what_a_program_prints_among_its_messages_does_no_harm(quick: Any, most_memory: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        for kind in ("lines", "bytes", "json"):
            with most_memory() as most:
                assert (await tools["babble"].run({"kind": kind})).content == "done", kind
            assert most[0] < 30 * 1024**2, kind
            assert (await tools["add"].run({"a": 1, "b": 1})).content == "2", kind

    quick.use(use)
    assert len(quick.processes()) == 1


def test_a_program_that_hangs_is_replaced_and_ends(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        started = time.monotonic()
        outcome = await tools["freeze"].run({})
        assert (outcome.content, outcome.is_error) == ("the tool gave no answer within 1 s", True)
        assert time.monotonic() - started < 3
        assert (await tools["add"].run({"a": 1, "b": 1})).content == "2"

    quick.use(use, call_seconds=1)
    first, second = quick.processes()
    assert has_ended(first)
    assert has_ended(second)


def test_calls_beside_one_that_is_late_are_not_lost(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        late = asyncio.create_task(tools["slow"].run({"seconds": 20}))
        await asyncio.sleep(0.6)
        beside = asyncio.create_task(tools["slow"].run({"seconds": 0.6}))
        assert (await late).is_error
        assert (await beside).content == "late"

    quick.use(use, call_seconds=0.9)


def test_a_flood_on_stderr_neither_blocks_nor_fills_memory(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        assert (await tools["noise"].run({"megabytes": 50})).content == "done"
        session = client._session
        assert session is not None
        assert len(session.line.last_output()) == 2000
        assert len(session.line._words) <= 8000

    quick.use(use)


def test_closing_ends_the_program_and_what_it_started(quick: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> int:
        child = int((await tools["child"].run({})).content)
        assert alive(child)
        frozen = asyncio.create_task(tools["freeze"].run({}))
        await asyncio.sleep(0.2)
        started = time.monotonic()
        await asyncio.gather(client.aclose(), client.aclose())
        await client.aclose()
        assert time.monotonic() - started < 6
        assert (await frozen).is_error
        after = await tools["add"].run({"a": 1, "b": 1})
        assert (after.content, after.is_error) == ("the server of this tool cannot be reached (connection)", True)
        with pytest.raises(PortError, match="closed"):
            await client.alist()
        return child

    child = quick.use(use)
    assert has_ended(child)
    assert [has_ended(pid) for pid in quick.processes()] == [True]


def test_an_event_loop_that_ends_without_closing_leaves_no_process(quick: Any) -> None:
    async def forgets() -> None:
        client = McpServer("tools", quick.address, McpSettings(environment={"tools": ("PYTHONPATH",)}))
        await client.aopen()

    asyncio.run(forgets())
    assert [has_ended(pid) for pid in quick.processes()] == [True]
