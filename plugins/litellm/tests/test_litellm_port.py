"""The port against a real server: what litellm sends for it, and what it makes of replies."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest
from karenina_litellm import library
from karenina_litellm.port import LiteLLM

from karenina_core.errors import ConfigError, PortError
from karenina_core.ports import LLMPort, LLMResponse, OutputFormat, StreamingLLMPort
from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, ToolUseBlock

T = TypeVar("T")
KEY = "sk-canary-0123456789"
ASK = [Message.system("Be exact."), Message.user("Capital of France?")]
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}


def config(url: str | None, **fields: Any) -> ModelConfig:
    return ModelConfig(
        **{"model_name": "m", "endpoint_base_url": url, "endpoint_api_key": KEY, "request_timeout": 20.0, **fields}
    )


def use(port: LiteLLM, work: Callable[[LiteLLM], Awaitable[T]]) -> T:
    async def run() -> T:
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


def ask(server: ScriptedServer, output: OutputFormat | None = None, **fields: Any) -> LLMResponse:
    return use(LiteLLM(config(server.url, **fields)), lambda port: port.ainvoke(ASK, output=output))


def failure(url: str | None, **fields: Any) -> PortError:
    with pytest.raises(PortError) as failed:
        use(LiteLLM(config(url, **fields)), lambda port: port.ainvoke(ASK))
    return failed.value


def test_it_is_both_ports_and_says_what_it_can_without_being_opened() -> None:
    port = LiteLLM(config("http://localhost:1"))
    assert isinstance(port, LLMPort)
    assert isinstance(port, StreamingLLMPort)
    assert port.capabilities.output_channels == ("json_schema", "tool_call", "json_object", "text")
    assert port.capabilities.supports_structured_output
    assert port.capabilities.supports_streaming


def test_a_configuration_that_cannot_work_opens_no_port() -> None:
    port = LiteLLM(config("http://h", extra_kwargs={"num_retries": 2}))
    with pytest.raises(ConfigError, match="num_retries"):
        asyncio.run(port.aopen())


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("model_name", {"model_name": "gpt-x"}),
        ("model_name", {"model_name": "meta-llama/Llama-3-8b"}),
        ("model_provider", {"model_provider": "unknown"}),
        ("model_provider", {"model_provider": "unknown", "endpoint_base_url": "http://127.0.0.1:1"}),
    ],
)
def test_a_model_without_a_provider_that_litellm_knows_opens_no_port(field: str, fields: dict[str, Any]) -> None:
    port = LiteLLM(ModelConfig(**{"model_name": "m", **fields}))
    with pytest.raises(ConfigError, match=r"PROVIDER/NAME.*--parsing-base-url") as refused:
        asyncio.run(port.aopen())
    assert [problem.path for problem in refused.value.problems] == [field]


@pytest.mark.parametrize(
    "fields",
    [
        {"model_name": "gpt-4o"},
        {"model_name": "claude-sonnet-4-5"},
        {"model_name": "openai/not-in-any-list"},
        {"model_name": "publicai/m"},
        {"model_name": "github_copilot/m"},
        {"model_name": "of-the-user"},
        {"model_name": "home/m"},
        {"model_name": "m", "extra_kwargs": {"custom_llm_provider": "home"}},
        {"model_name": "m", "model_provider": "home"},
        {"model_name": "m", "model_provider": "groq"},
        {"model_name": "meta-llama/Llama-3-8b", "endpoint_base_url": "http://127.0.0.1:1"},
        {"model_name": "m", "endpoint_base_url": "https://api.groq.com/openai/v1"},
    ],
)
def test_a_model_whose_provider_litellm_knows_opens_also_one_that_the_user_has_registered(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened() -> None:
        litellm = await library.load()
        monkeypatch.setattr(litellm, "custom_provider_map", [{"provider": "home", "custom_handler": None}])
        litellm.register_model({"of-the-user": {"litellm_provider": "openai"}})
        port = LiteLLM(ModelConfig(**fields))
        await port.aopen()
        await port.aclose()

    asyncio.run(opened())


def test_a_call_is_one_request_with_the_configured_parameters_and_nothing_else() -> None:
    with ScriptedServer("Paris") as server:
        reply = ask(server, extra_kwargs={"seed": 7, "extra_body": {"top_k": 3}})
    assert reply.content == "Paris"
    assert server.count == 1
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Capital of France?"}],
        "temperature": 0.1,
        "seed": 7,
        "top_k": 3,
    }


def test_a_parameter_that_is_set_to_nothing_is_not_sent() -> None:
    with ScriptedServer("x") as server:
        ask(server, temperature=None, max_tokens=None)
    assert set(server.requests[0].body) == {"model", "messages"}


def test_litellm_cannot_write_into_the_configuration() -> None:
    extra = {"metadata": {"mine": 1}}
    with ScriptedServer("x") as server:
        ask(server, extra_kwargs=extra)
    assert extra == {"metadata": {"mine": 1}}


def test_a_temperature_of_the_call_overrides_that_of_the_model() -> None:
    with ScriptedServer("x") as server:
        use(LiteLLM(config(server.url)), lambda port: port.ainvoke(ASK, temperature=0.0))
    assert server.requests[0].body["temperature"] == 0.0


def test_the_same_base_url_works_with_and_without_v1_and_with_a_query() -> None:
    with ScriptedServer("x") as server:
        bare = server.url.removesuffix("/v1")
        for url in (bare, server.url, f"{server.url}/", f"{server.url}/chat/completions", f"{bare}?version=1"):
            use(LiteLLM(config(url)), lambda port: port.ainvoke(ASK))
    paths = [request.path for request in server.requests]
    assert paths == ["/v1/chat/completions"] * 4 + ["/v1/chat/completions?version=1"]


@pytest.mark.parametrize("provider", [None, "hosted_vllm", "deepseek"])
@pytest.mark.parametrize("channel", ["json_schema", "tool_call", "json_object", "text"])
def test_every_channel_carries_structured_output(channel: Any, provider: str | None) -> None:
    with ScriptedServer({"capital": "Paris"}) as server:
        reply = ask(server, OutputFormat(channel, SCHEMA), model_provider=provider)
    request = server.requests[0]
    assert request.channel == channel
    assert json.loads(reply.structured or reply.content) == {"capital": "Paris"}
    assert (reply.structured is not None) == (channel == "tool_call")
    assert not any(name.startswith("_") for name in request.body)
    if channel == "json_schema":
        assert request.schema == {**SCHEMA, "additionalProperties": False}
        assert request.body["response_format"]["json_schema"]["strict"] is True


def test_what_the_reply_says_about_itself_arrives() -> None:
    script = Reply("Paris", reasoning="Capitals.", model="served-1", usage=(30, 20), finish_reason="length")
    with ScriptedServer(script) as server:
        reply = ask(server)
    assert reply.thinking == "Capitals."
    assert reply.actual_model == reply.usage.model == "served-1"
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (30, 20, 50)
    assert reply.finish_reason == "length"
    assert reply.is_partial
    assert not reply.usage_unavailable


def test_cached_tokens_arrive() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 8},
    }
    body = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}], "usage": usage}
    with ScriptedServer(Reply(body=json.dumps(body).encode())) as server:
        assert ask(server).usage.cache_read_tokens == 8


def test_tool_calls_arrive() -> None:
    with ScriptedServer(Reply(tool_calls=(ToolUseBlock("c1", "look", {"at": [1]}),))) as server:
        reply = ask(server)
    assert reply.tool_calls == (ToolUseBlock("c1", "look", {"at": [1]}),)
    assert reply.content == ""


def test_usage_that_no_server_reported_is_unavailable_and_free_of_charge_is_not_claimed() -> None:
    with ScriptedServer(Reply("x", usage=None)) as server:
        reply = ask(server, model_name="gpt-4o")
    assert reply.usage_unavailable
    assert reply.usage.cost_usd is None
    assert reply.usage.total_tokens == 0


@pytest.mark.parametrize(
    ("name", "extra", "cost"),
    [
        ("gpt-4o", {}, 100 * 2.5e-6 + 20 * 10e-6),
        ("nobody-knows-this", {}, None),
        ("o1-nobody-knows-this", {}, None),
        ("priced", {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}, 1.4e-4),
        ("given-away", {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}, 0.0),
    ],
)
def test_the_cost_is_litellms_or_unknown_but_never_a_made_up_zero(
    name: str, extra: dict[str, float], cost: float | None
) -> None:
    with ScriptedServer(Reply("x", usage=(100, 20))) as server:
        reply = ask(server, model_name=name, extra_kwargs=extra)
    assert reply.usage.cost_usd == (cost if cost is None else pytest.approx(cost))
    assert set(server.requests[0].body) == {"model", "messages", "temperature"}


def test_odd_characters_are_made_writable_and_flagged() -> None:
    with ScriptedServer(Reply("a\ud800b\0")) as server:
        reply = ask(server)
    assert reply.content == "a\ufffdb\0"
    assert set(reply.flags) == {"lone_surrogate", "nul"}


def test_no_parameter_is_dropped_behind_the_users_back(monkeypatch: pytest.MonkeyPatch) -> None:
    import litellm

    monkeypatch.setattr(litellm, "drop_params", True)
    with ScriptedServer("x") as server:
        error = failure(server.url, model_name="gpt-5", temperature=0.1)
    assert (error.kind, error.status) == ("invalid_request", 400)
    assert "temperature" in str(error)
    assert "Leave it out of the model's configuration" in str(error)
    assert "drop_params" not in str(error)
    assert server.count == 0


def test_a_cancelled_call_ends_at_once_and_the_server_sees_it() -> None:
    async def work(port: LiteLLM) -> float:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(port.ainvoke(ASK))
        await asyncio.to_thread(server.wait_for, 1)
        started = loop.time()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return loop.time() - started

    with ScriptedServer(Reply("x", delivery="hang", amount=20)) as server:
        assert use(LiteLLM(config(server.url)), work) < 1
        for _ in range(100):
            if server.in_flight == 0:
                break
            threading.Event().wait(0.02)
        assert server.in_flight == 0


def test_calls_that_are_cancelled_before_they_begin_leave_nothing_behind() -> None:
    async def work(port: LiteLLM) -> None:
        for step in range(20):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(step * 0.0005):
                    await port.ainvoke(ASK)
        gc.collect()

    with ScriptedServer(Reply("x", delivery="hang", amount=20)) as server:
        use(LiteLLM(config(server.url)), work)


def test_a_port_can_be_closed_twice_and_used_again() -> None:
    async def run() -> list[str]:
        port = LiteLLM(config(server.url))
        texts = []
        for _ in range(2):
            await port.aopen()
            await port.aopen()
            texts.append((await port.ainvoke(ASK)).content)
            await port.aclose()
            await port.aclose()
        return texts

    with ScriptedServer(["one", "two"]) as server:
        assert asyncio.run(run()) == ["one", "two"]


@pytest.mark.parametrize("provider", [None, "deepseek"])
def test_closing_one_port_does_not_disturb_another(provider: str | None) -> None:
    async def run() -> str:
        first, second = (LiteLLM(config(server.url, model_provider=provider)) for _ in range(2))
        await first.ainvoke(ASK)
        await second.aopen()
        call = asyncio.create_task(second.ainvoke(ASK))
        await asyncio.to_thread(server.wait_for, 2)
        await first.aclose()
        text = (await call).content
        await second.aclose()
        again = LiteLLM(config(server.url, model_provider=provider))
        try:
            return text + (await again.ainvoke(ASK)).content
        finally:
            await again.aclose()

    with ScriptedServer(["x", Reply("x", latency=0.2), "x"]) as server:
        assert asyncio.run(run()) == "xx"
    assert not list(library._users)


def test_connections_that_litellm_shares_are_opened_again_after_they_were_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def run() -> list[str]:
        texts = []
        for _ in range(3):
            port = LiteLLM(config(None, model_provider="openai"))
            texts.append((await port.ainvoke(ASK)).content)
            await port.aclose()
        return texts

    with ScriptedServer("x") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert asyncio.run(run()) == ["x"] * 3


def test_nothing_stays_connected_after_the_last_port() -> None:
    with ScriptedServer("x") as server:
        for provider in (None, "deepseek"):
            ask(server, model_provider=provider)
        for _ in range(100):
            if server.connections == 0:
                break
            threading.Event().wait(0.02)
        assert server.connections == 0


def test_no_task_of_litellm_is_left_after_the_last_port() -> None:
    async def run(url: str) -> set[str]:
        port = LiteLLM(config(url))
        await port.ainvoke(ASK)
        call = asyncio.ensure_future(port.ainvoke(ASK))
        await asyncio.sleep(0.05)
        call.cancel()
        await asyncio.wait({call})
        await port.aclose()
        return {str(task.get_coro()) for task in asyncio.all_tasks() - {asyncio.current_task()}}

    with ScriptedServer("x") as server:
        assert not [left for left in asyncio.run(run(server.url)) if "LoggingWorker" in left]


def test_a_port_of_another_event_loop_is_refused() -> None:
    port = LiteLLM(config("http://127.0.0.1:1"))
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(port.aopen())
        with pytest.raises(PortError, match="another event loop"):
            asyncio.run(port.ainvoke(ASK))
        first.run_until_complete(port.aclose())
    finally:
        first.close()


def test_calls_that_run_at_the_same_time_are_not_queued() -> None:
    async def work(port: LiteLLM) -> None:
        await asyncio.gather(*(port.ainvoke(ASK) for _ in range(20)))

    async def when_all_are_there(_: ServedRequest) -> str:
        while server.count < 20:
            await asyncio.sleep(0.01)
        return "x"

    with ScriptedServer(when_all_are_there) as server:
        use(LiteLLM(config(server.url)), work)
    assert server.peak == 20


# What belongs to other servers is not sent to this one

FOREIGN = {
    "OPENAI_API_KEY": "LEAK-openai",
    "OPENAI_ORG_ID": "LEAK-org",
    "OPENAI_ORGANIZATION": "LEAK-organization",
    "OPENAI_PROJECT_ID": "LEAK-project",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: LEAK-gateway\nX-Other: LEAK-other",
    "ANTHROPIC_API_KEY": "LEAK-anthropic",
    "ANTHROPIC_AUTH_TOKEN": "LEAK-anthropic-token",
    "DEEPSEEK_API_KEY": "LEAK-deepseek",
    "GROQ_API_KEY": "LEAK-groq",
    "HOSTED_VLLM_API_KEY": "LEAK-vllm",
    "LM_STUDIO_API_KEY": "LEAK-lm",
    "MISTRAL_API_KEY": "LEAK-mistral",
    "OPENROUTER_API_KEY": "LEAK-openrouter",
    "NVIDIA_NIM_API_KEY": "LEAK-nim",
    "GEMINI_API_KEY": "LEAK-gemini",
    "GOOGLE_API_KEY": "LEAK-google",
}


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[str]]]:
    """A server that answers every POST with 404 and keeps all that it was sent."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            sent.append(f"{self.path}\n{self.headers}\n{body.decode()}")
            self.send_response(404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.mark.parametrize(
    "provider",
    [
        None,
        "hosted_vllm",
        "lm_studio",
        "nvidia_nim",
        "deepseek",
        "groq",
        "mistral",
        "openrouter",
        "anthropic",
        "gemini",
    ],
)
@pytest.mark.parametrize("key", [None, KEY])
def test_keys_and_headers_of_the_environment_are_not_sent_to_a_server_of_ones_own(
    provider: str | None, key: str | None, recorder: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    url, sent = recorder
    error = failure(url, model_provider=provider, endpoint_api_key=key)
    assert error.kind == "invalid_request"
    assert len(sent) == 1
    assert "LEAK" not in sent[0]
    assert (key or "no-key") in sent[0]


def test_headers_of_ones_own_are_sent(recorder: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Other: LEAK-other")
    url, sent = recorder
    headers = {"X-Other": "mine-12345", "OpenAI-Organization": "my-organization"}
    failure(url, extra_kwargs={"extra_headers": headers})
    assert "mine-12345" in sent[0]
    assert "my-organization" in sent[0]
    assert "LEAK" not in sent[0]


def test_without_a_server_of_ones_own_the_providers_variables_count(
    recorder: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = recorder
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    failure(None, model_provider="openai", endpoint_api_key=None)
    assert "Bearer sk-from-the-environment" in sent[0]


def test_what_servers_are_trusted_by_is_read_once_and_when_it_has_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not for each client."""
    read: list[dict[str, Any]] = []
    real, own = ssl.create_default_context, tmp_path / "own.pem"
    monkeypatch.setattr(ssl, "create_default_context", lambda **named: read.append(named) or real())
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    for text in ("one", "one", "another"):
        if not own.exists() or own.read_text("utf-8") != text:
            own.write_text(text, "utf-8")
            os.utime(own, ns=(len(text), len(text)))
        library.endpoint_client("http://127.0.0.1:9/v1", {}, "k")
    assert read == [{"cafile": str(own)}] * 2
    monkeypatch.delenv("SSL_CERT_FILE")
    library.endpoint_client("http://127.0.0.1:9/v1", {}, "k")
    assert len(read) == 3
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    library.endpoint_client("http://127.0.0.1:9/v1", {}, "k")
    assert read[3:] == [{"cafile": str(tmp_path / "missing.pem")}], "it is read, and not passed over"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_without_any_key_the_error_says_what_to_set(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FOREIGN:
        monkeypatch.delenv(name, raising=False)
    error = failure(None, model_provider=provider, endpoint_api_key=None)
    assert error.kind == "auth"
    assert "api_key_env" in str(error)
