"""An agent out of any model that can call tools: what it is shown, what ends it, and what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.tools.agent_loop import run_agent_loop
from karenina_calls.tools.tool_calls import MOST_CHARACTERS
from karenina_vocabulary.traces import final_message, render_trace

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports import AgentConfig, AgentResult, LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import (
    Message,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
    trace_dicts,
    trace_messages,
)

USAGE = UsageMetadata(10, 5, 15, 0.01)
ASKED = [Message.system("Be careful."), Message.user("What is in a.txt?")]


def reply(text: str = "", *calls: tuple[str, Mapping[str, Any]], malformed: Sequence[int] = ()) -> LLMResponse:
    blocks = tuple(ToolUseBlock(f"c{number}", name, dict(given)) for number, (name, given) in enumerate(calls))
    return LLMResponse(content=text, tool_calls=blocks, usage=USAGE, malformed_calls=malformed)


class Scripted:
    """A model that says these things in turn, or whatever a function of the conversation says."""

    capabilities = PortCapabilities(supports_tools=True)

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.seen: list[list[Message]] = []
        self.offered: list[list[str]] = []

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, tools: Any = (), call: Any = None
    ) -> LLMResponse:
        self.seen.append(list(messages))
        self.offered.append([tool.name for tool in tools])
        replies = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(replies, Exception):
            raise replies
        answer: LLMResponse = replies(messages) if callable(replies) else replies
        return answer

    async def aclose(self) -> None: ...


def tool(name: str, run: Callable[[Mapping[str, Any]], Any]) -> Tool:
    async def answer(given: Mapping[str, Any]) -> ToolOutcome:
        found = run(given)
        found = await found if asyncio.iscoroutine(found) else found
        return found if isinstance(found, ToolOutcome) else ToolOutcome(str(found))

    return Tool(name=name, description=f"The tool {name}", input_schema={"type": "object"}, run=answer)


READ = tool("read", lambda given: f"content of {given.get('path')}")


def work(model: Scripted, *tools: Tool, **limits: Any) -> AgentResult:
    async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> LLMResponse:
        return await model.ainvoke(messages, tools=tools)

    return asyncio.run(run_agent_loop(ask, ASKED, tools, AgentConfig(**limits)))


def answers(messages: Sequence[Message]) -> list[ToolResultBlock]:
    return [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]


def test_the_model_is_shown_what_its_tools_answer_until_it_is_done() -> None:
    model = Scripted(reply("Let me look.", ("read", {"path": "a.txt"})), reply("It is empty."))
    result = work(model, READ)
    assert (result.final_response, result.turns, result.limit, result.limit_reached) == ("It is empty.", 2, None, False)
    assert model.offered == [["read"], ["read"]]
    assert model.seen[0] == ASKED
    assert model.seen[1][:2] == ASKED
    assert [block.content for block in answers(model.seen[1])] == ["content of a.txt"]
    assert [message.role for message in result.trace_messages] == ["assistant", "tool", "assistant"]
    assert [message.usage_metadata for message in result.trace_messages] == [USAGE, None, USAGE]
    assert result.usage == USAGE + USAGE


def test_calls_of_one_reply_run_at_the_same_time_and_are_answered_in_their_order() -> None:
    running = {"now": 0, "most": 0}

    async def slow(given: Mapping[str, Any]) -> str:
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        await asyncio.sleep(0.02 * (3 - given["n"]))
        running["now"] -= 1
        return f"answer {given['n']}"

    model = Scripted(reply("", *(("slow", {"n": n}) for n in range(3))), reply("done"))
    result = work(model, tool("slow", slow))
    assert [block.content for block in answers(result.trace_messages)] == ["answer 0", "answer 1", "answer 2"]
    assert [message.role for message in result.trace_messages] == ["assistant", "tool", "tool", "tool", "assistant"]
    assert running["most"] == 3


@pytest.mark.parametrize(
    ("calls", "malformed", "expected"),
    [
        ([("write", {"path": "a"})], (), "there is no tool 'write'; there is: read, broken"),
        ([("read", {})], (0,), "no JSON object"),
        ([("broken", {"path": "a"})], (), "the tool failed: OSError: no disk"),
    ],
)
def test_what_goes_wrong_with_a_tool_is_for_the_model_to_deal_with(calls: Any, malformed: Any, expected: str) -> None:
    def broken(given: Mapping[str, Any]) -> str:
        raise OSError("no disk")

    model = Scripted(reply("", *calls, malformed=malformed), reply("I could not."))
    result = work(model, READ, tool("broken", broken))
    (answer,) = answers(result.trace_messages)
    assert answer.is_error
    assert expected in answer.content
    assert (result.final_response, result.limit) == ("I could not.", None)


@pytest.mark.parametrize(
    ("limits", "limit", "turns"),
    [
        ({"max_turns": 3}, "turns", 3),
        ({"max_tool_calls": 2}, "tool_calls", 3),
        ({"max_total_tokens": 30}, "tokens", 2),
        ({"max_cost_usd": 0.03}, "cost", 3),
    ],
)
def test_a_limit_ends_the_work_and_what_was_done_is_kept(limits: Any, limit: str, turns: int) -> None:
    counted = iter(range(100))
    model = Scripted(lambda messages: reply("More.", ("read", {"path": next(counted)})))
    result = work(model, READ, **limits)
    assert (result.limit, result.turns, result.final_response, result.limit_reached) == (limit, turns, "", True)
    assert len(result.trace_messages) >= 2 * turns - 1


def test_a_tool_that_takes_too_long_ends_the_work_in_time() -> None:
    model = Scripted(reply("", ("read", {"path": "a"})), reply("", ("wait", {})))

    async def wait(given: Mapping[str, Any]) -> str:
        await asyncio.sleep(60)
        return "late"

    result = work(model, READ, tool("wait", wait), timeout=0.2)
    assert (result.limit, result.timeout_reached, result.turns) == ("time", True, 2)
    kept, unanswered = answers(result.trace_messages)
    assert (kept.content, unanswered.is_error) == ("content of a", True)


def test_an_agent_that_repeats_itself_is_warned_and_then_stopped() -> None:
    model = Scripted(reply("Again.", ("read", {"path": "a"})))
    result = work(model, READ, max_repeated_calls=3)
    assert (result.limit, result.turns) == ("repeated_calls", 4)
    expected = [block.content for block in answers(result.trace_messages)]
    assert expected[0] == "content of a"
    assert all("the same call gave the same answer before" in content for content in expected[1:])


def test_a_flood_of_text_is_cut_with_a_note_to_the_model() -> None:
    model = Scripted(reply("", ("flood", {})), reply("done"))
    result = work(model, tool("flood", lambda given: "x" * (MOST_CHARACTERS + 1)))
    (answer,) = answers(result.trace_messages)
    assert answer.content.endswith(f"[cut: these are the first {MOST_CHARACTERS} of {MOST_CHARACTERS + 1} characters]")


def test_a_model_that_fails_in_the_middle_leaves_what_was_done() -> None:
    failure = PortError("the server is gone", kind="auth")
    model = Scripted(reply("Look.", ("read", {"path": "a"})), failure)
    with pytest.raises(PortError, match="the server is gone") as caught:
        work(model, READ)
    done = caught.value.evidence["agent_result"]
    assert isinstance(done, AgentResult)
    assert (done.turns, [message.role for message in done.trace_messages]) == (1, ["assistant", "tool"])


def test_every_turn_has_the_model_s_retries_and_the_whole_is_one_record() -> None:
    flaky = PortError("busy", kind="server")
    model = Scripted(flaky, reply("Look.", ("read", {"path": "a"})), flaky, reply("Empty."))
    config = ModelConfig(model_name="m", retry_policy=RetryPolicy(server=AttemptPolicy(2, 0.0)))
    calls: list[CallRecord] = []
    client = ModelClient(Model(config=config, llm=model), calls)
    result = asyncio.run(client.run_agent("generation", ASKED, [READ]))
    assert result.final_response == "Empty."
    (record,) = calls
    assert (record.task, record.attempts, record.retries) == ("generation", 4, {"server": 2})
    assert record.usage == USAGE + USAGE


NAMES = st.sampled_from(["read", "none"])
TURN = st.tuples(
    st.text(max_size=20) | st.sampled_from(["--- AI Message ---", "Tool Calls:\n  x", "--- Summary ---\nend"]),
    st.lists(st.tuples(NAMES, st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)), min_size=1, max_size=3),
)


@given(st.lists(TURN, max_size=4), st.text(min_size=1).filter(str.strip))
def test_any_sequence_of_tool_calls_survives_as_rows_and_keeps_its_final_message(turns: Any, last: str) -> None:
    replies = [reply(text, *calls) for text, calls in turns]
    result = work(Scripted(*replies, reply(last), reply("never")), READ, max_turns=50, max_repeated_calls=None)
    assert result.final_response == last
    rows = trace_dicts(result.trace_messages)
    assert final_message(rows, render_trace(result.trace_messages)) == (last.strip(), None)
    again = trace_messages(rows)
    assert [message.tool_calls for message in again if message.tool_calls] == [
        message.tool_calls for message in result.trace_messages if message.tool_calls
    ]
    assert answers(again) == answers(result.trace_messages)


def test_the_loop_itself_takes_any_way_of_asking() -> None:
    async def ask(messages: Any, tools: Any) -> LLMResponse:
        return reply("hello")

    result = asyncio.run(run_agent_loop(ask, ASKED, [], AgentConfig(system_prompt="You are an agent.")))
    assert result.final_response == "hello"
