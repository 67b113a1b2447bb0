"""The markers of karenina's hooks."""

from __future__ import annotations

from typing import Any, TypeVar

from pluggy import HookimplMarker, HookspecMarker

PROJECT = "karenina"
NEUTRAL = "karenina_neutral"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)
F = TypeVar("F")


def neutral(function: F) -> F:
    """Mark a hook that wraps something and changes no number: what it gives back is what it got, or
    what was once given to the same call. Such as to trace, record or replay.

        @hookimpl
        @neutral
        def karenina_wrap_call(target, app): ...

    A run is resumed whether or not such a plugin is there. Without this mark its version, code and settings must
    be those of before.
    """
    setattr(function, NEUTRAL, True)
    return function


def is_neutral(function: Any) -> bool:
    return bool(getattr(function, NEUTRAL, False))
