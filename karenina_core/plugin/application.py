"""`Karenina`: one set of plugins, what they registered, and what went wrong with the others."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, TypeVar

import pluggy
from attrs import evolve, frozen

from ..errors import PluginError, did_you_mean, one_line
from ..log import get_logger
from ..model.config import ModelConfig
from ..ports.background import BackgroundLoop
from . import hookspecs
from .adapters import AdapterRegistry
from .discovery import Rank, discover, load
from .implementations import check_hook, keywords_only
from .markers import PROJECT
from .registries import (
    AggregatorRegistry,
    EmbedderRegistry,
    ExecutorRegistry,
    FormatRegistry,
    PrimitiveRegistry,
    SearchToolRegistry,
    SettingsRegistry,
    SinkRegistry,
    StageRegistry,
    StrategyRegistry,
    TemplateRuntimeRegistry,
    ToolServerRegistry,
    TraitRegistry,
    ViewRegistry,
)
from .registry import Registry, resolve_drafts
from .settings import check_defaults, structured_settings

__all__ = ["Karenina", "PluginInfo", "current"]

T = TypeVar("T")
State = Literal["active", "blocked", "failed"]

REGISTRIES: Mapping[str, tuple[str, type[Registry[Any]]]] = {
    "karenina_register_stages": ("stages", StageRegistry),
    "karenina_register_traits": ("traits", TraitRegistry),
    "karenina_register_adapters": ("adapters", AdapterRegistry),
    "karenina_register_sinks": ("sinks", SinkRegistry),
    "karenina_register_embedders": ("embedders", EmbedderRegistry),
    "karenina_register_search_tools": ("search_tools", SearchToolRegistry),
    "karenina_register_tool_servers": ("tool_servers", ToolServerRegistry),
    "karenina_register_template_runtimes": ("template_runtimes", TemplateRuntimeRegistry),
    "karenina_register_executors": ("executors", ExecutorRegistry),
    "karenina_register_settings": ("settings_classes", SettingsRegistry),
    "karenina_register_strategies": ("strategies", StrategyRegistry),
    "karenina_register_primitives": ("primitives", PrimitiveRegistry),
    "karenina_register_views": ("views", ViewRegistry),
    "karenina_register_aggregators": ("aggregators", AggregatorRegistry),
    "karenina_register_formats": ("formats", FormatRegistry),
}
OTHER_KINDS = {
    "karenina_load_benchmark": "loader",
    "karenina_save_benchmark": "writer",
    "karenina_resolve_model": "model resolver",
    "karenina_wrap_call": "call middleware",
    "karenina_classify_error": "error classifier",
    "karenina_instruct": "prompt instructions",
    "karenina_wrap_item": "item middleware",
    "karenina_wrap_stage": "stage middleware",
    "karenina_run_started": "observer",
    "karenina_stage_finished": "observer",
    "karenina_item_finished": "observer",
    "karenina_run_finished": "observer",
}
log = get_logger("karenina.plugin")
_entered: ContextVar[tuple[Karenina, ...]] = ContextVar("karenina_applications", default=())
"""The applications of the enclosing `with` blocks; every thread and task has its own."""
_default: list[Karenina] = []


@frozen(kw_only=True)
class PluginInfo:
    """One plugin as `karenina plugins` lists it."""

    name: str
    kinds: tuple[str, ...] = ()
    distribution: str = "in memory"
    version: str = ""
    state: State = "active"
    reason: str = ""


def current(app: Karenina | None = None) -> Karenina:
    """The given application, else that of the enclosing `with app:`, else the default one."""
    if app is not None:
        return app
    entered = _entered.get()
    return entered[-1] if entered else Karenina.default()


class Karenina:
    """An application: registries filled by plugins and frozen.

    `plugins` maps names to plugin objects (modules or instances with `@hookimpl` functions). `infos` says where they
    come from, and lists those that could not be loaded. `settings` holds the `[plugins.<name>]` tables of a
    configuration.
    """

    stages: StageRegistry
    traits: TraitRegistry
    adapters: AdapterRegistry
    sinks: SinkRegistry
    embedders: EmbedderRegistry
    search_tools: SearchToolRegistry
    tool_servers: ToolServerRegistry
    template_runtimes: TemplateRuntimeRegistry
    executors: ExecutorRegistry
    settings_classes: SettingsRegistry
    strategies: StrategyRegistry
    primitives: PrimitiveRegistry
    views: ViewRegistry
    aggregators: AggregatorRegistry
    formats: FormatRegistry

    def __init__(
        self,
        plugins: Mapping[str, Any],
        *,
        infos: Iterable[PluginInfo] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        warnings: Iterable[str] = (),
    ) -> None:
        self.loop = BackgroundLoop()
        self.warnings = tuple(warnings)
        self._infos = {info.name: info for info in infos}
        self.tables = dict(settings or {})
        self._embedders: dict[tuple[str, str], Any] = {}
        self._evaluators: dict[str, Any] = {}
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._load(plugins)
        known = {name: info.state == "active" for name, info in self._infos.items()}
        self._settings = structured_settings(self.tables, self.settings_classes, known)
        self.adapters.settings = self.settings

    # Making one

    @classmethod
    def default(cls) -> Karenina:
        """The application of the installed plugins, made at the first use."""
        if not _default:
            _default.append(cls.installed())
        return _default[0]

    @classmethod
    def installed(
        cls,
        *,
        disable: Iterable[str] = (),
        only: Iterable[str] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Karenina:
        """An application of the installed plugins.

        `disable` and `only` name entry points to block or to allow, beside the environment's `KARENINA_DISABLE` and
        `KARENINA_PLUGINS`. Blocked plugins are not imported.
        """
        blocked = {*disable, *_names(os.environ.get("KARENINA_DISABLE", ""))}
        allowed = {*only, *_names(os.environ.get("KARENINA_PLUGINS", ""))}
        plugins: dict[str, Any] = {}
        infos: dict[str, PluginInfo] = {}
        sources = discover()
        rank = Rank({f"{source.name}@{source.distribution}": source.distribution for source in sources})
        for source in sorted(sources, key=lambda s: rank(f"{s.name}@{s.distribution}")):
            name = source.name
            info = PluginInfo(name=name, distribution=source.distribution, version=source.version)
            if name in infos:
                rival = infos[name].distribution
                key = f"{name} ({source.distribution})"
                reason = (
                    f"{rival} and {source.distribution} both provide a plugin called {name!r}; uninstall one of them"
                )
                infos[key] = evolve(info, name=key, state="failed", reason=reason)
            elif name in blocked or (allowed and name not in allowed):
                where = "KARENINA_DISABLE or disable" if name in blocked else "not in KARENINA_PLUGINS or only"
                infos[name] = evolve(info, state="blocked", reason=f"blocked by configuration ({where})")
            else:
                infos[name] = info
                try:
                    plugins[name] = load(source)
                except PluginError as error:
                    infos[name] = evolve(info, state="failed", reason=str(error))
        unknown = sorted((blocked | allowed) - {source.name for source in sources})
        warnings = [f"no plugin is called {name!r}{did_you_mean(name, infos)}" for name in unknown]
        return cls(plugins, infos=infos.values(), settings=settings, warnings=warnings)

    # Using it

    def __enter__(self) -> Karenina:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.set(_entered.get()[:-1])

    @property
    def hooks(self) -> Any:
        """Call a hook: `app.hooks.karenina_load_benchmark(path=..., data=...)`."""
        return self._manager.hook

    @property
    def plugins(self) -> tuple[PluginInfo, ...]:
        """Every plugin, the failed and the blocked ones too, by name."""
        return tuple(self._infos[name] for name in sorted(self._infos))

    def plugin(self, name: str) -> PluginInfo:
        return self._infos[name]

    def module_of(self, name: str) -> str:
        """The module of an active plugin, or of the class of an object that is one; empty for no such plugin."""
        plugin = self._manager.get_plugin(name)
        return str(getattr(plugin, "__module__", None) or getattr(plugin, "__name__", "")) if plugin else ""

    def inactive(self) -> str:
        """The plugins that are not there, and why: for errors about something that is missing."""
        lines = [f"{p.name} ({p.state}: {p.reason})" for p in self.plugins if p.state != "active"]
        return f" Plugins that are not active: {'; '.join(lines)}." if lines else ""

    def settings(self, plugin: str) -> Any:
        """The settings of a plugin, or None where it has none."""
        return self._settings.get(plugin)

    def every_settings(self) -> Mapping[str, Any]:
        """The settings of all plugins that have any, by plugin."""
        return self._settings

    def embedder(self, name: str, model: str) -> Any:
        """The `Embedder` of this name for a model, made once and inside its middleware.

        What stages ask it is limited, counted and kept by their run, unless it computes on this machine. Raises
        UnknownName and PluginError.
        """
        if (name, model) not in self._embedders:
            from ..ports.middleware import CallTarget  # runs that embed pay for it
            from .model_ports import embedder_port, middleware

            made, target = self._made(self.embedders, name, model), CallTarget("embedder", name, model)
            self._embedders[name, model] = embedder_port(target, made, middleware(self, target))
        return self._embedders[name, model]

    def _made(self, registry: Registry[Any], name: str, *arguments: Any) -> Any:
        """A thing of a registry, with the settings of its plugin where its class takes them."""
        owner = registry[name].plugin if name in registry else ""
        return registry.make(name, *arguments, settings=self.settings(owner))

    def trait_evaluator(self, name: str) -> Any:
        """The `TraitEvaluator` of a type of trait, made once, with its plugin's settings where its class takes them.

        Raises UnknownName and PluginError.
        """
        if name not in self._evaluators:
            self._evaluators[name] = self._made(self.traits, name)
        return self._evaluators[name]

    def can_use_tools(self, model: ModelConfig) -> bool:
        """Whether a model, behind its middleware, can be given tools. Nothing is opened. Raises KareninaError."""
        from .model_ports import able_to_use_tools, model_ports

        return able_to_use_tools(model_ports(self, self.adapters.resolve_interface(model.interface).spec, model))

    def search_tool(self, wanted: Any) -> Any:
        """The `SearchTool` that a configuration asks for, inside its middleware: `wanted` is a name in `search_tools`,
        or a function or object that searches. Made anew at every call.

        What one that has a name in `search_tools` finds for a stage is kept by the stage's run. Raises UnknownName,
        PluginError, and TypeError for what cannot search.
        """
        from ..ports.middleware import CallTarget  # runs that search pay for it
        from ..ports.search import search_tool
        from .model_ports import middleware, search_port

        made, is_named = search_tool(wanted, self.search_tools, self.settings), isinstance(wanted, str)
        target = CallTarget("search", wanted if is_named else _qualified_name(wanted))
        return search_port(target, made, middleware(self, target), kept=is_named)

    def implementations(self, hook: str) -> list[tuple[str, Any]]:
        """`(plugin, function)` for every implementation of a hook, in the order of the plugins' names."""
        found = getattr(self._manager.hook, hook).get_hookimpls()
        bound = ((impl.plugin_name, partial(keywords_only(impl), app=self)) for impl in found)
        return sorted(bound, key=lambda pair: pair[0])

    def observe(self, hook: str, **arguments: Any) -> None:
        """Tell the observers. One that raises is logged; nothing else happens to it."""
        for plugin, function in self.implementations(hook):
            try:
                function(**arguments)
            except (Exception, SystemExit) as error:
                log.warning("an observer failed", plugin=plugin, hook=hook, error=one_line(error))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine from synchronous code, on this application's background loop."""
        return self.loop.run(coroutine)

    # Loading

    def _load(self, plugins: Mapping[str, Any]) -> None:
        drafts: dict[str, dict[str, Registry[Any]]] = {}
        for name in sorted(plugins, reverse=True):  # pluggy calls the last registered first
            self._infos.setdefault(name, PluginInfo(name=name))
            try:
                drafts[name] = self._draft(name, plugins[name])
            except (Exception, SystemExit) as error:
                self._fail(name, plugins[name], str(error) if isinstance(error, PluginError) else one_line(error))
        rank = Rank({name: self._infos[name].distribution for name in drafts})
        merged, refused = resolve_drafts(drafts, rank)
        for name, clash in refused.items():
            self._fail(name, plugins[name], str(clash))
        for attribute, cls in REGISTRIES.values():
            setattr(self, attribute, cls(entries=merged.get(cls.kind, {}), frozen=True))
        for name in drafts.keys() - refused.keys():
            self._infos[name] = evolve(self._infos[name], kinds=self._kinds(name, plugins[name], drafts[name]))

    def _draft(self, name: str, plugin: Any) -> dict[str, Registry[Any]]:
        """Register one plugin and let it fill registries of its own."""
        self._manager.register(plugin, name)
        drafts: dict[str, Registry[Any]] = {}
        for hook, impl in self._own(plugin):
            check_hook(hook, impl)
            if hook in REGISTRIES:
                cls = REGISTRIES[hook][1]
                draft = drafts.setdefault(cls.kind, cls(name))
                keywords_only(impl)(registry=draft)
        if not self._own(plugin):
            raise PluginError("it implements no hook; is @hookimpl missing above its karenina_ functions?")
        if settings := drafts.get(SettingsRegistry.kind):
            for entry in settings.values():  # needed at once; a broken class is this plugin's own trouble
                settings.checked(entry.load())
                if name not in self.tables:
                    check_defaults(name, entry.load())
        return drafts

    def _own(self, plugin: Any) -> list[tuple[str, Any]]:
        callers = self._manager.get_hookcallers(plugin) or ()
        return [(c.name, impl) for c in callers for impl in c.get_hookimpls() if impl.plugin is plugin]

    def _fail(self, name: str, plugin: Any, reason: str) -> None:
        if self._manager.get_plugin(name) is not None:
            self._manager.unregister(plugin)
        self._infos[name] = evolve(self._infos[name], state="failed", reason=reason, kinds=())

    def _kinds(self, name: str, plugin: Any, drafts: Mapping[str, Registry[Any]]) -> tuple[str, ...]:
        kinds = {kind for kind, draft in drafts.items() if len(draft) and kind != "settings"}
        kinds |= {OTHER_KINDS[hook] for hook, _ in self._own(plugin) if hook in OTHER_KINDS}
        return tuple(sorted(kinds))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _qualified_name(thing: Any) -> str:
    """Where a function, or the class of an object, is defined: `module.name`."""
    named = thing if isinstance(getattr(thing, "__qualname__", None), str) else type(thing)
    return f"{named.__module__}.{named.__qualname__}"
