"""Journals that released versions wrote stay readable, and can be gone on with."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.folder.recording import recording_lines
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, Done, JournalReader
from karenina_runs.journal.rows import FAILURES, VERSION

from karenina_core.errors import PortError, RunDirectoryError
from karenina_core.values.message import Message, UsageMetadata

GOLDEN = Path(__file__).with_name("golden")
MODEL = {"interface": "scripted", "model_name": "m", "provider": "p", "tools": ["t"], "config_id": None}
FACTS = CallFacts(usage=UsageMetadata(10, 2, 12, 0.125, 3, 1, "m-1"), seconds=0.5, attempts=3, retries={"timeout": 2})
PAGE = "<html>\u202e" + "not found " * 100
BATCH = Batch(id="b1", model="m", provider_id="batch_1", status="completed", keys=(("k", 0),))


def call(number: int, nth: int = 0) -> StoredCall:
    text = f"question {number} é 😀 " + "the same in all of them " * 60
    request = Request("llm", MODEL, "generation", 1, (Message.user(text).to_dict(),), None, None, {"temperature": 0.5})
    return StoredCall(request.key, nth, request, "generate-answer", f"trait {number % 2}", f"q{number}", f"r{number}")


def outcome(number: int) -> dict[str, Any]:
    return {"reply": {"content": f"answer {number} \ud800", "flags": ["lone_surrogate"]}}


def line(number: int) -> str:
    return json.dumps({"metadata": {"result_id": f"r{number}"}, "text": "ü" * 600 * (number % 2)}, ensure_ascii=False)


async def write(folder: Path) -> None:
    """How the golden file of this version was made: `journal.sqlite` of this folder, through gzip."""
    journal = Journal.open(folder, run_id="golden")
    for number in range(30):
        await journal.put(call(number), outcome(number), FACTS)
        await journal.put_result(Done(f"t{number}", 29 - number, f"r{number}", "error", "timeout"), line(0))
        await journal.put_result(Done(f"t{number}", 29 - number, f"r{number}", "passed"), line(number))
    await journal.put(call(3, 1), outcome(99), CallFacts())
    journal.failed(call(5), PortError("busy", kind="rate_limited", status=429), CallFacts())
    journal.failed(call(6), PortError("no JSON", kind="bad_response", raw=PAGE), CallFacts())
    await journal.put_batch(BATCH)
    await journal.aclose()


@pytest.fixture(params=sorted(GOLDEN.glob("journal-*.sqlite.gz")), ids=lambda path: path.name.partition(".")[0])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    with gzip.open(request.param) as packed, (tmp_path / "run" / "journal.sqlite").open("wb") as file:
        shutil.copyfileobj(packed, file)
    return tmp_path / "run"


def as_it_was_written(reader: JournalReader) -> None:
    assert reader.run_id == "golden"
    for number in range(30):
        row = reader.call(call(number).key, 0)
        assert row is not None
        assert json.loads(reader.bodies.unpacked(row.body))["reply"] == outcome(number)["reply"]
        assert (row["trait"], row["result_id"]) == (f"trait {number % 2}", f"r{number}")
        assert reader.done(f"t{number}") == Done(f"t{number}", 29 - number, f"r{number}", "passed")
    assert [result.line for result in reader.results()] == [line(29 - number) for number in range(30)]
    failures = list(reader.rows(FAILURES))
    assert [(row["error"], row["status"], row["message"], bool(row.body)) for row in failures] == [
        ("rate_limited", 429, "PortError: busy", False),
        ("bad_response", None, "PortError: no JSON", True),
    ]
    ended = json.loads(reader.bodies.unpacked(failures[1].body))
    assert (ended["error"]["raw"], ended["messages"]) == (PAGE, list(call(6).request.messages))
    assert reader.batches() == [BATCH]
    total = reader.ledger().total
    assert (total.calls, total.failed, total.known_cost_usd, total.unknown_costs) == (31, 2, 3.75, 1)
    assert len(list(recording_lines(reader))) == 31
    assert not reader.damaged


def test_a_journal_of_every_version_is_read_without_being_changed(folder: Path) -> None:
    before = (folder / "journal.sqlite").read_bytes()
    assert check(folder).problems == ()
    with JournalReader.open(folder) as reader:
        as_it_was_written(reader)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"journal.sqlite": before}


def test_a_run_with_a_journal_of_every_version_goes_on(folder: Path) -> None:
    async def work() -> None:
        journal = Journal.open(folder, run_id="golden")
        assert journal.notes == ()
        for number in range(30):
            found = await journal.take(call(number))
            assert found is not None
            assert (found.outcome, found.facts) == (outcome(number), FACTS)
        assert await journal.take(call(30)) is None
        await journal.put(call(30), outcome(30), FACTS)
        await journal.aclose()

    asyncio.run(work())
    assert check(folder).problems == ()
    with JournalReader.open(folder) as reader:
        assert reader.call(call(30).key, 0) is not None


def test_there_is_a_golden_file_of_this_version() -> None:
    assert (GOLDEN / f"journal-{VERSION}.sqlite.gz").exists()


def test_what_this_version_writes_is_read_as_the_golden_file_is(tmp_path: Path) -> None:
    asyncio.run(write(tmp_path))
    with JournalReader.open(tmp_path) as reader:
        as_it_was_written(reader)


def test_a_journal_of_a_later_version_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    asyncio.run(write(tmp_path))
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = (tmp_path / "journal.sqlite").read_bytes()
    for opens in (JournalReader.open, Journal.open):
        with pytest.raises(RunDirectoryError, match="written by a newer karenina"):
            opens(tmp_path)
    assert (tmp_path / "journal.sqlite").read_bytes() == before
