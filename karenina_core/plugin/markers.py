"""The markers of karenina's hooks."""

from pluggy import HookimplMarker, HookspecMarker

__all__ = ["PROJECT", "hookimpl", "hookspec"]

PROJECT = "karenina"

hookspec = HookspecMarker(PROJECT)
hookimpl = HookimplMarker(PROJECT)
