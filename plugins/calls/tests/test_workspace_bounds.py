"""Tools of a workspace hold up no other work, end with the work, and make no more than they may."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.files.sandboxed_files import replace_file
from karenina_calls.files.to_its_end import to_its_end
from karenina_calls.files.workspace_text import Search
from karenina_calls.files.workspace_tools import workspace_tools
from karenina_calls.tools.agent_loop import run_agent_loop

from karenina_core.ports import AgentConfig, LLMResponse, Tool, ToolOutcome
from karenina_core.values.message import Message, ToolUseBlock


def tool(root: Path, name: str, **options: Any) -> Any:
    return next(tool.run for tool in workspace_tools(root, **options) if tool.name == name)


def write(root: Path, *paths: str, **options: Any) -> list[ToolOutcome]:
    run = tool(root, "write_file", **options)

    async def every() -> list[ToolOutcome]:
        return [await run({"path": path, "content": ""}) for path in paths]

    return asyncio.run(every())


@pytest.mark.parametrize("ignore_case", [False, True])
@pytest.mark.parametrize("text", ["a" * 999 + "b", "a" * 499 + "b" + "a" * 499])
def test_a_search_that_almost_fits_everywhere_holds_nothing_up(tmp_path: Path, text: str, ignore_case: bool) -> None:
    (tmp_path / "a.txt").write_bytes(b"a" * (8 << 20))
    search = tool(tmp_path, "search_files")
    waits: list[float] = []

    async def beside() -> ToolOutcome:
        task = asyncio.ensure_future(search({"text": text, "ignore_case": ignore_case}))
        while not task.done():
            before = time.monotonic()
            await asyncio.sleep(0.005)
            waits.append(time.monotonic() - before)
        return ToolOutcome(task.result().content)

    started = time.monotonic()
    assert "no line with this text" in asyncio.run(beside()).content
    assert time.monotonic() - started < 5
    assert max(waits) < 1


@given(st.text("aßſİK\u212aﬃx", max_size=12), st.text("asSikKfFß", min_size=1, max_size=3))
def test_a_text_is_found_where_it_occurs_in_any_case(piece: str, text: str) -> None:
    place = Search(text, True, 1).place_in(piece)
    if text.casefold() not in piece.casefold():
        assert place is None
    else:
        assert place is not None
        before = len(piece[:place].casefold())
        assert before <= piece.casefold().find(text.casefold()) < len(piece[: place + 1].casefold())
    assert Search(text, False, 1).place_in(piece) == (piece.find(text) if text in piece else None)


def test_a_text_across_two_pieces_of_a_long_line_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x" * 65_530 + "STRASSE und mehr", "utf-8")
    found = asyncio.run(tool(tmp_path, "search_files")({"text": "straße", "ignore_case": True}))
    assert "STRASSE und" in found.content


def test_files_and_folders_are_counted_like_bytes(tmp_path: Path) -> None:
    outcomes = write(tmp_path, "a", "b/c/d", "a", "e", most_made=4)
    assert [outcome.is_error for outcome in outcomes] == [False, False, False, True]
    assert "only 0 new files and folders may still be made" in outcomes[3].content
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "c", "d"]
    assert write(tmp_path, "a", most_made=0)[0].is_error is False


def test_what_could_not_be_written_uses_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = iter([True, False])

    def replace(folder: int, names: Any, data: bytes) -> bool:
        if next(full):
            raise OSError(28, "No space left on device")
        return replace_file(folder, names, data)

    monkeypatch.setattr("karenina_calls.files.workspace_tools.replace_file", replace)
    outcomes = write(tmp_path, "a", "b", most_made=1)
    assert [outcome.is_error for outcome in outcomes] == [True, False]


def test_nothing_is_written_after_the_agent_has_ended(tmp_path: Path) -> None:
    async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> LLMResponse:
        calls = ({"path": f"{n}/a/b/c/x", "content": "y" * 900_000} for n in range(100))
        blocks = tuple(ToolUseBlock(str(n), "write_file", given) for n, given in enumerate(calls))
        return LLMResponse(content="", tool_calls=blocks)

    async def work() -> tuple[int, int]:
        config = AgentConfig(max_tool_calls=None, timeout=0.05)
        result = await run_agent_loop(ask, [Message.user("Write.")], workspace_tools(tmp_path), config)
        assert result.limit == "time"
        before = len(list(tmp_path.rglob("*")))
        await asyncio.sleep(0.3)
        return before, len(list(tmp_path.rglob("*")))

    before, after = asyncio.run(work())
    assert before == after


def test_a_cancelled_call_waits_for_the_thread_that_has_begun_and_starts_no_other() -> None:
    ended: list[str] = []
    begun = threading.Event()

    def call(stopped: threading.Event) -> None:
        begun.set()
        stopped.wait(10)
        time.sleep(0.05)
        ended.append("ended")

    async def work() -> None:
        task = asyncio.create_task(to_its_end(call))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["ended"]

    asyncio.run(work())


def test_what_a_thread_raises_is_raised() -> None:
    def call(stopped: threading.Event) -> Mapping[str, Any]:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        asyncio.run(to_its_end(call))
