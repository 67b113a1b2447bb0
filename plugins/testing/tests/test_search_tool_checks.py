"""Search tools that keep their promises pass every check; a planted fault is found by its own, with the line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import frozen
from karenina_calls.tools.search import SearchResult
from karenina_testing.checks import Check, run_checks

from karenina_core import hookimpl
from karenina_core.errors import SearchError
from karenina_core.testing import check_search_tool, plugin_checks, search_tool_checks

LOOKED_AT = ["protocol", "light_construction", "problem", "light_problem"]
ASKED = ["results", "odd_query", "loops", "cancellation", "event_loop"]
PLANTED = {
    "asks_early": "light_construction",
    "counts_results": "results",
    "deaf_search": "cancellation",
    "needs_words": "odd_query",
    "says_false": "problem",
}
"""Module of a planted fault -> the check that finds it."""


class Papers:
    """Right in every way, and waits for something in every search."""

    queries: list[str] = []

    def problem(self) -> str | None:
        return None

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        await asyncio.sleep(0.001)
        self.queries.append(query)
        if not query.strip():
            raise SearchError("ask for something")
        return [SearchResult(content="about venetoclax")] if "venetoclax" in query else []


def checks_of(tool: Any, **options: Any) -> list[Check]:
    return search_tool_checks(tool, **{"search": True, **options})


HERE = pytest.mark.usefixtures("looked_at_here")


def names(tool: Any, **options: Any) -> list[str]:
    return [check.name for check in search_tool_checks(tool, **options)]


@HERE
def test_a_search_tool_that_is_right_passes() -> None:
    check_search_tool(Papers, search=True)
    assert names(Papers, search=True) == [*LOOKED_AT, *ASKED]


@HERE
def test_nothing_is_searched_without_an_option() -> None:
    Papers.queries.clear()
    check_search_tool(Papers)
    check_search_tool(Papers())
    assert (names(Papers), names(Papers())) == (LOOKED_AT, [name for name in LOOKED_AT if "construction" not in name])
    assert Papers.queries == []


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_planted_fault_is_found_with_its_line_and_breaks_nothing_else(
    name: str, planted: Any, fault_line: Any, failure: Any, only_failure: Any
) -> None:
    """A number cannot be read for odd queries either."""
    found = failure if name in ("counts_results",) else only_failure
    message = found(checks_of(planted(name).Planted), PLANTED[name])
    assert message.startswith(f"search tool Planted breaks {PLANTED[name]}: ")
    assert fault_line(name) in message


def find(query: str) -> list[str]:
    return [query]


async def afind(query: str) -> list[dict[str, str]]:
    return [{"content": query}]


class Tool:
    """A tool of another library."""

    def invoke(self, query: str) -> str:
        return f"about {query}"


@HERE
@pytest.mark.parametrize("thing", [find, afind, Tool, Tool()])
def test_whatever_searches_can_be_checked(thing: Any) -> None:
    check_search_tool(thing, search=True)
    assert "results" in names(thing, search=True)
    assert "problem" not in names(thing, search=True), "it has no such method"


class Keyless(Papers):
    def problem(self) -> str | None:
        return "set PAPERS_API_KEY"

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        raise AssertionError("a tool with a problem is not asked")


@HERE
def test_a_tool_that_cannot_work_here_is_only_looked_at() -> None:
    check_search_tool(Keyless, search=True, expected_failures={"odd_query": "where there is a key"})
    assert names(Keyless, search=True) == LOOKED_AT


class Unasked:
    async def asearch(self, query: str) -> Sequence[SearchResult]:
        return []


class Synchronous(Papers):
    def asearch(self, query: str) -> Sequence[SearchResult]:  # type: ignore[override]
        return []


class Deaf:
    def problem(self) -> str | None:
        return None


class Unreachable(Papers):
    async def asearch(self, query: str) -> Sequence[SearchResult]:
        raise SearchError("the connection failed")


class Leaky(Papers):
    async def asearch(self, query: str) -> Sequence[SearchResult]:
        raise ConnectionError("refused")


class Busy(Papers):
    async def asearch(self, query: str) -> Sequence[SearchResult]:
        time.sleep(0.7)
        return []


class Bound(Papers):
    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        async with self.lock:
            return await super().asearch("venetoclax")


class Rude(Papers):
    def problem(self) -> str | None:
        raise OSError("no file of keys")


@pytest.mark.parametrize(
    ("cls", "check", "said"),
    [
        (Unasked, "protocol", "no method problem"),
        (Synchronous, "protocol", "no `async def asearch`"),
        (Deaf, "protocol", "cannot search"),
        (Unreachable, "results", "or report in problem() why not"),
        (Leaky, "results", "raise SearchError"),
        (Busy, "event_loop", "time.sleep(0.7)"),
        (Bound, "loops", "in a second event loop"),
        (Rude, "problem", "it raised OSError: no file of keys"),
    ],
)
def test_every_other_promise_can_be_broken(cls: Any, check: str, said: str, failure: Any) -> None:
    message = failure(checks_of(cls), check)
    assert f"search tool {cls.__name__} breaks {check}: " in message
    assert said in message
    assert "test_search_tool_checks.py:" in message


@frozen
class Settings:
    most: int = 1


class Set(Papers):
    def __init__(self, settings: Settings) -> None:
        self.most = settings.most


class Plugin:
    """A search tool that takes settings, and one that takes none."""

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(Settings)

    @hookimpl
    def karenina_register_search_tools(self, registry: Any) -> None:
        registry.add(Set, name="set")
        registry.add(Papers, name="papers")


@HERE
def test_the_search_tools_of_a_plugin_are_asked_only_where_an_option_says_so() -> None:
    Papers.queries.clear()
    run_checks([check for check in plugin_checks(Plugin()) if "." in check.name])
    assert Papers.queries == []
    checks = plugin_checks(Plugin(), options={"set": {"search": True}})
    own = [check.name for check in checks if "." in check.name]
    assert own == [*(f"papers.{name}" for name in LOOKED_AT), *(f"set.{name}" for name in [*LOOKED_AT, *ASKED])]
    run_checks([check for check in checks if check.name == "set.results"])
    assert Papers.queries
