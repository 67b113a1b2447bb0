"""Search tools: a query to results. "Nothing was found" and "the search failed" are different answers."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from ..errors import SearchError, one_line
from .text import sanitize

__all__ = ["SearchResult", "SearchTool", "as_search_tool", "read_results", "search_tool"]

METHODS = ("asearch", "ainvoke", "arun", "invoke", "run")
FACTS = ("content", "title", "url")


@frozen(kw_only=True)
class SearchResult:
    """One thing that a search found."""

    content: str
    title: str | None = None
    url: str | None = None


@runtime_checkable
class SearchTool(Protocol):
    """Finds texts about a query. Registered as a class or an instance; a class is made with the settings of its plugin
    where it takes an argument, and without arguments otherwise."""

    def problem(self) -> str | None:
        """What keeps it from working here, with the remedy (a key that is not set); None where all is well."""
        ...

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        """What was found, the best first; empty where nothing was. Raises SearchError where the search failed."""
        ...


@frozen
class _Guarded:
    """Anybody's search: it ends in time, gives results or raises SearchError."""

    call: Callable[[str], Any]
    timeout: float
    state: Callable[[], str | None] = field(default=lambda: None)

    def problem(self) -> str | None:
        return self.state()

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                found = await self._answer(query)
        except SearchError:
            raise
        except Exception as error:  # anybody's code
            if isinstance(error, TimeoutError) and limit.expired():
                raise SearchError(f"the search took longer than {self.timeout:g} s") from error
            raise SearchError(f"the search tool failed: {one_line(error)}") from error
        return read_results(found)

    async def _answer(self, query: str) -> Any:
        """A plain function runs in a thread, so that other items go on; it cannot be interrupted there."""
        if inspect.iscoroutinefunction(self.call):
            return await self.call(query)
        found = await asyncio.to_thread(self.call, query)
        return await found if inspect.isawaitable(found) else found


def search_tool(
    wanted: Any, tools: Mapping[str, Any], settings: Callable[[str], Any], timeout: float = 60.0
) -> SearchTool:
    """The search tool that a configuration asks for: by its name in `tools` (an application's `search_tools`), or
    anything that `as_search_tool` takes.

    `settings` gives the settings of a plugin (an application's own method). Raises UnknownName, PluginError and
    TypeError.
    """
    if not isinstance(wanted, str):
        return as_search_tool(wanted, timeout)
    registry: Any = tools
    made = registry.load(wanted)
    if isinstance(made, type):
        own = settings(registry[wanted].plugin)
        made = made(own) if own is not None and inspect.signature(made).parameters else made()
    return as_search_tool(made, timeout)


def as_search_tool(thing: Any, timeout: float = 60.0) -> SearchTool:
    """Anything that searches as a `SearchTool`: one already, a tool object (`ainvoke`, `arun`, `invoke`, `run`), or a
    function of the query, plain or async.

    What comes back raises nothing but SearchError. `timeout` is in seconds, for one query. Raises TypeError for
    anything else.
    """
    if isinstance(thing, _Guarded):
        return thing
    if not isinstance(thing, type):
        state = getattr(thing, "problem", None)
        for name in METHODS:
            if callable(method := getattr(thing, name, None)):
                return _Guarded(method, timeout, state) if callable(state) else _Guarded(method, timeout)
        if callable(thing):
            call = thing if inspect.isroutine(thing) else thing.__call__
            return _Guarded(call, timeout)
    raise TypeError(f"{thing!r} cannot search: give a function of the query, or an object with {', '.join(METHODS)}")


def read_results(found: Any) -> tuple[SearchResult, ...]:
    """Results out of what search tools return: a list of results, of texts or of mappings (`content`, `title`,
    `url`), such a list as JSON text or under `results`, one of them, or plain text.

    Entries with an empty content are dropped. Raises SearchError for anything else: nothing that is not understood is
    taken for "nothing found".
    """
    if isinstance(found, str):
        found = _from_text(found)
    if isinstance(found, Mapping) and "results" in found:
        found = found["results"]
    if isinstance(found, Mapping | SearchResult):
        found = [found]
    if not isinstance(found, Iterable) or isinstance(found, bytes | str):
        raise SearchError(f"the search tool returned {type(found).__name__}; it must return a list of results")
    results = [_result(item) for item in found]
    return tuple(result for result in results if result.content.strip())


def _from_text(text: str) -> Any:
    """JSON where it is a list or an object, else one result."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, list | dict) else [text]


def _result(item: Any) -> SearchResult:
    if isinstance(item, str):
        item = {"content": item}
    facts = dict(item) if isinstance(item, Mapping) else {n: getattr(item, n) for n in FACTS if hasattr(item, n)}
    if "content" not in facts:
        keys = f" with {', '.join(map(str, list(facts)[:5]))}" if facts else ""
        raise SearchError(f"the search tool returned {type(item).__name__}{keys}; a result must have content")
    texts = {name: None if facts.get(name) is None else sanitize(str(facts[name]))[0] for name in FACTS}
    return SearchResult(content=texts["content"] or "", title=texts["title"], url=texts["url"])
