"""What an agent did, in numbers, counted from the messages of its trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from karenina_core.ports.values import Limit
from karenina_core.values.message import Message, ToolResultBlock, ToolUseBlock

__all__ = ["agent_metrics", "looks_failed"]

FAILURE_WORDS = re.compile(
    r"\b(?:error|failed|exception|traceback|stack trace|404|500|502|503|timeout|invalid|unauthorized|forbidden"
    r"|not found|cannot|unable to)\b",
    re.IGNORECASE,
)


def agent_metrics(messages: Iterable[Message], limit: Limit | None = None) -> dict[str, Any]:
    """The numbers of one agent run.

    `iterations`: replies of the model. `tool_calls`: calls, or answers of tools where there are more of these.
    `tool_call_counts`: calls by tool, `tools_used` its names in order. `suspect_failed_tool_calls`: answers that look
    like failures, `suspect_failed_tools` the tools that gave them; see `looks_failed`. `limit`: which limit ended the
    work, or None; `limit_reached`: whether one did.
    """
    counts: Counter[str] = Counter()
    suspects: list[str] = []
    names: dict[str, list[str]] = {}
    """By id: the tools whose answers are awaited, for servers that give several calls of a reply one id."""
    iterations = results = 0
    for message in messages:
        iterations += message.role == "assistant"
        begun: set[str] = set()
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                counts[block.name] += 1
                if block.id not in begun:  # some servers begin again with every reply: the last one counts
                    names[block.id] = []
                begun.add(block.id)
                names[block.id].append(block.name)
            elif isinstance(block, ToolResultBlock):
                results += 1
                awaited = names.get(block.tool_use_id) or ["unknown"]
                if looks_failed(block):
                    suspects.append(awaited[0])
                if len(awaited) > 1:
                    awaited.pop(0)
    return {
        "iterations": iterations,
        "tool_calls": max(counts.total(), results),
        "tools_used": sorted(counts),
        "tool_call_counts": dict(sorted(counts.items())),
        "suspect_failed_tool_calls": len(suspects),
        "suspect_failed_tools": sorted(set(suspects)),
        "limit_reached": limit is not None,
        "limit": limit,
    }


def looks_failed(result: ToolResultBlock) -> bool:
    """Whether a tool reported that it failed, or used one of the words of failures. Only a hint: a tool that finds a
    text about errors looks failed too, and nothing is decided by it.
    """
    return result.is_error or FAILURE_WORDS.search(result.content) is not None
