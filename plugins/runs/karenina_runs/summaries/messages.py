"""Messages as they are stored, in a form to show: role, and what a message says, thinks and calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class MessageBlock(NamedTuple):
    """What a message says, thinks, asks of a tool, or brings back from one."""

    label: str
    """Empty for what it says; else `thinks`, `calls <tool>`, `tool result`, `tool failed`, or the type of the block."""
    text: str


class ShownMessage(NamedTuple):
    """One message."""

    role: str
    blocks: tuple[MessageBlock, ...]


def shown_messages(rows: Iterable[Mapping[str, Any]]) -> list[ShownMessage]:
    """Messages in either form that results store (`trace_dicts`, or `Message.to_dict`); what is of no form as JSON."""
    return [ShownMessage(str(row.get("role") or "unknown"), tuple(_blocks(row))) for row in rows]


def _blocks(row: Mapping[str, Any]) -> list[MessageBlock]:
    listed = row.get("blocks") or row.get("content")
    blocks = []
    if isinstance(listed, list | tuple):
        for block in listed:
            about = block if isinstance(block, Mapping) else {"type": "text", "text": block}
            kind = about.get("type")
            if kind in ("text", "thinking"):
                blocks.append(_block("" if kind == "text" else "thinks", about.get(kind)))
            elif kind == "tool_use":
                blocks.append(_called(about))
            elif kind == "tool_result":
                blocks.append(_block(_result_label(about), about.get("content")))
            else:
                blocks.append(_block(str(kind or ""), block))
        return blocks
    thinking, result, calls = row.get("thinking"), row.get("tool_result"), row.get("tool_calls")
    if isinstance(thinking, Mapping) and thinking.get("thinking"):
        blocks.append(_block("thinks", thinking["thinking"]))
    if row.get("content"):
        blocks.append(_block("" if result is None else _result_label(result), row["content"]))
    for call in calls if isinstance(calls, list | tuple) else ():
        blocks.append(_called(call if isinstance(call, Mapping) else {"input": call}))
    return blocks


def _called(about: Mapping[str, Any]) -> MessageBlock:
    return _block(f"calls {about.get('name') or 'a tool'}", about.get("input"))


def _result_label(result: Any) -> str:
    return "tool failed" if isinstance(result, Mapping) and result.get("is_error") else "tool result"


def _block(label: str, found: Any) -> MessageBlock:
    if found is None:
        return MessageBlock(label, "")
    return MessageBlock(label, found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str))
