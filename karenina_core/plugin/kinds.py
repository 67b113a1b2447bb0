"""Hooks that can be implemented: those of the core, and of every kind of things that a distribution declares.

A kind is a subclass of `Registry`. A distribution declares one by an entry point of the group `karenina.kinds`, called
like what its hook registers: `views = "my_package.kinds:ViewRegistry"` for `karenina_register_views`. A declaration
is no plugin: it cannot be blocked, every application knows it, and its module is imported when a plugin implements the
hook. So no kind depends on the order in which plugins are loaded.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from attrs import evolve

from ..errors import PluginError, did_you_mean
from . import hookspecs
from .adapters import AdapterRegistry
from .discovery import KINDS, PluginInfo, Rank, Source, discover, load
from .markers import PROJECT
from .registry import Kind, Registry

PREFIX = f"{PROJECT}_"
REGISTER = f"{PREFIX}register_"
"""How the hook of every kind begins."""
HOOKS: Mapping[str, Any] = {name: spec for name, spec in vars(hookspecs).items() if name.startswith(PREFIX)}
"""Those of the core that register nothing."""
MISSPELT = 0.8
"""From this likeness on (`difflib`) a hook is a misspelling of another one. One letter missing, exchanged or too many
makes 0.8 and more in words of five letters; of all kinds that exist, `strategies` and `stages` are most alike: 0.75.
"""


class StageRegistry(Registry[Any]):
    """Add stage classes.

    They are made once per plan, with the plugin's settings when the constructor takes one argument.
    """

    kind = "stage"
    hook = "karenina_register_stages"
    affects_every_run = False
    asked_by_name = False
    needs = (
        *("name", "category", "requires", "reads", "produces", "result_fields", "features", "included_when"),
        *("after", "before", "final", "blocking", "should_run", "execute"),
    )
    remedy = "derive it from karenina_core.Stage"
    calls: ClassVar = {"execute": ("context",), "should_run": ("context",)}

    def checked(self, thing: Any) -> Any:
        if isinstance(thing, str):
            raise PluginError(f"stages are planned by their declarations: add the class itself, not {thing!r}")
        return super().checked(thing)

    def add(self, thing: Any, *, name: str | None = None, replaces: str | None = None, hint: str = "") -> None:
        own = self.name_of(thing)
        if name is not None and name != own:
            raise PluginError(f"the stage {own!r} cannot be added as {name!r}: a plan calls stages by their own name")
        super().add(thing, replaces=replaces, hint=hint)


class TraitRegistry(Registry[Any]):
    """Add rubric trait evaluators, named by the type of trait that they score: each a `TraitEvaluator` class.

    One is made per application, with the plugin's settings when the constructor takes one argument.
    """

    kind = "trait evaluator"
    hook = "karenina_register_traits"
    needs = ("name", "trait_class", "evaluate", "check_config")
    remedy = "derive it from karenina_core.TraitEvaluator and give it a name and a trait_class"
    calls: ClassVar = {"evaluate": ("traits", "case"), "check_config": ("traits", "config", "app")}

    def checked(self, thing: Any) -> Any:
        if not isinstance(super().checked(thing), str) and not getattr(thing.trait_class, "type_name", ""):
            raise PluginError(
                f"{thing!r}: its trait_class {thing.trait_class!r} sets no type_name; derive it from "
                f"karenina_core.RubricTrait and set it to {thing.name!r}"
            )
        return thing


class SinkRegistry(Registry[Any]):
    """Add sinks: where results are written. A sink is made with its target, the part of `--sink name:target` after
    the colon."""

    kind = "sink"
    hook = "karenina_register_sinks"
    affects_every_run = False


class SettingsRegistry(Registry[type]):
    """Add one frozen attrs class: the settings of this plugin, `[plugins.<name>]` in the configuration file."""

    kind = "settings"
    hook = "karenina_register_settings"
    affects_every_run = False

    def name_of(self, thing: Any) -> str | None:
        return self.plugin

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not hasattr(thing, "__attrs_attrs__"):
            raise PluginError(f"settings of plugin {self.plugin!r}: {thing!r} is not an attrs class")
        return thing


CORE_KINDS: tuple[Kind, ...] = (StageRegistry, TraitRegistry, AdapterRegistry, SinkRegistry, SettingsRegistry)


class Kinds:
    """The kinds that an application knows, by their hooks: those of the core, those of installed distributions, and
    those that are `given` because no distribution declares them. Raises PluginError for what cannot be a kind."""

    def __init__(self, given: Iterable[Kind] = ()) -> None:
        self._loaded: dict[str, Kind] = {}
        self._broken: dict[str, str] = {}
        for kind in (*CORE_KINDS, *given):
            known = self._loaded.setdefault(_checked(kind).hook, kind)
            if known is not kind:
                raise PluginError(f"{_where(known)} and {_where(kind)} both have the hook {kind.hook!r}; rename one")

    @cached_property
    def _declared(self) -> Mapping[str, Sequence[Source]]:
        """By hook. Of several, the first one counts."""
        found: dict[str, list[Source]] = {}
        for source in discover(KINDS):
            found.setdefault(REGISTER + source.name, []).append(source)
        rank = Rank({source.distribution: source.distribution for sources in found.values() for source in sources})
        for sources in found.values():
            if len(sources) > 1:  # else nothing is to be ranked
                sources.sort(key=lambda source: rank(source.distribution))
        return found

    def find(self, hook: str) -> Kind | None:
        """The kind that a hook registers; None for any other hook. Raises PluginError where it cannot be loaded."""
        if hook in self._broken:
            raise PluginError(self._broken[hook])
        if hook not in self._loaded and hook in self._declared:
            source = self._declared[hook][0]
            try:
                kind = _checked(load(source))
                if kind.hook != hook:
                    raise PluginError(f"its hook is {kind.hook!r}, not {hook!r}; name the entry point like its hook")
            except PluginError as error:
                self._broken[hook] = f"{source.distribution} declares {hook}, which cannot be used: {error}"
                raise PluginError(self._broken[hook]) from error
            self._loaded[hook] = kind
        return self._loaded.get(hook)

    def unknown(self, hook: str) -> str:
        """What to say of a plugin's hook that is none here: perhaps its owner is not installed. Raises PluginError for
        one that is more likely misspelt."""
        known = {*self._loaded, *self._declared}
        if not hook.startswith(REGISTER):
            raise PluginError(f"there is no hook {hook!r}{did_you_mean(hook, {*known, *HOOKS})}")
        stems = sorted(name.removeprefix(REGISTER) for name in known)
        if close := difflib.get_close_matches(hook.removeprefix(REGISTER), stems, 1, MISSPELT):
            raise PluginError(f"there is no hook {hook!r} (did you mean {REGISTER + close[0]!r}?)")
        return f"{hook} is not called: no installed distribution declares it; install one that does"

    def infos(self) -> tuple[PluginInfo, ...]:
        """What installed distributions declare, by hook, with what cannot be used and why. Imports all of it."""
        found = []
        for hook in sorted(self._declared):
            for number, source in enumerate(self._declared[hook]):
                info = evolve(source.info, name=hook)
                try:
                    if number:
                        rival = self._declared[hook][0].distribution
                        raise PluginError(f"{rival} declares {hook} too; uninstall one of them")
                    kind = self.find(hook)
                    found.append(evolve(info, kinds=(kind.kind,) if kind else ()))
                except PluginError as error:
                    found.append(evolve(info, state="failed", reason=str(error)))
        return tuple(found)


def _checked(kind: Any) -> Kind:
    """Raises PluginError."""
    if not (isinstance(kind, type) and issubclass(kind, Registry)):
        raise PluginError(f"{kind!r} is not a kind of things: derive it from karenina_core.plugin.registry.Registry")
    if not kind.hook.removeprefix(REGISTER).isidentifier() or not kind.hook.startswith(REGISTER):
        raise PluginError(f"{_where(kind)} needs a hook: hook = '{REGISTER}things'")
    return kind


def _where(kind: Kind) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def check_hook(hook: str, impl: Any) -> None:
    """Refuse what pluggy accepts silently. Raises PluginError."""
    if inspect.iscoroutinefunction(impl.function):
        raise PluginError(f"hook {hook!r} is an async function and would never be awaited; make it a plain one")
    wraps = impl.hookwrapper or impl.wrapper
    if wraps and not (hook in HOOKS and HOOKS[hook].karenina_spec["firstresult"]):
        raise PluginError(f"hook {hook!r} cannot be a wrapper; its implementations are called one by one")
    if inspect.isgeneratorfunction(impl.function) and not wraps:
        raise PluginError(f"hook {hook!r} is a generator and would never run; remove the `yield`")
    if hook not in HOOKS and (surplus := set(impl.argnames) - {"registry"}):
        raise PluginError(f"hook {hook!r} does not get {', '.join(sorted(surplus))}, only the registry")


def misfit(plugin: Any) -> str:
    """What keeps a plugin's implementations of the core's hooks from being called; nothing where nothing is seen."""
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        options = getattr(function, "karenina_impl", None)
        if not callable(function) or not isinstance(options, dict):
            continue
        hook = options["specname"] or name
        if hook not in HOOKS:
            continue
        if (options["wrapper"] or options["hookwrapper"]) and not inspect.isgeneratorfunction(function):
            return f"hook {hook!r} is marked as a wrapper and has no `yield`; remove the mark"
        known = list(inspect.signature(HOOKS[hook]).parameters)
        for argument in inspect.signature(function).parameters:
            if argument not in known:
                return f"hook {hook!r} gets no {argument!r}{did_you_mean(argument, known)}, only {', '.join(known)}"
    return ""


def keywords_only(impl: Any) -> Any:
    """The implementation, called with keyword arguments of which it may want only some."""
    wanted = set(impl.argnames)
    return lambda **arguments: impl.function(**{k: v for k, v in arguments.items() if k in wanted})
