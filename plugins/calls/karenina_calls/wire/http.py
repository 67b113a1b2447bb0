"""The HTTP client of adapters: one request per call, over connections that all models of an event loop share.

It is aiohttp, and needs the extra `http` of karenina-calls.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, Protocol
from weakref import WeakKeyDictionary, ref

import aiohttp
from attrs import define

from karenina_core.errors import PortError, one_line
from karenina_core.ports.values import LLMResponse
from karenina_core.secrets import SHORTEST
from karenina_core.values.config import ModelConfig

from ..ports.text import sanitize
from ..ports.waiting import time_limit
from ..secrets.redaction import redactor
from .bodies import ACCEPTED_ENCODINGS, events, pieces, whole
from .endpoints import Endpoint
from .openai_errors import error_from_wire, json_from_wire, retry_after_seconds

MOST_ERROR_BYTES = 65536  # of a body that is kept; chosen
AT_ONCE = 65536
"""Bytes of a request."""
REMEDIES = {
    401: "check the key (endpoint_api_key or api_key_env)",
    403: "check the key (endpoint_api_key or api_key_env)",
    404: "check endpoint_base_url and the model's name",
}


@define(eq=False, weakref_slot=True)
class Connections:
    """The pool of one event loop. What it holds knows nothing of keys: those are in the requests of each session."""

    connector: aiohttp.TCPConnector
    users: int = 0

    @classmethod
    def of_loop(cls) -> Connections:
        """The pool of the running event loop, for one more user, who gives it back with `leave`."""
        loop = asyncio.get_running_loop()
        known = _pools.get(loop)
        found = known() if known is not None else None
        if found is None or found.connector.closed:
            found = cls(aiohttp.TCPConnector(limit=0))
            _pools[loop] = ref(found)
        found.users += 1
        return found

    async def leave(self) -> None:
        """The last user closes the connections."""
        self.users -= 1
        if self.users == 0:
            await self.connector.close()


_pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Connections]] = WeakKeyDictionary()
"""Held by their users alone."""


class Folding(Protocol):
    """The events of one streamed reply, put together."""

    def texts(self, received: AsyncIterator[bytes]) -> AsyncIterator[str]:
        """Take in the events and give the text that they add. Raises PortError, also where the reply is not whole."""

    def body(self) -> Mapping[str, Any]:
        """What the server would have sent without streaming."""


class HttpPort(ABC):
    """A port for one model behind an HTTP server, to derive from.

    A subclass says `endpoint`, adds `ainvoke`, and overrides `headers` and `error_from` where its server wants a key or
    reports errors in another form than most do. In `ainvoke` it turns the messages into a body and asks:

        with self.failures():
            return reply_from(await self.ask(body))

    Neither proxies nor credentials are taken from the environment or from `~/.netrc`, cookies are not kept, redirects
    are not followed: a call goes to the configured server and carries the configured key, or it fails. The number of
    connections is not limited here. A port belongs to the event loop in which it is first used, until `aclose`.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        """What the user says of the model."""
        self._session: aiohttp.ClientSession | None = None
        self._connections: Connections | None = None

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Where calls are sent, with which key and limits: `Endpoint.of(self.config, url, self.config.api_key())`.

        To be made once (`functools.cached_property`). Raises ConfigError where the configuration cannot work.
        """

    def headers(self) -> dict[str, str]:
        """What every request carries beside its content type. To override; by default the key as a bearer token."""
        return {"Authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def error_from(
        self, status: int | None, body: Any, *, where: str = "", retry_after: float | None = None
    ) -> PortError:
        """The error that the server reports with an HTTP status. To override for bodies that are not understood.

        `body` is the parsed JSON, or text. Understood are `{"error": {"message": ..., "code": ..., "type": ...}}`, the
        same without `error`, and plain text; a `code` of `content_filter` gives an error of that kind. An adapter whose
        server says it otherwise brings it into this form and calls `super().error_from`.
        """
        return error_from_wire(status, body, where=where, retry_after=retry_after)

    async def aopen(self) -> None:
        """Make the HTTP session now, not at the first call. Raises ConfigError where the configuration cannot work."""
        self._opened()

    async def aclose(self) -> None:
        session, self._session = self._session, None
        connections, self._connections = self._connections, None
        if session is not None:
            await session.close()
        if connections is not None:
            await connections.leave()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Content-Type": "application/json", "Accept-Encoding": ACCEPTED_ENCODINGS, **self.headers()}
            self._connections = Connections.of_loop()
            self._session = aiohttp.ClientSession(
                connector=self._connections.connector,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post a call: the JSON object that the server answers with. To be used within `failures`."""
        with time_limit(self.endpoint.timeout):
            data = await self._whole(await self.post(body))
        return json_object(data)

    async def stream(
        self, body: Mapping[str, Any], folded: Folding, read: Callable[[Mapping[str, Any]], LLMResponse], url: str = ""
    ) -> AsyncIterator[str | LLMResponse]:
        """Post a call: the texts of the reply as they arrive, and the reply, which `read` makes of its body.

        `url` is by default that of the endpoint. A server that does not stream answers at once. Raises PortError.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        with self.failures():
            async with asyncio.timeout(self.endpoint.timeout):
                response = await self.post(body, url)
            try:
                received = timed(pieces(response, self.endpoint.limit), self.endpoint.timeout - (clock() - started))
                if response.content_type != "text/event-stream":
                    reply = read(json_object(b"".join([piece async for piece in received])))
                    yield reply.content
                    yield reply
                    return
                async for text in folded.texts(events(received)):
                    yield sanitize(text)[0]
            finally:
                response.release()
            yield read(folded.body())

    async def post(self, body: Mapping[str, Any], url: str = "") -> aiohttp.ClientResponse:
        """Post a call: the response, once its headers have arrived, for replies that are read while they arrive.

        To be used within `failures`, which does not limit the time. Raises PortError for an error status.
        The caller releases it: back into the pool where the whole body was read, closed otherwise.
        """
        data = json.dumps(body).encode()
        # In pieces: no other task runs while bytes are sent.
        sent = aiohttp.BytesPayload(data) if len(data) <= AT_ONCE else BytesIO(data)
        return await self._requested(self.endpoint.where, "POST", url or self.endpoint.url, data=sent)

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await whole(response, self.endpoint.limit)
        finally:
            response.release()

    async def _requested(self, where: str, method: str, url: str, **sent: Any) -> aiohttp.ClientResponse:
        """Like `post`, for any request; errors name it as `where`."""
        response = await self._opened().request(method, url, allow_redirects=False, **sent)
        if 200 <= response.status < 300:
            return response
        body = b""
        try:
            with suppress(PortError, aiohttp.ClientError):  # a broken body does not hide the status
                async for piece in pieces(response, self.endpoint.limit):
                    body += piece
                    if len(body) >= MOST_ERROR_BYTES:
                        break
        finally:
            response.release()
        body_error: Any = body.decode("utf-8", "replace")
        with suppress(PortError):
            body_error = json_from_wire(body)
        if 300 <= response.status < 400:
            target = response.headers.get("Location", "nowhere").split("?")[0]
            body_error = f"redirects to {target}; set endpoint_base_url to where the server is"
        retry_after = retry_after_seconds(response.headers, time.time())
        error = self.error_from(response.status, body_error, where=where, retry_after=retry_after)
        if remedy := REMEDIES.get(response.status):
            error.args = (f"{error}; {remedy}",)
        raise error

    @contextmanager
    def failures(self, where: str = "") -> Iterator[None]:
        """Turn whatever goes wrong in the block into a PortError that names the server (or `where`) and never the key.

        The cause is cut off: errors of aiohttp carry the request with its headers.
        """
        try:
            yield
        except PortError as error:
            raise self._located(error, str(error), where) from None
        except TimeoutError:
            message = f"no complete reply within {self.endpoint.timeout:g} s (request_timeout)"
            raise self._located(PortError("", kind="timeout"), message, where) from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            message = f"the connection failed: {one_line(error, 300)}; check that the server runs and endpoint_base_url"
            raise self._located(PortError("", kind="connection"), message, where) from None
        except aiohttp.ClientError as error:
            # Their text may hold the whole URL; only `message` is known not to.
            message = f"the HTTP exchange failed: {getattr(error, 'message', '') or type(error).__name__}"
            raise self._located(PortError("", kind="bad_response"), message, where) from None

    def _located(self, error: PortError, message: str, where: str) -> PortError:
        where = where or self.endpoint.where
        error.args = (self._without_key(message if message.startswith(where) else f"{where}: {message}"),)
        error.raw = self._without_key(error.raw) if error.raw is not None else None
        return error

    def _without_key(self, text: str) -> str:
        key = self.endpoint.key or ""
        cleaned: str = redactor([key])(text) if len(key) >= SHORTEST else text
        return cleaned


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in the body of a reply. Raises PortError."""
    body = json_from_wire(data)
    if not isinstance(body, dict):
        raise PortError("the body of the reply is not a JSON object", kind="bad_response", raw=json.dumps(body))
    return body


async def timed(received: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """The same pieces. Raises TimeoutError after `seconds` of waiting; the reader's own time is not counted."""
    clock = asyncio.get_running_loop().time
    while True:
        started = clock()
        async with asyncio.timeout(seconds):
            piece = await anext(received, None)
        if piece is None:
            return
        seconds -= clock() - started
        yield piece
