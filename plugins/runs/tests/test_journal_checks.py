"""What a check of a journal says about files that are not what was written."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.files.run_lock import RunLock
from karenina_runs.journal.check import check, scanned
from karenina_runs.journal.connection import opened
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, JournalReader, run_number
from karenina_runs.journal.rows import APPLICATION, CALLS, FAILURES, META, PAGE, TABLES, VERSION, sealed
from karenina_runs.journal.wal import Frame, frames, log_damage

from karenina_core import __version__
from karenina_core.errors import ConfigError, RunDirectoryError
from karenina_core.values.message import Message

MODEL: dict[str, Any] = {"interface": "scripted", "model_name": "m", "provider": None, "tools": [], "config_id": None}


def asked(text: str) -> StoredCall:
    request = Request("llm", MODEL, "generation", 1, (Message.user(text).to_dict(),))
    return StoredCall(request.key, 0, request)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a journal with a few calls, closed as it should be."""

    async def work() -> None:
        journal = Journal.open(tmp_path, run_id="mine")
        for text in "abc":
            await journal.put(asked(text), {"reply": {"content": text}}, CallFacts())
        await journal.aclose()

    asyncio.run(work())
    return tmp_path / "journal.sqlite"


def changed(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("place", [*range(18, 24), *range(44, 48), *range(72, 92)])
def test_every_byte_of_the_header_that_never_changes_is_looked_at(path: Path, place: int) -> None:
    assert check(path).sound
    changed(path, place)
    assert not check(path).sound


def test_all_that_a_check_found_is_in_its_document(path: Path) -> None:
    sound = check(path)
    assert (sound.run_id, sound.rows["calls"], sound.problems) == ("mine", 3, ())
    with closing(sqlite3.connect(path)) as connection, connection:
        tables = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES}
        assert sound.rows == tables
        connection.execute("UPDATE calls SET body = substr(body, 2) WHERE id = 2")
    harmed = check(path)
    assert not harmed.sound
    for health in (sound, harmed):
        assert health.to_dict() == {
            "journal": str(path),
            "run_id": "mine",
            "sound": health is sound,
            "rows": health.rows,
            "problems": list(health.problems),
        }


@pytest.mark.parametrize("left", ["run.lock", "journal.sqlite-wal"])
def test_a_journal_that_left_something_behind_is_gone(path: Path, left: str) -> None:
    (path.parent / "journal.sqlite-wal").write_bytes(b"")
    for each in path.parent.iterdir():
        if each.name != left:
            each.unlink()
    with pytest.raises(ConfigError, match="is gone, and what was paid for was in it"):
        check(path.parent)
    with pytest.raises(ConfigError, match="there is no journal"):
        check(path.with_name("other.sqlite"))
    (path.parent / left).unlink()
    with pytest.raises(ConfigError, match="there is no journal"):
        check(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not a database " * 1000, "DatabaseError: file is not a database"),
        (b"", "{path} is not a journal of karenina; name a run directory"),
    ],
)
def test_a_check_says_what_sqlite_says_of_it_or_what_to_do(path: Path, content: bytes, problem: str) -> None:
    path.write_bytes(content)
    assert check(path).problems == (problem.format(path=path),)


def test_a_body_that_is_no_json_is_a_row_that_cannot_be_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        values = sealed(FAILURES, 1, run_number("mine"), (None,) * len(FAILURES.facts), b"\x00no JSON")
        connection.execute(f"INSERT INTO failures VALUES ({','.join('?' * len(values))})", values)
    health = check(path)
    assert health.problems == ("1 row of the table failures cannot be read: not JSON",)
    assert (health.rows["failures"], health.rows["calls"]) == (0, 3)
    with JournalReader.open(path) as reader:
        read = [scanned(reader, FAILURES), scanned(reader, FAILURES, bodies=True)]
    assert [(found.rows, found.unreadable) for found in read] == [(1, 0), (0, 1)], "bodies are read where asked for"


