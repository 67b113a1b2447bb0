"""A trace as text, for people, patterns and judges. Nothing is read back from it."""

from __future__ import annotations

from collections.abc import Iterable

from .message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, without_prompt

__all__ = ["ERROR", "render_trace"]

ERROR = "[ERROR] "
"""In front of what a tool answered when it failed, wherever there is no other way to say so."""


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
        if message.role == "assistant" and (body := _said(message)):
            sections.append(f"--- AI Message ---\n{body}")
        elif message.role == "user" and message.text:
            sections.append(f"--- User Message ---\n{message.text}")
    return "\n\n".join(sections)


def _said(message: Message) -> str:
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
