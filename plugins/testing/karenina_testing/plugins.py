"""Does a whole plugin load cleanly beside others, and does everything that it brings keep its promises?

What the checks of single things need, a package says by an entry point of the group `karenina.checks`, called like its
plugin: `labdb = "karenina_labdb.checks:OPTIONS"`, a mapping of things to arguments, or a function that returns one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from types import ModuleType
from typing import Any, cast

from attrs import evolve
from karenina_calls.services.shared import EmbedderRegistry, SearchToolRegistry
from karenina_cli.doctor.misplaced import misplaced
from karenina_runs.kinds import ExecutorRegistry
from karenina_vocabulary.kinds import PrimitiveRegistry, TemplateRuntimeRegistry

from karenina_core.errors import KareninaError, PluginError, did_you_mean, one_line
from karenina_core.plugin.adapters import AdapterRegistry
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.discovery import PluginInfo, Source, discover, load, load_all
from karenina_core.plugin.kinds import SinkRegistry, StageRegistry, TraitRegistry
from karenina_core.plugin.registry import Registry

from . import examples  # noqa: F401  # first: without hypothesis it says what to install
from .adapters.adapters import adapter_checks
from .checks import Check, Fault, Promises, expecting, promise_checks
from .commands import command_checks, installed_commands
from .executors import executor_checks
from .fakes import name_of
from .loaders import loader_checks
from .primitives import primitive_checks
from .runtimes.runtimes import runtime_checks
from .services import embedder_checks, search_tool_checks
from .sinks import sink_checks
from .stages.stages import stage_checks
from .traits.traits import evaluator_checks
from .watch.audit import heavy_imports
from .watch.source_lines import file_of, line_of_function

Options = Mapping[str, Mapping[str, Any] | str]
"""Name of a thing -> arguments for its checks, or why it is not checked."""
Kind = type[Registry[Any]]
CHECKS: Mapping[Kind, Callable[..., list[Check]]] = {
    StageRegistry: stage_checks,
    AdapterRegistry: adapter_checks,
    SinkRegistry: sink_checks,
    TemplateRuntimeRegistry: runtime_checks,
    PrimitiveRegistry: primitive_checks,
    EmbedderRegistry: embedder_checks,
    SearchToolRegistry: search_tool_checks,
    TraitRegistry: evaluator_checks,
    ExecutorRegistry: executor_checks,
}
MADE_BY_CHECKS = (EmbedderRegistry, SearchToolRegistry, TraitRegistry)
"""Kinds of classes that the checks themselves make, with the plugin's settings."""
DECLARED = "karenina.checks"
LOADER = "load_benchmark"
"""What options and checks call the loader of a plugin."""


def declared_options(name: str) -> Options:
    """What a package says that the checks of its plugin need; nothing where it says nothing. Raises PluginError."""
    for source in discover(DECLARED):
        if source.name == name:
            found = load(source)
            return cast(Options, found() if callable(found) else found)
    return {}


def plugin_checks(
    plugin: Any,
    *,
    options: Options | None = None,
    kinds: Iterable[Kind] = (),
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int | None = None,
) -> list[Check]:
    """The checks of a plugin and of everything that it brings and that there are checks for.

    `plugin` is the name of an installed entry point, of a plugin or of a command, or a plugin object (a module, or an
    instance with hooks). `options` are arguments for the checks of single things, by their names: `{"jsonl":
    {"read_back": function}}`, or a text that says why a thing is not checked; by default those that the package of an
    installed plugin declares. The checks of a thing are called `thing.check`, those of a loader of benchmarks
    `load_benchmark.check`. Nothing is embedded, searched or scored without an option that says so: `{"letters":
    {"model": "counts"}, "papers": {"search": True}}`. `kinds` are registry classes that no installed distribution
    declares. `max_examples` is the number of random examples, where there are any. Raises ValueError for names that the
    plugin does not bring, and PluginError where declared options cannot be imported.
    """
    brought = _Plugin(plugin, tuple(kinds))
    given = dict((declared_options(plugin) if isinstance(plugin, str) else {}) if options is None else options)
    commands = installed_commands(plugin) if isinstance(plugin, str) else []
    only_commands = bool(commands) and not brought.sources
    promises = PROMISES if brought.is_there else {"loads": PROMISES["loads"]}
    checks = [] if only_commands else promise_checks(f"plugin {brought.name}", brought, promises)
    things = [] if only_commands else list(brought.checkable())
    for name, make, thing, settings in (*things, *((point.name, command_checks, point, {}) for point in commands)):
        said = given.pop(name, {})
        if isinstance(said, str):
            continue
        arguments = {**settings, **said}
        if max_examples is not None and "max_examples" in inspect.signature(make).parameters:
            arguments["max_examples"] = max_examples
        checks += _checks_of(name, partial(make, thing, **arguments))
    if given:
        known = [name for _, name, _ in brought.things()] if not only_commands else [brought.name]
        name = next(iter(given))
        raise ValueError(f"plugin {brought.name} brings no {name!r} to check{did_you_mean(name, known)}")
    return expecting(checks, expected_failures)


