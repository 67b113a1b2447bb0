"""What `karenina doctor` says about embedders, search tools and clients of tool servers: each says it of itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
    """What the things of a kind say about themselves; each is made with `make(app, name, *more)`."""
    return [
        {"name": name, "plugin": entry.plugin} | _readiness(partial(make, app, name, *more))
        for name, entry in app.registry(kind).items()
    ]


class _Client:
    """A client's class, which says for all servers what a made client says for one. Whether a single server can be
    reached shows when a run begins."""

    def __init__(self, app: Karenina, name: str) -> None:
        self.look = getattr(app.registry(ToolServerRegistry).load(name), "unavailable", None)

    def problem(self) -> Any:
        return self.look() if self.look else None


def _readiness(make: Callable[[], Any]) -> dict[str, str]:
    """What a thing says about itself: `available`, `not_ready` with its own reason, or `broken`."""
    try:
        problem = make().problem()
    except Exception as error:  # a plugin's code may do anything
        return {"state": "broken", "reason": str(error) if isinstance(error, PluginError) else one_line(error)}
    return {
        "state": "not_ready" if problem else "available",
        "reason": shortened(" ".join(str(problem or "").split()), LONGEST),
    }
