"""Every way in which a server or litellm fails, and the kind of error that it becomes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
import time
from typing import Any

import pytest
from karenina_calls.wire.library_errors import known_secrets, port_error
from karenina_litellm.port import LiteLLM

from karenina_core.errors import PortError
from karenina_core.testing import Reply, ScriptedServer
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

KEY = "sk-canary-0123456789"
ASK = [Message.user("Capital of France?")]
OWN_CLIENT, LITELLMS_CLIENT = None, "deepseek"
"""A provider whose connections are the port's own, and one that litellm connects to with its HTTP handler."""


async def asked(url: str, provider: str | None, seconds: float = 20.0, **fields: Any) -> PortError:
    port = LiteLLM(
        ModelConfig(
            **{
                "model_name": "m",
                "model_provider": provider,
                "endpoint_base_url": url,
                "endpoint_api_key": KEY,
                "request_timeout": seconds,
                **fields,
            }
        )
    )
    await port.aopen()
    try:
        with pytest.raises(PortError) as failed:
            await port.ainvoke(ASK)
        return failed.value
    finally:
        await port.aclose()


def failure(url: str, provider: str | None = OWN_CLIENT, seconds: float = 20.0, **fields: Any) -> PortError:
    return asyncio.run(asked(url, provider, seconds, **fields))


FAULTS: dict[str, tuple[Reply, str, int | None]] = {
    "429": (Reply.error(429), "rate_limited", 429),
    "400": (Reply.error(400), "invalid_request", 400),
    "401": (Reply.error(401), "auth", 401),
    "402": (Reply.error(402), "auth", 402),
    "403": (Reply.error(403), "auth", 403),
    "404": (Reply.error(404), "invalid_request", 404),
    "408": (Reply.error(408), "timeout", 408),
    "413": (Reply.error(413), "invalid_request", 413),
    "422": (Reply.error(422), "invalid_request", 422),
    "500": (Reply.error(500), "server", 500),
    "500 page": (Reply.error(500, html=True), "server", 500),
    "502": (Reply.error(502), "server", 502),
    "503": (Reply.error(503), "server", 503),
    "504": (Reply.error(504), "server", 504),
    "529": (Reply.error(529), "server", 529),
    "context length": (
        Reply.error(400, "maximum context length is 10 tokens", code="context_length_exceeded"),
        "invalid_request",
        400,
    ),
    "content filter": (Reply.error(400, code="content_filter"), "content_filter", 400),
    "content policy": (Reply.error(400, code="content_policy_violation"), "content_filter", 400),
    "content policy in words": (
        Reply.error(400, "Your request was rejected as a result of the safety system"),
        "content_filter",
        400,
    ),
    "withheld": (Reply(None, finish_reason="content_filter"), "content_filter", None),
    "error in a body": (Reply(body=b'{"error": {"message": "overloaded", "code": 500}}'), "server", 500),
    "empty": (Reply.empty(), "bad_response", None),
    "no json": (Reply.garbage(), "bad_response", None),
    "no utf-8": (Reply.invalid_utf8(), "bad_response", None),
    "a login page": (Reply.wrong_content_type(), "bad_response", None),
    "json of another shape": (Reply(body=b"[]"), "bad_response", None),
    "no choices": (Reply.no_choices(), "bad_response", None),
    "no content": (Reply(None, finish_reason="length"), "bad_response", None),
    "cut short": (Reply("x" * 200, delivery="truncated"), "connection", None),
    "too large": (Reply.huge(0.3), "too_large", None),
    "packed bomb": (Reply.gzip_bomb(0.3), "too_large", None),
}


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_its_kind_and_costs_one_request(fault: str, provider: str | None) -> None:
    script, kind, status = FAULTS[fault]
    with ScriptedServer(script) as server:
        error = failure(server.url, provider, extra_kwargs={"max_response_bytes": 200_000})
    assert (error.kind, error.status) == (kind, status)
    assert server.count == 1
    assert len(str(error)) < 600


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
def test_a_reset_is_a_fault_of_the_connection(provider: str | None) -> None:
    with ScriptedServer(Reply(delivery="reset")) as server:
        error = failure(server.url, provider)
    assert error.kind == "connection"
    assert "reset" in str(error).lower()
    assert server.count <= (1 if provider is OWN_CLIENT else 2)


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
def test_a_refused_connection_is_a_fault_of_the_connection(provider: str | None) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        error = failure(url, provider)
    assert error.kind == "connection"
    assert url in str(error)


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
@pytest.mark.parametrize("script", [Reply("x", delivery="hang", amount=20), Reply.drip(0.05, "x" * 500)])
def test_an_attempt_ends_at_its_time_limit_however_the_server_plays_for_time(
    script: Reply, provider: str | None
) -> None:
    async def run() -> tuple[PortError, float]:
        await asked(server.url, provider)  # litellm imports more at its first call
        started = time.monotonic()
        return await asked(server.url, provider, 0.7), time.monotonic() - started

    with ScriptedServer([Reply.error(500), script]) as server:
        error, seconds = asyncio.run(run())
    assert error.kind == "timeout"
    assert "within 0.7 s" in str(error)
    assert 0.6 < seconds < 5


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
@pytest.mark.parametrize(
    ("header", "seconds"), [(7, 7.0), ("1.5", 1.5), ("Fri, 01 Jan 1999 00:00:00 GMT", 0.0), (None, None)]
)
def test_the_wait_that_a_server_asks_for_arrives(header: Any, seconds: float | None, provider: str | None) -> None:
    for status in (429, 503):
        with ScriptedServer(Reply.error(status, retry_after=header)) as server:
            assert failure(server.url, provider).retry_after == seconds


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with ScriptedServer("elsewhere") as other:
        moved = Reply(status=status, headers={"Location": f"{other.url}/chat/completions"}, body=b"")
        with ScriptedServer(moved) as server:
            error = failure(server.url)
        assert other.count == 0
    assert (error.kind, error.status, server.count) == ("invalid_request", status, 1)


