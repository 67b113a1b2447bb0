"""The tables `[plugins.<name>]` of a configuration, as objects of the classes that the plugins registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError, PluginError, Problem, did_you_mean
from .kinds import SettingsRegistry

__all__ = ["check_defaults", "structured_settings"]


def check_defaults(name: str, cls: type) -> None:
    """A plugin that cannot do without settings fails alone where there are none. Raises PluginError."""
    from ..values.convert import structure

    try:
        structure({}, cls, f"plugins.{name}")
    except ConfigError as error:
        raise PluginError(f"it needs settings, [plugins.{name}] in the configuration file: {error}") from None


def structured_settings(
    tables: Mapping[str, Mapping[str, Any]], classes: SettingsRegistry, known: Mapping[str, bool]
) -> dict[str, Any]:
    """`{plugin: settings}` of every plugin that has some; `known` says of each plugin whether it is active.

    Raises ConfigError with everything that is wrong.
    """
    if not tables and not classes:
        return {}
    from ..values.convert import structure  # cattrs is only needed where there are settings

    settings: dict[str, Any] = {}
    problems: list[Problem] = []
    for name in sorted(set(tables) - set(classes)):
        if known.get(name, True):  # a plugin that is blocked for now keeps its table
            problems.append(Problem(f"plugins.{name}", _no_settings(name, classes, known)))
    for name in classes:
        try:
            settings[name] = structure(tables.get(name, {}), classes.load(name), f"plugins.{name}")
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return settings


def _no_settings(name: str, classes: SettingsRegistry, known: Mapping[str, bool]) -> str:
    """Why a table of settings has no taker."""
    if name not in known:
        return f"there is no such plugin{did_you_mean(name, classes)}"
    return "the plugin has no settings"
