"""The embedder `litellm` against a real HTTP server on loopback that serves `/embeddings`."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.services.embedding import EmbedderPort, Embeddings
from karenina_calls.services.shared import embedder_of
from karenina_calls.services.similarity import similarities
from karenina_embedding.litellm_plugin import LiteLLM, LiteLLMSettings

from karenina_core import Question, VerificationConfig, VerificationContext, hookimpl
from karenina_core.errors import AdapterUnavailableError, ConfigError, PortError
from karenina_core.testing import application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

Answer = tuple[int, Any, dict[str, str]]
KEY = "sk-canary-4711-secret"
NOWHERE = "http://127.0.0.1:9/v1"


class Patient(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is no failure of the server; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class EmbeddingServer:
    """Says what `script(request body)` says: a status, a body (JSON, or bytes as they are), headers."""

    def __init__(self) -> None:
        self.script: Callable[[dict[str, Any]], Answer] = vectors
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append({"path": self.path, **body})
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, reply, headers = server.script(body)
                data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.http = Patient(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


def vectors(body: dict[str, Any]) -> Answer:
    """One vector per text, in reverse, as a server may send them."""
    rows = [{"object": "embedding", "index": i, "embedding": [1.0, len(t)]} for i, t in enumerate(body["input"])]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    return 200, {"object": "list", "model": body["model"], "data": rows[::-1], "usage": usage}, {}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    running = EmbeddingServer()
    thread = threading.Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.http.shutdown()
    thread.join()
    running.http.server_close()


def embedded(server: EmbeddingServer, *texts: str, model: str = "m", **facts: Any) -> Embeddings:
    embedder = LiteLLM(model, LiteLLMSettings(api_base=server.url, **facts))
    return asyncio.run(embedder.aembed(texts))


def refused(server: EmbeddingServer, answer: Answer, **facts: Any) -> PortError:
    server.script = lambda body: answer
    with pytest.raises(PortError) as caught:
        embedded(server, "a", **facts)
    return caught.value


def test_it_asks_once_for_all_texts_and_puts_the_vectors_in_order(server: EmbeddingServer) -> None:
    found = embedded(server, "a", "bcd", "")
    assert found.vectors == ((1.0, 1.0), (1.0, 3.0), (1.0, 0.0))
    assert (found.model, found.usage.input_tokens, found.usage.cost_usd) == ("m", 5, None)
    (request,) = server.requests
    assert (request["path"], request["model"], request["input"]) == ("/v1/embeddings", "m", ["a", "bcd", ""])


def test_no_texts_need_no_call(server: EmbeddingServer) -> None:
    assert embedded(server).vectors == ()
    assert server.requests == []


def test_the_price_is_litellms_where_it_knows_one(server: EmbeddingServer) -> None:
    found = embedded(server, "a", model="text-embedding-3-small")
    assert found.usage.cost_usd == pytest.approx(5 * 0.02e-6)


def test_a_price_of_ones_own_counts_where_litellm_knows_none(server: EmbeddingServer) -> None:
    assert embedded(server, "a", input_cost_per_token=0.5).usage.cost_usd == 2.5
    assert embedded(server, "a", input_cost_per_token=0.0).usage.cost_usd == 0.0
    known = embedded(server, "a", model="text-embedding-3-small", input_cost_per_token=0.5)
    assert known.usage.cost_usd == pytest.approx(5 * 0.02e-6)


@pytest.mark.parametrize(("price", "cost"), [(None, None), (0.5, None), (0.0, 0.0)])
def test_tokens_that_are_not_reported_are_unknown(
    server: EmbeddingServer, price: float | None, cost: float | None
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        status, reply, headers = vectors(body)
        return status, {name: value for name, value in reply.items() if name != "usage"}, headers

    server.script = script
    found = embedded(server, "a", input_cost_per_token=price)
    assert (found.usage_unavailable, found.usage.cost_usd) == (True, cost)


def test_the_model_that_answered_is_the_one_that_counts(server: EmbeddingServer) -> None:
    server.script = lambda body: (200, {**vectors(body)[1], "model": "m-2025"}, {})
    assert embedded(server, "a").model == "m-2025"


def test_the_key_is_that_of_the_named_variable_and_no_other_goes_to_a_server_of_ones_own(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-meant-for-another-server")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Canary: secret")
    monkeypatch.setenv("MY_KEY", KEY)
    embedded(server, "a")
    embedded(server, "a", api_key_env="MY_KEY")
    assert [headers["authorization"] for headers in server.headers] == ["Bearer no-key", f"Bearer {KEY}"]
    assert not {"openai-organization", "x-canary"} & set(server.headers[0])


def test_openai_itself_is_asked_with_its_own_variables(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    found = asyncio.run(LiteLLM("openai/m").aembed(["a"]))
    assert (found.vectors, server.headers[0]["authorization"]) == (((1.0, 1.0),), f"Bearer {KEY}")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((429, {"error": {"message": "slow down"}}, {"Retry-After": "0.25"}), "rate_limited"),
        ((500, {"error": {"message": "boom"}}, {}), "server"),
        ((503, b"<html>busy</html>", {}), "server"),
        ((401, {"error": {"message": f"{KEY} is unknown"}}, {}), "auth"),
        ((404, {"error": {"message": "no such model"}}, {}), "invalid_request"),
        ((302, {}, {"Location": "http://127.0.0.1:9/"}), "invalid_request"),
        ((200, b"<html>hello</html>", {}), "bad_response"),
        ((200, {"object": "list", "model": "m", "data": [{"index": 0, "embedding": "AAAA"}]}, {}), "bad_response"),
        ((200, {"object": "list", "model": "m", "data": [{"index": 0}]}, {}), "bad_response"),
    ],
)
def test_a_failure_has_its_kind_after_one_request(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, answer: Answer, kind: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    error = refused(server, answer, api_key_env="MY_KEY")
    assert error.kind == kind, str(error)
    assert len(server.requests) == 1
    assert str(error).startswith(f"openai/m at {server.url}")
    assert KEY not in f"{error}{error.raw}{error.__cause__}"
    assert error.__suppress_context__
    assert error.retry_after == (0.25 if kind == "rate_limited" else None)


def test_a_server_that_is_not_there_is_a_matter_of_the_connection() -> None:
    with pytest.raises(PortError, match="check api_base") as caught:
        asyncio.run(LiteLLM("m", LiteLLMSettings(api_base=NOWHERE)).aembed(["a"]))
    assert caught.value.kind == "connection"


def test_a_server_that_does_not_answer_is_cut_off(server: EmbeddingServer) -> None:
    go = threading.Event()

    def hang(body: dict[str, Any]) -> Answer:
        go.wait(10)
        return vectors(body)

    server.script = hang
    with pytest.raises(PortError, match=r"no vectors within 0.3 s") as caught:
        embedded(server, "a", timeout=0.3)
    go.set()
    assert caught.value.kind == "timeout"


def test_a_failure_is_tried_again_by_the_retry_policy_of_the_run(server: EmbeddingServer) -> None:
    def busy(body: dict[str, Any]) -> Answer:
        return (
            (429, {"error": {"message": "busy"}}, {"Retry-After": "0.01"})
            if len(server.requests) < 3
            else vectors(body)
        )

    server.script = busy

    class Plugin:
        """Brings the embedder with its settings."""

        @hookimpl
        def karenina_register_embedders(self, registry: Any) -> None:
            registry.add(LiteLLM("m", LiteLLMSettings(api_base=server.url)), name="litellm")

    context = VerificationContext(
        question=Question(question="?"),
        app=application(Plugin()),
        config=VerificationConfig(
            embedding_check_embedder="litellm",
            embedding_check_model="m",
            retry_policy=RetryPolicy(rate_limited=AttemptPolicy(5, 0.0, 0.01)),
        ),
    )
    found = asyncio.run(similarities(context.app, context.config, context.calls, [("a", "a"), ("a", "bcdefgh")]))
    assert found.scores[0] == pytest.approx(1.0)
    assert found.scores[1] < 1
    (call,) = context.calls
    assert (call.attempts, call.retries, call.usage.input_tokens) == (3, {"rate_limited": 2}, 5)


# Before a run


def test_a_model_without_a_provider_needs_a_server() -> None:
    embedder: EmbedderPort = LiteLLM("all-MiniLM-L6-v2")
    assert "needs a provider before the model's name, such as openai/all-MiniLM-L6-v2" in str(embedder.problem())
    assert "api_base in [plugins.embedder-litellm]" in str(embedder.problem())
    assert LiteLLM("openai/m").problem() is None
    with pytest.raises(AdapterUnavailableError):
        asyncio.run(embedder.aembed(["a"]))


def test_a_missing_key_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LiteLLMSettings(api_key_env="KARENINA_NO_SUCH_KEY")
    assert LiteLLM("openai/m", settings).problem() == "set the environment variable KARENINA_NO_SUCH_KEY to your key"
    assert LiteLLM("openai/m", evolve(settings, api_key_env=None)).problem() is None


@pytest.mark.parametrize(
    ("reports", "settings"),
    [
        (True, LiteLLMSettings()),
        (True, LiteLLMSettings(input_cost_per_token=0.0)),
        (True, LiteLLMSettings(api_base=NOWHERE, input_cost_per_token=0.0)),
        (False, LiteLLMSettings(api_base=NOWHERE)),
    ],
)
def test_what_a_server_of_ones_own_costs_is_reported_where_the_settings_have_it(
    reports: bool, settings: LiteLLMSettings
) -> None:
    assert LiteLLM("openai/m", settings).reports_cost is reports


def test_its_settings_are_checked_and_reach_it_through_the_application() -> None:
    tables = {"embedder-litellm": {"api_base": NOWHERE, "timeout": 5.0}}
    app = application(installed=["embedder-litellm"], settings=tables)
    assert embedder_of(app, "litellm", "m").inner.settings == LiteLLMSettings(api_base=NOWHERE, timeout=5.0)
    with pytest.raises(ConfigError, match="timeout"):
        application(installed=["embedder-litellm"], settings={"embedder-litellm": {"timeout": 0.0}})


# What it touches

LIGHT = """
import sys
from karenina_embedding.litellm_plugin import LiteLLM, LiteLLMSettings
print(LiteLLM("m", LiteLLMSettings(api_base="http://127.0.0.1:9/v1")).problem(), "litellm" in sys.modules)
"""


def test_until_it_is_asked_litellm_is_not_imported() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", LIGHT], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("None False\n", "")


def test_nothing_is_reached_but_the_server_and_no_variable_is_changed(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What importing litellm does is seen in a process of its own in `plugins/litellm/tests/test_litellm_isolation.py`:
    both import it by `karenina_litellm.library`."""
    reached: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[Any, ...]) -> None:  # a hook stays
        if watching and event in ("socket.connect", "socket.sendto"):
            reached.append(repr(arguments[1]))
        elif watching and event == "socket.getaddrinfo":
            reached.append(repr(arguments[0]))

    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    before = dict(os.environ)
    sys.addaudithook(watch)
    try:
        found = asyncio.run(LiteLLM("m", LiteLLMSettings(api_base=server.url)).aembed(["a"]))
    finally:
        watching = False
    host, port = server.url.removeprefix("http://").removesuffix("/v1").split(":")
    assert found.vectors == ((1.0, 1.0),)
    assert repr((host, int(port))) in reached
    assert set(reached) <= {repr((host, int(port))), repr(host), repr(host.encode()), "None"}
    assert {name for name, value in os.environ.items() if before.get(name) != value} <= {
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "LITELLM_MODE",
        "LITELLM_OFFLINE_MODE",
        "TIKTOKEN_CACHE_DIR",
        "PYTEST_CURRENT_TEST",
    }
