"""Implementations of hooks: which of them can work, and how they are called."""

from __future__ import annotations

import inspect
from typing import Any

from ..errors import PluginError, did_you_mean
from . import hookspecs

__all__ = ["check_hook", "keywords_only"]


def check_hook(hook: str, impl: Any) -> None:
    """Refuse what pluggy accepts silently. Raises PluginError."""
    if not hasattr(hookspecs, hook):
        if impl.optionalhook:
            return
        known = [name for name in vars(hookspecs) if name.startswith("karenina_")]
        raise PluginError(f"there is no hook {hook!r}{did_you_mean(hook, known)}")
    if inspect.iscoroutinefunction(impl.function):
        raise PluginError(f"hook {hook!r} is an async function and would never be awaited; make it a plain one")
    wraps = impl.hookwrapper or impl.wrapper
    if wraps and not getattr(hookspecs, hook).karenina_spec["firstresult"]:
        raise PluginError(f"hook {hook!r} cannot be a wrapper; its implementations are called one by one")
    if inspect.isgeneratorfunction(impl.function) and not wraps:
        raise PluginError(f"hook {hook!r} is a generator and would never run; take the `yield` out of it")


def keywords_only(impl: Any) -> Any:
    """The implementation, called with keyword arguments of which it may want only some."""
    wanted = set(impl.argnames)
    return lambda **arguments: impl.function(**{k: v for k, v in arguments.items() if k in wanted})
