"""Connections to a journal: what they may do, what they leave behind, and when what waits is written."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

import pytest
from attrs import evolve
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.journal.connection import opened
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import META, PAGE, sealed
from karenina_runs.journal.writer import AT_ONCE, WAL_PAGES, Entry, Writer, connected

from karenina_core.errors import RunDirectoryError
from karenina_core.values.message import Message

REQUEST = Request(
    "llm", {"interface": "scripted", "model_name": "m"}, "generation", 1, (Message.user("Which?").to_dict(),)
)
CALL = StoredCall(REQUEST.key, 0, REQUEST)


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The journal of a process that was killed: a reply is in its log alone. SQLite cannot write what it needs for the
    log, also where this is root."""
    folder, made = tmp_path / "left", tmp_path / "made"
    folder.mkdir()
    made.mkdir()

    async def work() -> None:
        journal = Journal.open(made)
        await journal.put(CALL, {"reply": {"content": "BCL2"}}, CallFacts())
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copyfile(made / name, folder / name)
        await journal.aclose()

    asyncio.run(work())
    (folder / "journal.sqlite-shm").symlink_to("nowhere")  # SQLite follows no links
    return folder / "journal.sqlite"


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_where_nothing_can_be_written_a_copy_is_read_and_removed(left: Path, copies: Path) -> None:
    before = {path.name: path.read_bytes() for path in left.parent.iterdir() if path.is_file()}
    with JournalReader.open(left.parent) as reader:
        found = reader.call(CALL.key, CALL.nth)
        assert found is not None
        assert reader.bodies.unpacked(found.body)
        assert len(list(copies.iterdir())) == 1
    assert list(copies.iterdir()) == []
    assert {path.name: path.read_bytes() for path in left.parent.iterdir() if path.is_file()} == before


def test_a_copy_that_something_else_has_removed_is_closed_all_the_same(left: Path, copies: Path) -> None:
    found = opened(left)
    (folder,) = copies.iterdir()
    shutil.rmtree(folder)
    found.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        found.connection.execute("SELECT 1")


def test_a_copy_that_cannot_be_made_leaves_nothing_behind(left: Path, copies: Path) -> None:
    log = left.with_name("journal.sqlite-wal")
    log.unlink()
    log.mkdir()
    with pytest.raises(RunDirectoryError, match=r"is damaged .*Is a directory"):
        opened(left)
    assert list(copies.iterdir()) == []


def test_what_is_no_database_is_not_kept_open(tmp_path: Path, times_open: Callable[[Path], int]) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a database " * 1000)
    with pytest.raises(sqlite3.DatabaseError, match="not a database") as writing:
        connected(path)
    with pytest.raises(RunDirectoryError, match="not a database") as reading:
        opened(path)
    assert times_open(path) == 0, "also while the errors are here, which refer to all that was made"
    del writing, reading


def test_what_has_no_log_cannot_be_written() -> None:
    with pytest.raises(RunDirectoryError, match="does not allow a write-ahead log; start a run in another"):
        connected(Path(":memory:"))


@pytest.mark.parametrize("connect", [connected, lambda path: opened(path).connection], ids=["writing", "reading"])
def test_the_file_itself_has_no_function_called(tmp_path: Path, connect: Callable[[Path], sqlite3.Connection]) -> None:
    """A journal may come from anywhere: what it defines may not run what this process can do."""
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW rows AS SELECT done() AS value")
    called = []
    with closing(connect(path)) as connection:
        connection.create_function("done", 0, lambda: called.append("done"))
        with pytest.raises(sqlite3.OperationalError, match="unsafe use of done"):
            connection.execute("SELECT * FROM rows").fetchall()
    assert called == []


def test_the_log_is_copied_into_the_file_when_it_has_its_pages_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(connected(path)) as connection:
        connection.execute("CREATE TABLE bodies(id INTEGER PRIMARY KEY, body BLOB)")
        sizes = []
        for _ in range(5):  # each row has a page of its own
            with connection:
                connection.execute("BEGIN")
                rows = ((bytes(PAGE - 200),) for _ in range(WAL_PAGES // 5 + 20))
                connection.executemany("INSERT INTO bodies(body) VALUES (?)", rows)
            sizes.append(path.stat().st_size)
    assert len(set(sizes[:4])) == 1
    assert sizes[4] > WAL_PAGES * PAGE > sizes[3]


def test_neither_a_crowd_nor_what_comes_after_a_failure_waits_for_others(tmp_path: Path) -> None:
    settled = SimpleQueue[tuple[int, RunDirectoryError | None]]()

    def check() -> None:
        raise OSError("the lock is gone")

    def submit(name: str) -> None:
        writer.submit(Entry("meta", sealed(META, name, 1, ("",)), lambda error: None))

    writer = Writer(
        tmp_path / "journal.sqlite",
        lambda entries, error: settled.put((len(entries), error)),
        lambda last: None,
        {},
        check=check,
        seal=lambda entry: (),
        window=60.0,
    )
    for number in range(AT_ONCE + 1):
        submit(str(number))
    writer.start(connected(writer.path))
    crowd, failure = settled.get(timeout=20)
    assert crowd == AT_ONCE + 1
    assert "the lock is gone" in str(failure)
    submit("one more")
    assert settled.get(timeout=20) == (1, failure)
    assert writer.stop() is failure


def test_who_waits_for_what_another_asks_learns_at_once_that_nothing_can_be_kept(tmp_path: Path) -> None:
    """The other one may be asking for an hour."""
    request = evolve(REQUEST, messages=(Message.user("What?").to_dict(),))

    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(CALL) is None
        waiting = asyncio.ensure_future(journal.take(CALL))
        await asyncio.sleep(0)
        (tmp_path / "journal.sqlite").unlink()
        with pytest.raises(RunDirectoryError, match="is gone"):
            await journal.put(StoredCall(request.key, 0, request), {"reply": {}}, CallFacts())
        with pytest.raises(RunDirectoryError, match="is gone"):
            await asyncio.wait_for(waiting, 10)
        with pytest.raises(RunDirectoryError, match="is gone"):
            await journal.aclose()

    asyncio.run(work())
