"""Rows are found on the pages of a file by karenina's own reader as SQLite finds them, and saved from there."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import stat
import struct
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_runs.files.run_lock import marked
from karenina_runs.journal.check import check
from karenina_runs.journal.compression import DICTIONARY
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Done, JournalReader, run_number
from karenina_runs.journal.rows import APPLICATION, CALLS, META, PAGE, RESULTS, VERSION, Table, sealed
from karenina_runs.journal.salvage import Salvage, _rows, put_in_place, rows_on_pages, salvage

from karenina_core.errors import RunDirectoryError

RUN = run_number("mine")
IDS = st.sampled_from([0, 1, 127, 128, 1 << 14, (1 << 31) + 5, 1 << 55, (1 << 63) - 1, -1, -(1 << 62)]) | st.integers(
    2, 99
)
NUMBERS = st.none() | st.sampled_from([0, 1, 2, -1, 127, -128, 1 << 15, -(1 << 23), 1 << 31, -(1 << 47), 1 << 60])
REALS = st.none() | st.sampled_from([0.0, 1.0, -2.5, 1e300, 0.1, 3.0])
SIZES = st.integers(0, 200) | st.integers(PAGE - 250, PAGE + 20) | st.integers(2 * PAGE - 300, 4 * PAGE)
VALUES = {"INTEGER": NUMBERS, "REAL": REALS, "TEXT": st.none() | st.sampled_from(["", "a", "é🔑", "x" * 70, "y" * 200])}


def facts_of(table: Table) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*(VALUES[kind] for kind in table.facts.values()))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal without calls."""
    folder = tmp_path_factory.mktemp("empty")
    Journal.open(folder, run_id="mine").close()
    return folder / "journal.sqlite"


@given(st.dictionaries(IDS, st.tuples(facts_of(CALLS), SIZES), min_size=1, max_size=9), st.booleans())
def test_every_row_is_found_as_it_was_written(
    empty: Path, rows: dict[int, tuple[tuple[Any, ...], int]], in_log: bool
) -> None:
    chance = random.Random(0)
    bodies = {id_: chance.randbytes(size) for id_, (_, size) in rows.items()}
    with TemporaryDirectory() as folder:
        path = Path(shutil.copy(empty, folder))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            for id_, (facts, _) in rows.items():
                values = sealed(CALLS, id_, RUN, facts, bodies[id_])
                connection.execute(f"INSERT INTO calls VALUES ({','.join('?' * len(values))})", values)
            connection.commit()
            if not in_log:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            found = [(table.name, row) for table, row in rows_on_pages(path)]
    seen = {row.id: row for name, row in found if name == "calls"}
    assert {id_: (*row.facts.values(),) for id_, row in seen.items()} == {
        id_: facts for id_, (facts, _) in rows.items()
    }
    assert {id_: row.body for id_, row in seen.items()} == bodies
    assert all(type(value) is not int for row in seen.values() for value in (row.facts["cost_usd"], row.facts["at"]))
    assert {row.id for name, row in found if name == "meta"} >= {"run_id", "made_by"}


