"""Reading the final message of an answer: what goes wrong where a trace is read back from its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from karenina_vocabulary.traces import evaluation_input, final_message, render_trace

from karenina_core.values.message import Message, ThinkingBlock, ToolUseBlock, trace_dicts

LAW = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)
Reader = Callable[[Sequence[Message]], str | None]
"""From messages to the text that is judged, or None where there is none."""


def ours(messages: Sequence[Message]) -> str | None:
    text, failure = final_message(trace_dicts(messages), render_trace(messages))
    return None if failure else text


def from_text(messages: Sequence[Message]) -> str | None:
    """Splits the text of the trace at what looks like a header and cuts it at what looks like a list of calls."""
    sections = re.split(r"(?m)^(--- .* ---)$", render_trace(messages))
    if len(sections) == 1:
        return sections[0].strip() or None
    header, content = sections[-2], sections[-1].lstrip("\n")
    if header != "--- AI Message ---":
        return None
    return ("\n" + content).split("\nTool Calls:")[0].strip() or None


# An answer is never cut because of what it looks like

LINES = ["--- Summary ---", "--- AI Message ---", "Tool Calls:", "---", "It is BCL2.", ""]
ANSWERS = st.builds(
    lambda end, lines: end.join(lines), st.sampled_from(["\n", "\r\n"]), st.lists(st.sampled_from(LINES), min_size=1)
)


def answers_are_judged_whole(read: Reader) -> None:
    @LAW
    @given(ANSWERS.filter(str.strip) | st.text(min_size=1).filter(str.strip))
    @example("--- Summary ---\nIt is BCL2.")
    @example("It is BCL2.\nTool Calls:\nnone")
    def law(answer: str) -> None:
        assert read([Message.assistant(answer)]) == answer.strip()

    law()


def test_an_answer_that_looks_like_a_header_is_judged_whole() -> None:
    answers_are_judged_whole(ours)


def test_reading_the_trace_back_from_its_text_breaks_that() -> None:
    with pytest.raises(AssertionError):
        answers_are_judged_whole(from_text)


@pytest.mark.parametrize("answer", ["--- Summary ---\nIt is BCL2.", "It is BCL2.\nTool Calls:\nnone"])
def test_each_of_the_two_ways_in_which_text_misleads(answer: str) -> None:
    assert ours([Message.assistant(answer)]) == answer
    assert from_text([Message.assistant(answer)]) != answer


# Every stage reads the same text

Readers = Mapping[str, Reader]
STEPS = st.sampled_from(
    [
        Message.assistant("let me look", [ToolUseBlock("1", "find", {"q": "BCL2"})]),
        Message.assistant(tool_calls=[ToolUseBlock("1", "find")]),
        Message.tool_result("1", "found"),
        Message("assistant", [ThinkingBlock("hm")]),
        Message.assistant("It is BCL2."),
        Message.assistant("--- Summary ---\nIt is BCL2."),
    ]
)


def judged(messages: Sequence[Message]) -> str | None:
    """What a judge is shown."""
    found = evaluation_input(trace_dicts(messages), render_trace(messages), full_trace=False)
    return None if found.error else found.text


def readers_agree(readers: Readers) -> None:
    @LAW
    @given(st.lists(STEPS, min_size=1, max_size=4))
    @example([Message.assistant("--- Summary ---\nIt is BCL2.")])
    def law(messages: list[Message]) -> None:
        assert len({read(messages) for read in readers.values()}) == 1

    law()


def test_guard_and_judge_read_the_same_final_message() -> None:
    readers_agree({"guard": ours, "judge": judged})


def test_a_guard_that_reads_messages_and_a_judge_that_reads_text_disagree() -> None:
    with pytest.raises(AssertionError):
        readers_agree({"guard": ours, "judge": from_text})
