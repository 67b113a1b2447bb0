"""Tools of servers: what goes wrong where lists are merged, compared, looked up and started in the shortest way."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_calls.tools.model_tools import named_tools
from karenina_calls.tools.tool_servers import tool_digest
from karenina_mcp.server import McpServer
from karenina_mcp.tools import changes_between

from karenina_core import ModelConfig
from karenina_core.ports.values import Tool, ToolOutcome

LAW = settings(
    database=None,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    max_examples=60,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SCHEMAS = st.dictionaries(st.sampled_from("pqr"), st.integers(0, 2), max_size=3)
TOOLS = st.lists(
    st.builds(Tool, name=st.sampled_from("abcd"), description=st.sampled_from("xy"), input_schema=SCHEMAS),
    min_size=1,
    unique_by=lambda tool: tool.name,
)
Merge = Callable[[Mapping[str, Sequence[Tool]]], Sequence[Tool]]
Digest = Callable[[Sequence[Tool]], str]
Refused = Callable[[Sequence[Tool], Sequence[Tool], str], bool]
"""From the tools at the start, those of now and a name: whether a call is refused."""
Given = Callable[[], Mapping[str, str]]
"""What a program gets to know of the environment."""


# Every tool of every server can be called, by a name of its own


def ours(offered: Mapping[str, Sequence[Tool]]) -> Sequence[Tool]:
    servers = dict.fromkeys(offered, "http://localhost:1/mcp")
    found = named_tools(offered, ModelConfig(model_name="m", interface="any", mcp_urls_dict=servers))
    return [tool for tools in found.values() for tool in tools]


def by_bare_name(offered: Mapping[str, Sequence[Tool]]) -> Sequence[Tool]:
    """The last server wins."""
    return list({tool.name: tool for tools in offered.values() for tool in tools}.values())


def side_by_side(offered: Mapping[str, Sequence[Tool]]) -> Sequence[Tool]:
    """Two tools of one name, which providers refuse."""
    return [tool for tools in offered.values() for tool in tools]


def every_tool_can_be_called(merge: Merge) -> None:
    @LAW
    @given(st.dictionaries(st.sampled_from(["one", "two"]), st.sets(st.sampled_from(["find", "read"])), min_size=1))
    def law(lists: dict[str, set[str]]) -> None:
        def made(server: str, name: str) -> Tool:
            async def run(given_: Mapping[str, Any]) -> ToolOutcome:
                return ToolOutcome(f"{name} of {server}")

            return Tool(name=name, run=run)

        tools = merge({server: [made(server, name) for name in sorted(lists[server])] for server in sorted(lists)})
        assert len({tool.name for tool in tools}) == len(tools)
        told = {asyncio.run(answer(tool)) for tool in tools}
        assert told == {f"{name} of {server}" for server, names in lists.items() for name in names}

    async def answer(tool: Tool) -> str:
        assert tool.run is not None
        outcome: Awaitable[ToolOutcome] = tool.run({})
        return (await outcome).content

    law()


def test_every_tool_of_every_server_can_be_called() -> None:
    every_tool_can_be_called(ours)


@pytest.mark.parametrize("merge", [by_bare_name, side_by_side])
def test_merging_by_name_loses_tools(merge: Merge) -> None:
    with pytest.raises(AssertionError):
        every_tool_can_be_called(merge)


# A digest tells what a model sees, and nothing else


def of_names(tools: Sequence[Tool]) -> str:
    return hashlib.sha256("".join(sorted(tool.name for tool in tools)).encode()).hexdigest()


def of_the_list_as_it_comes(tools: Sequence[Tool]) -> str:
    return hashlib.sha256(str(tools).encode()).hexdigest()


def digests_tell_what_a_model_sees(digest: Digest) -> None:
    def seen(tools: Iterable[Tool]) -> Any:
        return sorted((tool.name, tool.description, sorted(tool.input_schema.items())) for tool in tools)

    @LAW
    @given(TOOLS, TOOLS, st.data())
    def law(one: list[Tool], other: list[Tool], data: st.DataObject) -> None:
        turned = [
            evolve(t, input_schema=dict(reversed(t.input_schema.items()))) for t in data.draw(st.permutations(one))
        ]
        assert digest(turned) == digest(one)
        assert (digest(one) == digest(other)) == (seen(one) == seen(other))

    law()


def test_a_digest_tells_what_a_model_sees_and_nothing_else() -> None:
    digests_tell_what_a_model_sees(tool_digest)


@pytest.mark.parametrize("digest", [of_names, of_the_list_as_it_comes])
def test_a_digest_of_less_or_of_more_is_rejected(digest: Digest) -> None:
    with pytest.raises(AssertionError):
        digests_tell_what_a_model_sees(digest)


# A tool that is not what the model was shown is not called, and any other is


def pinned(before: Sequence[Tool], now: Sequence[Tool], name: str) -> bool:
    return changes_between(before, now).refusal(name) is not None


def looked_up_by_name(before: Sequence[Tool], now: Sequence[Tool], name: str) -> bool:
    return name not in {tool.name for tool in now}


def stopped_at_any_change(before: Sequence[Tool], now: Sequence[Tool], name: str) -> bool:
    return tool_digest(before) != tool_digest(now)


def only_other_tools_are_refused(refused: Refused) -> None:
    @LAW
    @given(TOOLS, TOOLS, st.data())
    def law(before: list[Tool], now: list[Tool], data: st.DataObject) -> None:
        tool = data.draw(st.sampled_from(before))
        same = any(tool.name == other.name and tool.input_schema == other.input_schema for other in now)
        assert refused(before, now, tool.name) is not same

    law()


def test_a_tool_is_refused_where_it_is_not_what_the_model_was_shown() -> None:
    only_other_tools_are_refused(pinned)


@pytest.mark.parametrize("refused", [looked_up_by_name, stopped_at_any_change])
def test_looking_a_tool_up_by_its_name_calls_another_one_and_stopping_at_any_change_stops_too_much(
    refused: Refused,
) -> None:
    with pytest.raises(AssertionError):
        only_other_tools_are_refused(refused)


# A program gets no variable that nobody named for it


def scrubbed() -> Mapping[str, str]:
    return McpServer("tools", "tool")._environment()


def inherited() -> Mapping[str, str]:
    return dict(os.environ)


def without_known_keys() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))}


def programs_get_nothing_secret(given_to: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    @LAW
    @given(st.sampled_from(["OPENAI_API_KEY", "HF_TOKEN", "DATABASE_URL", "AWS_SECRET_ACCESS", "GH_PAT"]))
    def law(name: str) -> None:
        with monkeypatch.context() as here:
            here.setenv(name, "hunter2")
            assert "hunter2" not in given_to().values()
            assert "PATH" in given_to()

    law()


def test_a_program_gets_no_variable_that_nobody_named_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    programs_get_nothing_secret(scrubbed, monkeypatch)


@pytest.mark.parametrize("given_to", [inherited, without_known_keys])
def test_handing_the_environment_on_and_guessing_what_is_secret_are_rejected(
    given_to: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError):
        programs_get_nothing_secret(given_to, monkeypatch)
