"""Tool servers in front of a tool server: one writes down what passes, the other answers from what was written down.

A server may keep something between two calls, so every call is made and written down. Equal calls are answered in the
order of the recording. Where items run at the same time and a server answers equal calls differently, a replay can give
an item what another one had; the model's next call is then one that was not recorded, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import asdict, define, evolve, field

from karenina_core.ports.calls import ToolRequest
from karenina_core.ports.tool_calls import run_tool
from karenina_core.ports.values import RunTool, Tool, ToolOutcome

from .recording import Recording, Writer, recording_of, writer_of
from .settings import ReplaySettings

__all__ = ["RecordingServer", "ReplayingServer", "wrapped"]


def wrapped(server: Any, name: str, settings: ReplaySettings) -> Any:
    """The tool server in front of `server` that the settings ask for."""
    if settings.record:
        return RecordingServer(server, name, writer_of(settings))
    return ReplayingServer(name, recording_of(settings))


@define(eq=False)
class RecordingServer:
    """Passes every call on and writes it down, with what the model is told."""

    inner: Any
    name: str
    writer: Writer

    def problem(self) -> str | None:
        look = getattr(self.inner, "problem", None)
        return look() if look else None

    async def aopen(self) -> None:
        await self.inner.aopen()

    async def alist(self) -> Sequence[Tool]:
        tools = list(await self.inner.alist())
        rows = [{"name": t.name, "description": t.description, "input_schema": dict(t.input_schema)} for t in tools]
        self.writer.write(ToolRequest(self.name), {"reply": {"tools": rows}})
        return [evolve(tool, run=partial(self._run, tool.name, tool.run)) if tool.run else tool for tool in tools]

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def _run(self, tool: str, run: RunTool, arguments: Mapping[str, Any]) -> ToolOutcome:
        request = ToolRequest(self.name, tool, dict(arguments))
        outcome = await run_tool(run, arguments)
        self.writer.write(request, {"reply": asdict(outcome)})
        return outcome


@define(eq=False)
class ReplayingServer:
    """Answers from a recording. The server behind it is never connected to."""

    name: str
    recording: Recording
    served: dict[str, int] = field(factory=dict)

    async def aopen(self) -> None:
        """There is nothing to open."""

    async def alist(self) -> Sequence[Tool]:
        rows = self._found(ToolRequest(self.name), "its list of tools")["tools"]
        return [Tool(**row, run=partial(self._run, row["name"])) for row in rows]

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def _run(self, tool: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome(**self._found(ToolRequest(self.name, tool, dict(arguments)), f"tool {tool!r}"))

    def _found(self, request: ToolRequest, about: str) -> Mapping[str, Any]:
        served = self.served.get(request.key, 0)
        self.served[request.key] = served + 1
        reply, _ = self.recording.find(request.key, served)
        if reply is None:
            raise self.recording.missing(request.key, f"the tool server {self.name!r}", about)
        return reply
