"""The ports of a model as a run uses them: made by its adapter, inside their middleware, and not yet opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import KareninaError, PluginError
from ..model.config import ModelConfig
from ..ports.batch import BatchedLLM
from ..prompts.tasks import PromptTask
from .adapters import AdapterSpec

if TYPE_CHECKING:
    from .application import Karenina

__all__ = ["able_to_use_tools", "model_ports", "why_no_investigator"]

METHODS = {"llm": "ainvoke", "parser": "aparse", "agent": "arun"}


def model_ports(app: Karenina, spec: AdapterSpec, model: ModelConfig) -> dict[str, Any]:
    """`{"llm" | "parser" | "agent": port}`. To make one costs nothing. Raises KareninaError."""
    if model.batch and spec.batch_factory is not None:
        batched = BatchedLLM(app.adapters.make_port(spec.batch_factory, model, spec))
        return {"llm": _wrapped(app, batched, model, METHODS["llm"])}
    factories = {"llm": spec.llm_factory, "parser": spec.parser_factory, "agent": spec.agent_factory}
    return {
        name: _wrapped(app, app.adapters.make_port(factory, model, spec), model, METHODS[name])
        for name, factory in factories.items()
        if factory is not None
    }


def able_to_use_tools(ports: Mapping[str, Any]) -> bool:
    """Whether the model behind these ports can be given tools."""
    return "agent" in ports or ("llm" in ports and ports["llm"].capabilities.supports_tools)


def why_no_investigator(
    app: Karenina, model: ModelConfig, task: str = PromptTask.RUBRIC_AGENTIC_TRAIT_INVESTIGATION
) -> str:
    """Why a model, behind its middleware, cannot investigate; empty where it can. Nothing is opened or asked."""
    try:
        tasks = app.adapters.resolve_interface(model.interface).spec.judge_tasks
        if tasks is not None and task not in tasks:
            return f"the interface {model.interface!r} cannot investigate"
        if app.can_use_tools(model):
            return ""
    except KareninaError as error:
        return str(error)
    if model.batch:
        return (
            "a model that is asked in batches cannot work with tools, so that it cannot investigate; set batch = false"
        )
    return f"the interface {model.interface!r} cannot work with tools, so that it cannot investigate"


def _wrapped(app: Karenina, port: Any, model: ModelConfig, method: str) -> Any:
    """The port inside its middleware. Raises PluginError for middleware that lacks the port's own method."""
    for plugin, wrap in reversed(app.implementations("karenina_wrap_port")):
        outer = wrap(port=port, model=model) or port
        if hasattr(port, method) and not hasattr(outer, method):
            raise PluginError(
                f"plugin {plugin!r} cannot be put in front of the model {model.identity}: what it returns has no "
                f"{method}; switch the plugin off for this run (KARENINA_DISABLE={plugin}), or use another model"
            )
        port = outer
    return port
