"""The kind of things that views ask for by name."""

from __future__ import annotations

from typing import Any

from karenina_core.errors import PluginError
from karenina_core.plugin.registry import Registry


class AggregatorRegistry(Registry[Any]):
    """Add aggregators: functions of a list of values, never empty and without None, that give one value for all.

    One that cannot be applied to such values raises TypeError or ValueError, and says why.
    """

    kind = "aggregator"
    hook = "karenina_register_aggregators"
    affects_every_run = False

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, str) and not callable(thing):
            raise PluginError(f"{thing!r} is not an aggregator: add a function of a list of values")
        return thing
