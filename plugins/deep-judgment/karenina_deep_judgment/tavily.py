"""The search tool `tavily`: the search API of Tavily.

Request and reply as documented at https://docs.tavily.com/documentation/api-reference/endpoint/search. The key comes
from the environment variable TAVILY_API_KEY and goes nowhere but into the request.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import field, frozen, validators
from karenina_calls.ports.retry import with_retries
from karenina_calls.tools.search import SearchResult, read_results
from karenina_calls.wire.openai_errors import json_from_wire, kind_of_status, raw_text, retry_after_seconds

from karenina_core import hookimpl
from karenina_core.errors import PortError, SearchError, one_line
from karenina_core.values.config import AttemptPolicy, RetryPolicy

KEY = "TAVILY_API_KEY"
LONGEST_QUERY = 400
"""Characters; Tavily refuses longer queries."""
MOST_BYTES = 4_000_000  # chosen, far above 20 results
POLICY = RetryPolicy(  # chosen, so that all attempts fit into the default `timeout`
    rate_limited=AttemptPolicy(3, 0.5, 5.0),
    server=AttemptPolicy(2, 0.5, 2.0),
    connection=AttemptPolicy(2, 0.5, 2.0),
    timeout=AttemptPolicy(1),
)
REMEDIES = {
    401: f"check {KEY}",
    403: f"check {KEY}",
    429: "too many searches at once; try again later, or use another search tool",
    432: "the plan's limit is reached; raise it, or use another search tool",
    433: "the limit of pay-as-you-go is reached; raise it, or use another search tool",
}


def _base_url(_: object, attribute: Any, value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"{attribute.name} must begin with http:// or https://, name a host and hold no password")


@frozen(kw_only=True)
class TavilySettings:
    """`[plugins.search-tavily]`"""

    base_url: str = field(default="https://api.tavily.com", validator=_base_url)
    """Where the API is; `/search` is added."""
    max_results: int = field(default=3, validator=[validators.ge(1), validators.le(20)])
    search_depth: Literal["basic", "advanced"] = "basic"
    """`advanced` finds more and costs twice as much."""
    timeout: float = field(default=30.0, validator=[validators.gt(0), validators.le(60)])
    """Seconds for one query with all its attempts; at most 60, the limit of every search tool."""


@frozen
class TavilySearch:
    """A `SearchTool`. Every query is one HTTP request, on a connection of its own; refusals for haste and failures of
    the server are tried again."""

    settings: TavilySettings = field(factory=TavilySettings)

    def problem(self) -> str | None:
        if _key():
            return None
        return f"the search tool 'tavily' needs a key: set {KEY} in the environment (https://app.tavily.com)"

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """Raises SearchError, also where there is no key."""
        key = _key()
        if not key:
            raise SearchError(self.problem())
        try:
            found = await with_retries(
                lambda: self._asked(_shortened(query), key), POLICY, max_elapsed=self.settings.timeout
            )
        except PortError as error:
            raise SearchError(f"tavily: {error}".replace(key, "***")) from None
        if not isinstance(found, Mapping) or not isinstance(found.get("results"), list):
            raise SearchError("tavily: the reply holds no list of results; check base_url in [plugins.search-tavily]")
        return read_results(found["results"])

    async def _asked(self, query: str, key: str) -> Any:
        import aiohttp

        body = {"query": query, "search_depth": self.settings.search_depth, "max_results": self.settings.max_results}
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Accept-Encoding": "identity"}
        url = f"{self.settings.base_url.rstrip('/')}/search"
        try:
            async with (
                aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as session,
                session.post(url, data=json.dumps(body), headers=headers, allow_redirects=False) as response,
            ):
                if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                    raise PortError("the reply is packed, which was not requested", kind="bad_response")
                received = bytearray()
                async for piece in response.content.iter_any():
                    received += piece
                    if len(received) > MOST_BYTES:
                        raise PortError(f"the reply is larger than {MOST_BYTES} bytes", kind="too_large")
                return _content(response.status, response.headers, bytes(received))
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            remedy = "check the network, and base_url in [plugins.search-tavily]"
            raise PortError(f"the connection failed: {one_line(error, 200)}; {remedy}", kind="connection") from None
        except aiohttp.ClientError as error:  # their text may hold the request
            raise PortError(f"the HTTP exchange failed: {type(error).__name__}", kind="bad_response") from None


def _key() -> str:
    return os.environ.get(KEY, "").strip()


def _shortened(query: str) -> str:
    """A query that the API allows, cut between words."""
    words = " ".join(query.split())
    if len(words) <= LONGEST_QUERY:
        return words
    return words[: LONGEST_QUERY + 1].rpartition(" ")[0] or words[:LONGEST_QUERY]


def _content(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """The JSON value of a reply. Raises PortError for every status but success."""
    if 200 <= status < 300:
        return json_from_wire(body)
    try:
        message = json_from_wire(body)
    except PortError:
        message = None  # a proxy's page
    for name in ("detail", "error", "message"):
        message = message.get(name, message) if isinstance(message, Mapping) else message
    parts = [f"HTTP {status}", raw_text(message)[:200] if message else "", REMEDIES.get(status, "")]
    raise PortError(
        ": ".join(part for part in parts if part),
        kind=kind_of_status(status),
        retry_after=retry_after_seconds(headers, time.time()),
        status=status,
    )


@hookimpl
def karenina_register_search_tools(registry: Any) -> None:
    registry.add(TavilySearch, name="tavily")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(TavilySettings)
