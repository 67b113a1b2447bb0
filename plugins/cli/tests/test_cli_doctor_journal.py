"""`karenina doctor DIR`: whether a run's journal is whole, and what can be saved of a damaged one."""

from __future__ import annotations

import asyncio
import json
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.files.run_lock import RunLock
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Done, JournalReader
from karenina_runs.journal.rows import CALLS, PAGE, sealed

from karenina_core.values.message import Message

Run = Callable[..., Result]
MODEL = {"interface": "scripted", "model_name": "m", "provider": None, "tools": (), "config_id": None}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory with a journal of 20 calls and 10 results."""
    folder = tmp_path / "a run"
    folder.mkdir()

    async def work() -> None:
        journal = Journal.open(folder, run_id="the run")
        for number in range(20):
            request = Request("llm", MODEL, "generation", 1, (Message.user(f"{number} " * 900).to_dict(),))
            await journal.put(StoredCall(request.key, 0, request), {"reply": {"content": "x"}}, CallFacts())
        for number in range(10):
            await journal.put_result(
                Done(f"t{number}", number, f"r{number}", "passed"), json.dumps(f"result {number} " * 200)
            )
        await journal.aclose()

    asyncio.run(work())
    return folder


def damage(folder: Path) -> None:
    path = folder / "journal.sqlite"
    data = bytearray(path.read_bytes())
    with JournalReader.open(path) as reader:
        body = next(reader.rows(CALLS)).body
    data[data.index(body) + 40] ^= 4
    path.write_bytes(data)


def test_a_reply_that_cannot_be_read_is_damage(run: Run, folder: Path) -> None:
    """Its checksum is right: it was written so."""
    with JournalReader.open(folder) as reader:
        row = next(reader.rows(CALLS))
    values = sealed(CALLS, row.id, row.run, tuple(row.facts.values()), b'{"reply": {"cost": 0.[redacted]}}')
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        connection.execute(f"REPLACE INTO calls VALUES ({','.join('?' * len(values))})", values)
    found = run("doctor", str(folder))
    assert found.exit_code == 1
    assert "Damage: 1 row of the table calls cannot be read: not JSON" in found.stdout
    assert "made again" in found.stderr
    mended = run("doctor", str(folder), "--replace")
    assert mended.exit_code == 0
    assert f"karenina resume {shlex.quote(str(folder))}" in mended.stderr
    after = json.loads(run("doctor", str(folder), "--json").stdout)
    assert (after["sound"], after["rows"]["calls"], after["rows"]["results"]) == (True, 19, 10)


def test_a_whole_journal(run: Run, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = run("doctor", str(folder), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, result.stderr) == (0, "")
    assert document.pop("file_system")
    assert document == {
        "journal": str(folder / "journal.sqlite"),
        "run_id": "the run",
        "sound": True,
        "rows": {"calls": 20, "failures": 0, "results": 10, "batches": 0, "meta": 7, "copies": 3},
        "problems": [],
        "written_by": None,
        "salvaged": None,
        "replaced": None,
    }
    assert "The journal is whole." in run("doctor", str(folder)).stdout
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_damaged_journal_is_saved_into_a_new_file(run: Run, folder: Path) -> None:
    damage(folder)
    before = (folder / "journal.sqlite").read_bytes()
    result = run("doctor", str(folder), "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert document["problems"] == ["1 row of the table calls is not what was written"]
    assert document["salvaged"]["journal"] == str(folder / "journal-salvaged.sqlite")
    assert document["salvaged"]["rows"]["calls"] == 19
    assert f"karenina doctor {shlex.quote(str(folder))} --replace" in result.stderr
    assert (folder / "journal.sqlite").read_bytes() == before
    again = run("doctor", str(folder))
    assert "Damage: 1 row of the table calls is not what was written" in again.stdout
    assert (folder / "journal-salvaged-2.sqlite").exists()


def test_the_saved_journal_takes_the_place_of_the_damaged_one(run: Run, folder: Path) -> None:
    damage(folder)
    before = (folder / "journal.sqlite").read_bytes()
    result = run("doctor", str(folder), "--replace", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert Path(document["replaced"]).read_bytes() == before
    assert document["salvaged"]["journal"] == str(folder / "journal.sqlite")
    assert f"karenina resume {shlex.quote(str(folder))}" in result.stderr
    assert run("doctor", str(folder)).exit_code == 0
    journal = Journal.open(folder, run_id="the run")
    assert (journal.ledger.total.calls, len(list(journal.reader.results())), journal.notes) == (19, 10, ())
    journal.close()


def test_a_journal_that_does_not_say_whose_it_is_gets_that_from_the_manifest(run: Run, folder: Path) -> None:
    data = bytearray((folder / "journal.sqlite").read_bytes())
    page = data.index(b"made_by") // PAGE
    data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    (folder / "journal.sqlite").write_bytes(data)
    (folder / "manifest.json").write_text(json.dumps({"run_id": "the run"}), "utf-8")
    assert run("doctor", str(folder), "--replace").exit_code == 0
    document = json.loads(run("doctor", str(folder), "--json").stdout)
    assert (document["run_id"], document["sound"], document["rows"]["calls"]) == ("the run", True, 20)


def test_a_journal_that_is_being_written_is_only_looked_at(run: Run, folder: Path) -> None:
    damage(folder)
    with RunLock(folder) as lock:
        result = run("doctor", str(folder), "--replace", "--json")
        assert lock.held
    document = json.loads(result.stdout)
    assert (result.exit_code, document["salvaged"]) == (1, None)
    assert document["written_by"] > 0
    assert "stop that first" in result.stderr
    assert not (folder / "journal-salvaged.sqlite").exists()


def test_wrong_usage(run: Run, folder: Path) -> None:
    assert run("doctor", "--replace").exit_code == 2
    assert run("doctor", str(folder), "--deep").exit_code == 2


def test_a_folder_without_a_journal_is_named(run: Run, folder: Path, tmp_path: Path) -> None:
    for place in (folder / "nothing", tmp_path):
        result = run("doctor", str(place))
        assert (result.exit_code, result.stdout) == (1, "")
        assert f"there is no journal {place}" in result.stderr
        assert "is not a run directory" in result.stderr
    (folder / "journal.sqlite").unlink()
    result = run("doctor", str(folder))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "journal.sqlite is gone, and what was paid for was in it; put the file back" in result.stderr


def test_the_file_system_is_reported(run: Run) -> None:
    document = json.loads(run("doctor", "--json").stdout)
    assert document["file_system"]["suitable"] is True
    assert document["file_system"]["type"]
