"""What `karenina doctor` says about embedders, search tools and clients of tool servers: each says it of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karenina_core.errors import ConfigError, PluginError, one_line, shortened
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section
from karenina_core.plugin.registry import Registry
from karenina_core.values.config import VerificationConfig

from .embedder_settings import EMBEDDING_MODEL
from .shared import EmbedderRegistry, SearchToolRegistry, ToolServerRegistry, embedder_of, search_tool_of

COLUMNS = ("name", "state", "reason")
LONGEST = 200
"""Characters of a reason: it is one cell of a table."""


def embedders(app: Karenina) -> Section:
    """With the model that they are made for where nothing is configured."""
    problems: list[str] = []
    try:
        model = VerificationConfig().embedding_check_model
    except ConfigError as error:  # what is wrong with the environment
        model, problems = EMBEDDING_MODEL, [str(problem) for problem in error.problems]
    rows = [{**row, "model": model} for row in _made(app, EmbedderRegistry, embedder_of, model)]
    return Section.of("embedders", "Embedders", ("name", "model", "state", "reason"), rows)._replace(problems=problems)


def search_tools(app: Karenina) -> Section:
    return Section.of("search_tools", "Search tools", COLUMNS, _made(app, SearchToolRegistry, search_tool_of))


def tool_servers(app: Karenina) -> Section:
    return Section.of("tool_servers", "Clients of tool servers", COLUMNS, _made(app, ToolServerRegistry, _Client))


def _made(app: Karenina, kind: type[Registry[Any]], make: Callable[..., Any], *more: Any) -> list[dict[str, Any]]:
    """What the things of a kind, each made with `make(app, name, *more)`, say about themselves: `available`,
    `not_ready` with a reason of their own, or `broken`."""
    rows = []
    for name, entry in app.registry(kind).items():
        try:
            problem = " ".join(str(make(app, name, *more).problem() or "").split())
            about = {"state": "not_ready" if problem else "available", "reason": shortened(problem, LONGEST)}
        except Exception as error:  # a plugin's code may do anything
            reason = str(error) if isinstance(error, PluginError) else one_line(error)
            about = {"state": "broken", "reason": reason}
        rows.append({"name": name, "plugin": entry.plugin, **about})
    return rows


class _Client:
    """A client's class, which says for all servers what a made client says for one. Whether a single server can be
    reached shows when a run begins."""

    def __init__(self, app: Karenina, name: str) -> None:
        self.look = getattr(app.registry(ToolServerRegistry).load(name), "unavailable", None)

    def problem(self) -> Any:
        return self.look() if self.look else None
