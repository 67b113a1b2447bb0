"""What an adapter has made, looked at before anything is asked: one sentence with the place in its code."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

from karenina_core.errors import KareninaError, PluginError, did_you_mean, one_line, place_of
from karenina_core.plugin.shapes import place
from karenina_core.ports.middleware import CallKind
from karenina_core.ports.values import Channel, PortCapabilities

METHODS: dict[CallKind, tuple[str, tuple[str, ...], tuple[str, ...], str]] = {
    "llm": ("ainvoke", ("messages",), ("output", "temperature", "call"), "LLMResponse"),
    "parser": ("aparse", ("messages", "schema"), ("call",), "ParsePortResult"),
    "agent": ("arun", ("messages", "tools", "mcp_servers", "config"), ("call",), "AgentResult"),
}
"""By the kind of port: what is called, with which arguments by place and by name, and what it returns."""


def check_port(kind: CallKind, port: Any, interface: str) -> None:
    """Raises PluginError where this is no port of its kind."""
    if wrong := "; ".join(_complaints(kind, port)):
        raise PluginError(f"the {kind} port of the interface {interface!r} cannot be used: {wrong}")


def must_return(kind: CallKind, port: Any, reply: object) -> str:
    """What to say of a reply of a port that is none: what has to come instead, and from where."""
    name, _, _, wanted = METHODS.get(kind, ("", (), (), ""))
    method = getattr(type(port), name, None)
    if method is None:
        return ""
    return f"; {place(method)}{type(port).__name__}.{name} must return {wanted}, not {type(reply).__name__}"


def _complaints(kind: CallKind, port: Any) -> Iterator[str]:
    cls = type(port)
    name, given, named, returned = METHODS[kind]
    line = f"async def {name}(self, {', '.join(given)}, *, {', '.join(f'{word}=None' for word in named)})"
    method = getattr(port, name, None)
    if not callable(method):
        yield f"{place(cls)}{cls.__name__} has no {name}; write `{line}`, which returns {returned}"
    elif not _takes(method, given, named):
        yield f"{place(method)}{cls.__name__}.{name} does not accept the arguments it is called with; write `{line}`"
    try:
        found = getattr(port, "capabilities", None)
    except KareninaError:
        raise
    except Exception as error:  # a property is code of the adapter
        yield f"{cls.__name__}.capabilities failed: {one_line(error)}{place_of(error, cls.__module__)}"
        return
    if not isinstance(found, PortCapabilities):
        what = "has no capabilities" if found is None else f"has {type(found).__name__} as capabilities"
        yield f"{place(cls)}{cls.__name__} {what}; write `capabilities = PortCapabilities()` in it"
        return
    known = get_args(Channel)
    for channel in found.output_channels:
        if channel not in known:
            hint = f"{did_you_mean(str(channel), known)}; available: {', '.join(known)}"
            yield f"{place(cls)}{cls.__name__}.capabilities: no output channel is called {channel!r}{hint}"


def _takes(method: Any, given: tuple[str, ...], named: tuple[str, ...]) -> bool:
    try:
        inspect.signature(method).bind(*given, **dict.fromkeys(named))
    except TypeError:
        return False
    except ValueError:  # of code that does not say
        return True
    return True
