"""Streamed chat completions, folded into the body of a whole one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from karenina_calls.wire.bodies import DONE
from karenina_calls.wire.openai_errors import error_from_wire, json_from_wire

from karenina_core.errors import PortError


class Folded:
    """The chunks of one streamed reply, put together."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: Any = None
        self._frame: dict[str, Any] = {}

    async def texts(self, received: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """Take in the events and give the text that they add.

        Raises PortError: the kind that an error event reports, `bad_response` for a broken chunk, `connection` for a
        stream that ends before the model or the server has reported that it is finished.
        """
        async for event in received:
            if event == DONE:
                return
            if text := self._add(event):
                yield text
        if self._finish is None:
            raise PortError("the stream ended before the reply did", kind="connection")

    def _add(self, event: bytes) -> str:
        chunk = json_from_wire(event)
        if not isinstance(chunk, Mapping):
            raise PortError("an event of the stream is not a JSON object", kind="bad_response")
        if chunk.get("error"):
            raise error_from_wire(None, chunk)
        self._frame.update({name: chunk[name] for name in ("model", "usage") if chunk.get(name)})
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return ""
        if choice.get("finish_reason"):
            self._finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            return ""
        named = {**delta, "reasoning_content": delta.get("reasoning_content") or delta.get("reasoning")}
        for name, parts in self._texts.items():
            if isinstance(text := named.get(name), str):
                parts.append(text)
        for position, call in enumerate(delta.get("tool_calls") or ()):
            if not isinstance(call, Mapping):
                continue
            index, function = call.get("index"), call.get("function")
            known = self._calls.setdefault(index if isinstance(index, int) else position, {"arguments": []})
            if call.get("id"):
                known.setdefault("id", call["id"])
            if isinstance(function, Mapping):
                if function.get("name"):
                    known.setdefault("name", function["name"])
                if isinstance(arguments := function.get("arguments"), str):
                    known["arguments"].append(arguments)
        content = delta.get("content")
        return content if isinstance(content, str) else ""

    def body(self) -> dict[str, Any]:
        """What the server would have sent without streaming."""
        texts = {name: "".join(parts) if parts else None for name, parts in self._texts.items()}
        calls = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": "".join(call["arguments"])}}
            for _, call in sorted(self._calls.items())
        ]
        message = {"role": "assistant", **texts, "tool_calls": calls}
        return {**self._frame, "choices": [{"message": message, "finish_reason": self._finish}]}
