"""Search tools of any kind: what they return is read, and a search that failed never looks like one that found
nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.services.shared import search_tool_of
from karenina_calls.tools.search import SearchResult, SearchTool, as_search_tool, read_results

from karenina_core import Karenina, hookimpl
from karenina_core.errors import SearchError, UnknownName

ROW = {"content": "BCL2 is the target", "title": "Targets", "url": "https://example.org"}
RESULT = SearchResult(content="BCL2 is the target", title="Targets", url="https://example.org")


def search(thing: Any, query: str = "BCL2", timeout: float = 5.0) -> Any:
    return asyncio.run(as_search_tool(thing, timeout).asearch(query))


# What a search gives back


@pytest.mark.parametrize(
    "found",
    [
        [ROW],
        (ROW,),
        iter([ROW]),
        [RESULT],
        RESULT,
        ROW,
        {"results": [ROW]},
        json.dumps([ROW]),
        json.dumps({"results": [ROW]}),
        [{**ROW, "score": 0.9}],
        [ROW, {"content": ""}, {"content": None, "title": "empty"}],
        [{"title": "no content", "url": "https://example.org"}, ROW, None, 3],
    ],
)
def test_results_are_read_in_many_forms(found: Any) -> None:
    assert read_results(found) == (RESULT,)


@pytest.mark.parametrize("found", [[], (), {"results": []}, "[]", "", "  ", [{"content": " "}]])
def test_nothing_found_is_an_empty_result(found: Any) -> None:
    assert read_results(found) == ()


@pytest.mark.parametrize("text", ["BCL2 is the target", '"a text in quotes"', "3", "{not json"])
def test_plain_text_is_one_result(text: str) -> None:
    assert read_results(text) == (SearchResult(content=text),)
    assert read_results([text]) == (SearchResult(content=text),)


@pytest.mark.parametrize(
    "found",
    [
        None,
        3,
        b"bytes",
        {"error": "quota used up"},
        [{"snippet": "x"}],
        '{"error": "no"}',
        [None],
        [3],
        {"results": None},
        [{"title": "no content"}, {"url": "https://example.org"}],
    ],
)
def test_what_is_not_understood_is_not_taken_for_nothing_found(found: Any) -> None:
    with pytest.raises(SearchError):
        read_results(found)


def test_results_without_end_are_read_in_part() -> None:
    assert len(search(lambda query: (ROW for _ in iter(int, 1)))) == 100


def test_text_that_cannot_be_written_is_made_writable() -> None:
    (found,) = read_results([{"content": "a\ud800b", "title": "\udfff"}])
    assert (found.content, found.title) == ("a\ufffdb", "\ufffd")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
@settings(database=None, deadline=None, derandomize=True)
def test_whatever_a_tool_returns_is_results_or_a_search_error(found: Any) -> None:
    try:
        results = search(lambda query: found)
    except SearchError:
        return
    assert all(result.content.strip() for result in results)


# Who may search


class WithMethod:
    """A tool object as other frameworks have them."""

    def __init__(self, name: str) -> None:
        setattr(self, name, self._plain if name in ("invoke", "run") else self._async)

    def _plain(self, query: str) -> Any:
        return [ROW]

    async def _async(self, query: str) -> Any:
        return [ROW]


class Callable_:
    def __call__(self, query: str) -> Any:
        return [ROW]


class AsyncCallable:
    async def __call__(self, query: str) -> Any:
        return [ROW]


async def coroutine_function(query: str) -> Any:
    return [ROW]


@pytest.mark.parametrize(
    "thing",
    [
        *(WithMethod(name) for name in ("asearch", "ainvoke", "arun", "invoke", "run")),
        Callable_(),
        AsyncCallable(),
        coroutine_function,
        lambda query: [ROW],
        lambda query: coroutine_function(query),
    ],
)
def test_functions_and_tool_objects_search(thing: Any) -> None:
    assert search(thing) == (RESULT,)
    assert isinstance(as_search_tool(thing), SearchTool)
    assert as_search_tool(thing).problem() is None


def test_the_first_of_several_methods_is_asked() -> None:
    tool = WithMethod("run")
    tool.ainvoke = tool._async  # type: ignore[attr-defined]  # as such objects have it
    tool.run = lambda query: pytest.fail("the slow way")  # type: ignore[attr-defined]  # as above
    assert search(tool) == (RESULT,)


def test_a_plain_function_runs_in_a_thread_of_its_own() -> None:
    seen: list[Any] = []

    def tool(query: str) -> Any:
        seen.append((query, threading.current_thread() is threading.main_thread()))
        return []

    assert search(tool) == ()
    assert seen == [("BCL2", False)]


@pytest.mark.parametrize("thing", [None, 3, "tavily", Callable_, object()])
def test_what_cannot_search_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="cannot search"):
        as_search_tool(thing)


def raising(error: BaseException) -> Callable[[str], Any]:
    def tool(query: str) -> Any:
        raise error

    return tool


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("slow"), OSError("down"), KeyError("x")])
def test_a_tool_that_raises_is_a_failed_search(error: Exception) -> None:
    with pytest.raises(SearchError, match="the search tool failed") as caught:
        search(raising(error))
    assert type(error).__name__ in str(caught.value)


def following(query: str) -> Any:
    return next(iter([]))


async def stopping(query: str) -> Any:
    raise SystemExit(3)


async def cancelling(query: str) -> Any:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("tool", "named"),
    [
        (raising(SystemExit(3)), "SystemExit"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(asyncio.CancelledError()), "CancelledError"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (following, "StopIteration"),
        (stopping, "SystemExit"),
        (cancelling, "CancelledError"),
    ],
)
def test_what_ends_programs_or_loops_is_only_a_failed_search(tool: Any, named: str) -> None:
    """And the others that are searching at the same time go on."""

    async def both() -> Any:
        return await asyncio.gather(
            as_search_tool(tool, 5.0).asearch("x"), as_search_tool(lambda q: [ROW]).asearch("y"), return_exceptions=True
        )

    started = time.monotonic()
    failed, found = asyncio.run(both())
    assert found == (RESULT,)
    assert isinstance(failed, SearchError)
    assert str(failed).startswith(f"the search tool failed: {named}")
    assert time.monotonic() - started < 4


class Lazy:
    content = "x"

    @property
    def title(self) -> str:
        raise RuntimeError("no title")


def generating(query: str) -> Any:
    yield ROW
    raise RuntimeError("no second page")


async def returning(query: str) -> Any:
    return generating(query)


@pytest.mark.parametrize("tool", [generating, returning, lambda query: [Lazy()]])
def test_results_that_raise_while_they_are_read_are_a_failed_search(tool: Any) -> None:
    with pytest.raises(SearchError, match="the search tool failed: RuntimeError: no"):
        search(tool)


def test_results_that_come_too_slowly_are_a_failed_search() -> None:
    def slow(query: str) -> Any:
        for _ in range(100):
            time.sleep(0.02)
            yield ROW

    with pytest.raises(SearchError, match="longer than"):
        search(slow, timeout=0.1)


def test_searches_that_hang_hold_up_no_other_work_and_not_the_end_of_the_program() -> None:
    program = """
