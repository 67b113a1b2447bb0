"""Server-sent events of a streamed chat completion: read, folded into the body of a whole one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from karenina_calls.wire.openai_wire import error_from_wire, json_from_wire

from karenina_core.errors import PortError

__all__ = ["Folded", "events"]

DONE = b"[DONE]"


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The `data` of each event. Comments and other fields are passed over."""
    rest = bytearray()
    data: list[bytes] = []
    async for piece in pieces:
        rest += piece
        if b"\n" not in piece:
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if data:
        yield b"\n".join(data)
    if rest.strip() == b"data: " + DONE:  # any other line without an end is cut off
        yield DONE


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
            raise PortError("an event of the stream is no JSON object", kind="bad_response")
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
        return self._delta(delta) if isinstance(delta, Mapping) else ""

    def _delta(self, delta: Mapping[str, Any]) -> str:
        named = {**delta, "reasoning_content": delta.get("reasoning_content") or delta.get("reasoning")}
        for name, parts in self._texts.items():
            if isinstance(text := named.get(name), str):
                parts.append(text)
        for position, call in enumerate(delta.get("tool_calls") or ()):
            if isinstance(call, Mapping):
                self._call(position, call)
        content = delta.get("content")
        return content if isinstance(content, str) else ""

    def _call(self, position: int, piece: Mapping[str, Any]) -> None:
        index = piece.get("index")
        call = self._calls.setdefault(index if isinstance(index, int) else position, {"arguments": []})
        function = piece.get("function")
        if piece.get("id"):
            call.setdefault("id", piece["id"])
        if isinstance(function, Mapping):
            if function.get("name"):
                call.setdefault("name", function["name"])
            if isinstance(arguments := function.get("arguments"), str):
                call["arguments"].append(arguments)

    def body(self) -> dict[str, Any]:
        """What the server would have sent without streaming."""
        texts = {name: "".join(parts) if parts else None for name, parts in self._texts.items()}
        calls = [
            {"id": call.get("id"), "function": {"name": call.get("name"), "arguments": "".join(call["arguments"])}}
            for _, call in sorted(self._calls.items())
        ]
        message = {"role": "assistant", **texts, "tool_calls": calls}
        return {**self._frame, "choices": [{"message": message, "finish_reason": self._finish}]}
