"""karenina's tools, offered to the agent by a server inside this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from karenina_calls.ports.text import sanitize
from karenina_calls.tools.tool_calls import MOST_CHARACTERS, run_tool

from karenina_core.ports.values import Tool, ToolOutcome

SERVER = "karenina"
PREFIX = f"mcp__{SERVER}__"


def full_name(tool: Tool) -> str:
    """What the program calls a tool of the server."""
    return f"{PREFIX}{tool.name}"


def own_name(name: str) -> str:
    """What karenina calls a tool that the program calls so."""
    return name.removeprefix(PREFIX)


def shortened_answer(text: str, tolerance: int = 0) -> str:
    """An answer of a tool, cut like those in karenina's own loop; one that is a little longer is tolerated."""
    if len(text) <= MOST_CHARACTERS + tolerance:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[cut: these are the first {MOST_CHARACTERS} of {len(text)} characters]"


def offered(sdk: Any, tools: Sequence[Tool], most_calls: int | None) -> Any:
    """The server, as the SDK's configuration of it. A call after `most_calls` is not run."""
    begun: list[str] = []

    def handler(tool: Tool) -> Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]:
        async def handle(given: Mapping[str, Any]) -> dict[str, Any]:
            if most_calls is not None and len(begun) >= most_calls:
                outcome = ToolOutcome("there are no more calls of tools", is_error=True)
            else:
                begun.append(tool.name)
                assert tool.run is not None  # only those are offered
                outcome = await run_tool(tool.run, given)
            text = shortened_answer(sanitize(outcome.content)[0])
            return {"content": [{"type": "text", "text": text}], "is_error": outcome.is_error}

        return handle

    inline = sdk.ToolAnnotations(maxResultSizeChars=2 * MOST_CHARACTERS)  # else long answers are put into files
    made = []
    for tool in tools:
        schema = {"type": "object", "properties": {}, **tool.input_schema}  # else the SDK reads it as shorthand
        made.append(sdk.tool(tool.name, tool.description, schema, annotations=inline)(handler(tool)))
    return sdk.create_sdk_mcp_server(name=SERVER, tools=made)
