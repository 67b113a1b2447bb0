"""Applications for tests: made of what a test brings, untouched by the environment."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from functools import partial
from types import ModuleType
from typing import Any

from attrs import frozen

from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.discovery import discover, load_all
from karenina_core.plugin.kinds import StageRegistry
from karenina_core.plugin.markers import hookimpl
from karenina_core.plugin.registry import Registry

from .fakes import ScriptedLLM


@frozen(eq=False)
class _OneStage:
    stage: Any

    @hookimpl
    def karenina_register_stages(self, registry: StageRegistry) -> None:
        registry.add(self.stage)


@frozen(eq=False)
class _OneAdapter:
    spec: AdapterSpec

    @hookimpl
    def karenina_register_adapters(self, registry: AdapterRegistry) -> None:
        registry.register(self.spec)


def application(
    *plugins: Any,
    installed: bool | Collection[str] = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Karenina:
    """A `Karenina` of the given plugins, and of the installed ones: all of them, or those named by `installed`.

    A plugin is a module or an object with `@hookimpl` functions; a stage class, an `AdapterSpec` and a `ScriptedLLM`
    are taken as plugins that bring just that; a subclass of `Registry` is a kind of things for the others. Plugins are
    called like their module, class, stage or interface; a second one of the same name gets `-2` and so on.
    `KARENINA_DISABLE` and `KARENINA_PLUGINS` are not read. `settings` holds tables by plugin name. Raises ConfigError
    where they do not fit.
    """
    sources = [s for s in discover() if installed is True or s.name in installed] if installed else []
    found, infos = load_all(sources)
    kinds = [thing for thing in plugins if isinstance(thing, type) and issubclass(thing, Registry)]
    for thing in plugins:
        if thing not in kinds:
            name, plugin = _as_plugin(thing)
            names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
            found[next(free for free in names if free not in found.keys() | infos.keys())] = plugin
    return Karenina(found, infos=infos.values(), settings=settings, kinds=kinds)


def _as_plugin(thing: Any) -> tuple[str, Any]:
    if isinstance(thing, ScriptedLLM):
        thing = thing.adapter()
    if isinstance(thing, AdapterSpec):
        factories = (thing.llm_factory, thing.parser_factory, thing.agent_factory, thing.batch_factory)
        factory: Any = next(filter(None, factories), thing)
        while isinstance(factory, partial):
            factory = factory.func
        module = factory.partition(":")[0] if isinstance(factory, str) else str(factory.__module__)
        return thing.interface, _from_module(_OneAdapter, thing, module)
    if hasattr(thing, "execute") and hasattr(thing, "should_run"):
        stage = thing if isinstance(thing, type) else type(thing)
        return str(thing.name), _from_module(_OneStage, thing, stage.__module__)
    if isinstance(thing, ModuleType):
        return thing.__name__.rpartition(".")[2], thing
    return getattr(thing, "__name__", type(thing).__name__), thing


def _from_module(plugin: type, thing: Any, module: str) -> Any:
    """A plugin that brings this thing. Its code is that of `module`: by it a run sees whether it is what it was."""
    return type(plugin.__name__, (plugin,), {"__module__": module})(thing)
