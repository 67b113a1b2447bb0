"""Which text of an answer is judged: structured messages decide, and no answer is cut because of what it looks like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karenina_core.model.message import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
    trace_dicts,
)
from karenina_core.pipeline.assemble import usage_metadata
from karenina_core.pipeline.trace import evaluation_input, final_message, render_trace
from karenina_core.ports.client import CallRecord
from karenina_core.prompts.untrusted import untrusted

TEXT = st.text(max_size=12)
BLOCKS = st.one_of(
    st.builds(TextBlock, TEXT),
    st.builds(ToolUseBlock, TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=2)),
    st.builds(ToolResultBlock, TEXT, TEXT, st.booleans()),
    st.builds(ThinkingBlock, TEXT, st.none() | TEXT),
)
USAGE = st.builds(UsageMetadata, st.integers(0, 9), st.integers(0, 9), st.integers(0, 18), st.none() | st.floats(0, 1))
MESSAGES = st.builds(
    Message, st.sampled_from(["system", "user", "assistant", "tool"]), st.lists(BLOCKS, max_size=3), st.none() | USAGE
)


@given(MESSAGES)
def test_a_message_survives_its_plain_form(message: Message) -> None:
    assert Message.from_dict(message.to_dict()) == message


@given(st.lists(MESSAGES, max_size=4))
def test_rows_hold_every_tool_result_and_no_prompt(messages: list[Message]) -> None:
    rows = trace_dicts(messages)
    kept = [message for message in messages if message.role not in ("system", "user")]
    results = [block for message in kept for block in message.content if isinstance(block, ToolResultBlock)]
    assert [row["tool_result"]["tool_use_id"] for row in rows if "tool_result" in row] == [
        block.tool_use_id for block in results
    ]
    assert [row["block_index"] for row in rows] == list(range(len(rows)))
    assert {row["role"] for row in rows} <= {"assistant", "tool"}


ODD_ANSWERS = ["--- Summary ---\nBCL2", "Tool Calls:\n  none", "a\r\n--- AI Message ---\r\nb", "---\nBCL2"]


@pytest.mark.parametrize("answer", ODD_ANSWERS)
def test_an_answer_that_looks_like_a_trace_is_judged_whole(answer: str) -> None:
    for rows in ([], [{"role": "assistant", "content": answer}]):
        assert final_message(rows, answer) == (answer.strip(), None)


@given(st.text(min_size=1).filter(str.strip))
def test_any_plain_answer_is_judged_whole(answer: str) -> None:
    assert evaluation_input([], answer, full_trace=False).text == answer.strip()
    full = evaluation_input([], answer, full_trace=True)
    assert (full.text, full.used_full_trace, full.error) == (answer, True, None)


@pytest.mark.parametrize(
    ("rows", "raw", "failure"),
    [
        ([], " \n", "empty"),
        ([{"role": "tool", "content": "found"}], "found", "last_not_ai"),
        ([{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"}], "x", "last_not_ai"),
        ([{"role": "assistant", "content": ""}], "", "no_text"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]}], "", "no_text"),
        ([{"role": "assistant", "content": "BCL2", "tool_calls": [{"name": "f"}]}], "", None),
    ],
)
def test_the_kinds_of_missing_answers(rows: list[dict[str, Any]], raw: str, failure: str | None) -> None:
    assert final_message(rows, raw)[1] == failure
    assert (evaluation_input(rows, raw, full_trace=False).error is None) == (failure is None)


def test_a_trace_as_text() -> None:
    trace = [
        Message("assistant", [ThinkingBlock("hm"), TextBlock("let me look"), ToolUseBlock("1", "find", {"q": "BCL2"})]),
        Message.tool_result("1", "nothing", is_error=True),
        Message("assistant", [ThinkingBlock("only thoughts")]),
        Message.assistant("BCL2"),
    ]
    assert render_trace(trace) == (
        "--- Thinking ---\nhm\n\n"
        "--- AI Message ---\nlet me look\nTool Calls:\n  find (call_1)\n   Call ID: 1\n   Args: {'q': 'BCL2'}\n\n"
        "--- Tool Message (call_id: 1) ---\n[ERROR] nothing\n\n"
        "--- Thinking ---\nonly thoughts\n\n"
        "--- AI Message ---\nBCL2"
    )


@given(TEXT, st.sampled_from(["response", "trace"]))
def test_untrusted_text_cannot_close_its_own_tags(text: str, label: str) -> None:
    tagged = untrusted(text, label)
    opening = tagged.split("\n")[0]
    closing = f"</{opening[1:].split(' ')[0]}>"
    assert tagged == f"{opening}\n{text}\n{closing}"
    assert closing not in text
    assert untrusted(text, label) == tagged
    assert untrusted(f"{text}{closing}", label).split("\n")[0] != opening


# Usage


def call(task: str, **facts: Any) -> CallRecord:
    return CallRecord(task=task, model="x:m", attempts=facts.pop("attempts", 1), retries={}, seconds=0.5, **facts)


def test_usage_by_task_and_in_total() -> None:
    calls = [
        call("generation", usage=UsageMetadata(1, 2, 3, 0.5)),
        call("parsing", attempts=3, usage=UsageMetadata(10, 20, 30, 0.25), channel="text", repairs=1),
        call("parsing", usage=UsageMetadata(1, 1, 2, 0.25), channel="text"),
    ]
    found = usage_metadata(calls)
    assert (found["parsing"]["calls"], found["parsing"]["attempts"], found["parsing"]["repairs"]) == (2, 4, 1)
    assert (found["parsing"]["total_tokens"], found["parsing"]["channel"]) == (32, "text")
    assert (found["total"]["calls"], found["total"]["total_tokens"], found["total"]["cost_usd"]) == (3, 35, 1.0)


COSTS = st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.floats(0, 1), st.integers(0, 9)), max_size=5)


@given(COSTS)
def test_an_unknown_cost_is_never_taken_for_zero(rows: list[tuple[str, float | None, int]]) -> None:
    found = usage_metadata([call(task, usage=UsageMetadata(n, 0, n, cost)) for task, cost, n in rows])
    if not rows:
        assert found == {}
        return
    costs = [cost for _, cost, _ in rows]
    total = found["total"]
    assert total["total_tokens"] == sum(n for _, _, n in rows)
    assert (total["cost_usd"] is None) == (None in costs)
    if None not in costs:
        assert total["cost_usd"] == pytest.approx(sum(cost or 0.0 for cost in costs))


def test_the_usage_of_an_earlier_answer_is_shown_and_not_counted() -> None:
    earlier = {"generation": {"calls": 1, "total_tokens": 9}, "total": {"calls": 1}}
    found = usage_metadata([call("parsing", usage=UsageMetadata(1, 1, 2))], earlier)
    assert found["generation"] == {"calls": 1, "total_tokens": 9, "cached": True}
    assert (found["total"]["calls"], found["total"]["total_tokens"]) == (1, 2)
    assert usage_metadata([], earlier)["total"] == {}
