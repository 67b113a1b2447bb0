"""Anthropic's Message Batches: https://platform.claude.com/docs/en/build-with-claude/batch-processing.

Requests: `POST /v1/messages/batches`, `GET .../{id}`, `GET .../{id}/results` (one line a call), `POST .../{id}/cancel`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from karenina_calls.ports.batch import BatchCall, BatchState
from karenina_calls.wire.http_batches import HttpBatchPort, id_of, line_of_batch, quoted
from karenina_calls.wire.openai_wire import count_of

from karenina_core.errors import PortError
from karenina_core.ports import LLMResponse, Message, OutputFormat

from .port import AnthropicMessages
from .settings import batches_url
from .wire import error_of, reply_from_wire


class AnthropicBatches(AnthropicMessages, HttpBatchPort):
    """A `BatchPort` for one model behind the Messages API."""

    def encode(
        self, messages: Sequence[Message], *, output: OutputFormat | None = None, temperature: float | None = None
    ) -> str:
        return json.dumps(self._body(messages, output, temperature))

    def decode(self, body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
        return reply_from_wire(body, output)

    async def submit(self, name: str, calls: Sequence[BatchCall]) -> str:
        """One request. The provider keeps no name of a batch."""
        requests = (f'{{"custom_id":{json.dumps(call.custom_id)},"params":{call.body}}}' for call in calls)
        data = f'{{"requests":[{",".join(requests)}]}}'.encode()
        return id_of(await self.request("POST", "", data=data), "batch")

    async def find(self, name: str) -> str | None:
        """None: a batch has no name here by which it could be found."""
        return None

    async def poll(self, batch_id: str) -> BatchState:
        batch = await self.request("GET", f"/{quoted(batch_id)}")
        given = batch.get("request_counts")
        counts = given if isinstance(given, Mapping) else {}
        is_over = batch.get("processing_status") == "ended"
        cancelled = is_over and batch.get("cancel_initiated_at") is not None
        return BatchState(
            status="cancelled" if cancelled else "ended" if is_over else "running",
            completed=count_of(counts.get("succeeded")) or 0,
            failed=sum(count_of(counts.get(name)) or 0 for name in ("errored", "canceled", "expired")),
        )

    async def fetch(self, batch_id: str) -> AsyncIterator[tuple[str, Mapping[str, Any] | PortError]]:
        async for line in self.lines(f"/{quoted(batch_id)}/results"):
            if (found := line_of_batch(line, self.endpoint.limit)) is not None:
                custom_id, outcome = found
                yield custom_id, outcome if isinstance(outcome, PortError) else _reply(outcome)

    async def cancel(self, batch_id: str) -> None:
        await self.request("POST", f"/{quoted(batch_id)}/cancel", data=b"")

    def address(self, path: str) -> tuple[str, str]:
        url = batches_url(self.endpoint.url, path)
        return url, url.split("?")[0]


def _reply(line: Mapping[str, Any]) -> Mapping[str, Any] | PortError:
    result = line.get("result")
    found = result if isinstance(result, Mapping) else {}
    match found.get("type"):
        case "succeeded" if isinstance(message := found.get("message"), Mapping):
            return message
        case "errored":
            return error_of(None, found.get("error"), where="in a batch")
        case "expired":
            return PortError("in a batch: the batch expired before this call was made", kind="timeout")
        case "canceled":
            return PortError("in a batch: the batch was cancelled before this call was made", kind="cancelled")
    return PortError("in a batch: a reply without a message", kind="bad_response", raw=json.dumps(line))
