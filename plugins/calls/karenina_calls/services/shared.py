"""The kinds of things that calls need beside models: embedders, search tools, clients of tool servers, and what
adapters add to prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from karenina_core.errors import PluginError
from karenina_core.plugin.registry import Registry

from ..ports.prompt_assembler import AdapterInstruction

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

    from ..ports.call_port import CallPort


class EmbedderRegistry(Registry[Any]):
    """Add embedders: texts to vectors. Each is a class that is made with the name of a model, an `EmbedderPort`."""

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


class AdapterInstructionRegistry(Registry[Any]):
    """Add what adapters add to prompts: a function that is called with the task, the interface and the context of a
    prompt, such as its `json_schema`, and returns an `AdapterInstruction` or None; or a class of such functions.

    Additions follow the task's own text, in the order of the plugins' names.
    """

    kind = "adapter instruction"
    hook = "karenina_register_instructions"

    def name_of(self, thing: Any) -> str | None:
        return self.plugin

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not callable(thing):
            raise PluginError(f"{thing!r} is not an adapter instruction: add a function of (task, interface, context)")
        return thing

    @cached_property
    def _functions(self) -> list[Callable[..., AdapterInstruction | None]]:
        return [self.make(name) for name in self]

    def additions(self, task: str, interface: str, context: Mapping[str, Any]) -> list[AdapterInstruction]:
        """What is added to one prompt."""
        found = [function(task, interface, context) for function in self._functions]
        return [instruction for instruction in found if instruction is not None]


def embedder_of(app: Karenina, name: str, model: str) -> CallPort:
    """The `EmbedderPort` of this name for a model, made once per application and inside its middleware.

    What stages ask it is limited, counted and kept by their run, unless it computes on this machine. Raises
    UnknownName and PluginError.
    """

    def make() -> CallPort:
        from karenina_core.ports.middleware import CallTarget  # runs that embed pay for it

        from ..models.model_ports import embedder_port, middleware

        target = CallTarget("embedder", name, model)
        return embedder_port(target, app.registry(EmbedderRegistry).make(name, model), middleware(app, target))

    return app.once((EmbedderRegistry, name, model), make)


def search_tool_of(app: Karenina, wanted: Any) -> Any:
    """The `SearchTool` that a configuration asks for, inside its middleware: `wanted` is the name of one that a plugin
    registered, or a function or object that searches. Made at every call.

    What one with a name finds for a stage is kept by the stage's run. Raises UnknownName, PluginError, and TypeError
    for what cannot search.
    """
    from karenina_core.ports.middleware import CallTarget  # runs that search pay for it

    from ..models.model_ports import middleware, search_port
    from ..tools.search import as_search_tool

    if isinstance(wanted, str):
        made, name = app.registry(SearchToolRegistry).make(wanted), wanted
    else:
        defined = wanted if isinstance(getattr(wanted, "__qualname__", None), str) else type(wanted)
        made, name = wanted, f"{defined.__module__}.{defined.__qualname__}"
    target = CallTarget("search", name)
    return search_port(target, as_search_tool(made), middleware(app, target), kept=isinstance(wanted, str))
