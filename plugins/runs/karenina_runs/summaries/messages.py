"""Messages as they are stored, read for people: who said what, thought what, called what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Said", "SaidBlock", "said"]


class SaidBlock(NamedTuple):
    """What a message says, thinks, asks of a tool, or brings back from one."""

    label: str
    """Empty for what it says; else `thinks`, `calls <tool>`, `tool result`, `tool failed`, or the type of the block."""
    text: str


class Said(NamedTuple):
    """One message."""

    role: str
    blocks: tuple[SaidBlock, ...]


def said(rows: Iterable[Mapping[str, Any]]) -> list[Said]:
    """Messages in either form that results store (`trace_dicts`, or `Message.to_dict`); what is of no form as JSON."""
    return [Said(str(row.get("role") or "unknown"), tuple(_blocks(row))) for row in rows]


def _blocks(row: Mapping[str, Any]) -> Iterator[SaidBlock]:
    listed = row.get("blocks") or row.get("content")
    if isinstance(listed, list | tuple):
        yield from (_listed(block) for block in listed)
        return
    thinking = row.get("thinking")
    if isinstance(thinking, Mapping) and thinking.get("thinking"):
        yield _block("thinks", thinking["thinking"])
    result = row.get("tool_result")
    if row.get("content"):
        yield _block("" if result is None else _came_back(result), row["content"])
    calls = row.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        about = call if isinstance(call, Mapping) else {"input": call}
        yield _block(f"calls {about.get('name') or 'a tool'}", about.get("input"))


def _listed(block: Any) -> SaidBlock:
    about = block if isinstance(block, Mapping) else {"type": "text", "text": block}
    kind = about.get("type")
    if kind == "text":
        return _block("", about.get("text"))
    if kind == "thinking":
        return _block("thinks", about.get("thinking"))
    if kind == "tool_use":
        return _block(f"calls {about.get('name') or 'a tool'}", about.get("input"))
    if kind == "tool_result":
        return _block(_came_back(about), about.get("content"))
    return _block(str(kind or ""), block)


def _came_back(result: Any) -> str:
    return "tool failed" if isinstance(result, Mapping) and result.get("is_error") else "tool result"


def _block(label: str, found: Any) -> SaidBlock:
    if found is None:
        return SaidBlock(label, "")
    return SaidBlock(label, found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str))
