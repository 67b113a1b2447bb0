"""What search tools found is recorded beside the calls of models, and comes back without the tool and its key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.records.requests import SearchRequest
from karenina_calls.services.shared import search_tool_of
from karenina_calls.tools.search import SearchResult, SearchTool
from karenina_replay.recording import Player, Recorder, Recording, Writer, writer_of

from karenina_core import hookimpl
from karenina_core.errors import SearchError
from karenina_core.ports.middleware import CallTarget
from karenina_core.testing import application

TEXTS = st.text(max_size=10)
MAYBE = st.none() | TEXTS
FOUND = st.lists(st.builds(SearchResult, content=TEXTS, title=MAYBE, url=MAYBE), max_size=3).map(tuple)
FAILURES = st.builds(SearchError, TEXTS)


@define
class Scripted:
    """A search tool that gives the next outcome of a list."""

    outcomes: list[Any]
    asked: list[str] = field(factory=list)

    def problem(self) -> str | None:
        return "no key is set"

    async def asearch(self, query: str) -> Sequence[SearchResult]:
        self.asked.append(query)
        outcome = self.outcomes[len(self.asked) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        found: Sequence[SearchResult] = outcome
        return found


def outcome_of(tool: SearchTool, query: str) -> Any:
    try:
        return asyncio.run(tool.asearch(query))
    except SearchError as error:
        return str(error)


def recorder(tool: Any, writer: Writer) -> CallPort:
    return CallPort(CallTarget("search", "t"), tool, (Layer(Recorder(writer)),))


def player(path: Path, name: str = "t") -> CallPort:
    return CallPort(CallTarget("search", name), Scripted([]), (Layer(Player(Recording(path))),))


def result(content: str) -> SearchResult:
    return SearchResult(content=content)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(TEXTS, FOUND | FAILURES), min_size=1, max_size=5))
def test_replaying_searches_is_the_identity_also_of_equal_queries_in_any_order(calls: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "calls.jsonl"
        writer = Writer(path)
        recording = recorder(Scripted([outcome for _, outcome in calls]), writer)
        live = [(query, outcome_of(recording, query)) for query, _ in calls]
        writer.close()
        replaying = player(path)
        assert [(query, outcome_of(replaying, query)) for query, _ in reversed(live)] == live[::-1]


REQUESTS = st.builds(SearchRequest, st.sampled_from("ab"), TEXTS)


@given(REQUESTS, REQUESTS)
def test_different_searches_never_share_a_key(a: SearchRequest, b: SearchRequest) -> None:
    assert (a.key == b.key) == (a == b)


def test_a_recorded_search_is_one_line_of_kind_search(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "calls.jsonl")
    recording = recorder(Scripted([[SearchResult(content="c", title="t", url="u")], SearchError("down")]), writer)
    assert outcome_of(recording, "a") == (SearchResult(content="c", title="t", url="u"),)
    assert outcome_of(recording, "b") == "down"
    writer.close()
    found, failed = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    assert (found["format"], found["kind"], found["tool"], found["query"]) == (1, "search", "t", "a")
    assert found["reply"] == {"results": [{"content": "c", "title": "t", "url": "u"}]}
    assert failed["error"]["message"] == "down"
    assert "reply" not in failed


def test_equal_queries_of_a_recorded_run_are_one_search_and_its_outcome_counts_for_all(tmp_path: Path) -> None:
    """Else a replay, whose items come in another order, gives one item what another one had."""
    path = tmp_path / "calls.jsonl"
    writer = Writer(path)
    first, second = (recorder(Scripted([[result(name)]]), writer) for name in ("first", "second"))
    assert outcome_of(first, "a") == outcome_of(second, "a") == (result("first"),)
    assert second.inner.asked == []
    failing = recorder(Scripted([SearchError("down"), [result("late")]]), writer)
    assert [outcome_of(failing, "b") for _ in range(2)] == ["down", "down"]
    writer.close()
    assert len(path.read_text().splitlines()) == 2
    assert outcome_of(player(path), "b") == "down"


def test_equal_queries_at_the_same_time_have_one_outcome_too(tmp_path: Path) -> None:
    class Slow:
        numbers = count()

        async def asearch(self, query: str) -> Sequence[SearchResult]:
            number = next(self.numbers)
            await asyncio.sleep(0.02 if number == 0 else 0)
            return [result(str(number))]

    writer = Writer(tmp_path / "calls.jsonl")
    recording = recorder(Slow(), writer)

    async def both() -> list[Any]:
        return await asyncio.gather(*(recording.asearch("a") for _ in range(2)))

    assert asyncio.run(both()) == [(result("1"),)] * 2
    writer.close()
    assert len((tmp_path / "calls.jsonl").read_text().splitlines()) == 1
    assert outcome_of(player(tmp_path / "calls.jsonl"), "a") == (result("1"),)


def test_a_search_that_was_not_recorded_failed_and_did_not_find_nothing(tmp_path: Path) -> None:
    path, writer = tmp_path / "calls.jsonl", Writer(tmp_path / "calls.jsonl")
    assert outcome_of(recorder(Scripted([[]]), writer), "a") == ()
    writer.close()
    assert outcome_of(player(path), "a") == ()
    for name, query in (("t", "b"), ("u", "a")):
        with pytest.raises(SearchError, match=r"holds no call of search tool .*query '.'.*record again with --record"):
            asyncio.run(player(path, name).asearch(query))


# In an application


@define(eq=False)
class Brings:
    """A plugin with one search tool, which needs a key."""

    asked: list[str] = field(factory=list)

    @hookimpl
    def karenina_register_search_tools(self, registry: Any) -> None:
        asked = self.asked

        class Papers:
            def problem(self) -> str | None:
                return "PAPERS_API_KEY is not set"

            async def asearch(self, query: str) -> Sequence[SearchResult]:
                asked.append(query)
                return [result(f"number {len(asked)}")]

        registry.add(Papers, name="papers")


def test_an_application_records_and_replays_its_search_tools(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    brings = Brings()
    app = application(brings, installed=["replay"], settings={"replay": {"record": file}})
    tool = search_tool_of(app, "papers")
    assert tool.problem() == "PAPERS_API_KEY is not set", "what is recorded must work"
    assert not Path(file).exists()
    found = asyncio.run(tool.asearch("a"))
    assert asyncio.run(search_tool_of(app, "papers").asearch("a")) == found == (result("number 1"),)
    writer_of(app.settings("replay")).close()
    replaying = application(brings, installed=["replay"], settings={"replay": {"replay": file}})
    player = search_tool_of(replaying, "papers")
    assert player.problem() is None, "what is replayed need not"
    assert asyncio.run(player.asearch("a")) == found
    assert brings.asked == ["a"]
    plain = search_tool_of(application(brings, installed=["replay"]), "papers")
    assert plain.problem() == "PAPERS_API_KEY is not set"
    assert asyncio.run(plain.asearch("a")) == (result("number 2"),)


def changing(query: str, numbers: Any = count()) -> list[str]:  # noqa: B008  # one counter for all calls is the point
    return [f"{query} {next(numbers)}"]


def test_a_function_whose_results_change_is_replayed_with_those_of_the_recording(tmp_path: Path) -> None:
    file = str(tmp_path / "calls.jsonl")
    app = application(installed=["replay"], settings={"replay": {"record": file}})
    tool = search_tool_of(app, changing)
    live = [asyncio.run(tool.asearch(query)) for query in "aba"]
    writer_of(app.settings("replay")).close()
    assert live[0] == live[2] != live[1]
    player = search_tool_of(application(installed=["replay"], settings={"replay": {"replay": file}}), changing)
    assert [asyncio.run(player.asearch(query)) for query in "aba"] == live


def test_the_key_of_a_search_tool_is_never_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERS_API_KEY", "canary-1189-secret")
    writer = Writer(tmp_path / "calls.jsonl")
    outcome_of(recorder(Scripted([SearchError("401 for canary-1189-secret")]), writer), "a")
    writer.close()
    assert "canary-1189-secret" not in (tmp_path / "calls.jsonl").read_text()
