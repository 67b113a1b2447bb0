"""The batch interface of OpenAI-compatible servers: a file of calls goes up, and files of replies come back.

Requests: `POST /files` (multipart: `purpose` = batch, `file`), `POST /batches`, `GET /batches/{id}`, `GET /batches` (a
list in pages, the latest batch first), `GET /files/{id}/content`, `POST /batches/{id}/cancel`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from karenina_calls.ports.batch import BatchCall, BatchState, BatchStatus
from karenina_calls.wire.openai_errors import error_from_wire, json_from_wire
from karenina_calls.wire.openai_wire import count_of, reply_from_wire

from karenina_core.errors import ErrorKind, PortError
from karenina_core.ports import LLMResponse, Message, OutputFormat
from karenina_core.values.config import ModelConfig

from .port import AT_ONCE, OpenAIEndpoint, json_object
from .settings import api_url
from .stream import pieces, too_large

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
CUSTOM_ID = re.compile(rb'"custom_id"\s*:\s*"([^"\\]{1,64})"')
FRONT = 4096
"""Bytes of a line that cannot be read in which its id is looked for."""


class OpenAIBatches(OpenAIEndpoint):
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
            self._uploaded[name] = _id(await self._asked("POST", "/files", data=form, headers=kind), "file")
        wanted = {
            "input_file_id": self._uploaded[name],
            "endpoint": COMPLETIONS,
            "completion_window": WINDOW,
            "metadata": {NAME: name},
        }
        batch_id = _id(await self._asked("POST", "/batches", data=json.dumps(wanted).encode()), "batch")
        del self._uploaded[name]
        return batch_id

    async def find(self, name: str) -> str | None:
        after = ""
        for _ in range(PAGES):
            try:
                page = await self._asked("GET", f"/batches?limit=100{after}")
            except PortError as error:
                if error.status in (404, 405, 501):  # a server without the list
                    return None
                raise
            listed = page.get("data")
            batches = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
            for batch in batches:
                about = batch.get("metadata")
                if isinstance(about, Mapping) and about.get(NAME) == name:
                    return _id(batch, "batch")
            if not batches or not page.get("has_more"):
                return None
            after = f"&after={_quoted(_id(batches[-1], 'batch'))}"
        return None

    async def poll(self, batch_id: str) -> BatchState:
        batch = await self._asked("GET", f"/batches/{_quoted(batch_id)}")
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
        batch = await self._asked("GET", f"/batches/{_quoted(batch_id)}")
        for name in ("output_file_id", "error_file_id"):
            if isinstance(file_id := batch.get(name), str) and file_id:
                async for line in self._lines(f"/files/{_quoted(file_id)}/content"):
                    if (found := _outcome(line, self._endpoint.limit)) is not None:
                        yield found

    async def cancel(self, batch_id: str) -> None:
        await self._asked("POST", f"/batches/{_quoted(batch_id)}/cancel", data=b"")

    def _at(self, path: str) -> tuple[str, str]:
        """A URL, and how errors name it."""
        plain, _, query = path.partition("?")
        url = api_url(self._endpoint.url, plain)
        shown = url.split("?")[0]
        return (f"{url}{'&' if '?' in url else '?'}{query}" if query else url), shown

    async def _asked(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """The JSON object that a request is answered with. Raises PortError."""
        url, shown = self._at(path)
        where = f"{method} {shown}"
        with self._failures(where):
            async with asyncio.timeout(self._endpoint.timeout) as limit:
                sent = data if data is None or len(data) <= AT_ONCE else self._sent(data, limit)
                received = await self._whole(await self._requested(where, method, url, data=sent, headers=headers))
            return json_object(received)

    async def _sent(self, data: bytes, limit: asyncio.Timeout) -> AsyncIterator[bytes]:
        """The same in pieces. Each that is taken restarts the time limit: as for a file that comes, see `_next`."""
        clock = asyncio.get_running_loop().time
        for begin in range(0, len(data), AT_ONCE):
            yield data[begin : begin + AT_ONCE]
            with suppress(RuntimeError):  # it is over, and what is still to be sent is not needed
                limit.reschedule(clock() + self._endpoint.timeout)

    async def _lines(self, path: str) -> AsyncIterator[bytes]:
        """The lines of a file, as they arrive; of one that is longer than a reply may be, only the beginning."""
        url, shown = self._at(path)
        with self._failures(f"GET {shown}"):
            async with asyncio.timeout(self._endpoint.timeout):
                response = await self._requested(f"GET {shown}", "GET", url)
            try:
                received = pieces(response, sys.maxsize)
                line, too_long = bytearray(), False
                while (piece := await self._next(received)) is not None:
                    *ends, rest = piece.split(b"\n")
                    for end in ends:
                        if not too_long:
                            line += end
                        yield bytes(line)
                        line, too_long = bytearray(), False
                    if not too_long:
                        line += rest
                    too_long = too_long or len(line) > self._endpoint.limit
                if line:
                    yield bytes(line)
            finally:
                response.release()

    async def _next(self, received: AsyncIterator[bytes]) -> bytes | None:
        """A file may take as long as it needs, but not stall: the time limit is that of each piece."""
        async with asyncio.timeout(self._endpoint.timeout):
            return await anext(received, None)


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


def _outcome(line: bytes, limit: int) -> tuple[str, Mapping[str, Any] | PortError] | None:
    """`(custom_id, ...)`; None for an empty line, and for one about no call."""
    if not line.strip():
        return None
    try:
        if len(line) > limit:
            raise too_large(limit)
        found = json_from_wire(line)
    except PortError as error:
        identifier = CUSTOM_ID.search(line[:FRONT])
        return None if identifier is None else (identifier[1].decode("utf-8", "replace"), error)
    if not isinstance(found, Mapping) or not isinstance(custom_id := found.get("custom_id"), str):
        return None
    return custom_id, _reply(found)


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


def _id(found: Mapping[str, Any], what: str) -> str:
    if isinstance(value := found.get("id"), str) and value:
        return value
    raise PortError(f"the server gives the {what} no id", kind="bad_response", raw=json.dumps(found, default=str))


def _quoted(identifier: str) -> str:
    return quote(identifier, safe="")
