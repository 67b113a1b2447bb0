"""What a tool answered, as text for the model."""

from __future__ import annotations

import json
from typing import Any

from karenina_calls.ports.text import MOST_NESTED, is_nested_deeper

from karenina_core.ports.values import ToolOutcome


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
