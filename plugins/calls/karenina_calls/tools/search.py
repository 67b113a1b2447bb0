"""Search tools: a query to results. "Nothing was found" and "the search failed" are different answers."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from karenina_core.errors import SearchError, one_line
from karenina_core.pipeline.engine import stops_item
from karenina_core.ports.threads import in_own_thread

from ..ports.text import sanitize

METHODS = ("asearch", "ainvoke", "arun", "invoke", "run")
FACTS = ("content", "title", "url")
MOST_READ = 100
"""Results of one search; a tool may give them without end."""


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
    """A search of any code: it ends in time, gives results or raises SearchError."""

    call: Callable[[str], Any]
    timeout: float
    state: Callable[[], str | None] = field(default=lambda: None)

    def problem(self) -> str | None:
        return self.state()

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        try:
            async with asyncio.timeout(self.timeout) as limit:
                return await self._results(query)
        except SearchError:
            raise
        except BaseException as error:  # the tool's own code; what it raises must not end the loop of the other items
            if stops_item(error):
                raise
            if isinstance(error, TimeoutError) and limit.expired():
                raise SearchError(f"the search took longer than {self.timeout:g} s") from error
            raise _failed(error) from error

    async def _results(self, query: str) -> Sequence[SearchResult]:
        """A plain function runs in a thread, and what it returns is read there, so that other items continue; it cannot
        be interrupted."""
        if inspect.iscoroutinefunction(self.call):
            return read_results(await self.call(query))

        def searched() -> Any:
            try:
                found = self.call(query)
                return found if inspect.isawaitable(found) else read_results(found)
            except SearchError:
                raise
            except BaseException as error:  # put into words here: that may run the tool's code too
                raise _failed(error) from error

        ended = await in_own_thread(searched, "karenina-search")
        if ended.error is not None:
            raise ended.error
        found: Any = ended.value
        return read_results(await found) if inspect.isawaitable(found) else found


def _failed(error: BaseException) -> SearchError:
    return SearchError(f"the search tool failed: {one_line(error)}")


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

    At most the first 100 are read. Those without content are dropped. Raises SearchError where none has any content
    field, and for anything else: nothing that is not understood is taken for "nothing found".
    """
    if isinstance(found, str):
        found = _from_text(found)
    if isinstance(found, Mapping) and "results" in found:
        found = found["results"]
    if isinstance(found, Mapping | SearchResult):
        found = [found]
    if not isinstance(found, Iterable) or isinstance(found, bytes | str):
        raise SearchError(f"the search tool returned {type(found).__name__}; it must return a list of results")
    rows = [(item, _facts(item)) for item in islice(found, MOST_READ)]
    results = []
    for facts in (facts for _, facts in rows if "content" in facts):
        texts = {name: None if facts.get(name) is None else sanitize(str(facts[name]))[0] for name in FACTS}
        results.append(SearchResult(content=texts["content"] or "", title=texts["title"], url=texts["url"]))
    if rows and not results:
        item, facts = rows[0]
        keys = f" with {', '.join(map(str, list(facts)[:5]))}" if facts else ""
        raise SearchError(f"the search tool returned {type(item).__name__}{keys}; a result must have content")
    return tuple(result for result in results if result.content.strip())


def _from_text(text: str) -> Any:
    """JSON where it is a list or an object, else one result."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, list | dict) else [text]


def _facts(item: Any) -> dict[Any, Any]:
    if isinstance(item, str):
        return {"content": item}
    return dict(item) if isinstance(item, Mapping) else {n: getattr(item, n) for n in FACTS if hasattr(item, n)}
