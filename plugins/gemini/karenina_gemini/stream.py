"""A streamed reply, put together: every event is a reply of its own, with the parts that are new.

https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from karenina_calls.wire.openai_errors import json_from_wire

from karenina_core.errors import PortError

from .wire import SIGNATURE, blocked, error_of, first_candidate, parts_of


class Folded:
    """The events of one reply, put together."""

    def __init__(self) -> None:
        self._frame: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []

    async def texts(self, received: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """Take in the events and give the text that they add.

        Raises PortError: the kind that an error event reports, `bad_response` for a broken event, `connection` for a
        stream that ends before the reply does.
        """
        async for event in received:
            data = json_from_wire(event)
            if not isinstance(data, Mapping):
                raise PortError("an event of the stream is not a JSON object", kind="bad_response")
            if "error" in data:
                raise error_of(None, data)
            if text := self._add(data):
                yield text
        if "finishReason" not in self._candidate and not blocked(self._frame):
            raise PortError("the stream ended before the reply did", kind="connection")

    def body(self) -> dict[str, Any]:
        """What the server would have sent without streaming."""
        candidates = [{**self._candidate, "content": {"parts": self._parts}}] if self._candidate else []
        return {**self._frame, "candidates": candidates}

    def _add(self, event: Mapping[str, Any]) -> str:
        self._frame.update({name: value for name, value in event.items() if name != "candidates"})
        candidate = first_candidate(event)
        self._candidate.update(candidate)
        added = ""
        for part in parts_of(candidate):
            if isinstance(text := part.get("text"), str):
                added += "" if part.get("thought") else text
                if self._continues(part):
                    self._parts[-1]["text"] += text
                    self._parts[-1] |= {SIGNATURE: part[SIGNATURE]} if SIGNATURE in part else {}
                    continue
            self._parts.append(dict(part))
        return added

    def _continues(self, part: Mapping[str, Any]) -> bool:
        """Whether a text goes on where the last part ended. A signature is that of the text before it."""
        last = self._parts[-1] if self._parts else {}
        alike = bool(last.get("thought")) == bool(part.get("thought"))
        return isinstance(last.get("text"), str) and alike and SIGNATURE not in last
