"""What is written down of tool servers: a digest of their tools, and addresses without secrets."""

from __future__ import annotations

import hashlib
import random
from types import MappingProxyType
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.tools.tool_servers import OfferedTools, secrets_in_address, shown_address, tool_digest

from karenina_core.ports.values import Tool

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)
TOOLS = st.lists(st.builds(Tool, name=st.text(), description=st.text(), input_schema=SCHEMAS), max_size=5)


def turned(value: Any) -> Any:
    """The same with every key in another place, and of other types."""
    if isinstance(value, dict):
        return MappingProxyType({key: turned(value[key]) for key in reversed(value)})
    return tuple(turned(item) for item in value) if isinstance(value, list) else value


def test_the_digest_is_of_canonical_json() -> None:
    tools = [
        Tool(name="read", input_schema={"type": "object", "properties": {"path": {"type": "string"}}}),
        Tool(name="find", description="Suche: ä"),
    ]
    text = (
        '[{"description":"","input_schema":{"properties":{"path":{"type":"string"}},"type":"object"},"name":"read"},'
        '{"description":"Suche: \\u00e4","input_schema":{},"name":"find"}]'
    )
    assert tool_digest(tools) == hashlib.sha256(text.encode()).hexdigest()
    assert tool_digest([]) == hashlib.sha256(b"[]").hexdigest()


@given(TOOLS, st.integers())
def test_the_digest_does_not_depend_on_any_order(tools: list[Tool], seed: int) -> None:
    shuffled = [evolve(tool, input_schema=turned(tool.input_schema)) for tool in tools]
    random.Random(seed).shuffle(shuffled)
    assert tool_digest(shuffled) == tool_digest(tools)


@given(TOOLS.filter(bool), st.sampled_from(["name", "description", "input_schema"]), VALUES)
def test_the_digest_tells_every_change(tools: list[Tool], changed: str, value: Any) -> None:
    first = tools[0]
    given_ = getattr(first, changed)
    other: Any = {**given_, "more of it": value} if changed == "input_schema" else f"{given_}!"
    assert tool_digest([evolve(first, **{changed: other}), *tools[1:]]) != tool_digest(tools)


@given(TOOLS)
def test_the_digest_has_no_part_in_what_a_tool_does(tools: list[Tool]) -> None:
    async def run(given_: Any) -> Any: ...

    offered = OfferedTools(server="s", address="a", tools=tuple(evolve(tool, run=run) for tool in tools))
    assert offered.digest == tool_digest(tools)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://localhost:8000/mcp", "http://localhost:8000/mcp"),
        ("https://me:hunter2@host/mcp?key=hunter2#hunter2", "https://host/mcp"),
        ("sse+http://host/events?hunter2", "sse+http://host/events"),
        ("https://host/s/Zx81kQp0aaB7hunter2cccc/mcp", "https://host/s/***/mcp"),
        ("https://host/a-rather-long-name-of-a-server/mcp", "https://host/a-rather-long-name-of-a-server/mcp"),
        ("uvx", "uvx"),
        ("uvx search --key hunter2 --fast", "uvx (4 arguments not shown)"),
        ("'my program' --token=hunter2", "my program (1 argument not shown)"),
        ("tool 'hunter2", "tool (1 argument not shown)"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(address: str, shown: str) -> None:
    assert shown_address(address) == shown
    assert "hunter2" not in shown


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hunter2secret@host/mcp",
        "https://me:hunter2%73ecret@host/mcp",
        "https://host/mcp?mode=x&key=hunter2secret",
        "https://host/hunter2secretAAAAAAAAA/mcp",
        "tool --token=hunter2secret",
        "tool --api-key hunter2secret",
        "tool -e BRAVE_API_KEY=hunter2secret run",
        "tool --header 'Authorization: Bearer hunter2secret'",
        "proxy https://host/mcp?key=hunter2secret",
        "proxy --to=https://me:hunter2secret@host",
    ],
)
def test_secrets_in_an_address_are_found(address: str) -> None:
    assert any("hunter2secret" in secret for secret in secrets_in_address(address))


@pytest.mark.parametrize("address", ["http://localhost:8000/mcp", "uvx search --fast --monkey=bars", "python -m tools"])
def test_what_is_no_secret_is_not_taken_for_one(address: str) -> None:
    assert not {"fast", "search", "tools", "mcp", "localhost"} & set(secrets_in_address(address))


URLS = (st.text() | st.text(alphabet="ab[]@:/?=% '-")).map("https://{}".format)


@given(st.text() | URLS)
def test_any_address_can_be_shown(address: str) -> None:
    assert isinstance(shown_address(address), str)
    assert all(isinstance(secret, str) for secret in secrets_in_address(address))


def test_a_url_that_is_none_is_not_shown() -> None:
    assert shown_address("https://[me:hunter2@host/mcp") == "https://***"
