"""The kinds of things that runs and their results ask for by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from karenina_core.errors import PluginError
from karenina_core.plugin.discovery import discover, load
from karenina_core.plugin.registry import Registry


def declared(group: str) -> Mapping[str, Callable[[], Any]]:
    """What installed distributions declare by the entry points of a group, by name, and what imports it: no plugins,
    so that they cannot be blocked, and a run directory is read without an application. Of several, the first counts."""
    return {source.name: partial(load, source) for source in reversed(discover(group))}


class ExecutorRegistry(Registry[Any]):
    """Add executors: how the items of a run are executed."""

    kind = "executor"
    hook = "karenina_register_executors"
    affects_every_run = False


class ViewRegistry(Registry[Any]):
    """Add views of results, such as `template` or `rubric`: classes that are made with a `VerificationResultSet`.

    `results.view(name)` makes one.
    """

    kind = "view"
    hook = "karenina_register_views"
    affects_every_run = False

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str | type):
            raise PluginError(f"{thing!r} is not a view: add a class that is made with a VerificationResultSet")
        return thing


class FormatRegistry(Registry[Any]):
    """Add file formats: how results are written to a file one after the other and, if possible, read."""

    kind = "file format"
    hook = "karenina_register_formats"
    affects_every_run = False
    needs = ("write",)
    remedy = "see karenina_runs.results.exports.Format"
