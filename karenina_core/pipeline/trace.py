"""Traces: which text of an answer is judged, and how a trace is shown as text.

Structured messages are the source; text is generated from them. An answer that contains lines which look like the
headers below is never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from ..model.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

__all__ = ["EvaluationInput", "evaluation_input", "final_message", "render_trace"]

Failure = Literal["empty", "last_not_ai", "no_text"]
WORDS = {
    "empty": "the trace is empty",
    "last_not_ai": "the last message of the trace is not from the answering model",
    "no_text": "the last message of the trace holds no text",
}


@frozen
class EvaluationInput:
    """The text for the judge, or why there is none."""

    text: str
    used_full_trace: bool
    error: str | None = None


def final_message(rows: Sequence[Mapping[str, Any]], raw: str) -> tuple[str, Failure | None]:
    """The final message of a trace; `raw` is the answer where there are no structured messages."""
    if not rows:
        text = raw.strip()
        return (text, None) if text else ("", "empty")
    last = rows[-1]
    if last.get("role") != "assistant":
        return "", "last_not_ai"
    text = str(last.get("content") or "").strip()
    return (text, None) if text else ("", "no_text")


def evaluation_input(rows: Sequence[Mapping[str, Any]], raw: str, *, full_trace: bool) -> EvaluationInput:
    """What a judge reads: the final message, or the whole trace."""
    if full_trace:
        return EvaluationInput(raw, True, None if raw.strip() else WORDS["empty"])
    text, failure = final_message(rows, raw)
    return EvaluationInput(text or raw, False, WORDS[failure] if failure else None)


def render_trace(messages: Iterable[Message]) -> str:
    """A trace as text: sections that begin with `--- AI Message ---`, `--- Tool Message (call_id: x) ---`, `---
    Thinking ---`."""
    sections: list[str] = []
    for message in messages:
        for block in message.content:
            if isinstance(block, ThinkingBlock):
                sections.append(f"--- Thinking ---\n{block.thinking}")
            elif isinstance(block, ToolResultBlock):
                prefix = "[ERROR] " if block.is_error else ""
                sections.append(f"--- Tool Message (call_id: {block.tool_use_id}) ---\n{prefix}{block.content}")
        if message.role == "assistant" and (body := _said(message)):
            sections.append(f"--- AI Message ---\n{body}")
    return "\n\n".join(sections)


def _said(message: Message) -> str:
    parts = [block.text for block in message.content if isinstance(block, TextBlock)]
    calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
    if calls:
        lines = ["Tool Calls:"]
        for call in calls:
            lines += [f"  {call.name} (call_{call.id})", f"   Call ID: {call.id}"]
            if call.input:
                lines.append(f"   Args: {dict(call.input)!r}")
        parts.append("\n".join(lines))
    return "\n".join(parts)
