"""The tool calls of a reply: each has exactly one answer, whatever the tools and the model do."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.ports.text import MOST_NESTED
from karenina_calls.tools.agent_loop import run_agent_loop
from karenina_calls.tools.tool_calls import AT_ONCE, answered
from karenina_generation.tool_answers import agent_metrics
from karenina_vocabulary.traces import render_trace

from karenina_core.errors import PortError
from karenina_core.ports import AgentConfig, AgentResult, LLMResponse, Tool, ToolOutcome
from karenina_core.values.message import (
    Message,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
    trace_dicts,
)

ASKED = [Message.user("What is in it?")]
DONE = LLMResponse(content="It is empty.")
Run = Callable[[Mapping[str, Any]], Awaitable[Any]]


def calls(*names: str, **facts: Any) -> LLMResponse:
    blocks = tuple(ToolUseBlock(f"c{number}", name, {"n": number}) for number, name in enumerate(names))
    return LLMResponse(content="", tool_calls=blocks, **facts)


def work(*scripted: LLMResponse | Exception, limits: Mapping[str, Any] | None = None, **tools: Run) -> AgentResult:
    replies = iter(scripted)

    async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> LLMResponse:
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply

    given = [Tool(name=name, run=run) for name, run in tools.items()]
    return asyncio.run(run_agent_loop(ask, ASKED, given, AgentConfig(**(limits or {}))))


def results(messages: Sequence[Message]) -> list[ToolResultBlock]:
    return [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]


async def fine(given: Mapping[str, Any]) -> ToolOutcome:
    return ToolOutcome("fine")


def test_a_tool_that_cancels_itself_has_failed_and_its_siblings_have_not() -> None:
    async def gives_up(given: Mapping[str, Any]) -> ToolOutcome:
        raise asyncio.CancelledError("mine")

    async def slow(given: Mapping[str, Any]) -> ToolOutcome:
        await asyncio.sleep(0.05)
        return ToolOutcome("slow, but there")

    result = work(calls("gives_up", "slow"), DONE, gives_up=gives_up, slow=slow)
    first, second = results(result.trace_messages)
    assert (first.is_error, "cancelled itself" in first.content) == (True, True)
    assert (second.content, result.final_response) == ("slow, but there", "It is empty.")


def test_no_tool_runs_on_when_the_work_has_ended() -> None:
    ended: list[str] = []

    async def endless(given: Mapping[str, Any]) -> ToolOutcome:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("endless")
        return ToolOutcome("never")

    async def missing(given: Mapping[str, Any]) -> ToolOutcome:
        await asyncio.sleep(0.01)
        raise PortError("the recording holds no such call", kind="invalid_request", final=True)

    with pytest.raises(PortError, match="holds no such call") as caught:
        work(calls("endless", "missing"), endless=endless, missing=missing)
    assert ended == ["endless"]
    done = caught.value.evidence["agent_result"]
    assert isinstance(done, AgentResult)
    assert [(block.tool_use_id, block.is_error) for block in results(done.trace_messages)] == [
        ("c0", True),
        ("c1", True),
    ]
    trying = PortError("gone", kind="connection")

    async def gone(given: Mapping[str, Any]) -> ToolOutcome:
        raise trying

    assert work(calls("gone"), DONE, gone=gone).final_response == "It is empty."


def test_at_the_time_limit_answers_that_came_are_kept_and_every_call_has_one() -> None:
    async def endless(given: Mapping[str, Any]) -> ToolOutcome:
        await asyncio.sleep(60)
        return ToolOutcome("never")

    async def stubborn(given: Mapping[str, Any]) -> ToolOutcome:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return ToolOutcome("at the last moment")
        return ToolOutcome("never")

    result = work(
        calls("fine", "endless", "stubborn"), limits={"timeout": 0.1}, fine=fine, endless=endless, stubborn=stubborn
    )
    assert result.limit == "time"
    shown = results(result.trace_messages)
    assert [block.tool_use_id for block in shown] == ["c0", "c1", "c2"]
    assert (shown[0].content, shown[1].is_error, shown[2].content) == ("fine", True, "at the last moment")
    assert "there is no answer" in shown[1].content


def test_a_timeout_of_the_model_is_no_time_limit() -> None:
    with pytest.raises(TimeoutError, match="of the model"):
        work(TimeoutError("of the model"), limits={"timeout": 30})


def test_a_malformed_call_is_marked_by_itself() -> None:
    async def count(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("seen")

    both = LLMResponse(
        content="",
        tool_calls=(ToolUseBlock("a", "count", {}), ToolUseBlock("b", "count", {})),
        malformed_calls=(1,),
        flags=("invalid_tool_arguments",),
    )
    result = work(both, DONE, count=count)
    sound, malformed = results(result.trace_messages)
    assert (sound.content, sound.is_error) == ("seen", False)
    assert (malformed.is_error, "no JSON object" in malformed.content) == (True, True)


def test_a_malformed_call_is_no_repetition_of_a_sound_one() -> None:
    async def same(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("there is no tool 'gone'; there is: same", is_error=True)

    both = (ToolUseBlock("a", "gone", {}), ToolUseBlock("b", "gone", {}))
    repeated: Counter[str] = Counter()
    messages: list[Message] = []
    asyncio.run(answered(both, {"b"}, {"same": Tool(name="same", run=same)}, messages, repeated))
    assert set(repeated.values()) == {1}
    assert all("the same call" not in block.content for block in results(messages))


def test_what_repeats_is_remembered_without_the_answers_themselves() -> None:
    async def long(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("x" * 50_000)

    repeated: Counter[str] = Counter()
    asyncio.run(answered(calls("long").tool_calls, (), {"long": Tool(name="long", run=long)}, [], repeated))
    assert [len(key) for key in repeated] == [64]


@pytest.mark.parametrize("given", [None, b"bytes", "text", ToolOutcome(None), ToolOutcome(b"bytes")])  # type: ignore[arg-type]  # what tools of others give back
def test_a_tool_that_gives_back_no_text_has_failed(given: Any) -> None:
    async def odd(_: Mapping[str, Any]) -> Any:
        return given

    result = work(calls("odd"), DONE, odd=odd)
    (shown,) = results(result.trace_messages)
    assert (shown.is_error, "no text" in shown.content) == (True, True)


def test_a_tool_that_ends_the_program_ends_only_its_call() -> None:
    async def leaves(given: Mapping[str, Any]) -> ToolOutcome:
        raise SystemExit(3)

    assert results(work(calls("leaves"), DONE, leaves=leaves).trace_messages)[0].is_error


def test_no_more_than_so_many_tools_of_a_reply_run_at_once() -> None:
    now = most = 0

    async def counted(given: Mapping[str, Any]) -> ToolOutcome:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.01)
        now -= 1
        return ToolOutcome(str(given["n"]))

    work(calls(*["counted"] * 20), DONE, counted=counted)
    assert most == AT_ONCE < 20


def test_ids_that_a_server_gives_twice_are_made_unique_and_the_right_tool_is_blamed() -> None:
    async def broken(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("boom", is_error=True)

    twice = LLMResponse(content="", tool_calls=(ToolUseBlock("a", "broken", {}), ToolUseBlock("a", "fine", {})))
    again = LLMResponse(content="", tool_calls=(ToolUseBlock("a", "fine", {"m": 1}), ToolUseBlock("", "fine", {})))
    result = work(twice, again, DONE, broken=broken, fine=fine)
    made = [call.id for message in result.trace_messages for call in message.tool_calls]
    assert made == [block.tool_use_id for block in results(result.trace_messages)]
    assert (len(made), len(set(made)), made[0]) == (4, 4, "a")
    assert agent_metrics(result.trace_messages)["suspect_failed_tools"] == ["broken"]


@pytest.mark.parametrize(("order", "blamed"), [(("x", "y"), "y"), (("y", "x"), "x")])
def test_in_a_trace_with_one_id_for_two_calls_answers_belong_to_them_in_order(order: Any, blamed: str) -> None:
    both = Message.assistant("", [ToolUseBlock("a", name, {}) for name in order])
    shown = [Message.tool_result("a", "ok"), Message.tool_result("a", "boom", True)]
    earlier = [Message.assistant("", [ToolUseBlock("a", "old", {})]), Message.tool_result("a", "ok")]
    assert agent_metrics([*earlier, both, *shown])["suspect_failed_tools"] == [blamed]


def nested(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return dict(value)


def test_arguments_that_are_nested_too_deeply_reach_no_tool_and_no_later_code() -> None:
    seen: list[Any] = []

    async def taking(given: Mapping[str, Any]) -> ToolOutcome:
        seen.append(given)
        return ToolOutcome("ok")

    deep = tuple(ToolUseBlock(str(levels), "taking", nested(levels)) for levels in (MOST_NESTED, MOST_NESTED + 1, 900))
    result = work(LLMResponse(content="", tool_calls=deep), DONE, taking=taking)
    assert seen == [nested(MOST_NESTED)]
    assert [block.is_error for block in results(result.trace_messages)] == [False, True, True]
    assert json.dumps(trace_dicts(result.trace_messages))


def test_a_price_that_is_unknown_does_not_void_the_limit_of_the_cost() -> None:
    unknown = calls("fine", usage=UsageMetadata(1, 1, 2))
    priced = evolve(unknown, usage=UsageMetadata(1, 1, 2, cost_usd=0.6))
    result = work(unknown, priced, priced, priced, limits={"max_cost_usd": 1.0}, fine=fine)
    assert (result.limit, result.turns, result.usage.cost_usd) == ("cost", 3, None)


def test_a_final_answer_that_was_cut_is_reported() -> None:
    cut = LLMResponse(content="It is em", finish_reason="length", is_partial=True)
    assert work(cut).flags == ("truncated",)
    assert work(calls("fine", finish_reason="length", is_partial=True), DONE, fine=fine).flags == ()


def test_the_trace_of_a_loop_has_what_was_thought_and_which_model_thought_it() -> None:
    thinking = calls("fine", thinking="Let me see.", actual_model="m-1", usage_unavailable=True, flags=("nul",))
    result = work(thinking, DONE, fine=fine)
    assert result.trace_messages[0].content[0] == ThinkingBlock("Let me see.")
    assert (result.actual_model, result.usage_unavailable, result.flags) == ("m-1", True, ("nul",))
    assert result.raw_trace == render_trace(result.trace_messages) != ""
    signed = evolve(thinking, thinking_blocks=(ThinkingBlock("Let me see.", "signed"),))
    assert work(signed, DONE, fine=fine).trace_messages[0].content[0] == ThinkingBlock("Let me see.", "signed")


def test_the_end_is_not_held_up_by_what_was_cancelled() -> None:
    async def endless(given: Mapping[str, Any]) -> ToolOutcome:
        await asyncio.sleep(60)
        return ToolOutcome("never")

    started = time.monotonic()
    work(calls(*["endless"] * 20), limits={"timeout": 0.1}, endless=endless)
    assert time.monotonic() - started < 5
