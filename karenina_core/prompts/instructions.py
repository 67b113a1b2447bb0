"""What adapters add to prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from ..errors import DuplicateName

__all__ = ["AdapterInstruction", "AdapterInstructionRegistry"]

Factory = Callable[[str, str, Mapping[str, Any]], "AdapterInstruction | None"]


@frozen(kw_only=True)
class AdapterInstruction:
    """Text that one adapter adds to a prompt; an empty text adds nothing."""

    system_addition: str = ""
    user_addition: str = ""


class AdapterInstructionRegistry:
    """Who adds what, by plugin.

    One factory per plugin; called with task, interface and context, in the order of names.
    """

    def __init__(self, factories: Mapping[str, Factory] | None = None) -> None:
        self._factories = dict(factories or {})

    def register(self, plugin: str, factory: Factory) -> None:
        """Raises DuplicateName where the plugin has a factory already."""
        if plugin in self._factories:
            raise DuplicateName(f"plugin {plugin!r} adds prompt instructions twice")
        self._factories[plugin] = factory

    def get(self, interface: str, task: str, context: Mapping[str, Any] | None = None) -> list[AdapterInstruction]:
        """The additions for one prompt; an empty list where there are none."""
        found = (self._factories[name](task, interface, context or {}) for name in sorted(self._factories))
        return [instruction for instruction in found if instruction is not None]
