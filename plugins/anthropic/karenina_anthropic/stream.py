"""A streamed reply, put together: https://platform.claude.com/docs/en/build-with-claude/streaming."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from karenina_calls.wire.openai_errors import STRICT_JSON, json_from_wire

from karenina_core.errors import PortError

from .wire import error_of

DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
PARTIAL = "partial_json"


class Folded:
    """The events of one reply, put together."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._is_over = False

    async def texts(self, received: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """Take in the events and give the text that they add.

        Raises PortError: the kind that an error event reports, `bad_response` for a broken event, `connection` for a
        stream that ends before the message does.
        """
        async for event in received:
            data = json_from_wire(event)
            if not isinstance(data, Mapping):
                raise PortError("an event of the stream is not a JSON object", kind="bad_response")
            if text := self._add(data):
                yield text
            if self._is_over:
                break
        if not self._is_over:
            raise PortError("the stream ended before the reply did", kind="connection")

    def body(self) -> dict[str, Any]:
        """What the server would have sent without streaming."""
        return {**self._message, "content": [_whole(block) for _, block in sorted(self._blocks.items())]}

    def _add(self, event: Mapping[str, Any]) -> str:
        index, delta = event.get("index"), _mapping(event.get("delta"))
        match event.get("type"):
            case "error":
                raise error_of(None, event)
            case "message_start":
                self._message = dict(_mapping(event.get("message")))
            case "content_block_start" if isinstance(index, int):
                self._blocks[index] = dict(_mapping(event.get("content_block")))
            case "content_block_delta" if (block := self._blocks.get(index)) is not None:
                name = DELTAS.get(str(delta.get("type")), PARTIAL)
                if isinstance(piece := delta.get(name), str):
                    block[name] = block.get(name, "") + piece
                    return piece if name == "text" else ""
            case "message_delta":
                self._message.update(delta)
                if usage := _mapping(event.get("usage")):
                    self._message["usage"] = {**_mapping(self._message.get("usage")), **usage}
            case "message_stop":
                self._is_over = True
        return ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """A tool call with its arguments as data; as None where they cannot be read."""
    partial = block.pop(PARTIAL, "")
    if block.get("type") == "tool_use" and partial.strip():
        try:
            block["input"] = STRICT_JSON.decode(partial)
        except (ValueError, RecursionError):
            block["input"] = None
    return block
