"""Servers whose tools change while they are used: a run keeps to what it was given, and says what has become of it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.tools.tool_servers import tool_digest
from karenina_mcp.server import McpServer
from karenina_mcp.tools import changes_between

from karenina_core.ports.values import Tool

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason='the SDK is missing: pip install "karenina-mcp[sdk]"'
)

Connect = Callable[..., Any]
SUM = {"a": 1, "b": 1}
WAYS = pytest.mark.parametrize("way", ["program", "streamable", "sse"])
"""How a server is spoken to. On the web it is written with the SDK; a program is not: the SDK takes long to import."""


@pytest.fixture
def used(connect: Connect, quick: Any, on_stdio: Any, on_http: Any) -> Callable[..., Any]:
    """`used(way, use)`: with a server that is spoken to in this way."""

    def run(way: str, use: Any, **settings: Any) -> Any:
        if way in (programs := {"program": quick, "program of the SDK": on_stdio}):
            return programs[way].use(use, **settings)
        return connect(f"http://127.0.0.1:{on_http.start(way)}/{'sse' if way == 'sse' else 'mcp'}", use, **settings)

    return run


async def settled() -> None:
    """An announcement may take another way than the answer of the call that caused it."""
    await asyncio.sleep(0.3)


@pytest.mark.parametrize(
    ("way", "aloud"),
    [
        ("program of the SDK", True),
        *((way, aloud) for way in ("program", "streamable", "sse") for aloud in (True, False)),
    ],
)
def test_a_removed_tool_is_an_error_of_its_call(used: Any, way: str, aloud: bool) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        first = await tools["become"].run({"what": "forget", "aloud": aloud})
        assert (first.content, first.warning) == ("changed", None)
        await settled()
        removed = await tools["add"].run(SUM)
        assert (removed.content, removed.is_error) == (
            "the server does not offer this tool any more; continue without it",
            True,
        )
        words = "the tool server 'tools' changed its tools during the run: 'add' removed, calls are refused"
        beside = await tools["slow"].run({"seconds": 0})
        assert (beside.content, beside.is_error) == ("late", False)
        assert removed.warning == beside.warning == words

    used(way, use)


@WAYS
def test_a_tool_that_takes_other_arguments_is_not_called_though_it_could_be(used: Any, way: str) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        await tools["become"].run({"what": "widen", "aloud": True})
        await settled()
        refused = await tools["add"].run(SUM)
        assert refused.is_error
        assert "changed the arguments of this tool" in refused.content
        assert "'add' with other arguments" in str(refused.warning)

    used(way, use)


def test_a_silent_change_of_arguments_is_noticed_when_the_server_refuses_them(used: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        await tools["become"].run({"what": "alter", "aloud": False})
        refused = await tools["add"].run(SUM)
        assert "changed the arguments of this tool" in refused.content
        assert refused.is_error

    used("streamable", use)


@WAYS
@pytest.mark.parametrize(
    ("what", "words"),
    [("reword", "'add' with another description, models keep the first one"), ("more", "'add_three' new, not offered")],
)
def test_what_still_works_is_called_and_the_change_is_reported(used: Any, way: str, what: str, words: str) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        await tools["become"].run({"what": what, "aloud": True})
        await settled()
        outcome = await tools["add"].run(SUM)
        assert (outcome.content, outcome.is_error) == ("2", False)
        assert str(outcome.warning).endswith(words)

    used(way, use)


@pytest.mark.parametrize(
    ("what", "refused"), [("forget", True), ("alter", True), ("reword", False), ("more", False), ("nothing", False)]
)
def test_a_program_that_offers_other_tools_after_its_restart(
    connect: Connect, quick: Any, what: str, refused: bool
) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        assert (await tools["die"].run({})).is_error
        outcomes = await asyncio.gather(*(tools["add"].run({"a": n, "b": n}) for n in range(8)))
        assert [outcome.is_error for outcome in outcomes] == [refused] * 8
        assert {outcome.warning is None for outcome in outcomes} == {what == "nothing"}
        if not refused:
            assert [outcome.content for outcome in outcomes] == [str(2 * n) for n in range(8)]

    connect(quick.changing(what), use)
    assert len(quick.processes()) == 2


def test_an_announcement_of_older_versions_of_the_protocol_is_received(connect: Connect, plain: Any) -> None:
    """That server changes its tool at every call, and says so in the middle of it."""

    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        assert (await tools["tool"].run({})).content == "fine"
        await settled()
        refused = await tools["tool"].run({})
        assert refused.is_error
        assert "changed the arguments" in refused.content

    connect(plain("announces"), use)


def test_tools_that_are_as_they_were_again_are_called_again(used: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        for what, refused in (("reword", False), ("alter", True), ("forget", True)):
            await tools["become"].run({"what": what, "aloud": True})
            await settled()
            assert (await tools["add"].run(SUM)).is_error is refused
            if what == "alter":  # the calls are held to the list that was taken last
                offered = {tool.name: tool for tool in await client.alist()}
                outcome = await offered["add"].run({**SUM, "c": 1})
                assert (outcome.content, outcome.warning) == ("3", None)

    used("program", use)


def test_many_failing_calls_at_once_do_not_list_the_tools_for_each(connect: Connect, plain: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        listed: list[int] = []
        inner = client._listed

        async def counted(session: Any) -> Any:
            listed.append(1)
            return await inner(session)

        client._listed = counted  # type: ignore[method-assign]  # to count, not to replace
        outcomes = await asyncio.gather(*(tools["tool"].run({}) for _ in range(40)))
        assert {outcome.content for outcome in outcomes} == {"not today"}
        assert 1 <= len(listed) < 40

    connect(plain("refuses"), use)


# The comparison itself

SCHEMAS = st.dictionaries(st.sampled_from("pq"), st.integers(0, 2), max_size=2)
TOOLS = st.lists(
    st.builds(Tool, name=st.sampled_from("abcd"), description=st.sampled_from(["x", "y"]), input_schema=SCHEMAS),
    unique_by=lambda tool: tool.name,
)


@given(TOOLS, TOOLS)
def test_every_name_is_one_thing_and_nothing_is_reported_where_nothing_changed(
    before: list[Tool], now: list[Tool]
) -> None:
    found = changes_between(before, now)
    parts = [found.removed, found.altered, found.reworded, found.added]
    assert sum(map(len, parts)) == len(frozenset().union(*parts))
    assert (found.warning("s") is None) == (tool_digest(before) == tool_digest(now))
    for tool in before:
        assert (found.refusal(tool.name) is not None) == (tool.name in found.removed | found.altered)
    assert {t.name for t in now} == {t.name for t in before} - found.removed | found.added


def test_a_warning_names_only_the_first_of_many() -> None:
    before = [Tool(name=f"tool{number:02}") for number in range(30)]
    assert "'tool09' and 20 more removed" in str(changes_between(before, []).warning("s"))