def _checks_of(name: str, make: Callable[[], list[Check]]) -> list[Check]:
    """The checks of one thing; where they cannot be made, one that says so."""
    try:
        return [evolve(check, name=f"{name}.{check.name}") for check in make()]
    except (KareninaError, ImportError, AttributeError, ValueError, TypeError) as error:
        words = f"say what its checks need: plugin_checks(..., options={{{name!r}: {{...}}}})"
        remedy = f"{words}, or in the group {DECLARED} of entry points"
        return [
            Check(name, f"{name}.options", "Its checks can be made.", partial(Fault, one_line(error), remedy=remedy))
        ]


class _Plugin:
    """A plugin and how it comes to be loaded."""

    def __init__(self, plugin: Any, kinds: tuple[Kind, ...] = ()) -> None:
        self.entry_point = plugin if isinstance(plugin, str) else None
        self._object = plugin
        self.kinds = kinds

    @property
    def name(self) -> str:
        return self.entry_point or name_of(self._object)

    @property
    def sources(self) -> list[Source]:
        """The installed entry points of its name."""
        return [source for source in discover() if source.name == self.entry_point]

    @property
    def is_there(self) -> bool:
        """Whether there is anything to load."""
        return self.entry_point is None or bool(self.sources)

    @cached_property
    def loaded(self) -> Any:
        """The plugin object. Raises PluginError."""
        if self.entry_point is None:
            return self._object
        if not self.is_there:
            close = did_you_mean(self.entry_point, [source.name for source in discover()])
            stray = "; ".join(["", *(line for line in misplaced() if repr(self.entry_point) in line)])
            remedy = stray or "; install its package first"
            raise PluginError(f"no installed plugin is called {self.entry_point!r}{close}{remedy}")
        return load(self.sources[0])

    @cached_property
    def alone(self) -> Karenina:
        """An application of this plugin and no other. Raises PluginError where the plugin cannot be imported."""
        return Karenina({self.name: self.loaded}, kinds=self.kinds)

    @property
    def state(self) -> PluginInfo:
        return self.alone.plugin(self.name)

    @property
    def module(self) -> ModuleType | None:
        return self.loaded if isinstance(self.loaded, ModuleType) else inspect.getmodule(type(self.loaded))

    def things(self) -> Iterator[tuple[Kind, str, Any]]:
        """`(kind, name, thing)` of what it brings and can be loaded; stages are made with their settings."""
        try:
            app = self.alone
        except PluginError:
            return
        for kind, name in self.registered(app):
            made = kind is StageRegistry and app.settings(self.name) is not None
            try:
                yield kind, name, app.registry(kind).make(name) if made else app.registry(kind).load(name)
            except PluginError:
                continue  # the check of what it registers says so

    def checkable(self) -> Iterator[tuple[str, Callable[..., list[Check]], Any, dict[str, Any]]]:
        """`(name, function that makes its checks, thing, further arguments)` of what it brings."""
        for kind, name, thing in self.things():
            if make := CHECKS.get(kind):
                yield name, make, thing, {"settings": self.alone.settings(self.name)} if kind in MADE_BY_CHECKS else {}
        try:
            loads = self.state.state == "active" and LOADER in self.state.kinds
        except PluginError:
            return
        if loads:
            yield LOADER, loader_checks, self.loaded, {"files": {}}

    def registered(self, app: Karenina) -> Iterator[tuple[Kind, str]]:
        """`(kind, name)` of what an application has from this plugin."""
        for registry in sorted(app.registries, key=lambda registry: registry.hook):
            yield from ((type(registry), name) for name, entry in registry.items() if entry.plugin == self.name)


PROMISES: Promises[_Plugin] = Promises()


