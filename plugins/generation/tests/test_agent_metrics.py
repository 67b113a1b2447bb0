"""What an agent did, in numbers: counted from its messages alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_generation.tool_answers import agent_metrics, looks_failed

from karenina_core.values.message import Message, ToolResultBlock, ToolUseBlock, trace_dicts, trace_messages

QUICK = settings(database=None, deadline=None, derandomize=True, max_examples=50)
NAMES = st.sampled_from(["read", "write", "find"])
MESSAGES = st.lists(
    st.builds(Message.assistant, st.text(max_size=5))
    | st.builds(
        lambda names: Message.assistant(tool_calls=[ToolUseBlock(f"c{i}", name) for i, name in enumerate(names)]),
        st.lists(NAMES, min_size=1, max_size=3),
    )
    | st.builds(Message.tool_result, st.sampled_from(["c0", "c1"]), st.text(max_size=9), st.booleans()),
    max_size=8,
)


def test_calls_are_counted_by_tool() -> None:
    trace = [
        Message.assistant("Let me see.", [ToolUseBlock("a", "read"), ToolUseBlock("b", "find")]),
        Message.tool_result("a", "text"),
        Message.tool_result("b", "no such file", is_error=True),
        Message.assistant(tool_calls=[ToolUseBlock("c", "read")]),
        Message.tool_result("c", "more text"),
        Message.assistant("Done."),
    ]
    assert agent_metrics(trace) == {
        "iterations": 3,
        "tool_calls": 3,
        "tools_used": ["find", "read"],
        "tool_call_counts": {"find": 1, "read": 2},
        "suspect_failed_tool_calls": 1,
        "suspect_failed_tools": ["find"],
        "limit_reached": False,
        "limit": None,
    }


def test_the_limit_that_ended_the_work_is_named() -> None:
    found = agent_metrics([], "tokens")
    assert (found["limit_reached"], found["limit"], found["iterations"]) == (True, "tokens", 0)


def test_a_failure_belongs_to_the_latest_call_of_its_id() -> None:
    trace = [
        Message.assistant(tool_calls=[ToolUseBlock("call_0", "read")]),
        Message.tool_result("call_0", "text"),
        Message.assistant(tool_calls=[ToolUseBlock("call_0", "write")]),
        Message.tool_result("call_0", "the disk is full", is_error=True),
        Message.tool_result("call_9", "", is_error=True),
    ]
    found = agent_metrics(trace)
    assert found["suspect_failed_tools"] == ["unknown", "write"]
    assert found["tool_calls"] == 3, "answers without a call count too"


@pytest.mark.parametrize(
    ("content", "failed"),
    [
        ("all is well", False),
        ("ERROR 17", True),
        ("HTTP 404", True),
        ("Traceback (most recent call last)", True),
        ("the page was Not Found", True),
        ("we were unable to read it", True),
        ("terrorists of 1404", False),
        ("it has 5002 lines", False),
    ],
)
def test_words_of_failure_are_whole_words(content: str, failed: bool) -> None:
    assert looks_failed(ToolResultBlock("a", content)) is failed
    assert looks_failed(ToolResultBlock("a", content, is_error=True))


@QUICK
@given(MESSAGES)
def test_the_numbers_fit_each_other_and_survive_being_written(trace: list[Message]) -> None:
    found: dict[str, Any] = agent_metrics(trace)
    assert json.loads(json.dumps(found)) == found
    assert agent_metrics(trace_messages(trace_dicts(trace))) == found
    assert sum(found["tool_call_counts"].values()) <= found["tool_calls"]
    assert list(found["tool_call_counts"]) == found["tools_used"]
    assert len(found["suspect_failed_tools"]) <= found["suspect_failed_tool_calls"] <= found["tool_calls"]
