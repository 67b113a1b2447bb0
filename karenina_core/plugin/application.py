"""`Karenina`: one set of plugins, what they registered, and what went wrong with the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from traceback import walk_tb
from typing import Any, TypeVar, cast

from attrs import evolve
from pluggy import PluginValidationError

from ..errors import ConfigError, KareninaError, PluginError, Problem, did_you_mean, one_line
from ..log import get_logger
from ..ports.threads import BackgroundLoop
from ..values.config import sections
from ..values.result_parts import declared_parts, read_parts
from . import hookspecs
from .adapters import AdapterRegistry
from .api import check_api, declared_api
from .discovery import PluginInfo, Rank, Source, discover, load_all
from .kinds import (
    HOOKS,
    PREFIX,
    Kinds,
    SettingsRegistry,
    SinkRegistry,
    StageRegistry,
    TraitRegistry,
    check_hook,
    keywords_only,
    misfit,
)
from .markers import PROJECT, Hooks
from .registry import Drafts, Registry, resolve_drafts

T = TypeVar("T")
R = TypeVar("R", bound=Registry[Any])
log = get_logger("karenina.plugin")
_entered: ContextVar[tuple[Karenina, ...]] = ContextVar("karenina_applications", default=())
"""The applications of the enclosing `with` blocks; every thread and task has its own."""
_default: list[Karenina] = []


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
    configuration. `kinds` are registry classes of things that no installed distribution declares, for tests and
    scripts.
    """

    def __init__(
        self,
        plugins: Mapping[str, Any],
        *,
        infos: Iterable[PluginInfo] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        warnings: Iterable[str] = (),
        kinds: Iterable[type[Registry[Any]]] = (),
    ) -> None:
        self.loop = BackgroundLoop()
        self.warnings = tuple(warnings)
        self._infos = {info.name: info for info in infos}
        self.tables = dict(settings or {})
        self._made: dict[Hashable, Any] = {}
        self._kinds = Kinds(kinds)
        self._registries: dict[type[Registry[Any]], Registry[Any]] = {}
        self._manager = Hooks(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._load(plugins)
        self.stages = self.registry(StageRegistry)
        self.traits = self.registry(TraitRegistry)
        self.adapters = self.registry(AdapterRegistry)
        self.sinks = self.registry(SinkRegistry)
        self.settings_classes = self.registry(SettingsRegistry)
        self._settings = _structured_settings(self.tables, self.settings_classes, self._infos)
        for registry in self.registries:
            registry.settings, registry.inactive = self.settings, self.inactive

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
        read_parts()
        blocked = {*disable, *_names(os.environ.get("KARENINA_DISABLE", ""))}
        allowed = {*only, *_names(os.environ.get("KARENINA_PLUGINS", ""))}
        seen: dict[str, Source] = {}
        wanted: list[Source] = []
        others: list[PluginInfo] = []
        sources = discover()
        unusable = {section.info.distribution: section.info.reason for section in sections() if section.cls is None}
        rank = Rank({f"{source.name}@{source.distribution}": source.distribution for source in sources})
        for source in sorted(sources, key=lambda s: rank(f"{s.name}@{s.distribution}")):
            name, owner = source.name, source.distribution
            if (one := seen.setdefault(name, source)) is not source:
                reason = f"{one.distribution} and {owner} both provide a plugin called {name!r}; uninstall one of them"
                others.append(evolve(source.info, name=f"{name} ({owner})", state="failed", reason=reason))
            elif name in blocked or (allowed and name not in allowed):
                where = "KARENINA_DISABLE or disable" if name in blocked else "not in KARENINA_PLUGINS or only"
                others.append(evolve(source.info, state="blocked", reason=f"blocked by configuration ({where})"))
            elif owner in unusable:
                others.append(evolve(source.info, state="failed", reason=unusable[owner]))
            else:
                wanted.append(source)
        plugins, infos = load_all(wanted)
        unknown = sorted((blocked | allowed) - {source.name for source in sources})
        warnings = [f"no plugin is called {name!r}{did_you_mean(name, (s.name for s in sources))}" for name in unknown]
        return cls(plugins, infos=[*infos.values(), *others], settings=settings, warnings=warnings)

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
        lines = [f"{p.name} ({p.state}: {p.reason})" for p in (*self.plugins, *self.kinds) if p.state != "active"]
        return f" Plugins that are not active: {'; '.join(lines)}." if lines else ""

    def settings(self, plugin: str) -> Any:
        """The settings of a plugin, or None where it has none."""
        return self._settings.get(plugin)

    def every_settings(self) -> Mapping[str, Any]:
        """The settings of all plugins that have any, by plugin."""
        return self._settings

    def registry(self, kind: type[R]) -> R:
        """What plugins registered of a kind, perhaps nothing: `app.registry(SinkRegistry)["jsonl"]`.

        Raises PluginError where installed packages take another class for this kind.
        """
        if kind not in self._registries:
            for other in self._registries:
                if other.hook == kind.hook:
                    raise PluginError(f"{kind.hook} registers {other.__module__}.{other.__qualname__}, not {kind!r}")
            self._registries[kind] = kind(frozen=True)
        return cast(R, self._registries[kind])

    @property
    def registries(self) -> tuple[Registry[Any], ...]:
        """Those in which something may be, of every kind."""
        return tuple(self._registries.values())

    @property
    def kinds(self) -> tuple[PluginInfo, ...]:
        """The kinds of things that installed distributions declare, by hook; those too that cannot be used."""
        return self._kinds.infos()

    @property
    def sections(self) -> tuple[PluginInfo, ...]:
        """The sections of settings of a run that installed distributions declare; those too that cannot be used."""
        return tuple(section.info for section in sections())

    @property
    def result_parts(self) -> tuple[PluginInfo, ...]:
        """The parts of results that installed distributions declare; those too that cannot be used."""
        return tuple(part.info for part in declared_parts())

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made at the first use of a key and shared from then on."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def trait_evaluator(self, name: str) -> Any:
        """The `TraitEvaluator` of a type of trait, made once, with its plugin's settings where its class takes them.

        Raises UnknownName and PluginError.
        """
        return self.once((TraitRegistry, name), partial(self.traits.make, name))

    def implementations(self, hook: str) -> list[tuple[str, Any]]:
        """`(plugin, function)` for every implementation of a hook, in the order of the plugins' names."""
        found = getattr(self._manager.hook, hook).get_hookimpls()
        bound = ((impl.plugin_name, partial(keywords_only(impl), app=self)) for impl in found)
        return sorted(bound, key=lambda pair: pair[0])

    def middleware(self, hook: str, what: str = "", **arguments: Any) -> list[tuple[str, Any]]:
        """`(plugin, around)` for everything that plugins put around something by a hook, the outermost first.

        Raises PluginError, and what KareninaError a plugin raises; `what` follows the word failed in its message.
        """
        found = []
        for plugin, wrap in self.implementations(hook):
            try:
                around = wrap(**arguments)
            except KareninaError:
                raise
            except (Exception, SystemExit) as error:  # a plugin's own code
                raise PluginError(f"{hook} of plugin {plugin!r} failed{what}: {one_line(error)}") from error
            if around is not None and not callable(around):
                raise PluginError(f"{hook} of plugin {plugin!r} must return a coroutine function or None")
            if around is not None:
                found.append((plugin, around))
        return found

    def first(self, hook: str, **arguments: Any) -> Any:
        """What the first plugin gives that does not return None. Raises PluginError, which names a plugin that fails,
        and what KareninaError a plugin raises."""
        try:
            return getattr(self._manager.hook, hook)(**arguments)
        except KareninaError:
            raise
        except (Exception, SystemExit) as error:  # a plugin's own code
            impls = getattr(self._manager.hook, hook).get_hookimpls()
            codes = {getattr(impl.function, "__code__", None): impl.plugin_name for impl in impls}
            within = (codes[frame.f_code] for frame, _ in walk_tb(error.__traceback__) if frame.f_code in codes)
            raise PluginError(f"{hook} of plugin {next(within, '?')!r} failed: {one_line(error)}") from error

    def observe(self, hook: str, **arguments: Any) -> None:
        """Call the observers. One that raises is logged; nothing else happens to it."""
        for plugin, function in self.once((hook,), partial(self.implementations, hook)):
            try:
                function(**arguments)
            except (Exception, SystemExit) as error:
                log.warning("an observer failed", plugin=plugin, hook=hook, error=one_line(error))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine from synchronous code, on this application's background loop."""
        return self.loop.run(coroutine)

    # Loading

    def _load(self, plugins: Mapping[str, Any]) -> None:
        drafts: dict[str, Drafts] = {}
        hooks: dict[str, set[str]] = {}
        for name in sorted(plugins, reverse=True):  # pluggy calls the last registered first
            self._infos.setdefault(name, PluginInfo(name=name))
            try:
                drafts[name], hooks[name] = self._draft(name, plugins[name])
            except (Exception, SystemExit) as error:
                self._fail(name, plugins[name], str(error) if isinstance(error, PluginError) else one_line(error))
        merged, refused = resolve_drafts(drafts, Rank({name: self._infos[name].distribution for name in drafts}))
        for name, clash in refused.items():
            self._fail(name, plugins[name], str(clash))
        self._registries = {kind: kind(entries=entries, frozen=True) for kind, entries in merged.items()}
        for name in drafts.keys() - refused.keys():
            brought = {kind.kind for kind, draft in drafts[name].items() if len(draft) and kind is not SettingsRegistry}
            others = {hook.removeprefix(PREFIX) for hook in hooks[name] if hook in HOOKS}
            self._infos[name] = evolve(self._infos[name], kinds=tuple(sorted(brought | others)))

    def _draft(self, name: str, plugin: Any) -> tuple[Drafts, set[str]]:
        """Register one plugin, let it fill registries of its own, and find the hooks that it implements."""
        check_api(declared_api(plugin))
        try:
            self._manager.register(plugin, name)
        except PluginValidationError as error:
            raise PluginError(misfit(plugin) or one_line(error)) from None
        drafts: dict[type[Registry[Any]], Registry[Any]] = {}
        callers = vars(self._manager.hook).values()
        own = [(c.name, impl) for c in callers for impl in c.get_hookimpls() if impl.plugin is plugin]
        for hook, impl in own:
            if kind := self._kind(name, hook, impl):
                check_hook(hook, impl)
                keywords_only(impl)(registry=drafts.setdefault(kind, kind(name)))
            elif hook in HOOKS:
                check_hook(hook, impl)
        if not own:
            raise PluginError("it implements no hook; is @hookimpl missing above its karenina_ functions?")
        if settings := drafts.get(SettingsRegistry):
            for entry in settings.values():  # needed at once; a broken class is this plugin's own trouble
                settings.checked(entry.load())
                if name not in self.tables:
                    _check_defaults(name, entry.load())
        return drafts, {hook for hook, _ in own}

    def _kind(self, name: str, hook: str, impl: Any) -> type[Registry[Any]] | None:
        """The kind that a hook registers. That nothing calls it is noted. Raises PluginError if it is misspelt."""
        if hook in HOOKS:
            return None
        try:
            kind = self._kinds.find(hook)
        except PluginError as error:
            kind, noted = None, f"{hook} is not called: {error}"
        else:
            noted = "" if kind or impl.optionalhook else self._kinds.unknown(hook)
        if noted:
            info = self._infos[name]
            self._infos[name] = evolve(info, reason="; ".join(filter(None, (info.reason, noted))))
        return kind

    def _fail(self, name: str, plugin: Any, reason: str) -> None:
        if self._manager.get_plugin(name) is not None:
            self._manager.unregister(plugin)
        self._infos[name] = evolve(self._infos[name], state="failed", reason=reason, kinds=())


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_defaults(name: str, cls: type) -> None:
    """A plugin that cannot do without settings fails alone where there are none. Raises PluginError."""
    from ..values.convert import structure

    try:
        structure({}, cls, f"plugins.{name}")
    except ConfigError as error:
        raise PluginError(f"it needs settings, [plugins.{name}] in the configuration file: {error}") from None


def _structured_settings(
    tables: Mapping[str, Mapping[str, Any]], classes: SettingsRegistry, known: Mapping[str, PluginInfo]
) -> dict[str, Any]:
    """`{plugin: settings}` of every plugin that has some.

    Raises ConfigError with everything that is wrong.
    """
    if not tables and not classes:
        return {}
    from ..values.convert import structure  # cattrs is only needed where there are settings

    settings: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in sorted(set(tables) - set(classes)):
        why = f"no installed package has this plugin{did_you_mean(name, classes)}; "
        why += "install the one that has it, or remove the table"
        if info := known.get(name):
            if info.state == "blocked":  # for now: it keeps its table
                continue
            why = "the plugin has no settings" if info.state == "active" else f"the plugin failed: {info.reason}"
        problems.append(Problem(f"plugins.{name}", why))
    for name in classes:
        try:
            settings[name] = structure(tables.get(name, {}), classes.load(name), f"plugins.{name}")
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return settings
