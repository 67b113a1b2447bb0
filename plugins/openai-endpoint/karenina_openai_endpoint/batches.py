"""The batch interface of OpenAI-compatible servers: a file of calls goes up, and files of replies come back.

Requests: `POST /files` (multipart: `purpose` = batch, `file`), `POST /batches`, `GET /batches/{id}`, `GET /batches` (a
list in pages, the latest batch first), `GET /files/{id}/content`, `POST /batches/{id}/cancel`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from karenina_calls.ports.batch import BatchCall, BatchState, BatchStatus
from karenina_calls.wire.http_batches import HttpBatchPort, id_of, line_of_batch, quoted
from karenina_calls.wire.openai_errors import error_from_wire
from karenina_calls.wire.openai_wire import count_of, reply_from_wire

from karenina_core.errors import ErrorKind, PortError
from karenina_core.ports import LLMResponse, Message, OutputFormat
from karenina_core.values.config import ModelConfig

from .port import OpenAIEndpoint
from .settings import api_url

COMPLETIONS = "/v1/chat/completions"
"""The endpoint of a batch and the `url` of its calls, whatever the base URL of the server is."""
WINDOW = "24h"
"""The only completion window that there is."""
NAME = "karenina_batch"
"""In the metadata of a batch: what it is found by."""
PAGES = 20
"""Pages of 100 batches that are looked through for one."""
STATUSES: Mapping[str, BatchStatus] = {
    "completed": "ended",
    "failed": "failed",
    "expired": "expired",
    "cancelled": "cancelled",
}
"""Any other status is that of a batch which is not over."""
KINDS: Mapping[str, ErrorKind] = {
    "batch_expired": "timeout",
    "batch_cancelled": "cancelled",
    "token_limit_exceeded": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
}


class OpenAIBatches(OpenAIEndpoint, HttpBatchPort):
    """A `BatchPort` for one model behind an OpenAI-compatible server with a batch interface."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self._uploaded: dict[str, str] = {}
        """Files of batches that are not made yet, by name of the batch."""

    def encode(
        self, messages: Sequence[Message], *, output: OutputFormat | None = None, temperature: float | None = None
    ) -> str:
        return json.dumps(self._body(messages, output, temperature))

    def decode(self, body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
        return reply_from_wire(body, output)

    async def submit(self, name: str, calls: Sequence[BatchCall]) -> str:
        """Two requests. Where only the second one has failed, the next attempt begins with it."""
        if name not in self._uploaded:
            boundary = uuid.uuid4().hex
            form = _form(boundary, name, calls)
            kind = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Length": str(len(form))}
            self._uploaded[name] = id_of(await self.request("POST", "/files", data=form, headers=kind), "file")
        wanted = {
            "input_file_id": self._uploaded[name],
            "endpoint": COMPLETIONS,
            "completion_window": WINDOW,
            "metadata": {NAME: name},
        }
        batch_id = id_of(await self.request("POST", "/batches", data=json.dumps(wanted).encode()), "batch")
        del self._uploaded[name]
        return batch_id

    async def find(self, name: str) -> str | None:
        after = ""
        for _ in range(PAGES):
            try:
                page = await self.request("GET", f"/batches?limit=100{after}")
            except PortError as error:
                if error.status in (404, 405, 501):  # a server without the list
                    return None
                raise
            listed = page.get("data")
            batches = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
            for batch in batches:
                about = batch.get("metadata")
                if isinstance(about, Mapping) and about.get(NAME) == name:
                    return id_of(batch, "batch")
            if not batches or not page.get("has_more"):
                return None
            after = f"&after={quoted(id_of(batches[-1], 'batch'))}"
        return None

    async def poll(self, batch_id: str) -> BatchState:
        batch = await self.request("GET", f"/batches/{quoted(batch_id)}")
        counts = batch.get("request_counts")
        status = STATUSES.get(str(batch.get("status")), "running")
        problems = _problems(batch) if status == "failed" else []
        return BatchState(
            status=status,
            completed=_count(counts, "completed"),
            failed=_count(counts, "failed"),
            problem=problems[0][1] if problems else None,
            lines={line - 1: error for line, error in problems if line is not None},
        )

    async def fetch(self, batch_id: str) -> AsyncIterator[tuple[str, Mapping[str, Any] | PortError]]:
        """Replies first, then errors. A line that cannot be read is the error of its call, if its id can be read."""
        batch = await self.request("GET", f"/batches/{quoted(batch_id)}")
        for name in ("output_file_id", "error_file_id"):
            if isinstance(file_id := batch.get(name), str) and file_id:
                async for line in self.lines(f"/files/{quoted(file_id)}/content"):
                    if (found := line_of_batch(line, self.endpoint.limit)) is not None:
                        custom_id, outcome = found
                        yield custom_id, outcome if isinstance(outcome, PortError) else _reply(outcome)

    async def cancel(self, batch_id: str) -> None:
        await self.request("POST", f"/batches/{quoted(batch_id)}/cancel", data=b"")

    def address(self, path: str) -> tuple[str, str]:
        """A URL, and how errors name it."""
        plain, _, query = path.partition("?")
        url = api_url(self.endpoint.url, plain)
        shown = url.split("?")[0]
        return (f"{url}{'&' if '?' in url else '?'}{query}" if query else url), shown


def _form(boundary: str, name: str, calls: Sequence[BatchCall]) -> bytes:
    """The upload: a form with the purpose and the file, one call a line."""
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}.jsonl"\r\n'
        "Content-Type: application/jsonl\r\n\r\n"
    )
    lines = (
        f'{{"custom_id":{json.dumps(call.custom_id)},"method":"POST","url":"{COMPLETIONS}","body":{call.body}}}\n'
        for call in calls
    )
    return b"".join((head.encode(), *(line.encode() for line in lines), f"\r\n--{boundary}--\r\n".encode()))


def _reply(line: Mapping[str, Any]) -> Mapping[str, Any] | PortError:
    response = line.get("response")
    status = response.get("status_code") if isinstance(response, Mapping) else None
    body = response.get("body") if isinstance(response, Mapping) else None
    if isinstance(status, int) and status >= 300:
        return error_from_wire(status, body or line.get("error") or "", where="in a batch")
    if error := line.get("error"):
        return _error(error, "in a batch")
    if not isinstance(body, Mapping):
        return PortError("in a batch: a reply without a body", kind="bad_response", raw=json.dumps(line))
    return body


def _error(body: Any, where: str, kind: ErrorKind | None = None) -> PortError:
    """`kind` is that of errors whose code is not known; by default what their text gives."""
    error = error_from_wire(None, {"error": body}, where=where)
    code = body.get("code") if isinstance(body, Mapping) else None
    error.kind = KINDS.get(str(code), kind or error.kind)
    return error


def _problems(batch: Mapping[str, Any]) -> list[tuple[int | None, PortError]]:
    """Why a batch was refused, and in which lines of its file, counted from 1."""
    errors = batch.get("errors")
    listed = errors.get("data") if isinstance(errors, Mapping) else None
    found: list[tuple[int | None, PortError]] = []
    for entry in listed if isinstance(listed, list) else []:
        line = entry.get("line") if isinstance(entry, Mapping) else None
        error = _error(entry, "the batch was refused", "invalid_request")
        found.append((line if isinstance(line, int) and not isinstance(line, bool) else None, error))
    return found


def _count(counts: Any, name: str) -> int:
    return count_of(counts.get(name)) or 0 if isinstance(counts, Mapping) else 0
