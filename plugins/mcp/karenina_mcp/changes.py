"""What has become of the tools that a run was given: servers change their lists while they are used."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen
from karenina_calls.tools.tool_servers import tool_digest

from karenina_core.ports.values import Tool, ToolOutcome

MOST_NAMES = 10


@frozen
class Changes:
    """The differences between the tools of a run and those that its server offers now, by name."""

    removed: frozenset[str] = frozenset()
    altered: frozenset[str] = frozenset()
    """Tools with another input schema: a model that was shown the old one cannot use them."""
    reworded: frozenset[str] = frozenset()
    """Tools with another description. They are called all the same."""
    added: frozenset[str] = frozenset()
    """Tools that no model of this run is offered."""

    def refusal(self, tool: str) -> ToolOutcome | None:
        """The error for a model that calls a tool which is no longer what it was offered."""
        if tool in self.removed:
            return ToolOutcome("the server does not offer this tool any more; continue without it", is_error=True)
        if tool in self.altered:
            what = "the server has changed the arguments of this tool since it was offered; continue without it"
            return ToolOutcome(what, is_error=True)
        return None

    def warning(self, server: str) -> str | None:
        """For the user; None where nothing has changed."""
        effects = (
            (self.removed, "removed, calls are refused"),
            (self.altered, "with other arguments, calls are refused"),
            (self.reworded, "with another description, models keep the first one"),
            (self.added, "new, not offered"),
        )
        changes = "; ".join(f"{_names(names)} {effect}" for names, effect in effects if names)
        return f"the tool server {server!r} changed its tools during the run: {changes}" if changes else None


def changes_between(before: Iterable[Tool], now: Iterable[Tool]) -> Changes:
    """What a server has changed. Both lists have every name once."""
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in now}
    both = old.keys() & new.keys()
    altered = {name for name in both if _arguments(old[name]) != _arguments(new[name])}
    return Changes(
        removed=frozenset(old.keys() - both),
        altered=frozenset(altered),
        reworded=frozenset(n for n in both - altered if old[n].description != new[n].description),
        added=frozenset(new.keys() - both),
    )


def _arguments(tool: Tool) -> str:
    return tool_digest([evolve(tool, description="")])


def _names(names: frozenset[str]) -> str:
    shown = [repr(name) for name in sorted(names)[:MOST_NAMES]]
    return ", ".join(shown) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
