"""The arguments of a tool as a model gives them, and tools whose work may refuse them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from karenina_core.errors import did_you_mean
from karenina_core.ports.threads import to_its_end
from karenina_core.ports.values import Tool, ToolOutcome

from .sandboxed_names import Refused, quoted

__all__ = ["Given", "checked_tool"]

MISSING = object()


class Given:
    """The arguments of a call, which a model may have made up. Raises Refused."""

    def __init__(
        self, arguments: Mapping[str, Any], properties: Mapping[str, Any], stopped: threading.Event | None = None
    ) -> None:
        self.stopped = stopped or threading.Event()
        """Set when no caller waits for the answer any more."""
        for name in arguments:
            if name not in properties:
                known = f"{did_you_mean(name, properties)}; give: {', '.join(properties)}"
                raise Refused(f"there is no argument {quoted(name)}{known}")
        self._arguments = arguments
        self._properties = properties

    def _of(self, name: str) -> Any:
        value = self._arguments.get(name)
        if value is not None:
            return value
        default = self._properties[name].get("default", MISSING)
        if default is MISSING:
            raise Refused(f"{name} is missing: {self._properties[name]['description']}")
        return default

    def text(self, name: str) -> str:
        value = self._of(name)
        if not isinstance(value, str):
            raise Refused(f"{name} has to be a string")
        return value

    def flag(self, name: str) -> bool:
        value = self._of(name)
        if not isinstance(value, bool):
            raise Refused(f"{name} has to be true or false")
        return value

    def number(self, name: str) -> int:
        """A whole number of at least 1; models write 5.0 for 5."""
        value = self._of(name)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not value >= 1 or value % 1 != 0:
            raise Refused(f"{name} has to be a whole number, 1 or more")
        return int(value)


def checked_tool(name: str, description: str, properties: Mapping[str, Any], work: Callable[[Given], str]) -> Tool:
    """A tool with these properties of its arguments; one without a default has to be given.

    `work` runs in a thread; cancelling a call waits until it has ended, so that nothing is written later.
    Refused and OSError become answers that are errors; those of the system name no path.
    """
    required = [key for key, schema in properties.items() if "default" not in schema]
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }

    async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        return await to_its_end(lambda stopped: _outcome(work, lambda: Given(arguments, properties, stopped)))

    return Tool(name=name, description=description, input_schema=schema, run=run)


def _outcome(work: Callable[[Given], str], given: Callable[[], Given]) -> ToolOutcome:
    try:
        return ToolOutcome(work(given()))
    except Refused as refusal:
        return ToolOutcome(str(refusal), is_error=True)
    except FileNotFoundError:
        return ToolOutcome("there is no such file: list_files says what there is", is_error=True)
    except PermissionError:
        return ToolOutcome("the permissions of the file or its folder forbid this: use another one", is_error=True)
    except OSError as error:
        return ToolOutcome(f"the system says: {error.strerror}; try another file, or finish without it", is_error=True)
