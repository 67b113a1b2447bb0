"""Does a search tool give results that can be read, and tell a failure from nothing found?"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from karenina_calls.tools.search import as_search_tool, read_results

from karenina_core.errors import SearchError, one_line

from .checks import Check, Fault, Promises, Raised, attempt, expecting, promise_checks, run_checks
from .instances import (
    CONSTRUCTION,
    LONGEST_CALL,
    STATE,
    Made,
    arguments_of,
    cancelled,
    in_two_loops,
    problem_now,
    turns,
)
from .watch.loops import in_loop, within

PLAIN = "What is the target of venetoclax?"
ODD = (
    "",
    " \n",
    "a",
    "venetoclax " * 2_000,
    "Gicht \u2013 痛风 \U0001f468\u200d⚕️ e\u0301",
    "a\ud800b",
    "a\0b",
    '"{x}" -y',
)


def search_tool_checks(
    tool: Any,
    *,
    settings: Any = None,
    search: bool = False,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of a search tool.

    `tool` is a class, which is made with `settings` where it takes an argument, an instance, or anything else that
    `as_search_tool` takes. Queries are made only with `search=True`, and only where `problem()` is None: they may go
    out to the world, and cost money.
    """
    made = Made("search tool", tool, arguments_of(tool, settings), "asearch", (SearchError,))
    promises: dict[str, Any] = {"protocol": ("It can be asked a query.", _protocol)}
    promises |= CONSTRUCTION if isinstance(tool, type) else {}
    promises |= STATE if hasattr(tool, "problem") else {}
    promises |= CALLS if search and problem_now(made) is None else {}
    checks = promise_checks(made.name, made, promises, made.fault_of)
    return expecting(checks, expected_failures, (*CONSTRUCTION, *STATE, *CALLS))


def check_search_tool(tool: Any, **options: Any) -> None:
    """Run all checks of a search tool; `options` are those of `search_tool_checks`. Raises an ExceptionGroup of what
    fails."""
    run_checks(search_tool_checks(tool, **options))


async def _search(tool: Any, query: str = PLAIN) -> Any:
    """Its own coroutine. A tool with `asearch` must raise SearchError itself; for others, karenina does."""
    return await (tool if hasattr(tool, "asearch") else as_search_tool(tool, LONGEST_CALL)).asearch(query)


def _protocol(made: Made) -> Iterator[Fault]:
    tool = made.fresh()
    try:
        as_search_tool(tool)
    except TypeError as error:
        yield made.fault(one_line(error), "see karenina_calls.tools.search.SearchTool")
    if hasattr(tool, "asearch") and not inspect.iscoroutinefunction(tool.asearch):
        yield made.fault("it has no `async def asearch`", "see karenina_calls.tools.search.SearchTool")
    if hasattr(tool, "asearch") and not callable(getattr(tool, "problem", None)):
        yield made.fault("it has no method problem", "add it; see karenina_calls.tools.search.SearchTool")


def _unreadable(made: Made, tool: Any, query: str) -> Iterator[Fault]:
    found = in_loop(within(_search(tool, query), LONGEST_CALL))
    try:
        read_results(found)
    except SearchError as error:
        yield made.fault(str(error), "return SearchResult values, or mappings with content")


CALLS: Promises[Made] = Promises()


@CALLS.add("results", "What it returns can be read as results.")
def _results(made: Made) -> Iterator[Fault]:
    return _unreadable(made, made.fresh(), PLAIN)


@CALLS.add("odd_query", "Odd queries have results, or are refused with SearchError.")
def _odd_query(made: Made) -> Iterator[Fault]:
    tool = made.fresh()
    for query in ODD:
        outcome = attempt(lambda query: list(_unreadable(made, tool, query)), query)
        if not isinstance(outcome, Raised):
            yield from outcome
        elif not isinstance(outcome.error, SearchError):
            shown = repr(query) if len(query) <= 40 else f"{query[:20]!r}... of {len(query)} characters"
            yield Fault.raised(outcome.error, "raise SearchError", by=f"for the query {shown} it", line=made.line())


CALLS |= {
    "loops": ("It can be used from one event loop after another.", partial(in_two_loops, call=_search)),
    "cancellation": ("A cancelled search ends at once, and the next one works.", partial(cancelled, call=_search)),
    "event_loop": ("Others go on while it searches.", partial(turns, call=_search)),
}
