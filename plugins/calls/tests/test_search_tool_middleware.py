"""`search_tool_of`: a tool by name or as it is, inside what plugins put in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, field
from karenina_calls.ports.port_calls import SearchCall
from karenina_calls.services.shared import search_tool_of
from karenina_calls.tools.search import SearchResult, SearchTool

from karenina_core import Karenina, hookimpl
from karenina_core.errors import SearchError, UnknownName
from karenina_core.ports.middleware import CallTarget, Proceed
from karenina_core.testing import application


class Papers:
    async def asearch(self, query: str) -> Sequence[SearchResult]:
        return [SearchResult(content=query)]

    def bound(self, query: str) -> list[str]:
        return [query]


class Called:
    def __call__(self, query: str) -> list[str]:
        return [query]


def function(query: str) -> list[str]:
    return [query]


@define(eq=False)
class InFront:
    """A plugin that marks what passes, or leaves the tool as it is."""

    mark: str | None
    names: list[str] = field(factory=list)

    @hookimpl
    def karenina_wrap_call(self, target: CallTarget) -> Any | None:
        assert target.kind == "search"
        self.names.append(target.name)
        return Marking(self.mark) if self.mark else None


@define
class Marking:
    mark: str

    def __len__(self) -> int:
        return 0

    async def __call__(self, call: SearchCall, proceed: Proceed) -> Sequence[SearchResult]:
        return [SearchResult(content=f"{self.mark}({r.content})") for r in await proceed(call)]


class Brings:
    @hookimpl
    def karenina_register_search_tools(self, registry: Any) -> None:
        registry.add(Papers, name="papers")


def found(tool: SearchTool) -> list[str]:
    return [result.content for result in asyncio.run(tool.asearch("q"))]


def test_the_plugin_with_the_first_name_is_the_outermost_and_none_leaves_the_tool_as_it_is() -> None:
    app = Karenina({"c": InFront("c"), "a": InFront("a"), "b": InFront(None), "z-papers": Brings()})
    assert found(search_tool_of(app, "papers")) == ["a(c(q))"]
    assert found(search_tool_of(application(Brings()), "papers")) == ["q"]


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("papers", "papers"),
        (function, f"{__name__}.function"),
        (Papers(), f"{__name__}.Papers"),
        (Papers().bound, f"{__name__}.Papers.bound"),
        (Called(), f"{__name__}.Called"),
    ],
    ids=["name", "function", "object", "method", "callable"],
)
def test_a_tool_is_known_by_its_name_or_by_where_it_is_defined(wanted: Any, name: str) -> None:
    front = InFront("m")
    tool = search_tool_of(application(Brings(), front), wanted)
    assert isinstance(tool, SearchTool)
    assert (found(tool), front.names) == (["m(q)"], [name])


def test_what_is_unknown_or_cannot_search_is_an_error_before_any_middleware() -> None:
    front = InFront("m")
    app = application(Brings(), front)
    with pytest.raises(UnknownName, match="papers"):
        search_tool_of(app, "paper")
    with pytest.raises(TypeError, match="cannot search"):
        search_tool_of(app, 5)
    assert front.names == []


def test_a_plugin_with_middleware_is_listed_as_that() -> None:
    app = Karenina({"front": InFront("m")})
    assert app.plugin("front").kinds == ("wrap_call",)


def test_middleware_that_raises_anything_is_a_failed_search() -> None:
    async def broken(call: SearchCall, proceed: Proceed) -> Any:
        raise KeyError(call.query)

    class Wrapping:
        @hookimpl
        def karenina_wrap_call(self) -> Any:
            return broken

    tool = search_tool_of(application(Wrapping()), lambda query: [query])
    with pytest.raises(SearchError, match="KeyError"):
        asyncio.run(tool.asearch("venetoclax"))
