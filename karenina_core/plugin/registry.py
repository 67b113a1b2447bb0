"""Named things of one kind, and who brought them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

from attrs import field, frozen

from ..errors import OTHERS, DuplicateName, PluginError, UnknownName, did_you_mean
from .shapes import misfits

T = TypeVar("T")
Drafts = Mapping[type["Registry[Any]"], "Registry[Any]"]
"""What one plugin registered, by kind."""


def import_string(target: str, owner: str = "", hint: str = "") -> Any:
    """What `"module:Name"` names. Raises PluginError, which distinguishes a missing package from a broken one."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and not is_installed(error.name.partition(".")[0]):
            advice = f" {hint}" if hint else ""
            raise PluginError(f"{owner or target}: the package {error.name!r} is not installed.{advice}") from error
        raise PluginError(
            f"{owner or target}: {target} is installed but broken: {type(error).__name__}: {error}"
        ) from error


def is_installed(package: str) -> bool:
    """Whether a top-level package can be found. It is looked up, not imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def with_settings(function: Callable[..., Any], arguments: tuple[Any, ...], settings: Any) -> tuple[Any, ...]:
    """The arguments, and the settings of a plugin as one more where there are any and the function takes one more."""
    if settings is None:
        return arguments
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    takes = [p for p in inspect.signature(function).parameters.values() if p.kind in places]
    return (*arguments, settings) if len(takes) > len(arguments) else arguments


@frozen
class Entry(Generic[T]):
    """One registered thing, perhaps not imported yet."""

    name: str
    target: Any = field(repr=False)
    plugin: str = ""
    replaces: str | None = None
    hint: str = ""

    def load(self) -> T:
        """The thing itself; an import string is resolved at the first use. Raises PluginError."""
        thing: T = self.target
        if isinstance(thing, str):
            thing = import_string(thing, f"{self.name!r} of plugin {self.plugin!r}", self.hint)
        return thing


class Registry(Mapping[str, Entry[T]], Generic[T]):
    """Entries by name. Plugins fill a draft of it; what the application holds is complete and frozen.

    A subclass is a kind of things. Its docstring is that of its hook: what a plugin adds, and how it is used.
    """

    kind: ClassVar[str] = "thing"
    """What one of them is called, in messages and in `karenina plugins`."""
    hook: ClassVar[str] = ""
    """By which plugins add them: `karenina_register_things(registry)`, called once per application."""
    affects_every_run: ClassVar[bool] = True
    """Whether each of them may have a part in any result, so that a run is resumed only with the same code of all. Of
    stages and adapters only those in use have, of sinks none."""
    asked_by_name: ClassVar[bool] = True
    """Whether a thing that replaces another one is found under the other's name, too."""
    unknown: ClassVar[str] = ""
    """How the error begins for a name that none of them has, where `no thing is called` is not what to say."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Names that each of them has."""
    remedy: ClassVar[str] = ""
    """What to do with one that has not."""
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Methods of each class of them, and the names of what they are called with."""
    settings: Callable[[str], Any] = staticmethod(lambda plugin: None)
    """The settings of a plugin, or None; the application sets it once it knows them."""
    inactive: Callable[[], str] = staticmethod(str)
    """The plugins that are not active, and why, for errors; set by the application."""

    def __init__(
        self, plugin: str = "", entries: Mapping[str, Entry[T]] | None = None, *, frozen: bool = False
    ) -> None:
        self.plugin = plugin
        self._entries: dict[str, Entry[T]] = dict(entries or {})
        self._frozen = frozen

    def add(
        self, thing: T | type[T] | str, *, name: str | None = None, replaces: str | None = None, hint: str = ""
    ) -> None:
        """Register a class, an instance, or an import string `"module:Name"`, for which `name` is required.

        `replaces="x"` takes the place of the `x` that another plugin provides. `hint` is shown when the import fails.
        Raises DuplicateName, and PluginError where there is no name to use.
        """
        if self._frozen:
            raise PluginError(f"the {self.kind} registry is complete; add things in a karenina_register_ hook")
        name = name or self.name_of(thing)
        if not name:
            raise PluginError(f"this {self.kind} of plugin {self.plugin!r} needs a name: add(..., name='...')")
        if name in self._entries:
            raise DuplicateName(f"plugin {self.plugin!r} registers the {self.kind} {name!r} twice")
        if replaces and any(entry.replaces == replaces for entry in self._entries.values()):
            raise DuplicateName(f"plugin {self.plugin!r} replaces the {self.kind} {replaces!r} twice")
        self._entries[name] = Entry(name, self.checked(thing), self.plugin, replaces, hint)

    def name_of(self, thing: Any) -> str | None:
        """The name that a thing gives itself; None where it has none that can be read off its class."""
        if isinstance(thing, str):
            return None
        own = getattr(thing, "name", None)
        if own is not None and not isinstance(own, str):
            return None  # an attrs class whose instances have a name: the class shows a descriptor
        return own or getattr(thing, "__name__", None)

    def checked(self, thing: Any) -> Any:
        """Refuse what cannot be of this kind. Raises PluginError."""
        missing = [name for name in self.needs if not isinstance(thing, str) and not hasattr(thing, name)]
        if missing:
            raise PluginError(f"{thing!r} is not a valid {self.kind}: it has no {', '.join(missing)}; {self.remedy}")
        if self.calls and isinstance(thing, type) and _fitting.get(thing) is not type(self):
            if wrong := "; ".join(misfits(thing, self.calls)):
                raise PluginError(wrong)
            _fitting[thing] = type(self)
        return thing

    def load(self, name: str) -> T:
        """The thing of this name. Raises UnknownName and PluginError."""
        if name not in self._entries:
            known, what = ", ".join(self) or "none", self.unknown or f"no {self.kind} is called"
            hint = f"{did_you_mean(name, self)}; available: {known}; {OTHERS}"
            raise UnknownName(f"{what} {name!r}{hint}{f'.{inactive}' if (inactive := self.inactive()) else ''}")
        return self._entries[name].load()

    def make(self, name: str, *arguments: Any) -> Any:
        """The thing of this name, made from its class with the arguments where it is a class. Raises like `load`.

        The settings of its plugin, if there are any, are one more argument where the constructor takes one more.
        """
        thing: Any = self.load(name)
        if not isinstance(thing, type):
            return thing
        return thing(*with_settings(thing, arguments, self.settings(self._entries[name].plugin)))

    def __getitem__(self, name: str) -> Entry[T]:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return len(self._entries)


Kind = type[Registry[Any]]
_fitting: WeakKeyDictionary[type, Kind] = WeakKeyDictionary()
"""Classes that are of a kind, which every application registers again."""


def resolve_drafts(
    drafts: Mapping[str, Drafts], rank: Callable[[str], Any]
) -> tuple[dict[Kind, dict[str, Entry[Any]]], dict[str, DuplicateName]]:
    """Put the drafts of all plugins together: `{plugin: {kind: draft}}` to `({kind: {name: entry}}, {plugin: clash})`.

    A plugin that loses a clash loses everything that it registered. Which one loses depends on `rank` alone (the
    plugin of the lower rank keeps the name), never on the order of registration.
    """
    refused: dict[str, DuplicateName] = {}
    while True:
        merged, clashes = _merge({p: kinds for p, kinds in drafts.items() if p not in refused}, rank)
        if not clashes:
            return merged, refused
        loser = min(clashes, key=rank)  # those after it may clash with nothing but this one
        refused[loser] = clashes[loser]


def _merge(
    drafts: Mapping[str, Drafts], rank: Callable[[str], Any]
) -> tuple[dict[Kind, dict[str, Entry[Any]]], dict[str, DuplicateName]]:
    entries = [
        (kind, entry)
        for plugin in sorted(drafts, key=rank)  # the plugin of the lower rank comes first and keeps the name
        for kind, draft in drafts[plugin].items()
        for entry in draft.values()
    ]
    merged: dict[Kind, dict[str, Entry[Any]]] = {kind: {} for kind, _ in entries}
    clashes: dict[str, DuplicateName] = {}
    replacers: dict[tuple[Kind, str], Entry[Any]] = {}
    for kind, entry in entries:
        if entry.replaces:
            rival = replacers.setdefault((kind, entry.replaces), entry)
            if rival is not entry:
                clashes[entry.plugin] = _clash(kind, entry.replaces, rival, entry, "both replace")
    for kind, entry in entries:
        if replacers.get((kind, entry.name), entry) is not entry:
            continue  # replaced, and perhaps itself a replacement
        first = merged[kind].setdefault(entry.name, entry)
        if first is not entry:
            clashes[entry.plugin] = _clash(kind, entry.name, first, entry, "both provide")
    for kind, replaced in replacers:
        if kind.asked_by_name:
            merged[kind].setdefault(replaced, _last(replacers, kind, replaced))
    return merged, clashes


def _last(replacers: Mapping[tuple[Kind, str], Entry[Any]], kind: Kind, name: str) -> Entry[Any]:
    """What replaces a name in the end, where replacements are replaced themselves."""
    seen = {name}
    entry = replacers[kind, name]
    while (kind, entry.name) in replacers and entry.name not in seen:
        seen.add(entry.name)
        entry = replacers[kind, entry.name]
    return entry


def _clash(kind: Kind, name: str, first: Entry[Any], second: Entry[Any], what: str) -> DuplicateName:
    return DuplicateName(
        f"plugins {first.plugin!r} and {second.plugin!r} {what} the {kind.kind} {name!r}; block one of them "
        f"(KARENINA_DISABLE={second.plugin}) or register it with replaces={name!r}"
    )
