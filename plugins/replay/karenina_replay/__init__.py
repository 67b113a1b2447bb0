"""Record and replay: a port in front of every model, an embedder in front of every embedder, a search tool in front
of every search tool, a tool server in front of every tool server."""

from __future__ import annotations

from typing import Any

from karenina_core import ModelConfig, hookimpl, neutral

NAME = "replay"


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add("karenina_replay.settings:ReplaySettings", name=NAME)


@hookimpl
@neutral
def karenina_wrap_port(port: Any, model: ModelConfig, app: Any) -> Any | None:
    settings = app.settings(NAME)
    if settings is None or not (settings.record or settings.replay):
        return None
    from karenina_replay.ports import wrapped  # only runs that record or replay pay for it

    return wrapped(port, model, settings, app)


@hookimpl
@neutral
def karenina_wrap_embedder(embedder: Any, name: str, model: str, app: Any) -> Any | None:
    settings = app.settings(NAME)
    if settings is None or not (settings.record or settings.replay):
        return None
    from karenina_replay.embedders import wrapped

    return wrapped(embedder, name, model, settings)


@hookimpl
@neutral
def karenina_wrap_search_tool(tool: Any, name: str, app: Any) -> Any | None:
    settings = app.settings(NAME)
    if settings is None or not (settings.record or settings.replay):
        return None
    from karenina_replay.searches import wrapped

    return wrapped(tool, name, settings)


@hookimpl
@neutral
def karenina_wrap_tool_server(server: Any, name: str, app: Any) -> Any | None:
    settings = app.settings(NAME)
    if settings is None or not (settings.record or settings.replay):
        return None
    from karenina_replay.servers import wrapped

    return wrapped(server, name, settings)