@PROMISES.add("loads", "It can be imported, and every hook that it implements exists.")
def _loads(plugin: _Plugin) -> Iterator[Fault]:
    if len(plugin.sources) > 1:
        owners = " and ".join(source.distribution for source in plugin.sources)
        yield Fault(f"{owners} both provide a plugin called {plugin.name!r}", remedy="uninstall or rename one of them")
    try:
        state = plugin.state
    except PluginError as error:
        yield Fault(str(error), remedy="correct the module that the entry point names")
    if state.state != "active":
        yield Fault(state.reason, _first_line(plugin), "correct it: nothing of the plugin is registered until then")
    if state.reason:
        yield Fault(state.reason, _first_line(plugin), "install what declares it, also where you test")
    if not state.kinds and plugin.alone.settings(plugin.name) is None:
        yield Fault("it brings nothing", _first_line(plugin), "register something in a hook")


@PROMISES.add("marked", "Every function that is called like a hook is one.")
def _marked(plugin: _Plugin) -> Iterator[Fault]:
    for name in dir(plugin.loaded):
        thing = getattr(plugin.loaded, name)
        if not name.startswith("karenina_") or not callable(thing):
            continue
        if not (hasattr(thing, "karenina_impl") or hasattr(thing, "karenina_spec")):
            yield Fault(
                f"{name} is not marked and will never be called", line_of_function(thing), "put @hookimpl above"
            )


@PROMISES.add("light_import", "Its entry module imports nothing heavy and does nothing.")
def _light(plugin: _Plugin) -> Iterator[Fault]:
    module = plugin.module
    if module is None or file_of(module) is None:
        return
    for what, line in heavy_imports(module).items():
        yield Fault(f"importing its entry module {what}", line, "import it inside a function, or use an import string")


@PROMISES.add("again", "It registers the same in every application.")
def _again(plugin: _Plugin) -> Iterator[Fault]:
    first = list(plugin.registered(plugin.alone))
    second = list(plugin.registered(Karenina({plugin.name: plugin.loaded}, kinds=plugin.kinds)))
    if first == second:
        return
    listed = (", ".join(f"{kind.kind} {name}" for kind, name in found) or "nothing" for found in (second, first))
    yield Fault(
        "in a second application it registers {}, not {}".format(*listed),
        _first_line(plugin),
        "let the hooks depend on nothing but their arguments",
    )


@PROMISES.add("beside_others", "Its names clash with no installed plugin.")
def _beside_others(plugin: _Plugin) -> Iterator[Fault]:
    others, infos = load_all(source for source in discover() if source.name != plugin.name)
    both, own = {**others, plugin.name: plugin.loaded}, [source.info for source in plugin.sources]
    after = Karenina(both, infos=[*infos.values(), *own], kinds=plugin.kinds)
    refused = [info for info in after.plugins if info.state != "active"]
    before = Karenina(others, infos=infos.values(), kinds=plugin.kinds) if refused else after
    for info in refused:
        if info.name == plugin.name or before.plugin(info.name).state == "active":
            yield Fault(info.reason, _first_line(plugin), "choose names of your own, or say replaces='name'")


@PROMISES.add("registered", "Everything that it registers can be imported.")
def _registered(plugin: _Plugin) -> Iterator[Fault]:
    for kind, name in plugin.registered(plugin.alone):
        try:
            plugin.alone.registry(kind).load(name)
        except PluginError as error:
            yield Fault(str(error), _first_line(plugin), "correct the import string 'module:Name'")


@PROMISES.add("kinds", "The kinds of things that its distribution declares can be used.")
def _kinds(plugin: _Plugin) -> Iterator[Fault]:
    own = {source.distribution for source in plugin.sources}
    for kind in plugin.alone.kinds if own else ():
        if kind.distribution in own and kind.state != "active":
            yield Fault(kind.reason, remedy="correct the entry point in the group karenina.kinds")


def _first_line(plugin: _Plugin) -> str:
    """Where the first of its hooks begins."""
    hooks = [getattr(plugin.loaded, name) for name in dir(plugin.loaded) if name.startswith("karenina_")]
    functions = [inspect.unwrap(hook) for hook in hooks if callable(hook) and hasattr(hook, "karenina_impl")]
    functions.sort(key=lambda function: function.__code__.co_firstlineno)
    return line_of_function(functions[0]) if functions else ""
