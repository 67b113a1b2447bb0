"""Tool servers that speak the Model Context Protocol: programs that are started here, and services on the web."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl


@hookimpl
def karenina_register_tool_servers(registry: Any) -> None:
    registry.add("karenina_mcp.server:McpServer", name="mcp")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_mcp.settings:McpSettings")
