"""Whole runs of a model that works with the tools of a server, over HTTP, through every adapter that can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from karenina_vocabulary.explanations import why

from karenina_core import Benchmark, Karenina, VerificationConfig, VerificationResult, hookimpl
from karenina_core.ports.values import Tool, ToolOutcome
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.convert import unstructure
from karenina_core.values.message import ToolUseBlock

ADAPTERS = ("openai_endpoint", "litellm")
TARGETS = {"venetoclax": "BCL2", "alpelisib": "PIK3CA"}
TEXT = {"type": "object", "properties": {"drug": {"type": "string"}}, "required": ["drug"]}
JUDGED = {"target": "BCL2"}
Say = Callable[[ServedRequest], Any]


class Library:
    """A server of tools that are here."""

    def __init__(self, name: str, address: str) -> None: ...

    async def aopen(self) -> None: ...

    async def alist(self) -> Sequence[Tool]:
        async def look_up(given: Mapping[str, Any]) -> ToolOutcome:
            if given["drug"] not in TARGETS:
                return ToolOutcome(f"{given['drug']} is not listed", is_error=True)
            return ToolOutcome(f"The target of {given['drug']} is {TARGETS[given['drug']]}.")

        async def wait(given: Mapping[str, Any]) -> ToolOutcome:
            await asyncio.sleep(30)
            return ToolOutcome("late")

        async def break_down(given: Mapping[str, Any]) -> ToolOutcome:
            raise OSError("the disk is gone")

        return [
            Tool(name="look_up", description="The target of a drug.", input_schema=TEXT, run=look_up),
            Tool(name="wait", description="Waits.", run=wait),
            Tool(name="break_down", description="Breaks down.", run=break_down),
        ]

    async def aclose(self) -> None: ...


class Plugin:
    @hookimpl
    def karenina_register_tool_servers(self, registry: Any) -> None:
        registry.add(Library, name="mcp", replaces="mcp")


def calling(*calls: tuple[str, Mapping[str, Any]], turn: int = 0) -> Reply:
    blocks = [ToolUseBlock(f"call_{turn}_{number}", name, given) for number, (name, given) in enumerate(calls)]
    return Reply(tool_calls=blocks, usage=(10, 2))


def broken_arguments(request: ServedRequest) -> Reply:
    """A call whose arguments end too early."""
    function = {"name": "look_up", "arguments": '{"drug": "venet'}
    message = {"role": "assistant", "tool_calls": [{"id": "call_x", "type": "function", "function": function}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    body = {"model": request.model, "choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": usage}
    return Reply(body=json.dumps(body).encode())


def turns(*replies: Reply | Say) -> Say:
    """The model says these in turn, and the last one again and again; the judge always reads BCL2."""

    def say(request: ServedRequest) -> Any:
        if request.schema is not None:
            return JUDGED
        said = sum(message["role"] == "assistant" for message in request.messages)
        reply = replies[min(said, len(replies) - 1)]
        return reply(request) if callable(reply) else reply

    return say


DONE = Reply("It is BCL2.", usage=(20, 3))
LOOK = ("look_up", {"drug": "venetoclax"})


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(Plugin(), installed=True)


@pytest.fixture
def work(
    app: Karenina, benchmark_of: Callable[[int], Benchmark], config_for: Callable[..., VerificationConfig]
) -> Callable[..., tuple[VerificationResult, list[ServedRequest]]]:
    """`work(interface, script, **fields of the answering model)`: the result of one question, and what was asked."""

    def run(interface: str, script: Say, **fields: Any) -> tuple[VerificationResult, list[ServedRequest]]:
        with ScriptedServer(script) as server:
            config = config_for(interface, server.url)
            (judge,) = config.parsing_models
            answerer = evolve(judge, mcp_urls_dict={"library": "local"}, **fields)
            config = evolve(config, answering_models=[answerer])
            (result,) = benchmark_of(1).run_verification(config, app=app)
            return result, [request for request in server.requests if request.schema is None]

    return run


Work = Callable[..., tuple[VerificationResult, list[ServedRequest]]]


def told(result: VerificationResult) -> list[tuple[str, bool]]:
    rows = [row for row in result.generation.trace_messages if row["role"] == "tool"]
    return [(row["content"], row["tool_result"]["is_error"]) for row in rows]


@pytest.mark.parametrize("interface", ADAPTERS)
def test_a_model_works_with_the_tools_of_its_server(interface: str, work: Work) -> None:
    result, asked = work(interface, turns(calling(LOOK), DONE))
    answer = result.generation
    assert str(result.outcome) == "passed"
    assert [row["role"] for row in answer.trace_messages] == ["assistant", "tool", "assistant"]
    assert told(result) == [("The target of venetoclax is BCL2.", False)]
    assert "--- Tool Message (call_id: call_0_0) ---\nThe target of venetoclax is BCL2." in answer.raw_llm_response
    assert answer.raw_llm_response.endswith("--- AI Message ---\nIt is BCL2.")
    assert answer.answering_mcp_servers == ("library",)
    assert result.checks.mcp_enabled
    assert [tool["function"]["name"] for tool in asked[0].body["tools"]] == ["look_up", "wait", "break_down"]
    assert asked[0].body["tools"][0]["function"]["parameters"] == TEXT
    assert [message["role"] for message in asked[1].messages][-2:] == ["assistant", "tool"]
    assert answer.agent_metrics == {
        "iterations": 2,
        "tool_calls": 1,
        "tools_used": ["look_up"],
        "tool_call_counts": {"look_up": 1},
        "suspect_failed_tool_calls": 0,
        "suspect_failed_tools": [],
        "limit_reached": False,
        "limit": None,
    }


@pytest.mark.parametrize("interface", ADAPTERS)
def test_every_turn_is_counted_and_the_sum_is_the_answers(interface: str, work: Work) -> None:
    result, _ = work(interface, turns(calling(LOOK), DONE))
    rows = [row.get("usage_metadata") for row in result.generation.trace_messages]
    assert [row and (row["input_tokens"], row["output_tokens"]) for row in rows] == [(10, 2), None, (20, 3)]
    usage = result.generation.usage_metadata["generation"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["calls"], usage["attempts"]) == (30, 5, 1, 2)


@pytest.mark.parametrize("interface", ADAPTERS)
def test_several_calls_of_one_reply_are_all_answered_in_their_order(interface: str, work: Work) -> None:
    both = calling(LOOK, ("look_up", {"drug": "alpelisib"}))
    result, asked = work(interface, turns(both, DONE))
    assert told(result) == [("The target of venetoclax is BCL2.", False), ("The target of alpelisib is PIK3CA.", False)]
    sent = [message for message in asked[1].messages if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == ["call_0_0", "call_0_1"]
    assert result.generation.agent_metrics is not None
    assert result.generation.agent_metrics["tool_calls"] == 2


@pytest.mark.parametrize("interface", ADAPTERS)
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (broken_arguments, "no JSON object"),
        (calling(("look_up", {"drug": "aspirin"})), "aspirin is not listed"),
        (calling(("break_down", {})), "OSError: the disk is gone"),
        (calling(("look_down", {"drug": "aspirin"})), "there is no tool 'look_down'"),
    ],
    ids=["arguments", "refusal", "exception", "unknown"],
)
def test_what_goes_wrong_with_a_tool_is_told_to_the_model_which_goes_on(
    interface: str, reply: Any, words: str, work: Work
) -> None:
    result, asked = work(interface, turns(reply, calling(LOOK, turn=1), DONE))
    (first, failed), (_, second_failed) = told(result)
    assert words in first
    assert (failed, second_failed) == (True, False)
    assert words in asked[1].text
    assert str(result.outcome) == "passed"
    metrics = result.generation.agent_metrics
    assert metrics is not None
    assert (metrics["iterations"], metrics["suspect_failed_tool_calls"]) == (3, 1)


@pytest.mark.parametrize("interface", ADAPTERS)
@pytest.mark.parametrize(
    ("script", "fields", "limit"),
    [
        (turns(calling(LOOK), calling(("look_up", {"drug": "alpelisib"}))), {"agent_max_turns": 2}, "turns"),
        (turns(calling(LOOK)), {"agent_max_turns": 99}, "repeated_calls"),
        (turns(calling(*[LOOK] * 60)), {}, "tool_calls"),
    ],
    ids=["turns", "repeated", "calls"],
)
def test_a_limit_fails_the_verdict_and_keeps_what_was_done(
    interface: str, script: Say, fields: dict[str, Any], limit: str, work: Work
) -> None:
    result, asked = work(interface, script, **fields)
    assert str(result.outcome) == "auto_failed(RecursionLimitAutoFail)"
    assert result.metadata.error is None
    answer = result.generation
    assert answer.recursion_limit_reached
    assert answer.agent_metrics is not None
    assert (answer.agent_metrics["limit"], answer.agent_metrics["limit_reached"]) == (limit, True)
    assert answer.trace_messages[0]["tool_calls"]
    assert answer.usage_metadata["generation"]["input_tokens"] == 10 * len(asked)
    said = next(e.reason for e in result.ledger if e.stage == "RecursionLimitAutoFail")
    assert limit.replace("_", " ") in said
    assert why(result) == said, "and nothing that was never compared"
    if limit == "turns":
        assert len(asked) == 2


@pytest.mark.parametrize("interface", ADAPTERS)
def test_time_that_is_up_is_an_error_and_keeps_what_was_done(interface: str, work: Work) -> None:
    result, asked = work(interface, turns(calling(("wait", {})), DONE), agent_timeout=0.5)
    assert str(result.outcome) == "error(timeout)"
    answer = result.generation
    assert answer.agent_metrics is not None
    assert answer.agent_metrics["limit"] == "time"
    assert answer.trace_messages[0]["tool_calls"]
    assert answer.usage_metadata["generation"]["input_tokens"] == 10 * len(asked)
    assert "raise agent_timeout" in why(result)


@pytest.mark.parametrize("interface", ADAPTERS)
def test_an_agent_that_ends_without_a_word_has_given_no_answer_to_judge(interface: str, work: Work) -> None:
    silent = Reply("", usage=(20, 0))
    result, _ = work(interface, turns(calling(LOOK), silent))
    assert str(result.outcome) == "auto_failed(TraceValidationAutoFail)"
    assert "holds no text" in str(result.checks.trace_validation_error)


@pytest.mark.parametrize("interface", ADAPTERS)
def test_a_model_that_fails_midway_leaves_what_it_did_and_no_answer(interface: str, work: Work) -> None:
    result, asked = work(interface, turns(calling(LOOK), Reply.error(400, "the conversation is too long")))
    assert str(result.outcome) == "error(invalid_request)"
    assert result.generation.raw_llm_response == ""
    assert [row["role"] for row in result.generation.trace_messages] == ["assistant", "tool"]
    assert result.generation.agent_metrics is not None
    assert result.generation.agent_metrics["tool_calls"] == 1
    assert result.generation.usage_metadata["generation"]["input_tokens"] == 10
    assert len(asked) == 2


@pytest.mark.parametrize("interface", ADAPTERS)
def test_a_turn_that_fails_is_tried_again_and_the_tools_are_not_run_again(interface: str, work: Work) -> None:
    failed: list[int] = []

    def once(request: ServedRequest) -> Any:
        failed.append(request.number)
        return Reply.error(500) if len(failed) == 1 else DONE

    result, asked = work(interface, turns(calling(LOOK), once))
    assert str(result.outcome) == "passed"
    assert len(told(result)) == 1
    assert len(asked) == 3
    assert result.metadata.retry_counts == {"server": 1}


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "timestamp", "execution_time")}
    return [timeless(entry) for entry in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(
    "script",
    [
        turns(calling(LOOK), DONE),
        turns(calling(LOOK, ("look_up", {"drug": "aspirin"})), Reply("It is BCL2.", reasoning="Sure.", usage=(1, 1))),
        turns(broken_arguments, calling(("break_down", {}), turn=1), DONE),
        turns(calling(LOOK)),
    ],
    ids=["plain", "thinking", "mistakes", "limit"],
)
def test_the_adapter_makes_no_difference_to_the_result(script: Say, work: Work) -> None:
    through = []
    for interface in ADAPTERS:
        result, asked = work(interface, script, agent_max_turns=3)
        facts = json.dumps(timeless(unstructure(result)), sort_keys=True, default=str)
        sent = [[{k: v for k, v in m.items() if v is not None} for m in request.messages] for request in asked]
        through.append((json.loads(facts.replace(interface, "an-adapter")), sent))
    (left, left_sent), (right, right_sent) = through
    for facts in (left, right):
        assert facts.pop("metadata")["outcome"]
    assert left == right
    assert left_sent == right_sent
