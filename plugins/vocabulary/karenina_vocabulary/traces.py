"""Traces: a trace as text, and which text of an answer is judged.

Structured messages are the source; text is generated from them, and nothing is read back from it. An answer that
contains lines which look like the headers of `render_trace` is never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from karenina_core.values.message import (
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    without_prompt,
)

ERROR = "[ERROR] "
"""In front of what a tool answered when it failed, wherever there is no other way to say so."""
Failure = Literal["empty", "last_not_ai", "no_text"]
WORDS = {
    "empty": "the trace is empty",
    "last_not_ai": "the last message of the trace is not from the answering model",
    "no_text": "the last message of the trace holds no text",
}


def render_trace(messages: Iterable[Message]) -> str:
    """A trace as text, for display and for patterns; nothing is read back from it.

    Sections begin with `--- AI Message ---`, `--- User Message ---`, `--- Tool Message (call_id: x) ---`,
    `--- Thinking ---`, in the order of the rows of `trace_dicts`.
    """
    sections: list[str] = []
    for message in without_prompt(messages):
        for block in message.content:
            if isinstance(block, ThinkingBlock):
                sections.append(f"--- Thinking ---\n{block.thinking}")
            elif isinstance(block, ToolResultBlock):
                prefix = ERROR if block.is_error else ""
                sections.append(f"--- Tool Message (call_id: {block.tool_use_id}) ---\n{prefix}{block.content}")
        if message.role == "assistant" and (body := _text_and_calls(message)):
            sections.append(f"--- AI Message ---\n{body}")
        elif message.role == "user" and message.text:
            sections.append(f"--- User Message ---\n{message.text}")
    return "\n\n".join(sections)


def _text_and_calls(message: Message) -> str:
    parts = [block.text for block in message.content if isinstance(block, TextBlock)]
    calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
    if calls:
        lines = ["Tool Calls:"]
        for call in calls:
            shown = call.id if call.id.startswith("call_") else f"call_{call.id}"
            lines += [f"  {call.name} ({shown})", f"   Call ID: {call.id}"]
            if call.input:
                lines.append(f"   Args: {dict(call.input)!r}")
        parts.append("\n".join(lines))
    return "\n".join(parts)


@frozen
class EvaluationInput:
    """The text for the judge, or why there is none."""

    text: str
    used_full_trace: bool
    error: str | None = None


def final_message(rows: Sequence[Mapping[str, Any]], raw: str) -> tuple[str, Failure | None]:
    """The final message of a trace and None, or no text and the kind of failure.

    Where there are structured messages, they alone decide; `raw` is the answer where there are none, whole and without
    white space around it. Text is never searched for headers. Tool calls beside a text do not take it away, nor does
    what a user says after it.
    """
    if not rows:
        text = raw.strip()
        return (text, None) if text else ("", "empty")
    last = rows[-1]
    if last.get("role") == "user":
        last = next((row for row in reversed(rows) if row.get("role") != "user"), last)
    if last.get("role") != "assistant":
        return "", "last_not_ai"
    text = _text(last.get("content")).strip()
    return (text, None) if text else ("", "no_text")


def model_text(rows: Sequence[Mapping[str, Any]], raw: str) -> str:
    """What the answering model itself wrote, without tool output and headers; `raw` where there are no messages."""
    if not rows:
        return raw
    texts = [_text(row.get("content")) for row in rows if row.get("role") == "assistant"]
    return "\n\n".join(text for text in texts if text)


def _text(content: object) -> str:
    """The text of a row; a list of blocks, as `Message.to_dict` writes it, is read too."""
    if isinstance(content, list | tuple):
        texts = (block.get("text") for block in content if isinstance(block, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def evaluation_input(rows: Sequence[Mapping[str, Any]], raw: str, *, full_trace: bool) -> EvaluationInput:
    """What a judge reads: the final message, or the whole trace. Every stage that shows an answer to one asks here.

    Where there is nothing to read, `error` says why and `text` is the raw answer, for display only.
    """
    if full_trace:
        return EvaluationInput(raw, True, None if raw.strip() else WORDS["empty"])
    text, failure = final_message(rows, raw)
    return EvaluationInput(text or raw, False, WORDS[failure] if failure else None)


def prompt_of(messages: Iterable[Message]) -> list[Message]:
    """What `without_prompt` leaves out of a recorded conversation: what the model was sent first."""
    found: list[Message] = []
    opened = False
    for message in messages:
        opened = opened or message.role in ("assistant", "tool")
        if message.role == "system" or (message.role == "user" and not opened):
            found.append(message)
    return found
