"""Entry points that packages add to the command line: whose they are, and importing one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

from karenina_core.errors import PluginError, one_line

from .output import note


def owner_of(point: EntryPoint) -> str:
    """The name of its distribution."""
    return _name(point.dist) if point.dist else "an unknown package"


@cache
def _name(distribution: Distribution) -> str:
    """Each time it is asked for, its whole METADATA is read and parsed."""
    return distribution.name


def imported(point: EntryPoint, what: str) -> Any:
    """Raises PluginError that names the distribution. `what` is the thing: `command`, `section`."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # a module of another package
        owner = owner_of(point)
        raise PluginError(
            f"the {what} {point.name!r} of {owner} cannot be imported: {one_line(error)}; update or uninstall {owner}"
        ) from error


def usable(group: str, what: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Everything of a group that can be imported, by name and owner; the rest is noted on stderr."""
    found = {(point.name, owner_of(point)): point for point in entry_points(group=group)}
    for _, point in sorted(found.items()):
        try:
            yield point, imported(point, what)
        except PluginError as error:
            note(f"Warning: {error}")