import asyncio, time
from karenina_core.errors import SearchError
from karenina_calls.tools.search import as_search_tool

async def main():
    tool = as_search_tool(lambda query: time.sleep(60), 0.1)
    found = await asyncio.gather(*(tool.asearch(str(i)) for i in range(50)), return_exceptions=True)
    print(sum(isinstance(one, SearchError) for one in found))
    async with asyncio.timeout(5):
        print(await asyncio.to_thread(int, "7"))

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert (ran.stdout.split(), ran.stderr, ran.returncode) == (["50", "7"], "", 0)


def test_a_search_error_stays_what_it_is() -> None:
    with pytest.raises(SearchError, match=r"^quota$"):
        search(raising(SearchError("quota")))


def test_a_search_ends_in_time() -> None:
    async def slow(query: str) -> Any:
        await asyncio.sleep(30)

    started = time.monotonic()
    with pytest.raises(SearchError, match=r"longer than 0\.05 s"):
        search(slow, timeout=0.05)
    assert time.monotonic() - started < 5


def test_cancelling_is_not_a_failed_search() -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(as_search_tool(lambda query: time.sleep(0.2)).asearch("x"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


# By name


@frozen
class Settings:
    answer: str = "default"


class Configured:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def problem(self) -> str | None:
        return "no key" if self.settings.answer == "none" else None

    async def asearch(self, query: str) -> Any:
        return [SearchResult(content=self.settings.answer)]


class Plain(Configured):
    def __init__(self) -> None:
        super().__init__(Settings("plain"))


class Plugin:
    @hookimpl
    def karenina_register_search_tools(self, registry: Any) -> None:
        registry.add(Configured, name="configured")
        registry.add(Plain, name="plain")
        registry.add(Plain(), name="made")

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(Settings)


@pytest.mark.parametrize(
    ("name", "answer"), [("configured", "default"), ("plain", "plain"), ("made", "plain"), (lambda q: "own", "own")]
)
def test_a_tool_is_found_by_name_and_made_with_the_settings_of_its_plugin(name: Any, answer: str) -> None:
    app = Karenina({"sample": Plugin()})
    tool = search_tool_of(app, name)
    (found,) = asyncio.run(tool.asearch("x"))
    assert found.content == answer


def test_settings_reach_the_tool_and_its_problem_is_reported() -> None:
    app = Karenina({"sample": Plugin()}, settings={"sample": {"answer": "none"}})
    tool = search_tool_of(app, "configured")
    assert tool.problem() == "no key"
    assert as_search_tool(guarded := as_search_tool(tool)) is guarded


def test_an_unknown_name_is_reported_with_the_closest_one() -> None:
    app = Karenina({"sample": Plugin()})
    with pytest.raises(UnknownName, match="did you mean 'configured'"):
        search_tool_of(app, "confgured")
