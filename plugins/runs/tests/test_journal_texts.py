"""Texts and names that are not what is usual: what one of them is costs no other row."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import zlib
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.journal.check import check
from karenina_runs.journal.compression import DICTIONARY, Bodies
from karenina_runs.journal.journal import Journal, KeptRefusals
from karenina_runs.journal.reader import Batch, Done, JournalReader, run_number
from karenina_runs.journal.rows import CALLS, FAILURES, RESULTS, Places, parsed, sealed, whole
from karenina_runs.journal.salvage import salvage

from karenina_core.errors import PortError, RunDirectoryError
from karenina_core.values.message import Message, UsageMetadata

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


def test_a_journal_that_is_opened_again_goes_on_with_the_dictionaries_that_it_has(tmp_path: Path) -> None:
    def dictionaries() -> dict[str, str]:
        with JournalReader.open(tmp_path) as reader:
            assert reader.bodies.can_unpack(next(reader.rows(CALLS)).body), "without looking for others"
            return {name: text for name, text in reader.meta.items() if name.startswith(DICTIONARY)}

    async def fill(name: str) -> None:
        journal = Journal.open(tmp_path)
        for number in range(12):
            await journal.put(call(f"{name}{number}"), {"reply": {"content": f"{name}{number} " * 800}}, FACTS)
        await journal.aclose()

    run(fill("one"))
    before = dictionaries()
    run(fill("another"))
    assert list(before) == [f"{DICTIONARY}generation"]
    assert dictionaries() == before
    with JournalReader.open(tmp_path) as reader:
        assert len([reader.bodies.unpacked(row.body) for row in reader.rows(CALLS)]) == 24


@pytest.mark.parametrize("detail", [None, "", "late"])
@pytest.mark.parametrize("final", [False, True])
def test_how_a_task_ended_is_read_as_it_was_written(tmp_path: Path, detail: str | None, final: bool) -> None:
    done = Done("t", 3, "r", "error", detail, final and detail is not None)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.put_result(done, '"x"')
        assert journal.done("t") == done
        await journal.aclose()

    run(work())
    with JournalReader.open(tmp_path) as reader:
        assert reader.done("t") == done


def test_a_batch_has_an_id_of_its_own_that_says_which_it_is() -> None:
    ids = {Batch.id_of(7, 41) for _ in range(100)}
    assert len(ids) == 100
    for id_ in ids:
        assert id_.startswith("karenina-000007-")
        assert Batch(id=id_, model="m", provider_id="p", status="sent").calls_before == 41


def test_a_dictionary_that_comes_while_a_journal_is_read_is_learnt(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        with JournalReader.open(tmp_path) as reader:
            for number in range(12):
                await journal.put(call(f"q{number}"), {"reply": {"content": LONG}}, FACTS)
            texts = [reader.bodies.unpacked(row.body) for row in reader.rows(CALLS)]
            assert len([text for text in texts if LONG in text]) == 12
            assert reader.damaged["calls"] == 0
        await journal.aclose()

    run(work())


def test_a_result_whose_text_cannot_be_unpacked_is_counted_as_damaged(tmp_path: Path) -> None:
    Journal.open(tmp_path, run_id="mine").close()
    row = sealed(RESULTS, 1, run_number("mine"), ("t", 0, "r", "passed", None, 0, 0.0), b"\x78\x9cno deflated text")
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as connection, connection:
        connection.execute(f"INSERT INTO results VALUES ({','.join('?' * len(row))})", row)
    with JournalReader.open(tmp_path) as reader:
        assert list(reader.results()) == []
        assert reader.damaged["results"] == 1


def test_a_refusal_is_written_once() -> None:
    request = Request("parser", MODEL, "parsing", 1, (Message.user("Which?").to_dict(),), schema={"type": "object"})
    refused = StoredCall(request.key, 0, request, refused=("json_schema", "tool_call"))
    kept = KeptRefusals.found_in({}, [])
    rows = list(kept.rows(refused))
    assert len(rows) == 2
    assert list(kept.rows(refused)) == []
    assert list(KeptRefusals.found_in(dict.fromkeys(rows, "m"), []).rows(refused)) == []
    assert list(KeptRefusals.found_in({}, [dict.fromkeys(rows, "m")]).rows(refused)) == rows, "it is another journal"


@pytest.mark.parametrize(
    ("number", "held"),
    [
        *((each, each) for each in (0, -1, 2**63 - 1, -(2**63))),
        *((2**63, 2**63 - 1), (2**70, 2**63 - 1), (-(2**63) - 1, -(2**63)), (2.7, 2), (1e300, 2**63 - 1)),
        *((other, None) for other in (None, "1", float("nan"), float("inf"))),
    ],
)
def test_whole_numbers_are_those_that_the_journal_can_hold(number: Any, held: int | None) -> None:
    assert whole(number) == held


def test_sixteen_kinds_of_texts_have_a_dictionary_each() -> None:
    bodies = Bodies()
    found = [bodies.sample(f"kind {number}", LONG * 20) for number in range(17)]
    assert [dictionary is not None for dictionary in found] == [True] * 16 + [False]
    assert bodies.sample("kind 3", LONG * 20) is None, "one is enough"


def test_a_dictionary_is_the_end_of_the_first_texts() -> None:
    bodies = Bodies()
    assert bodies.sample("kind", "a" * 10_000) is None
    assert bodies.sample("kind", "b" * 10_000) == "a" * 6_000 + "b" * 10_000


@pytest.mark.parametrize("table", ["calls", "results"])
def test_places_of_rows_are_written_when_there_are_as_many_as_are_to_be(table: str) -> None:
    places = Places(table)
    for id_ in range(1, 4):
        assert places.leave(3) is None
        places.add(id_ * 10, id_)
    assert places.leave(3) == ("[[10,1],[20,2],[30,3]]", 3)
    assert places.leave(1) is None, "they are on their way"


def test_what_is_to_be_kept_and_is_no_document_is_kept_as_a_text_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for text, problem in (('{"a": 1} {"b": 2}', "more than one document"), ("{", "JSONDecodeError")):
        assert json.loads(parsed(text)) == {"unreadable": text}
        assert problem in caplog.text
    assert parsed("") == ""
    assert parsed('{"a": 1}') == '{"a": 1}'


def test_what_is_not_the_fault_of_the_disk_is_not_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_row(*_: Any) -> None:
        raise MemoryError

    async def work() -> None:
        journal = Journal.open(tmp_path)
        monkeypatch.setattr("karenina_runs.journal.journal.sealed", no_row)
        with pytest.raises(
            RunDirectoryError, match=r"\(MemoryError\); what was acknowledged is safe. To continue: karenina"
        ):
            await journal.put(call("a"), {"reply": {}}, FACTS)
        with pytest.raises(RunDirectoryError):
            await journal.aclose()

    run(work())
