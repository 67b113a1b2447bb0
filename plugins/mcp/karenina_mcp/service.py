"""The line to a service on the web: the transports of the SDK, with an HTTP client that reads within bounds."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .addresses import Service
from .session import MOST_BYTES, Line


@asynccontextmanager
async def reached(
    service: Service, headers: Mapping[str, str], line: Line, patience: Mapping[str, float | None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The service, as the streams of messages that the SDK works with. `patience` is for `httpx.Timeout`."""

    def client(**more: Any) -> Any:
        return _client(service, {**headers, **(more.get("headers") or {})}, line, patience)

    if service.events:
        sse = importlib.import_module("mcp.client.sse")
        async with sse.sse_client(service.url, httpx_client_factory=client) as streams:
            yield streams
        return
    streamable = importlib.import_module("mcp.client.streamable_http")
    async with (
        client() as http,
        streamable.streamable_http_client(service.url, http_client=http, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


def _client(service: Service, headers: Mapping[str, str], line: Line, patience: Mapping[str, float | None]) -> Any:
    """A client that waits for answers as long as its caller does, and reads no body of more than `MOST_BYTES`.

    What is compressed is refused: a small body may hold a huge one.
    """
    httpx: Any = importlib.import_module("httpx2")

    class Bounded(httpx.AsyncByteStream):  # type: ignore[misc]  # the module is imported here and not before
        """A body that ends with an error where it is too long."""

        def __init__(self, stream: Any) -> None:
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for part in self.stream:
                read += len(part)
                if read > MOST_BYTES:
                    raise httpx.StreamError(f"the answer is longer than {MOST_BYTES // 1024**2} MB; ask for less")
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()

    class Followed(Bounded):
        """The stream that a service with server-sent events keeps open: where it ends, the connection has ended."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for part in self.stream:
                    yield part
            finally:
                line.end()

    async def watch(response: Any) -> None:
        if response.status_code >= 400 and (response.request.method == "POST" or service.events):
            line.status = response.status_code
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise httpx.DecodingError("the service compresses its answers although it was asked not to")
        if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            response.stream = Bounded(response.stream)  # the SDK limits each event itself
        elif service.events:
            response.stream = Followed(response.stream)

    return httpx.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx.Timeout(**patience),
        event_hooks={"response": [watch]},
    )
