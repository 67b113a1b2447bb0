"""What distributions declare, such as plugins and kinds, and loading it.

importlib.metadata lists (names, owners, versions; nothing is imported), stevedore loads. stevedore's own listing is
not used: it caches on disk, where a stale entry would hide a plugin just installed, and it does not say which
distribution an entry is from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, requires
from typing import Any, Literal

from attrs import evolve, field, frozen
from stevedore.named import NamedExtensionManager

from ..entry_points import UNKNOWN, installed_entry_points, name_and_version
from ..errors import PluginError, one_line
from .api import check_api, declared_api, written_api

GROUP = "karenina.plugins"
KINDS = "karenina.kinds"
CORE = "karenina-core"


@frozen(kw_only=True)
class PluginInfo:
    """One plugin as `karenina plugins` lists it."""

    name: str
    kinds: tuple[str, ...] = ()
    distribution: str = "in memory"
    version: str = ""
    state: Literal["active", "blocked", "failed"] = "active"
    reason: str = ""
    """Why it is not active, or what of an active one has no effect here."""


@frozen
class Source:
    """Something that is declared and has not been imported."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint = field(repr=False)

    @property
    def info(self) -> PluginInfo:
        return PluginInfo(name=self.name, distribution=self.distribution, version=self.version)


def discover(group: str = GROUP) -> list[Source]:
    """The entry points of a group, sorted by name and owner. An entry point that is visible twice is listed once."""
    sources: dict[tuple[str, str, str], Source] = {}
    for point in installed_entry_points(group):
        name, version = name_and_version(point.dist) if point.dist else (UNKNOWN, "")
        sources.setdefault((point.name, name, point.value), Source(point.name, name, version, point))
    return [sources[key] for key in sorted(sources)]


@frozen
class Rank:
    """Who keeps a name that two plugins claim: distributions that karenina-core itself recommends, then by name.

    The recommendation is the metadata of karenina-core (its extra `all`), read only when there is a clash.
    """

    owners: dict[str, str]
    """Plugin name -> distribution name."""

    def __call__(self, plugin: str) -> tuple[bool, str, str]:
        owner = _normal(self.owners.get(plugin, ""))
        return (owner not in recommended(), owner, plugin)


@cache
def recommended() -> frozenset[str]:
    """What the metadata of karenina-core name, and itself."""
    try:
        listed = requires(CORE) or []
    except PackageNotFoundError:
        listed = []
    return frozenset({*(_normal(re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0]) for line in listed), CORE})


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _OneEntryPoint(NamedExtensionManager[Any]):
    """stevedore with the entry point to load, for which it does not search."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.failure: BaseException | None = None
        super().__init__(point.group, [point.name], on_load_failure_callback=self._remember)

    def list_entry_points(self) -> list[EntryPoint]:
        return [self._point]

    def _remember(self, _: Any, __: EntryPoint, error: BaseException) -> None:
        self.failure = error


def load(source: Source) -> Any:
    """Import what an entry point names. Raises PluginError with the reason, whatever its module did, and for what is
    written for a version of the plugin API that is not supported."""
    try:
        failure = (manager := _OneEntryPoint(source.entry_point)).failure
    except (Exception, SystemExit) as error:
        failure = error
    if failure is not None:
        check_api(written_api(source.entry_point.module), source.distribution)  # perhaps it needs what is not here
        missing = getattr(failure, "name", None) if isinstance(failure, ModuleNotFoundError) else None
        if missing and not f"{source.entry_point.module}.".startswith(f"{missing}."):
            raise PluginError(f"needs the package {missing!r}, which is not installed") from failure
        where = ""
        if isinstance(failure, SyntaxError) and failure.filename:
            where = f"{failure.filename}, line {failure.lineno}: "
        raise PluginError(f"cannot be imported: {where}{one_line(failure)}") from failure
    plugin = manager.extensions[0].plugin
    declared = declared_api(sys.modules.get(source.entry_point.module))
    check_api(declared_api(plugin) if declared is None else declared, source.distribution)
    return plugin


@frozen
class Declared:
    """A class that a distribution declares, and what became of it."""

    info: PluginInfo
    cls: type[Any] | None = None
    """None where it cannot be used; the reason is in `info`."""

    @classmethod
    def of(cls, source: Source, kind: str, checked: Callable[[Any], type[Any]]) -> Declared:
        """The class, imported, if `checked` lets it pass and raises no PluginError."""
        info = evolve(source.info, kinds=(kind,))
        try:
            return cls(info, checked(load(source)))
        except PluginError as error:
            return cls(evolve(info, state="failed", reason=f"{kind}: {error}"))


def load_all(sources: Iterable[Source]) -> tuple[dict[str, Any], dict[str, PluginInfo]]:
    """`({name: plugin}, {name: info})` of what can be imported, and of everything."""
    plugins: dict[str, Any] = {}
    infos: dict[str, PluginInfo] = {}
    for source in sources:
        infos[source.name] = source.info
        try:
            plugins[source.name] = load(source)
        except PluginError as error:
            infos[source.name] = evolve(source.info, state="failed", reason=str(error))
    return plugins, infos
