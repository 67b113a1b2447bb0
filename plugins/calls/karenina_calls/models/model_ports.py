"""What is called, as a run uses it: made by its plugin, inside its middleware, and not yet opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import KareninaError, PluginError, one_line, place_of
from karenina_core.log import get_logger
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec, Factory
from karenina_core.plugin.registry import import_string
from karenina_core.ports.middleware import CallKind, CallTarget
from karenina_core.values.config import ModelConfig

from ..ports.batch import BatchedLLM
from ..ports.call_port import CallPort, Layer, vectors_checked
from ..ports.port_checks import check_port
from ..ports.stored_calls import MeteredByRun
from ..tools.search import SearchTool, as_search_tool

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

log = get_logger("karenina.run")


async def close_logged(opened: Any, event: str, **facts: str) -> None:
    """Close a model or a tool server. A failure is logged: the results are there, and they count more."""
    try:
        await opened.aclose()
    except Exception as error:  # the code of a plugin
        log.warning(event, **facts, error=one_line(error))


def middleware(app: Karenina, target: CallTarget) -> tuple[Layer, ...]:
    """What plugins put in front of what is called, the outermost first. Raises KareninaError."""
    return tuple(Layer(around, plugin) for plugin, around in app.middleware("karenina_wrap_call", target=target))


def model_ports(app: Karenina, spec: AdapterSpec, model: ModelConfig) -> dict[str, CallPort]:
    """`{"llm" | "parser" | "agent": port}`. To make one costs nothing. Raises KareninaError."""

    def port(kind: CallKind, made: Any) -> CallPort:
        target = CallTarget.of_model(kind, model)
        return CallPort(target, made, middleware(app, target))

    if model.batch and spec.batch_factory is not None:
        return {"llm": port("llm", BatchedLLM(make_port(app.adapters, spec.batch_factory, model, spec)))}
    kinds: Mapping[CallKind, Any] = {
        "llm": spec.llm_factory,
        "parser": spec.parser_factory,
        "agent": spec.agent_factory,
    }
    made = {kind: make_port(app.adapters, made, model, spec) for kind, made in kinds.items() if made is not None}
    for kind, found in made.items():
        check_port(kind, found, spec.interface)
    return {kind: port(kind, found) for kind, found in made.items()}


def embedder_port(target: CallTarget, embedder: Any, layers: Sequence[Layer] = ()) -> CallPort:
    """An embedder whose calls from within a run go through the run, unless it computes on this machine."""
    port = CallPort(target, embedder, (Layer(vectors_checked), *layers))
    return port.behind(MeteredByRun(port.plugins))


def search_port(target: CallTarget, tool: SearchTool, layers: Sequence[Layer], *, kept: bool) -> SearchTool:
    """A search tool; `kept`: what it finds within a run is kept by the run."""
    port = CallPort(target, tool, tuple(layers))
    if layers:
        port = CallPort(target, as_search_tool(port))  # middleware may raise anything, too
    return port.behind(MeteredByRun(tuple(layer.plugin for layer in layers))) if kept else port


def able_to_use_tools(ports: Mapping[str, Any]) -> bool:
    """Whether the model behind these ports can be given tools."""
    return "agent" in ports or ("llm" in ports and ports["llm"].capabilities.supports_tools)


def can_use_tools(app: Karenina, model: ModelConfig) -> bool:
    """Whether a model, behind its middleware, can be given tools. Nothing is opened. Raises KareninaError."""
    return able_to_use_tools(model_ports(app, app.adapters.resolve_interface(model.interface).spec, model))


def why_no_investigator(
    app: Karenina, model: ModelConfig, task: str = PromptTask.RUBRIC_AGENTIC_TRAIT_INVESTIGATION
) -> str:
    """Why a model, behind its middleware, cannot investigate; empty where it can. Nothing is opened or asked."""
    try:
        tasks = app.adapters.resolve_interface(model.interface).spec.judge_tasks
        if tasks is not None and task not in tasks:
            return f"the interface {model.interface!r} cannot investigate"
        if can_use_tools(app, model):
            return ""
    except KareninaError as error:
        return str(error)
    if model.batch:
        return "a model with batch = true cannot use tools, so it cannot investigate; set batch = false"
    return f"the interface {model.interface!r} cannot use tools, so it cannot investigate"


def make_port(adapters: AdapterRegistry, factory: Factory, config: ModelConfig, spec: AdapterSpec) -> Any:
    """Make a port. Raises PluginError where the provider is not installed, or broken."""
    made = (
        import_string(factory, f"interface {spec.interface!r}", spec.install_hint)
        if isinstance(factory, str)
        else factory
    )
    try:
        return adapters.call(made, spec, config)
    except KareninaError:
        raise
    except Exception as error:
        problem = f"{one_line(error)}{place_of(error, getattr(made, '__module__', None) or '')}"
        raise PluginError(f"the port of interface {spec.interface!r} cannot be made: {problem}") from error
