"""The tools of an answering model: its servers connected to, their tools chosen, described and named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack

from attrs import define, evolve, field

from karenina_core.errors import ConfigError, KareninaError, PluginError, PortError, Problem, did_you_mean, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import Tool
from karenina_core.values.config import ModelConfig

from ..models.model_ports import close_logged, middleware
from ..ports.call_port import CallPort
from ..services.shared import ToolServerRegistry
from .tool_calls import on_warning
from .tool_servers import OfferedTools, ToolServer, shown_address

PROTOCOL = "mcp"
"""The client that speaks to the servers of `mcp_urls_dict`."""
UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
"""Names that every provider takes for a tool have these characters and at most this length."""


def tool_complaints(app: Karenina, model: ModelConfig, *, able: bool) -> Iterable[str]:
    """What is wrong with the tool settings of an answering model, as far as it can be seen without a connection."""
    if not model.mcp_urls_dict:
        for name in ("mcp_tool_filter", "mcp_tool_description_overrides"):
            if getattr(model, name):
                yield f"{name}: the model has no tool servers (mcp_urls_dict), so this has no effect; remove it"
        return
    if not able:
        yield f"mcp_urls_dict: the interface {model.interface!r} cannot give tools to a model; remove the servers"
    if PROTOCOL not in app.registry(ToolServerRegistry):
        yield "mcp_urls_dict: no plugin can connect to tool servers; install karenina-mcp, or remove the servers"
        return
    for name, address in sorted(model.mcp_urls_dict.items()):
        if problem := _problem(app, name, address):
            yield f"mcp_urls_dict: {problem}"


def _problem(app: Karenina, name: str, address: str) -> str | None:
    """What the client of a server can say without connecting to it, if it has a `problem()`."""
    try:
        look = getattr(_made(app, name, address), "problem", None)
        return look() if look else None
    except KareninaError as error:
        return str(error)
    except Exception as error:  # a client is a plugin's code
        return f"the client of the tool server {name!r} failed: {one_line(error)}"


def _made(app: Karenina, name: str, address: str) -> ToolServer:
    """The client of a server with the settings of its plugin, inside what other plugins put in front of it."""
    server: ToolServer = app.registry(ToolServerRegistry).make(PROTOCOL, name, address)
    target = CallTarget("tool", name)
    layers = middleware(app, target)
    return CallPort(target, server, layers) if layers else server


@define(eq=False)
class Connections:
    """The tool servers of a run. Models that name the same server at the same address share its connection."""

    app: Karenina
    stack: AsyncExitStack
    """Closes them."""
    offered: dict[tuple[str, str], Sequence[Tool]] = field(factory=dict)

    async def offered_to(self, model: ModelConfig, remarks: list[str]) -> tuple[OfferedTools, ...]:
        """What the model may call, server by server. What its calls show to be odd is added to `remarks`.

        Raises PortError where a server cannot be reached, ConfigError for tools that no server offers.
        """
        addresses = dict(sorted(model.mcp_urls_dict.items()))
        found = {name: await self._of(name, address, model) for name, address in addresses.items()}
        named = named_tools(found, model)

        def note(remark: str) -> None:
            if remark not in remarks:
                remarks.append(remark)

        return tuple(
            OfferedTools(
                server=name, address=shown_address(address), tools=tuple(on_warning(tool, note) for tool in named[name])
            )
            for name, address in addresses.items()
        )

    async def _of(self, name: str, address: str, model: ModelConfig) -> Sequence[Tool]:
        if (name, address) not in self.offered:
            try:
                server = _made(self.app, name, address)
                self.stack.push_async_callback(close_logged, server, "a tool server could not be closed", server=name)
                await server.aopen()
                self.offered[name, address] = list(await server.alist())
            except KareninaError as error:
                where = f"the tool server {name!r} of the model {model.identity} (mcp_urls_dict)"
                kind = error.kind if isinstance(error, PortError) else "plugin"
                raise PortError(f"{where} cannot be used: {error}", kind=kind) from error
            except Exception as error:  # a client is a plugin's code
                raise PluginError(f"the client of the tool server {name!r} failed: {one_line(error)}") from error
        return self.offered[name, address]


def named_tools(offered: Mapping[str, Sequence[Tool]], model: ModelConfig) -> Mapping[str, Sequence[Tool]]:
    """The tools to offer, by server, in the order of servers and of what they list.

    Where two servers have a tool of one name, both are called `server__tool`; characters that providers refuse become
    `_`. `mcp_tool_filter` and `mcp_tool_description_overrides` may use either form of a name. Raises ConfigError.
    """
    every = [(server, tool) for server, tools in offered.items() for tool in tools]
    _check_names(every, model)
    wanted = model.mcp_tool_filter
    kept = [(server, tool) for server, tool in every if wanted is None or not _names(server, tool).isdisjoint(wanted)]
    counts = Counter(_usual(tool.name) for _, tool in kept)
    taken: set[str] = set()
    tools: dict[str, list[Tool]] = {server: [] for server in offered}
    for server, tool in kept:
        name = _usual(tool.name if counts[_usual(tool.name)] == 1 else f"{server}__{tool.name}")
        if name in taken:
            text = f"the model {model.identity} would have two tools called {name!r}; leave one of them out"
            raise ConfigError([Problem("mcp_tool_filter", text)])
        other = model.mcp_tool_description_overrides
        description = next((other[known] for known in _forms(server, tool) if known in other), tool.description)
        tools[server].append(evolve(tool, name=name, description=description))
        taken.add(name)
    return tools


def _check_names(every: Sequence[tuple[str, Tool]], model: ModelConfig) -> None:
    known = {name for server, tool in every for name in _names(server, tool)}
    there = ", ".join(dict.fromkeys(tool.name for _, tool in every)) or "none"
    problems = [
        Problem(
            setting,
            f"no server of the model {model.identity} has a tool {name!r}{did_you_mean(name, known)}; "
            f"available: {there}",
        )
        for setting in ("mcp_tool_filter", "mcp_tool_description_overrides")
        for name in getattr(model, setting) or ()
        if name not in known
    ]
    if problems:
        raise ConfigError(problems)


def _forms(server: str, tool: Tool) -> tuple[str, str]:
    """What a tool may be called in settings, the more exact first."""
    return f"{server}__{tool.name}", tool.name


def _names(server: str, tool: Tool) -> frozenset[str]:
    return frozenset(_forms(server, tool))


def _usual(name: str) -> str:
    return UNUSUAL.sub("_", name)[:LONGEST_NAME]
