"""Texts and names that are not what is usual: what one of them is costs no other row."""

from __future__ import annotations

import asyncio
import contextlib
import json
import zlib
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from karenina_core.errors import PortError, RunDirectoryError
from karenina_core.model.message import Message, UsageMetadata
from karenina_core.ports.calls import Request
from karenina_core.ports.metered import CallFacts, StoredCall
from karenina_core.run.journal import Journal
from karenina_core.run.journal_bodies import DICTIONARY, Bodies
from karenina_core.run.journal_check import check
from karenina_core.run.journal_reader import JournalReader
from karenina_core.run.journal_rows import FAILURES
from karenina_core.run.journal_salvage import salvage

MODEL = {"interface": "scripted", "model_name": "m", "provider": "p", "tools": [], "config_id": None}
FACTS = CallFacts(usage=UsageMetadata(10, 2, 12), seconds=0.5, attempts=1)
LONG = "some words of a reply " * 200


def call(text: str, task: str = "generation") -> StoredCall:
    request = Request("llm", MODEL, task, 1, (Message.user(text).to_dict(),))
    return StoredCall(request.key, 0, request)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize("task", ["best_saved", "calls_saved", "calls_indexed", "run_id"])
def test_a_task_may_have_any_name(tmp_path: Path, task: str) -> None:
    """Also one that looks like the name of something that the journal says about itself."""

    async def work() -> None:
        journal = Journal.open(tmp_path)
        for number in range(12):
            await journal.put(call(f"q{number}", task), {"reply": {"content": LONG}}, FACTS)
        await journal.aclose()

    run(work())
    saved = salvage(tmp_path / "journal.sqlite", tmp_path / "saved.sqlite").path
    for path in (tmp_path / "journal.sqlite", saved):
        assert check(path).problems == ()
        with JournalReader.open(path) as reader:
            assert f"{DICTIONARY}{task}" in reader.meta
            assert reader.call(call("q3", task).key, 0) is not None
    Journal.open(tmp_path).close()


def test_what_came_back_need_not_be_a_text(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        journal.failed(call("a"), PortError("x", kind="bad_response", raw=b"\x80"), FACTS)  # type: ignore[arg-type] # so it may come
        with contextlib.suppress(ValueError):
            journal.failed(call("b"), PortError("x", kind="bad_response", raw=endless), FACTS)  # type: ignore[arg-type] # as above
        journal.failed(call("c"), PortError("x", kind="timeout"), FACTS)
        await journal.aclose()

    run(work())
    assert check(tmp_path).problems == ()
    with JournalReader.open(tmp_path) as reader:
        bodies = [reader.bodies.unpacked(row.body) for row in reader.rows(FAILURES)]
        assert (json.loads(bodies[0])["error"]["raw"], bodies[-1]) == ("b'\\x80'", "")
    Journal.open(tmp_path).close()


def test_a_text_that_cannot_be_compressed_is_kept_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compress = zlib.compress

    def short_of_memory(data: bytes, *more: Any) -> bytes:
        if b"huge" in data:
            raise MemoryError
        return compress(data, *more)

    monkeypatch.setattr("zlib.compress", short_of_memory)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        texts = ("huge " * 200, "a", "b " * 400)
        await asyncio.gather(*(journal.put(call(text), {"reply": {"content": text}}, FACTS) for text in texts))
        for text in texts:
            found = await journal.take(call(text))
            assert found is not None
            assert found.outcome == {"reply": {"content": text}}
        await journal.aclose()

    run(work())
    assert check(tmp_path).problems == ()


def test_sixteen_kinds_of_texts_have_a_dictionary_each() -> None:
    bodies = Bodies()
    found = [bodies.sample(f"kind {number}", LONG * 20) for number in range(17)]
    assert [dictionary is not None for dictionary in found] == [True] * 16 + [False]
    assert bodies.sample("kind 3", LONG * 20) is None, "one is enough"


def test_a_dictionary_is_the_end_of_the_first_texts() -> None:
    bodies = Bodies()
    assert bodies.sample("kind", "a" * 10_000) is None
    assert bodies.sample("kind", "b" * 10_000) == "a" * 6_000 + "b" * 10_000


def test_what_is_not_the_fault_of_the_disk_is_not_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_row(*_: Any) -> None:
        raise MemoryError

    async def work() -> None:
        journal = Journal.open(tmp_path)
        monkeypatch.setattr("karenina_core.run.journal.sealed", no_row)
        with pytest.raises(
            RunDirectoryError, match=r"\(MemoryError\); what was acknowledged is safe. To go on: karenina"
        ):
            await journal.put(call("a"), {"reply": {}}, FACTS)
        with pytest.raises(RunDirectoryError):
            await journal.aclose()

    run(work())
