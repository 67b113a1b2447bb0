"""Messages as chat completions have them, in the form of OpenAI's API, as rows of a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["trace_row"]

UNREAD = ("name", "annotations", "audio")
"""Keys of such messages that say nothing about what was said."""
REASONING = ("reasoning_content", "reasoning")


def trace_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A message as `trace_dicts` writes it; one in that form stays as it is. Null stands for a key that is not there.

    `tool_calls` with a `function`, `tool_call_id`, the role `developer`, `refusal` and what was thought are read; so is
    a missing text beside tool calls. Raises ValueError and TypeError.
    """
    row = {key: value for key, value in entry.items() if value is not None and key not in UNREAD}
    if row.get("role") == "developer":
        row["role"] = "system"
    if (thought := [row.pop(key) for key in REASONING if key in row]) and thought[0]:
        row["thinking"] = {"thinking": thought[0]}
    refusal = row.pop("refusal", "")
    if refusal and not row.get("content"):
        row["content"] = refusal
    if "tool_call_id" in row:
        row["tool_result"] = {"tool_use_id": row.pop("tool_call_id"), "is_error": False}
    if row.get("tool_calls"):
        row["tool_calls"] = [_call(call) for call in row["tool_calls"]]
        row.setdefault("content", "")
    parts = row.get("content")
    if isinstance(parts, list | tuple) and row.keys() & {"tool_calls", "tool_result", "thinking"}:
        row["content"] = "\n".join(_text(part) for part in parts)
    return row


def _call(call: Any) -> Mapping[str, Any]:
    """Arguments that are no JSON object are kept as they were written, under `arguments`."""
    if not isinstance(call, Mapping):
        raise TypeError(f"a tool call is an object, not {call!r:.80}")
    function = call.get("function")
    if function is None:
        return call
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or "id" not in call:
        raise ValueError('a tool call is {"id", "function": {"name", "arguments"}}')
    given = function.get("arguments") or {}
    try:
        read = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        read = None
    read = read if isinstance(read, Mapping) else {"arguments": given}
    return {"id": call["id"], "name": function["name"], "input": read}


def _text(part: Any) -> str:
    if not isinstance(part, Mapping) or part.get("type") != "text":
        raise ValueError("beside tool calls and answers of tools, content is a text or a list of texts")
    return str(part["text"])
