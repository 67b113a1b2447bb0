"""The Tavily search tool against a real HTTP server: request, reply, and everything that can go wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import karenina_deep_judgment.tavily
import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.services.shared import search_tool_of
from karenina_calls.tools.search import SearchResult
from karenina_deep_judgment.tavily import LONGEST_QUERY, POLICY, TavilySearch, TavilySettings

from karenina_core.errors import ConfigError, SearchError
from karenina_core.testing import application
from karenina_core.values.config import RetryPolicy

KEY = "tvly-canary-0123456789"
FOUND = {"title": "Targets", "url": "https://example.org", "content": "BCL2 is the target", "score": 0.9}


@define
class Reply:
    status: int = 200
    body: Any = field(factory=lambda: {"query": "x", "results": [FOUND], "response_time": 0.5})
    headers: Mapping[str, str] = field(factory=dict)
    seconds: float = 0.0

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@define
class Server:
    """What was asked, and what is answered; the last reply is repeated."""

    replies: list[Reply]
    url: str = ""
    requests: list[tuple[str, dict[str, str], Any]] = field(factory=list)


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    state = Server(list(replies) or [Reply()])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            reply = state.replies[min(len(state.requests), len(state.replies)) - 1]
            time.sleep(reply.seconds)
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.data)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.data)

        def log_message(self, *_: Any) -> None: ...

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None: ...  # a client that gave up

    with Quiet(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", KEY)


def search(server: Server | str, query: str = "Venetoclax targets BCL2", **options: Any) -> Any:
    url = server if isinstance(server, str) else server.url
    return asyncio.run(TavilySearch(TavilySettings(base_url=url, **options)).asearch(query))


def test_one_query_is_one_request_as_documented() -> None:
    with serving() as server:
        assert search(server) == (
            SearchResult(content="BCL2 is the target", title="Targets", url="https://example.org"),
        )
    ((path, headers, body),) = server.requests
    assert path == "/search"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert body == {"query": "Venetoclax targets BCL2", "search_depth": "basic", "max_results": 3}


def test_every_setting_has_its_effect() -> None:
    with serving() as server:
        search(f"{server.url}/proxy/", max_results=7, search_depth="advanced")
    ((path, _, body),) = server.requests
    assert path == "/proxy/search"
    assert (body["max_results"], body["search_depth"]) == (7, "advanced")
    with serving(Reply(seconds=0.5)) as server, pytest.raises(SearchError, match=r"0\.1 s"):
        search(server, timeout=0.1)


def test_the_settings_come_from_the_configuration() -> None:
    table = {"search-tavily": {"base_url": "http://127.0.0.1:1", "max_results": 2}}
    app = application(installed=["search-tavily"], settings=table)
    assert app.settings("search-tavily") == TavilySettings(base_url="http://127.0.0.1:1", max_results=2)
    with serving() as server:
        app = application(installed=["search-tavily"], settings={"search-tavily": {"base_url": server.url}})
        tool = search_tool_of(app, "tavily")
        assert len(asyncio.run(tool.asearch("x"))) == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "table",
    [
        {"base_url": "api.tavily.com"},
        {"base_url": "file:///etc/passwd"},
        {"base_url": "https://user:secret@example.org"},
        {"max_results": 0},
        {"max_results": 21},
        {"search_depth": "deep"},
        {"timeout": 0},
        {"timeout": 61},
        {"api_key": "x"},
    ],
)
def test_settings_that_cannot_work_are_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(table))):
        application(karenina_deep_judgment.tavily, settings={"tavily": table})


def test_nothing_found_is_an_empty_list() -> None:
    with serving(Reply(body={"results": []})) as server:
        assert search(server) == ()


@given(
    st.lists(st.sampled_from(["a", "venetoclax", " ", "\n", "é" * 90, "x" * 500]), min_size=1, max_size=120).map(
        " ".join
    )
)
@settings(database=None, deadline=None, derandomize=True)
def test_no_query_is_longer_than_the_api_allows(text: str) -> None:
    short = karenina_deep_judgment.tavily._shortened(text)
    plain = " ".join(text.split())
    assert len(short) <= LONGEST_QUERY
    assert plain.startswith(short)
    assert short == plain or " " not in plain[:LONGEST_QUERY] or plain[len(short)] == " "


FAULTS: list[tuple[Reply, str]] = [
    (
        Reply(401, {"detail": {"error": "Unauthorized: missing or invalid API key."}}),
        "HTTP 401: Unauthorized.*TAVILY_API_KEY",
    ),
    (Reply(400, {"detail": {"error": "Query is too long."}}), "HTTP 400: Query is too long"),
    (Reply(432, {"detail": {"error": "over the plan"}}), "HTTP 432: over the plan.*raise it"),
    (Reply(433, {}), "HTTP 433.*pay-as-you-go"),
    (Reply(403, b"<html>proxy</html>"), "HTTP 403: check TAVILY_API_KEY"),
    (Reply(302, b"", {"Location": "http://127.0.0.1:1/elsewhere"}), "HTTP 302"),
    (Reply(body=b"<html>"), "not JSON"),
    (Reply(body=b""), "empty"),
    (Reply(body=b"\xff\xfe"), "not UTF-8"),
    (Reply(body=[FOUND]), "no list of results.*base_url"),
    (Reply(body={"results": None}), "no list of results"),
    (Reply(body={"results": [{"text": "x"}]}), "must have content"),
    (Reply(body=gzip.compress(b"x" * 1000), headers={"Content-Encoding": "gzip"}), "packed"),
    (Reply(body=b"x" * 4_100_000), "larger than"),
    (Reply(headers={"Content-Length": "9999"}), "connection failed"),
]


@pytest.mark.parametrize(("reply", "message"), FAULTS)
def test_whatever_the_server_does_wrong_is_a_failed_search(reply: Reply, message: str) -> None:
    """Never an empty result; and the message says what, and where it can what to do."""
    with serving(reply) as server, pytest.raises(SearchError, match=message) as caught:
        search(server)
    assert KEY not in str(caught.value)


def test_a_server_that_is_not_there_is_a_failed_search() -> None:
    with serving() as server:
        pass
    with pytest.raises(SearchError, match=r"connection failed.*base_url"):
        search(server)


@pytest.mark.parametrize(("status", "attempts"), [(429, 3), (500, 2), (503, 2), (401, 1), (400, 1)])
def test_haste_and_failures_of_the_server_are_tried_again(
    status: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("rate_limited", "server", "connection", "timeout")
    quick = {kind: evolve(getattr(POLICY, kind), min_wait=0.0) for kind in kinds}
    monkeypatch.setattr(karenina_deep_judgment.tavily, "POLICY", RetryPolicy(**quick))
    with serving(Reply(status, {"detail": {"error": "no"}})) as server, pytest.raises(SearchError):
        search(server)
    assert len(server.requests) == attempts
    if attempts > 1:
        with serving(Reply(status), Reply()) as server:
            assert len(search(server)) == 1


def test_a_wait_that_the_server_asks_for_is_kept() -> None:
    with serving(Reply(429, {}, {"Retry-After": "0.2"}), Reply()) as server:
        started = time.monotonic()
        search(server)
        assert time.monotonic() - started >= 0.2
    with serving(Reply(429, {}, {"Retry-After": "60"})) as server, pytest.raises(SearchError, match="too many"):
        search(server, timeout=1.0)
    assert len(server.requests) == 1, "a wait beyond the time limit is not begun"


@pytest.mark.parametrize("value", [None, "", "  "])
def test_without_a_key_nothing_is_sent(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv("TAVILY_API_KEY")
    else:
        monkeypatch.setenv("TAVILY_API_KEY", value)
    tool = TavilySearch()
    assert "set TAVILY_API_KEY" in (tool.problem() or "")
    with serving() as server, pytest.raises(SearchError, match="set TAVILY_API_KEY"):
        search(server)
    assert server.requests == []


def test_the_key_is_never_shown(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """Not by a server that says it back, not in errors and their causes, not in what is printed or logged."""
    caplog.set_level("DEBUG")
    echoes: list[Callable[[], Reply]] = [
        lambda: Reply(401, {"detail": {"error": f"bad key {KEY}"}}),
        lambda: Reply(400, {"error": KEY}),
        lambda: Reply(302, b"", {"Location": f"http://127.0.0.1/{KEY}"}),
    ]
    for echo in echoes:
        with serving(echo()) as server, pytest.raises(SearchError) as caught:
            search(server)
        error: BaseException | None = caught.value
        while error is not None:
            assert KEY not in repr(error)
            error = error.__cause__
    assert KEY not in repr(TavilySearch()) + repr(TavilySettings())
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err + caplog.text
