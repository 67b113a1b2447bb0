"""The plugin in an application, and what results and addresses become."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import karenina_mcp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.services.shared import ToolServerRegistry
from karenina_mcp.addresses import Program, Service, parse_address
from karenina_mcp.server import McpServer
from karenina_mcp.session import Line

from karenina_core.errors import ConfigError
from karenina_core.testing import application

NAME = "karenina_mcp"


def test_the_client_is_made_with_the_settings_of_the_plugin() -> None:
    app = application(karenina_mcp, settings={NAME: {"call_seconds": 5, "environment": {"search": ["SEARCH_KEY"]}}})
    client = app.registry(ToolServerRegistry).make("mcp", "search", "python -m search")
    assert isinstance(client, McpServer)
    assert (client.name, client.address) == ("search", "python -m search")
    assert client.settings.call_seconds == 5
    assert client.settings.start_seconds == 30
    assert client.settings.read_seconds is None
    assert client.settings.environment == {"search": ("SEARCH_KEY",)}


@pytest.mark.parametrize("name", ["start_seconds", "call_seconds", "read_seconds"])
def test_limits_are_above_zero(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        application(karenina_mcp, settings={NAME: {name: 0}})


def test_the_plugin_and_its_client_are_there_without_the_sdk() -> None:
    code = """
import sys
import karenina_mcp
assert not {"attrs", "asyncio", "anyio", "mcp"} & set(sys.modules)
from karenina_mcp.server import McpServer
McpServer("tools", "http://127.0.0.1:1/mcp").problem()
assert not {"anyio", "mcp", "httpx2", "pydantic"} & set(sys.modules), set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://localhost:8000/mcp", Service("http://localhost:8000/mcp")),
        (" https://tools.example/api?key=1 ", Service("https://tools.example/api?key=1")),
        ("http://localhost:8000/sse", Service("http://localhost:8000/sse", events=True)),
        ("https://localhost/sse/?a=b", Service("https://localhost/sse/?a=b", events=True)),
        ("sse+https://localhost/events", Service("https://localhost/events", events=True)),
        ("./tools/run", Program(("./tools/run",))),
        ("uvx search --at 'New York'", Program(("uvx", "search", "--at", "New York"))),
        ("proxy --to=http://localhost/mcp", Program(("proxy", "--to=http://localhost/mcp"))),
        ("proxy http://localhost/mcp", Program(("proxy", "http://localhost/mcp"))),
    ],
)
def test_addresses(address: str, place: Program | Service) -> None:
    assert parse_address(address) == place


@pytest.mark.parametrize("address", ["https://me:word@host/mcp?key=word", "tool --key=word", "sse+http://host/x?word"])
def test_a_place_is_named_without_what_may_be_secret(address: str) -> None:
    assert "word" not in str(parse_address(address))


@given(st.lists(st.binary(max_size=9000), max_size=20))
def test_last_output_are_the_end_of_what_was_printed(parts: list[bytes]) -> None:
    line = Line()
    for part in parts:
        line.record(part)
    printed = b"".join(parts)
    assert printed.endswith(bytes(line._words))
    assert len(line._words) == min(len(printed), 8000)
    assert len(line.last_output()) <= 2000


# What results become


def result(*content: dict[str, Any], structured: Any = None, is_error: bool = False) -> Any:
    types = pytest.importorskip("mcp_types", reason='the SDK is missing: pip install "karenina-mcp[sdk]"')
    facts = {"content": list(content), "structuredContent": structured, "isError": is_error}
    return types.CallToolResult.model_validate(facts)


TEXT = {"type": "text", "text": "three rows"}


@pytest.mark.parametrize(
    ("content", "structured", "text"),
    [
        ([], None, ""),
        ([TEXT, {"type": "text", "text": "and more"}], None, "three rows\nand more"),
        ([TEXT], {"rows": [1, 2]}, 'three rows\n{"rows": [1, 2]}'),
        ([{"type": "text", "text": '{ "rows": [1,2] }'}], {"rows": [1, 2]}, '{ "rows": [1,2] }'),
        ([{"type": "text", "text": "5"}], {"result": 5}, "5"),
        ([{"type": "text", "text": "5"}], {"result": "5"}, "5"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {"result": ["a", "b"]}, "a\nb"),
        ([], {"rows": []}, '{"rows": []}'),
        ([{"type": "image", "data": "eHh4", "mimeType": "image/png"}], None, "[image: image/png, 3 bytes]"),
        ([{"type": "audio", "data": "eHg=", "mimeType": "audio/wav"}], None, "[audio: audio/wav, 2 bytes]"),
        ([{"type": "resource_link", "name": "log", "uri": "file:///log"}], None, "[resource: log, file:///log]"),
        (
            [{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}}],
            None,
            "[resource: file:///a.txt]\ninside",
        ),
        (
            [{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "eHh4"}}],
            None,
            "[resource: file:///a.bin, of unknown type, 3 bytes]",
        ),
    ],
)
def test_what_a_result_becomes(content: list[dict[str, Any]], structured: Any, text: str) -> None:
    from karenina_mcp.tools import as_outcome

    outcome = as_outcome(result(*content, structured=structured))
    assert (outcome.content, outcome.is_error) == (text, False)
    assert as_outcome(result(*content, structured=structured, is_error=True)).is_error
