"""Tools of karenina as an agent's program may call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field

from karenina_core.ports.values import Tool, ToolOutcome

from ..ports.text import sanitize
from ..tools.tool_calls import run_tool, shortened_answer


@define(eq=False)
class OfferedCalls:
    """Calls of the tools that have a `run`. One after `most_calls` is not run."""

    tools: Sequence[Tool]
    most_calls: int | None = None
    _begun: int = field(default=0, init=False)

    async def run(self, name: str, given: Mapping[str, Any]) -> ToolOutcome:
        """What the tool of this name answers, cut and safe to write; the agent deals with errors."""
        run = next((tool.run for tool in self.tools if tool.name == name), None)
        if run is None:
            return ToolOutcome(f"there is no tool {name!r}", is_error=True)
        if self.most_calls is not None and self._begun >= self.most_calls:
            return ToolOutcome("there are no more calls of tools", is_error=True)
        self._begun += 1
        outcome = await run_tool(run, given)
        return ToolOutcome(shortened_answer(sanitize(outcome.content)[0]), outcome.is_error)


def schema_of(tool: Tool) -> dict[str, Any]:
    """The schema of what the tool takes, complete enough for those who read anything else as shorthand."""
    return {"type": "object", "properties": {}, **tool.input_schema}
