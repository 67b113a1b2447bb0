"""The kinds of things that calls need beside models: embedders, search tools and clients of tool servers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .registry import Registry

if TYPE_CHECKING:
    from ..ports.call_port import CallPort
    from .application import Karenina

__all__ = ["EmbedderRegistry", "SearchToolRegistry", "ToolServerRegistry", "embedder_of", "search_tool_of"]


class EmbedderRegistry(Registry[Any]):
    """Add embedders: texts to vectors. An embedder is a class that is made with the name of a model, an `Embedder`."""

    kind = "embedder"
    hook = "karenina_register_embedders"


class SearchToolRegistry(Registry[Any]):
    """Add search tools: a query to results, each a `SearchTool`."""

    kind = "search tool"
    hook = "karenina_register_search_tools"


class ToolServerRegistry(Registry[Any]):
    """Add clients of tool servers, named by their protocol (`mcp`): classes that are made with the name and the address
    of a server, each a `ToolServer`."""

    kind = "tool server client"
    hook = "karenina_register_tool_servers"


def embedder_of(app: Karenina, name: str, model: str) -> CallPort:
    """The `Embedder` of this name for a model, made once per application and inside its middleware.

    What stages ask it is limited, counted and kept by their run, unless it computes on this machine. Raises
    UnknownName and PluginError.
    """
    return app.once((EmbedderRegistry, name, model), partial(_embedder, app, name, model))


def _embedder(app: Karenina, name: str, model: str) -> CallPort:
    from ..ports.middleware import CallTarget  # runs that embed pay for it
    from .model_ports import embedder_port, middleware

    target = CallTarget("embedder", name, model)
    return embedder_port(target, app.registry(EmbedderRegistry).make(name, model), middleware(app, target))


def search_tool_of(app: Karenina, wanted: Any) -> Any:
    """The `SearchTool` that a configuration asks for, inside its middleware: `wanted` is the name of one that a plugin
    registered, or a function or object that searches. Made at every call.

    What one with a name finds for a stage is kept by the stage's run. Raises UnknownName, PluginError, and TypeError
    for what cannot search.
    """
    from ..ports.middleware import CallTarget  # runs that search pay for it
    from ..ports.search import as_search_tool
    from .model_ports import middleware, search_port

    named = isinstance(wanted, str)
    made = as_search_tool(app.registry(SearchToolRegistry).make(wanted) if named else wanted)
    target = CallTarget("search", wanted if named else _qualified_name(wanted))
    return search_port(target, made, middleware(app, target), kept=named)


def _qualified_name(thing: Any) -> str:
    """Where a function, or the class of an object, is defined: `module.name`."""
    named = thing if isinstance(getattr(thing, "__qualname__", None), str) else type(thing)
    return f"{named.__module__}.{named.__qualname__}"
