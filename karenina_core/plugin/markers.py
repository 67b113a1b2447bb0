"""The markers of karenina's hooks."""

from __future__ import annotations

from types import FunctionType, MemberDescriptorType, MethodType
from typing import Any, TypeVar

from pluggy import HookimplMarker, HookspecMarker, PluginManager

PROJECT = "karenina"
NEUTRAL = "karenina_neutral"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)
F = TypeVar("F")


class Hooks(PluginManager):
    """Passes by what carries no mark, at which pluggy looks so long that it is half the time of an application."""

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        for holder in (plugin, *type(plugin).__mro__):  # whatever would compute a value is left alone
            if (found := getattr(holder, "__dict__", {}).get(name)) is not None:
                break
        marked = isinstance(found, FunctionType | MethodType) and hasattr(found, f"{PROJECT}_impl")
        unseen = found is None or isinstance(found, staticmethod | classmethod | MemberDescriptorType)
        return super().parse_hookimpl_opts(plugin, name) if marked or unseen else None


def neutral(function: F) -> F:
    """Mark a hook that wraps something and changes no number: what it gives back is what it got, or what was once given
    to the same call. Such as to trace, record or replay.

        @hookimpl
        @neutral
        def karenina_wrap_call(target, app): ...

    A run is resumed whether or not such a plugin is there. Else its version, code and settings must be those of before.
    """
    setattr(function, NEUTRAL, True)
    return function


def is_neutral(function: Any) -> bool:
    return bool(getattr(function, NEUTRAL, False))