def put(path: Path, bodies: dict[int, bytes]) -> None:
    """Calls with these bodies, by their ids."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for id_, body in bodies.items():
            values = sealed(CALLS, id_, RUN, (None,) * len(CALLS.facts), body)
            connection.execute(f"INSERT INTO calls VALUES ({','.join('?' * len(values))})", values)


def calls_on_pages(path: Path) -> dict[Any, bytes]:
    return {row.id: row.body for table, row in rows_on_pages(path) if table is CALLS}


@pytest.mark.parametrize("pages", [1, 2, 3])
def test_records_that_just_fit_and_just_do_not_are_found(empty: Path, tmp_path: Path, pages: int) -> None:
    """Of every size around that at which a record goes on on another page."""
    path, chance = Path(shutil.copy(empty, tmp_path)), random.Random(0)
    bodies = {size: chance.randbytes(size) for size in range(pages * (PAGE - 4) - 100, pages * (PAGE - 4) + 20)}
    put(path, bodies)
    assert calls_on_pages(path) == bodies


@pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
def test_a_page_that_is_full_to_the_last_byte_gives_all_its_rows(
    empty: Path, tmp_path: Path, ids: tuple[int, int]
) -> None:
    """Of two rows, the second of every size around that at which it needs another page. Checksums differ in length."""
    chance, begins = random.Random(0), set()
    for size in [*range(1985, 2005)] * 3:
        path = Path(shutil.copy(empty, tmp_path))
        bodies = {ids[0]: chance.randbytes(2000), ids[1]: chance.randbytes(size)}
        put(path, bodies)
        assert calls_on_pages(path) == bodies
        with closing(sqlite3.connect(path)) as connection:
            ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'calls'")
        kind, rows, content = struct.unpack_from(">BxxHH", path.read_bytes(), (root - 1) * PAGE)
        begins.add(content - 8 - 2 * rows if kind == 13 else -1)
    assert {-1, 0, 1} <= begins, "some need another page, of one the rows begin where their places end"


def test_a_page_of_text_is_not_searched_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are on most pages, and what could be places of rows there is behind the end of a page."""
    looked: list[Any] = []
    monkeypatch.setattr("karenina_runs.journal.salvage._row", lambda *given: looked.append(given))
    assert list(_rows(b"text" * (PAGE // 4), ())) == looked == []


def test_of_a_file_that_was_cut_off_within_a_page_only_what_was_there_is_lost(empty: Path, tmp_path: Path) -> None:
    """The last row of a page is the first that was put there."""
    path, chance = Path(shutil.copy(empty, tmp_path)), random.Random(0)
    bodies = {id_: chance.randbytes(300) + b"!" for id_ in range(40)}
    put(path, bodies)
    size = path.stat().st_size
    os.truncate(path, size - 1)
    found = calls_on_pages(path)
    assert bodies.items() > found.items()
    assert len(found) == len(bodies) - 1
    os.truncate(path, size - PAGE)
    assert len(calls_on_pages(path)) < len(found) - 1


def test_a_record_on_very_many_pages_is_found(empty: Path, tmp_path: Path, long: bool) -> None:
    pages = 600 if long else 100
    path, bodies = Path(shutil.copy(empty, tmp_path)), {1: random.Random(0).randbytes(pages * PAGE)}
    put(path, bodies)
    assert calls_on_pages(path) == bodies


def test_a_row_whose_pages_were_given_up_in_the_log_is_found_as_the_file_has_it(empty: Path, tmp_path: Path) -> None:
    path, bodies = Path(shutil.copy(empty, tmp_path)), {1: random.Random(0).randbytes(9000)}
    put(path, bodies)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DELETE FROM calls")
        assert calls_on_pages(path) == bodies


def test_a_row_whose_pages_in_the_log_lead_nowhere_is_found_as_the_file_has_it(empty: Path, tmp_path: Path) -> None:
    """Behind a damaged page of the log, the next one has a number that no page has."""
    path, bodies = Path(shutil.copy(empty, tmp_path)), {1: random.Random(0).randbytes(9000)}
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        values = sealed(CALLS, 1, RUN, (None,) * len(CALLS.facts), bodies[1])
        connection.execute(f"INSERT INTO calls VALUES ({','.join('?' * len(values))})", values)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        log = path.with_name(f"{path.name}-wal")
        data = bytearray(log.read_bytes())
        leaves = [begin for begin in range(32 + 24, len(data), 24 + PAGE) if data[begin] not in (5, 13)]
        for begin in leaves:
            struct.pack_into(">I", data, begin, 1 << 30)
        log.write_bytes(data)
        assert leaves
        assert calls_on_pages(path) == bodies


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Of a journal with results, of which one was replaced twice; the file is closed."""
    folder = tmp_path / "run"
    folder.mkdir()

    async def work() -> None:
        journal = Journal.open(folder, run_id="mine")
        for number, task in enumerate(["a", "b", "b", "b", "c"]):
            await journal.put_result(Done(task, number, f"r{number}", "passed"), f'"{number}"')
        await journal.aclose()

    asyncio.run(work())
    return folder / "journal.sqlite"


def change(path: Path, *lines: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for line in lines:
            connection.execute(line)


def results_of(path: Path) -> dict[str, str]:
    with JournalReader.open(path) as reader:
        return {result.task: result.line for result in reader.results()}


def test_all_rows_of_a_sound_journal_are_saved(path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    found = salvage(path, tmp_path / "saved.sqlite")
    assert path.read_bytes() == before
    assert found.path == tmp_path / "saved.sqlite"
    assert (found.rows["results"], found.rows["calls"], found.last) == (3, 0, {"calls": 0, "failures": 0, "results": 5})
    assert results_of(found.path) == results_of(path) == {"a": '"0"', "b": '"3"', "c": '"4"'}
    health = check(found.path)
    assert (health.run_id, health.problems) == ("mine", ())
    assert not [each for each in tmp_path.iterdir() if each.name.endswith(".new")]
    with pytest.raises(RunDirectoryError) as caught:
        salvage(path, tmp_path / "saved.sqlite")
    assert str(caught.value) == f"{tmp_path / 'saved.sqlite'} exists; move it away first"
    with closing(sqlite3.connect(found.path)) as connection:
        assert connection.execute("SELECT id, value FROM copies").fetchall() == [("run_id", "mine")]
        indexed = "SELECT value FROM meta WHERE id IN ('results_indexed', 'calls_indexed') ORDER BY value"
        assert connection.execute(indexed).fetchall() == [("0",), ("5",)]


def test_bodies_that_need_a_dictionary_are_saved_and_those_that_are_no_json_are_not(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    line = '{"question": "which protein' + " is it" * 60 + '", "outcome": "passed", "number": %d}'

    async def work() -> None:
        for begin in (0, 400):
            journal = Journal.open(folder, run_id="mine")
            await asyncio.gather(
                *(journal.put_result(Done(f"t{n}", n, "r", "passed"), line % n) for n in range(begin, begin + 400))
            )
            await journal.aclose()

    asyncio.run(work())
    path = folder / "journal.sqlite"
    facts = ("odd", 900, "r", "passed", None, 0, 0.0)
    with closing(sqlite3.connect(path)) as connection, connection:
        values = sealed(RESULTS, 801, RUN, facts, b"\x00no JSON")
        connection.execute(f"INSERT INTO results VALUES ({','.join('?' * len(values))})", values)
    with JournalReader.open(path) as reader:
        assert any(name.startswith(DICTIONARY) for name in reader.meta)
    found = salvage(path, tmp_path / "saved.sqlite")
    assert results_of(found.path) == {f"t{n}": line % n for n in range(800)}
    with closing(sqlite3.connect(path)) as before, closing(sqlite3.connect(found.path)) as after:
        copies = [db.execute("SELECT id, value FROM copies ORDER BY id").fetchall() for db in (before, after)]
    assert copies[0] == copies[1]
    assert len(copies[0]) == 2


@pytest.mark.parametrize("log", [None, b"", b"of the damaged one"])
def test_a_saved_journal_takes_the_place_and_the_damaged_one_stays_beside_it(
    path: Path, tmp_path: Path, log: bytes | None
) -> None:
    folder, its_log = path.parent, path.with_name("journal.sqlite-wal")
    change(path, "DELETE FROM results WHERE task = 'a'")
    its_log.unlink(missing_ok=True)
    damaged = path.read_bytes()
    saved = salvage(path, folder / "saved.sqlite")
    if log is not None:
        its_log.write_bytes(log)
    path.with_name("journal.sqlite-shm").write_bytes(b"of the damaged one")
    aside = put_in_place(folder, saved)
    assert aside.name.startswith("journal-damaged-")
    assert aside.read_bytes() == damaged
    assert not path.with_name("journal.sqlite-shm").exists()
    assert not its_log.exists()
    beside = aside.with_name(f"{aside.name}-wal")
    assert (beside.read_bytes() if beside.exists() else None) == log
    assert results_of(path) == {"b": '"3"', "c": '"4"'}
    journal = Journal.open(folder)
    assert journal.notes == ()
    journal.close()


def test_how_much_was_there_is_known_after_a_replacement_also_where_the_lock_did_not_say_it(path: Path) -> None:
    change(path, "DELETE FROM results WHERE task = 'c'", "INSERT INTO results(id, task) VALUES (5, 'c')")
    saved = salvage(path, path.with_name("saved.sqlite"))
    path.with_name("run.lock").unlink()
    put_in_place(path.parent, saved)
    assert marked(path.parent)["results"] == saved.last["results"] == 5


def test_a_replacement_that_is_not_there_replaces_nothing(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(RunDirectoryError, match="cannot be replaced: No such file"):
        put_in_place(path.parent, Salvage(path=path.with_name("none.sqlite")))
    assert path.read_bytes() == before


def test_what_a_killed_process_left_of_a_saved_journal_is_cleared_away(path: Path, tmp_path: Path) -> None:
    left = tmp_path / ".saved.sqlite.new"
    salvage(path, tmp_path / "other.sqlite").path.rename(left)
    salvage(path, tmp_path / "saved.sqlite")
    assert not left.exists()
    assert check(tmp_path / "saved.sqlite").sound


def test_a_replacement_that_was_cut_short_is_continued_under_the_name_that_was_given(path: Path) -> None:
    """The process ended when the damaged one had its second name, and its log had lost the first."""
    aside = path.with_name("journal-damaged-20260101T000000000000Z.sqlite")
    os.link(path, aside)
    path.with_name("journal-damaged-other.sqlite").write_bytes(b"of an earlier time")
    path.with_name("journal.sqlite-wal").unlink(missing_ok=True)
    saved = salvage(path, path.with_name("saved.sqlite"))
    assert put_in_place(path.parent, saved) == aside
    assert len([*path.parent.glob("journal-damaged-*.sqlite")]) == 2


def test_a_journal_is_on_the_disk_before_and_after_it_gets_its_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool, bool]] = []
    fsync = os.fsync
    new, saved = tmp_path / "new" / "journal.sqlite", tmp_path / "saved.sqlite"
    new.parent.mkdir()

    def watched(handle: int) -> None:
        what = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        seen.append((what, new.exists(), saved.exists()))
        assert not new.exists() or new.read_bytes()[18:20] == b"\2\2", "a killed process leaves one with a log"
        fsync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    Journal.open(new.parent).close()
    assert ("folder", True, False) in seen
    del seen[:]
    salvage(path, saved)
    assert seen == [("file", True, False), ("folder", True, True)]
    del seen[:]
    put_in_place(path.parent, Salvage(path=saved))
    ends = [saved_is_there for what, _, saved_is_there in seen if what == "folder"]
    assert ends == [True, False], "the damaged one has its second name on the disk before the new one has the first"


def test_what_is_gone_is_written_down_and_no_longer_missing(path: Path, tmp_path: Path) -> None:
    change(path, "DELETE FROM results WHERE task = 'a'", "UPDATE results SET detail = 'x' WHERE task = 'c'")
    found = salvage(path, tmp_path / "journal-saved.sqlite")
    assert (found.rows["results"], found.last["results"]) == (1, 5)
    assert results_of(found.path) == {"b": '"3"'}
    assert check(found.path).problems == ()
    with JournalReader.open(found.path) as reader:
        assert reader.meta["results_saved"] == "5 2"
        assert {row["task"]: row.id for row in reader.rows(RESULTS)} == {"b": 4}, "rows keep their numbers"
    again = salvage(found.path, tmp_path / "again.sqlite")
    assert (again.rows["results"], again.last) == (1, {"calls": 0, "failures": 0, "results": 5})


@pytest.mark.parametrize(("given_id", "run_id"), [("mine", "mine"), (None, f"salvaged-{RUN:08x}")])
def test_a_journal_that_does_not_say_whose_it_is_gets_its_run(
    path: Path, tmp_path: Path, given_id: str | None, run_id: str
) -> None:
    change(path, "DELETE FROM meta WHERE id = 'run_id'", "DELETE FROM copies WHERE id = 'run_id'", "VACUUM")
    found = salvage(path, tmp_path / "saved.sqlite", given_id)
    health = check(found.path)
    assert (health.run_id, health.problems) == (run_id, ())
    assert results_of(found.path) == {"a": '"0"', "b": '"3"', "c": '"4"'}


@pytest.mark.parametrize("table", ["meta", "copies"])
def test_either_of_two_copies_says_whose_journal_it_is_and_both_are_there_again(
    path: Path, tmp_path: Path, table: str
) -> None:
    change(path, f"DELETE FROM {table} WHERE id = 'run_id'")
    found = salvage(path, tmp_path / "saved.sqlite")
    assert check(found.path).run_id == "mine"
    with closing(sqlite3.connect(found.path)) as connection:
        for each in ("meta", "copies"):
            assert connection.execute(f"SELECT value FROM {each} WHERE id = 'run_id'").fetchall() == [("mine",)]


def test_rows_of_another_run_are_left_out_and_of_a_task_the_last_row_stays(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        other = sealed(META, "of_others", RUN + 1, ("1",))
        connection.execute("INSERT INTO meta VALUES (?, ?, ?, ?)", other)
        earlier = sealed(RESULTS, 2, RUN, ("b", 1, "r1", "failed", None, 0, 0.0), b'"1"')
        connection.execute(f"INSERT INTO results VALUES ({','.join('?' * len(earlier))})", earlier)
    found = salvage(path, tmp_path / "saved.sqlite")
    with JournalReader.open(found.path) as reader:
        assert "of_others" not in reader.meta
        assert [(row["task"], row.id) for row in reader.rows(RESULTS)] == [("a", 1), ("b", 4), ("c", 5)]
        marks = [reader.query(f"PRAGMA {name}")[0][0] for name in ("page_size", "application_id", "user_version")]
    assert marks == [PAGE, APPLICATION, VERSION]
    assert check(found.path).problems == ()


def test_of_a_copy_elsewhere_only_its_own_rows_say_what_was_there(path: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(path, tmp_path / "copy.sqlite"))
    assert salvage(copy, tmp_path / "saved.sqlite").last == {"calls": 0, "failures": 0, "results": 5}


def test_where_nothing_can_be_read_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(bytes(3 * PAGE))
    with pytest.raises(RunDirectoryError, match=r"nothing in .* can be read"):
        salvage(tmp_path / "journal.sqlite", tmp_path / "saved.sqlite")
    with pytest.raises(RunDirectoryError, match="cannot be written"):
        salvage(tmp_path / "journal.sqlite", tmp_path / "no-folder" / "saved.sqlite")
    assert [each.name for each in tmp_path.iterdir()] == ["journal.sqlite"]