def test_a_row_that_is_read_twice_is_counted_once(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'x' WHERE id = 'made_by'")
    assert check(path).problems == ("1 row of the table meta is not what was written",)


def test_a_table_that_is_read_again_has_as_many_damaged_rows_as_before(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE calls SET task = 'other' WHERE id IN (1, 3)")
    with JournalReader.open(path) as reader:
        assert [scanned(reader, CALLS).damaged for _ in range(3)] == [2, 2, 2]


@pytest.mark.parametrize("id_", [1, 2, 3])
def test_a_place_that_is_gone_is_noticed_and_put_back(path: Path, id_: int) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM call_places WHERE id = ?", (id_,))
    assert check(path).problems == ("1 row of the table calls cannot be found by their keys",)
    Journal.open(path.parent).close()
    assert check(path).sound


def test_a_row_is_taken_for_what_it_says_itself_wherever_it_is_looked_for(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE call_places SET prefix = (SELECT prefix FROM call_places WHERE id = 1)")
    with JournalReader.open(path) as reader:
        found = reader.call(asked("a").key, 0)
        assert found is not None
        assert found.id == 1
        assert reader.call(asked("a").key, 1) is None


def test_a_journal_that_does_not_know_where_rows_are_is_damaged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE call_places")
    with JournalReader.open(path) as reader, pytest.raises(RunDirectoryError, match="is damaged"):
        reader.call(asked("a").key, 0)


def test_what_is_known_to_have_been_written_is_missing_in_the_journal_itself_and_in_no_copy(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM calls WHERE id = 3")
        connection.execute("DELETE FROM call_places WHERE id = 3")
    copy = Path(shutil.copy(path, path.with_name("copy.sqlite")))
    assert check(path).problems == ("1 row of the table calls cannot be found",)
    assert check(copy).problems == ()


@pytest.mark.parametrize("name", ["calls_indexed", "calls_saved"])
def test_what_a_journal_says_of_itself_that_is_no_number_is_a_problem(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE id = ?", (name,))
        connection.execute("INSERT INTO meta VALUES (?, ?, ?, ?)", sealed(META, name, run_number("mine"), ("some 1",)))
    assert any("some" in problem for problem in check(path).problems)


def test_a_journal_of_very_many_transactions_is_sound(path: Path) -> None:
    """SQLite counts them in four bytes at two places of the header."""
    for place in (24, 92):
        changed(path, place)
    assert check(path).sound


# What is found when it is opened


@pytest.mark.parametrize("left", ["run.lock", "journal.sqlite-wal"])
def test_no_new_journal_is_begun_where_one_was(path: Path, left: str) -> None:
    (path.parent / "journal.sqlite-wal").write_bytes(b"a log")
    for each in path.parent.iterdir():
        if each.name != left:
            each.unlink()
    with pytest.raises(RunDirectoryError, match=" gone"):
        Journal.open(path.parent)
    assert not path.exists()


def test_a_new_journal_says_who_made_it_and_when(tmp_path: Path) -> None:
    before = time.time()
    Journal.open(tmp_path, run_id="mine").close()
    with JournalReader.open(tmp_path) as reader:
        meta = reader.meta
        found = [reader.query(f"PRAGMA {name}")[0][0] for name in ("page_size", "application_id", "user_version")]
    assert (meta["run_id"], meta["made_by"]) == ("mine", f"karenina-core {__version__}")
    assert before - 0.001 <= float(meta["made_at"]) <= time.time() + 0.001
    assert found == [PAGE, APPLICATION, VERSION]
    assert (tmp_path / "journal.sqlite").read_bytes()[18:20] == b"\2\2", "of a database with a write-ahead log"


def test_what_a_killed_process_left_of_a_new_journal_is_cleared_away(tmp_path: Path) -> None:
    left = [f".journal.sqlite.new{ending}" for ending in ("", "-wal", "-journal", "-shm")]
    for name in left:
        (tmp_path / name).write_bytes(b"something else")
    (tmp_path / "journal.sqlite-wal").write_bytes(b"")
    Journal.open(tmp_path).close()
    assert not [name for name in left if (tmp_path / name).exists()]
    assert check(tmp_path).sound


def test_a_row_that_is_gone_is_never_taken_for_one_that_was_not_written(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM calls WHERE id = 2")
    before = path.read_bytes()
    with pytest.raises(RunDirectoryError, match="1 row of the table calls cannot be found") as caught:
        Journal.open(path.parent)
    assert str(caught.value).startswith(f"{path} is damaged"), "it says so itself"
    assert path.read_bytes() == before
    assert check(path).problems


def test_a_row_that_cannot_be_read_counts_as_missing_and_is_reported(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE calls SET task = 'other' WHERE id IN (1, 3)")
    journal = Journal.open(path.parent)
    (note,) = journal.notes
    assert note == (
        f"2 rows of the table calls in {path} cannot be read and count as missing: see karenina doctor {path.parent}"
    )
    assert journal.last_call == 3
    assert journal.ledger.total.calls == 1
    journal.close()


def test_a_database_that_is_not_sound_is_not_opened(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size - PAGE)
        file.write(bytes(PAGE))
    before = path.read_bytes()
    with pytest.raises(RunDirectoryError, match="karenina doctor"):
        Journal.open(path.parent)
    assert path.read_bytes() == before


@pytest.fixture
def killed(path: Path, tmp_path: Path) -> Path:
    """The folder of a journal whose process ended without closing it, after two more calls."""
    folder = tmp_path / "killed"
    folder.mkdir()

    async def work() -> None:
        journal = Journal.open(path.parent)
        for text in "de":
            await journal.put(asked(text), {"reply": {"content": text}}, CallFacts())
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copy(path.with_name(name), folder / name)
        await journal.aclose()

    asyncio.run(work())
    return folder


def test_replies_of_a_process_that_was_killed_are_found_by_what_was_asked(killed: Path) -> None:
    async def work() -> None:
        journal = Journal.open(killed)
        for text in "abcde":
            found = await journal.take(asked(text))
            assert found is not None
            assert found.outcome == {"reply": {"content": text}}
        await journal.aclose()

    asyncio.run(work())
    assert check(killed).sound


def test_a_closed_journal_is_read_without_a_lock_also_by_the_process_that_has_the_folder(path: Path) -> None:
    with RunLock(path.parent) as lock:
        for journal_is_open in (False, True, False):
            journal = Journal.open(path.parent, lock=lock) if journal_is_open else None
            connection, close, alone = opened(path)
            assert connection.execute("SELECT count(*) FROM calls").fetchone() == (3,)
            close()
            assert (alone is None) is journal_is_open
            if journal is not None:
                journal.close()


@pytest.mark.parametrize("is_gone", [False, True])
def test_where_sqlite_cannot_write_what_it_needs_beside_a_log_a_copy_is_read_and_removed(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    (killed / "journal.sqlite-shm").symlink_to(tmp_path / "no folder" / "here")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with JournalReader.open(killed) as reader:
        assert [reader.call(asked(text).key, 0) is not None for text in "abcdef"] == [True] * 5 + [False]
        assert len([*temporary.iterdir()]) == 1
    assert not [*temporary.iterdir()]
    connection, close, alone = opened(killed / "journal.sqlite")
    assert alone is None
    if is_gone:
        shutil.rmtree(temporary)
    close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_rows_in_the_file_itself_are_found_before_anything_says_where_they_are(path: Path, tmp_path: Path) -> None:
    """A batch was committed last, and the process was killed."""
    copy = tmp_path / "copy" / "journal.sqlite"
    copy.parent.mkdir()

    async def work() -> None:
        journal = Journal.open(path.parent)
        await journal.put(asked("d"), {"reply": {"content": "d"}}, CallFacts())
        await journal.put_batch(Batch(id="b", model="m", provider_id="p", status="sent"))
        shutil.copy(path, copy)
        await journal.aclose()

    asyncio.run(work())
    with JournalReader.open(copy) as reader:
        assert [reader.call(asked(text).key, 0) is not None for text in "ade"] == [True, True, False]


def test_a_journal_whose_log_is_damaged_is_not_opened(killed: Path) -> None:
    log = killed / "journal.sqlite-wal"
    changed(log, 0)
    before = log.read_bytes()
    with pytest.raises(RunDirectoryError, match="the beginning of its write-ahead log is not what was written"):
        Journal.open(killed)
    assert log.read_bytes() == before


def test_a_journal_whose_log_cannot_be_emptied_is_not_opened_and_stays_open_nowhere(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(connection: sqlite3.Connection) -> None:
        refusing.append(connection)
        raise sqlite3.OperationalError("disk I/O error")

    refusing: list[sqlite3.Connection] = []
    monkeypatch.setattr("karenina_runs.journal.check._empty_log", refused)
    with pytest.raises(RunDirectoryError, match="disk I/O error"):
        Journal.open(path.parent)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        refusing[0].execute("SELECT 1")


def test_a_journal_that_cannot_be_read_at_last_stays_open_nowhere(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing: list[sqlite3.Connection] = []
    monkeypatch.setattr("karenina_runs.journal.check._empty_log", writing.append)
    reading, read = JournalReader.open, []

    def once(place: Path) -> JournalReader:
        read.append(place)
        if len(read) > 1:
            raise RunDirectoryError("it is gone")
        return reading(place)

    monkeypatch.setattr(JournalReader, "open", once)
    with pytest.raises(RunDirectoryError, match=r"^it is gone$"):
        Journal.open(path.parent)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        writing[0].execute("SELECT 1")


def test_what_a_crash_left_in_the_log_is_empty_when_it_is_opened(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with connection:
            for task in ("other", "generation"):  # SQLite writes nothing where nothing changes
                connection.execute("UPDATE calls SET task = ?", (task,))
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copy(path.with_name(name), path.with_name(f"killed-{name}"))
    for name in ("journal.sqlite", "journal.sqlite-wal"):
        path.with_name(f"killed-{name}").replace(path.with_name(name))
    log = path.with_name("journal.sqlite-wal")
    assert log.stat().st_size > 0
    journal = Journal.open(path.parent)
    assert log.stat().st_size == 0
    assert journal.notes == ()
    journal.close()


# The write-ahead log, as SQLite writes it: a header of 32 bytes, then frames of 24 bytes and a page

SIZE = 512
WHOLE = 24 + SIZE


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    """A database whose log has three transactions, and the log."""
    path = tmp_path / "log" / "journal.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for line in (f"PRAGMA page_size={SIZE}", "PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0"):
            connection.execute(line)
        connection.execute("CREATE TABLE t(x)")
        for _ in range(2):
            connection.execute("INSERT INTO t VALUES (zeroblob(1500))")
        yield connection, path.with_name("journal.sqlite-wal")


def test_a_log_as_it_was_written_is_sound(written: tuple[sqlite3.Connection, Path]) -> None:
    log = written[1]
    found = list(frames(log.read_bytes()))
    assert all(frame.sound and len(frame.data) == SIZE for frame in found)
    assert [frame.commits for frame in found].count(True) == 3
    assert found[-1].commits
    assert {frame.page for frame in found} == set(range(1, max(frame.page for frame in found) + 1))
    assert log_damage(log.with_name("journal.sqlite")) is None


@pytest.mark.parametrize("place", [0, 4, 8, 15, 16, 23, 24, WHOLE - 1])
def test_a_changed_byte_of_a_frame_is_noticed_there(written: tuple[sqlite3.Connection, Path], place: int) -> None:
    log = written[1]
    before = list(frames(log.read_bytes()))
    changed(log, 32 + WHOLE + place)
    found = list(frames(log.read_bytes()))
    follows = place in (16, 23)  # the checksum, which the next one goes on from
    assert [number for number, frame in enumerate(found) if not frame.sound] == [1, 2][: 1 + follows]
    assert [frame for frame in found if frame.sound] == before[:1] + before[2 + follows :]
    if place in (8, 15):  # the salts: it seems to be of another round
        assert found[1] == Frame(0, False, False, b"")
    elif place >= 16:
        assert found[1][:2] == before[1][:2]
        assert (found[1].data == before[1].data) == (place < 24)
    damage = log_damage(log.with_name("journal.sqlite"))
    assert damage == "frame 1 of its write-ahead log is not what was written, and other transactions follow its own"
    assert damage in check(log.with_name("journal.sqlite")).problems


def test_of_the_last_transaction_a_crash_explains_what_is_missing(written: tuple[sqlite3.Connection, Path]) -> None:
    log = written[1]
    data = log.read_bytes()
    *_, last = (number for number, frame in enumerate(list(frames(data))[:-1]) if frame.commits)
    changed(log, 32 + (last + 1) * WHOLE + 100)
    assert log_damage(log.with_name("journal.sqlite")) is None
    log.write_bytes(data[:-1])
    assert len(list(frames(log.read_bytes()))) == len(list(frames(data))) - 1
    assert log_damage(log.with_name("journal.sqlite")) is None


def test_frames_of_the_round_before_say_nothing(written: tuple[sqlite3.Connection, Path]) -> None:
    connection, log = written
    before = len(list(frames(log.read_bytes())))
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    connection.execute("INSERT INTO t VALUES (1)")
    found = list(frames(log.read_bytes()))
    assert len(found) == before
    new = [frame.sound for frame in found].index(False)
    assert 0 < new < before
    assert all(frame.sound for frame in found[:new])
    assert set(found[new:]) == {Frame(0, False, False, b"")}
    assert log_damage(log.with_name("journal.sqlite")) is None


@pytest.mark.parametrize("place", [0, 3, 8, 9, 16, 23, 24, 31])
def test_a_changed_header_of_a_log_is_noticed(written: tuple[sqlite3.Connection, Path], place: int) -> None:
    log = written[1]
    changed(log, place)
    assert list(frames(log.read_bytes())) == []
    assert log_damage(log.with_name("journal.sqlite")) == "the beginning of its write-ahead log is not what was written"
    log.write_bytes(log.read_bytes()[:32])
    assert log_damage(log.with_name("journal.sqlite")) is None, "nothing was in it"


def test_a_transaction_that_leaves_one_page_is_a_whole_one(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA user_version = 5")
        found = list(frames((tmp_path / "one.sqlite-wal").read_bytes()))
    assert [(frame.page, frame.commits, frame.sound) for frame in found] == [(1, True, True)]


def summed(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """The checksum that https://sqlite.org/fileformat2.html#checksum_algorithm defines."""
    first, second = before
    for one, two in struct.iter_unpack(f"{order}2I", data):
        first = (first + one + second) % 2**32
        second = (second + two + first) % 2**32
    return first, second


@pytest.mark.parametrize(
    ("magic", "size", "read"),
    [
        (0x377F0682, 512, True),
        (0x377F0683, 512, True),  # of a machine with the other order of bytes
        (0x377F0682, 65536, True),
        (0x377F0680, 512, False),
        (0x377F0682, 256, False),
        (0x377F0682, 768, False),
        (0x377F0682, 0, False),
    ],
)
def test_logs_of_other_machines_are_read_and_other_files_are_not(magic: int, size: int, read: bool) -> None:
    order = ">" if magic & 1 else "<"
    begin = struct.pack(">6I", magic, 3007000, size, 0, 7, 8)
    start = summed(begin, (0, 0), order)
    pair, page = struct.pack(">2I", 3, 4), bytes(range(256)) * (size // 256)
    frame = pair + struct.pack(">4I", 7, 8, *summed(pair + page, start, order)) + page
    found = list(frames(begin + struct.pack(">2I", *start) + frame))
    assert found == ([Frame(3, True, True, page)] if read else [])


def test_without_a_log_nothing_is_wrong_with_it(written: tuple[sqlite3.Connection, Path], tmp_path: Path) -> None:
    shutil.copy(written[1].with_name("journal.sqlite"), tmp_path / "journal.sqlite")
    assert log_damage(tmp_path / "journal.sqlite") is None
    assert list(frames(b"")) == list(frames(b"short")) == []
