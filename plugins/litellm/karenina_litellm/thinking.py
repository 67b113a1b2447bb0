"""What a model thought, kept as its provider signed it: Claude wants its thinking back with the answers of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karenina_calls.ports.text import sanitize
from karenina_calls.wire.openai_wire import messages_to_wire

from karenina_core.values.message import Message, ThinkingBlock

__all__ = ["messages_with_thinking", "thinking_blocks"]

SIGNING = frozenset({"anthropic", "azure_ai", "bedrock", "bedrock/converse", "vertex_ai"})
"""litellm's providers of Claude. Others may refuse a request with thinking in it."""
REDACTED = "redacted_thinking:"
"""In front of the signature of a block that only the provider can read; signatures are base64, which has no colon."""


def thinking_blocks(body: Mapping[str, Any]) -> tuple[ThinkingBlock, ...]:
    """The signed thinking in a reply of litellm; empty where nothing is signed."""
    message = ((body.get("choices") or [{}])[0] or {}).get("message") or {}
    found = [_block(block) for block in message.get("thinking_blocks") or () if isinstance(block, Mapping)]
    return tuple(block for block in found if block is not None)


def _block(block: Mapping[str, Any]) -> ThinkingBlock | None:
    if block.get("type") == "redacted_thinking":
        return ThinkingBlock("", f"{REDACTED}{block.get('data') or ''}")
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        return None
    return ThinkingBlock(sanitize(str(block.get("thinking") or ""))[0], signature)


def messages_with_thinking(messages: Sequence[Message], provider: str | None) -> list[dict[str, Any]]:
    """The `messages` of a request, with what was thought where the provider has signed it and wants it back."""
    if provider not in SIGNING:
        return messages_to_wire(messages)
    wires = []
    for message in messages:
        signed = [block for block in message.content if isinstance(block, ThinkingBlock) and block.signature]
        for wire in messages_to_wire([message]):
            kept = {"thinking_blocks": list(map(_to_wire, signed))} if signed and wire["role"] == "assistant" else {}
            wires.append({**wire, **kept})
    return wires


def _to_wire(block: ThinkingBlock) -> dict[str, Any]:
    signature = block.signature or ""
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": block.thinking, "signature": signature}
