"""Search tools in front of a search tool: one writes down what passes, the other answers from what was written down.

Several items may search for the same thing, in another order at every run, and the web may give each of them something
else. So while a run is recorded, equal queries have one outcome: the first. A replay then gives every item what it had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from karenina_core.errors import SearchError
from karenina_core.ports.calls import SearchRequest, error_to, search_from, search_to
from karenina_core.ports.search import SearchResult

from .recording import Recording, Writer, recording_of, writer_of
from .settings import ReplaySettings

__all__ = ["RecordingSearch", "ReplayingSearch", "wrapped"]


def wrapped(tool: Any, name: str, settings: ReplaySettings) -> Any:
    """The search tool in front of `tool` that the settings ask for."""
    if settings.record:
        return RecordingSearch(tool, name, writer_of(settings))
    return ReplayingSearch(name, recording_of(settings))


@define(eq=False)
class RecordingSearch:
    """Passes every new query on and writes it down, with its results or its failure; others get the same again."""

    inner: Any
    name: str
    writer: Writer

    def problem(self) -> str | None:
        problem: str | None = self.inner.problem()
        return problem

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        request = SearchRequest(self.name, query)
        outcome = self.writer.settled.get(request.key)
        if outcome is None:
            own = await self._asked(query)
            outcome = self.writer.settled.setdefault(request.key, own)  # an equal query may have been faster
            if outcome is own:
                self.writer.write(request, own)
        return search_from(outcome)

    async def _asked(self, query: str) -> Mapping[str, Any]:
        try:
            return {"reply": search_to(await self.inner.asearch(query))}
        except SearchError as error:
            return {"error": error_to(error)}


@define(eq=False)
class ReplayingSearch:
    """Answers from a recording. The search tool behind it is never asked; it needs no key."""

    name: str
    recording: Recording

    def problem(self) -> str | None:
        return None

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """Raises SearchError: the recorded failure, or that there is no such query."""
        request = SearchRequest(self.name, query)
        reply, error = self.recording.find(request.key)
        if reply is None and error is None:
            missing = self.recording.missing(request.key, f"search tool {self.name}", f"query {query[:60]!r}")
            raise SearchError(str(missing))
        return search_from({"reply": reply} if error is None else {"error": error})