@pytest.mark.parametrize("provider", [OWN_CLIENT, LITELLMS_CLIENT])
@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_key_that_the_server_repeats_is_masked_out(
    status: int, provider: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_OTHER_API_KEY", "another-secret-value")
    message = f"not with {KEY}, nor with another-secret-value {'x' * 230} {KEY} {KEY}"
    with ScriptedServer(Reply.error(status, message) if status != 200 else Reply(body=message.encode())) as server:
        error = failure(server.url, provider)
    shown = f"{error} {error.raw} {error.__cause__}"
    assert KEY[:6] not in shown
    assert "another-secret-value" not in shown
    assert error.__suppress_context__


def test_keys_in_addresses_and_headers_are_masked_out() -> None:
    error = port_error(OSError("GET https://h/x?key=AIza-12 with 'Authorization: Bearer abc.def'"), where="m")
    assert str(error) == "m: OSError: GET https://h/x?key=[redacted] with 'Authorization: Bearer [redacted]'"


def test_short_values_of_the_environment_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_KEY", "abc")
    monkeypatch.setenv("LONG_TOKEN", "abcdefg8")
    monkeypatch.setenv("HARMLESS", "ijklmnop")
    found = known_secrets("sk-1234567", None)
    assert {"sk-1234567", "abcdefg8"} <= set(found)
    assert not {"abc", "ijklmnop"} & set(found)


def test_a_key_with_a_blank_around_it_works() -> None:
    with ScriptedServer(Reply.error(500)) as server:
        failure(server.url, endpoint_api_key=f" {KEY}\n")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_an_earlier_error_that_is_being_handled_is_not_taken_for_the_cause() -> None:
    async def run() -> str:
        try:
            raise TimeoutError
        except TimeoutError:
            return (await asked(server.url, OWN_CLIENT)).kind

    with ScriptedServer(Reply.garbage()) as server:
        assert asyncio.run(run()) == "bad_response"


def test_a_package_that_litellm_lacks_is_named() -> None:
    cause = ModuleNotFoundError("No module named 'boto3'", name="boto3")
    error = port_error(cause, where="bedrock/m")
    assert error.kind == "plugin"
    assert str(error) == "bedrock/m: ModuleNotFoundError: No module named 'boto3'; install the package that is missing"


def test_a_circle_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert port_error(first, where="m").kind == "plugin"


def test_what_is_no_error_of_a_library_is_a_fault_of_the_plugin() -> None:
    with contextlib.suppress(KeyError):
        error = port_error(KeyError("x"), where="m", before=sys.exception())
    assert error.kind == "plugin"
    assert str(error) == "m: 'x'; this is a mistake of the provider's library or of its adapter, please report it"
