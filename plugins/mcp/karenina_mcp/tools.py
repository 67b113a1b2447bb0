"""The tools of a server: what has become of those that a run was given, for servers change their lists while they are
used, and what a tool answered, as text for the model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import evolve, frozen
from karenina_calls.ports.text import MOST_NESTED, is_nested_deeper
from karenina_calls.tools.tool_servers import tool_digest

from karenina_core.ports.values import Tool, ToolOutcome

MOST_NAMES = 10  # in a warning; chosen


@frozen
class Changes:
    """The differences between the tools of a run and those that its server offers now, by name."""

    removed: frozenset[str] = frozenset()
    altered: frozenset[str] = frozenset()
    """Tools with another input schema: a model that was shown the old one cannot use them."""
    reworded: frozenset[str] = frozenset()
    """Tools with another description. They are called all the same."""
    added: frozenset[str] = frozenset()
    """Tools that no model of this run is offered."""

    def refusal(self, tool: str) -> ToolOutcome | None:
        """The error for a model that calls a tool which is no longer what it was offered."""
        if tool in self.removed:
            return ToolOutcome("the server does not offer this tool any more; continue without it", is_error=True)
        if tool in self.altered:
            what = "the server has changed the arguments of this tool since it was offered; continue without it"
            return ToolOutcome(what, is_error=True)
        return None

    def warning(self, server: str) -> str | None:
        """For the user; None where nothing has changed."""
        effects = (
            (self.removed, "removed, calls are refused"),
            (self.altered, "with other arguments, calls are refused"),
            (self.reworded, "with another description, models keep the first one"),
            (self.added, "new, not offered"),
        )
        changes = "; ".join(f"{_names(names)} {effect}" for names, effect in effects if names)
        return f"the tool server {server!r} changed its tools during the run: {changes}" if changes else None


def changes_between(before: Iterable[Tool], now: Iterable[Tool]) -> Changes:
    """What a server has changed. Both lists have every name once."""
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in now}
    both = old.keys() & new.keys()
    altered = {name for name in both if _arguments(old[name]) != _arguments(new[name])}
    return Changes(
        removed=frozenset(old.keys() - both),
        altered=frozenset(altered),
        reworded=frozenset(n for n in both - altered if old[n].description != new[n].description),
        added=frozenset(new.keys() - both),
    )


def _arguments(tool: Tool) -> str:
    return tool_digest([evolve(tool, description="")])


def _names(names: frozenset[str]) -> str:
    shown = [repr(name) for name in sorted(names)[:MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")


def as_outcome(result: Any) -> ToolOutcome:
    """A `CallToolResult` of the SDK as text: its texts, what else there is described, and structured content as JSON
    where no text says the same."""
    texts = [block.text for block in result.content if block.type == "text"]
    parts = [_described(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and is_nested_deeper(structured):
        parts.append(f"[structured content that is nested more than {MOST_NESTED} levels deep]")
    elif structured is not None and not _repeated(texts, structured):
        parts.append(json.dumps(structured, ensure_ascii=False))
    return ToolOutcome("\n".join(parts), is_error=bool(result.is_error))


def _described(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type in ("image", "audio"):
        return f"[{block.type}: {block.mime_type}, {_size(block.data)} bytes]"
    if block.type == "resource_link":
        return f"[resource: {block.name}, {block.uri}]"
    if block.type == "resource":
        resource = block.resource
        text = getattr(resource, "text", None)
        if text is not None:
            return f"[resource: {resource.uri}]\n{text}"
        return f"[resource: {resource.uri}, {resource.mime_type or 'of unknown type'}, {_size(resource.blob)} bytes]"
    return f"[{block.type}]"


def _size(base64: str) -> int:
    """How many bytes a text in base64 encodes."""
    return len(base64.rstrip("=")) * 3 // 4


def _repeated(texts: list[str], structured: Any) -> bool:
    """Whether the texts say what the structured content says: servers send both for clients that read only one."""
    values = [_value(text) for text in texts]
    wanted = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        wanted.append(structured["result"])  # how servers wrap what is no object
    return any(given == value for value in wanted for given in (*values, *texts, values, texts))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
