"""A journal that something else has changed: it is noticed, nothing is lost in silence, and the rest can be saved."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import random
import shutil
import signal
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.files.run_lock import marked
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, JournalReader
from karenina_runs.journal.rows import PAGE, RESULTS, sealed
from karenina_runs.journal.salvage import put_in_place, salvage
from karenina_runs.journal.wal import frames, log_damage, log_of

from karenina_core.errors import ConfigError, RunDirectoryError

SPEC = importlib.util.spec_from_file_location("journal_world_damage", Path(__file__).with_name("journal_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader
INVARIANTS = importlib.util.spec_from_file_location("invariants_damage", Path(__file__).with_name("invariants.py"))
assert INVARIANTS is not None
invariants: Any = importlib.util.module_from_spec(INVARIANTS)
INVARIANTS.loader.exec_module(invariants)  # type: ignore[union-attr] # as above
FLIPS = 16
"""Files with one flipped bit in the short form; 3,000 in the long one."""
Contents = tuple[dict[str, Any], dict[str, Any]]


def contents(path: Path) -> Contents:
    with JournalReader.open(path) as reader:
        found: Contents = world.contents(reader)
        return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished journal of 20 items."""
    path: Path = world.filled(tmp_path_factory.mktemp("whole") / "run", 20)
    return path


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose process was killed: a part of it is in the log. It was not killed right after a commit, when
    that is in the log but not acknowledged: a loss of that could not be told from a crash, and would cost nothing."""
    for _ in range(20):
        folder = tmp_path_factory.mktemp("killed") / "run"
        world.filled(folder, 10)
        ended = world.child(lambda tell, folder=folder: asyncio.run(world.run(folder, 10_000, 4, tell)), 0.25)
        assert ended.code == -9
        with JournalReader.open(folder) as reader:
            last = {name: reader.query(f"SELECT max(id) FROM {name}")[0][0] or 0 for name in marked(folder)}
        log = folder / "journal.sqlite-wal"  # none where the process was killed before its first commit
        if last == marked(folder) and log.exists() and log.stat().st_size > 50_000:
            return folder / "journal.sqlite"
    raise AssertionError("it was always killed right after a commit")


def copied(path: Path, to: Path) -> Path:
    shutil.copytree(path.parent, to)
    (to / "journal.sqlite-shm").unlink(missing_ok=True)
    return to / path.name


def flipped(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def is_told_or_harmless(path: Path, before: Contents) -> bool:
    """Whether the damage is told. If it is not, there is none: everything reads as before."""
    if not check(path).sound:
        return True
    assert contents(path) == before, "what was lost or changed was not told"
    return False


def opens_or_says_what_to_do(path: Path, before: Contents) -> None:
    try:
        journal = Journal.open(path.parent)
    except RunDirectoryError as error:
        if not any(advice in str(error) for advice in ("karenina doctor", "name a run directory", "update it")):
            raise
        return
    with JournalReader.open(path) as reader:
        calls, results = world.contents(reader)
    lost = len(before[0]) - len(calls) + len(before[1]) - len(results)
    assert bool(lost) <= bool(journal.notes), "rows that are gone are told"
    assert bool(journal.notes) <= (not check(path).sound)
    assert calls.items() <= before[0].items()
    assert results.items() <= before[1].items()
    journal.close()


def test_flipped_bits_are_noticed_and_cost_one_row_at_most(whole: Path, tmp_path: Path, long: bool) -> None:
    seed = random.randrange(1 << 30) if long else 0
    print("seed", seed)
    chance, before = random.Random(seed), contents(whole)
    size, told, flips = whole.stat().st_size, 0, 3000 if long else FLIPS
    for number in range(flips):
        path = copied(whole, tmp_path / str(number))
        flipped(path, chance.randrange(size * 8))
        if is_told_or_harmless(path, before):
            told += 1
            saved = salvage(path, path.with_name("saved.sqlite"))
            calls, results = contents(saved.path)
            assert calls.items() <= before[0].items()
            assert results.items() <= before[1].items()
            assert len(before[0]) - len(calls) + len(before[1]) - len(results) <= 1
            assert check(saved.path).problems == ()
            invariants.assert_journal(saved.path)
        if number % 5 == 0:
            opens_or_says_what_to_do(path, before)
        shutil.rmtree(path.parent)
    assert told > flips // 3  # of a small file, much is empty


def test_all_that_a_check_found_is_in_its_document(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "harmed")
    flipped(path, path.read_bytes().index(b"q1r1") * 8)
    for health in (check(whole), check(path)):
        document = health.to_dict()
        assert document == {
            "journal": str(health.path),
            "run_id": health.run_id,
            "sound": not health.problems,
            "rows": health.rows,
            "problems": [*health.problems],
        }
    assert document["problems"]
    assert document["run_id"]
    assert sum(document["rows"].values()) == sum(check(whole).rows.values()) - 1


def test_flipped_bits_in_what_rows_say_are_noticed(whole: Path, tmp_path: Path) -> None:
    """Where the bytes are known to be live: in the rows themselves."""
    data, before = whole.read_bytes(), contents(whole)
    chance = random.Random(4)
    live = [data.index(body) + chance.randrange(len(body)) for body in list(before[0].values())[:25]]
    live += [data.index(f"q{item}r{item}".encode()) for item in range(9)]
    told = 0
    for number, place in enumerate(live):
        path = copied(whole, tmp_path / str(number))
        flipped(path, place * 8 + chance.randrange(8))
        told += is_told_or_harmless(path, before)
    assert told == len(live)


def test_tables_whose_definitions_are_no_text_any_more_are_told(whole: Path, tmp_path: Path, long: bool) -> None:
    data, before = whole.read_bytes(), contents(whole)
    for number, place in enumerate(range(0, 30, 2 if long else 14)):
        path = copied(whole, tmp_path / str(number))
        flipped(path, (data.index(b"CREATE TABLE") + place) * 8 + 7)
        assert not check(path).sound
        with pytest.raises(RunDirectoryError, match="karenina doctor"):
            Journal.open(path.parent)
        assert contents(salvage(path, path.with_name("saved.sqlite")).path) == before


def test_flipped_bits_in_the_log_are_noticed(killed: Path, tmp_path: Path, long: bool) -> None:
    seed = random.randrange(1 << 30) if long else 0
    print("seed", seed)
    chance, before = random.Random(seed), contents(copied(killed, tmp_path / "before"))
    for number in range(600 if long else FLIPS):
        path = copied(killed, tmp_path / str(number))
        log = path.with_name("journal.sqlite-wal")
        flipped(log, chance.randrange(log.stat().st_size * 8))
        is_told_or_harmless(path, before)
        if number % 5 == 0:
            opens_or_says_what_to_do(path, before)
        shutil.rmtree(path.parent)


def test_flipped_bits_in_what_others_followed_are_told_by_the_log_alone(
    killed: Path, tmp_path: Path, long: bool
) -> None:
    """Also where the file is gone that says how much the journal held."""
    chance = random.Random(5)
    before = list(frames(log_of(killed).read_bytes()))
    ends = [number for number, frame in enumerate(before) if frame.sound and frame.commits]
    last = 32 + (24 + PAGE) * ends[-3]
    for number in range(60 if long else FLIPS):
        path = copied(killed, tmp_path / str(number))
        (path.parent / "run.lock").unlink()
        place = chance.randrange(last)
        if number % 3 == 0:  # what stands before a page
            place = 32 + (24 + PAGE) * chance.randrange(ends[-3]) + chance.randrange(24)
        flipped(log_of(path), place * 8 + chance.randrange(8))
        assert [problem for problem in check(path).problems if "write-ahead log" in problem], place
        shutil.rmtree(path.parent)


def test_where_in_a_log_damage_is_told_by_the_log_alone(killed: Path, tmp_path: Path) -> None:
    """As the docstring of `journal_log` says it, for the last transactions of a log."""
    path = copied(killed, tmp_path / "run")
    data = log_of(path).read_bytes()
    ends = [number for number, frame in enumerate(frames(data)) if frame.sound and frame.commits][-5:]
    for number in range(ends[0] + 1, ends[-1] + 1):
        own = next(place for place, end in enumerate(ends) if number <= end)
        for place, of_checksum in ((24 + 2000, False), (5, False), (9, False), (18, True)):
            changed = bytearray(data)
            changed[32 + (24 + PAGE) * number + place] ^= 4
            log_of(path).write_bytes(changed)
            unsound = {number, number + 1} if of_checksum else {number}
            of_last = {1: True, 2: ends[3] in unsound, 3: {ends[2], ends[3]} <= unsound}
            expected = not of_last.get(len(ends) - own, False)
            assert (log_damage(path) is not None) == expected, (number, place, ends)


def test_a_journal_that_is_not_opened_is_left_as_it_is(killed: Path, tmp_path: Path) -> None:
    """Closing what was opened to write would empty the log, and with it what can still be saved."""
    ends = [number for number, frame in enumerate(frames(log_of(killed).read_bytes())) if frame.sound and frame.commits]
    refused = 0
    for run_id, number in (("the run", ends[-2] + 1), ("the run", ends[-3] + 1), ("another run", None)):
        path = copied(killed, tmp_path / str(number))
        if number is not None:
            flipped(log_of(path), 8 * (32 + (24 + PAGE) * number + 24 + 2000))
        before = [file.read_bytes() for file in (path, log_of(path))]
        at_once = salvage(path, path.with_name("at once.sqlite"))
        for _ in range(2):
            with pytest.raises(RunDirectoryError, match=r"karenina doctor|not to the run"):
                Journal.open(path.parent, run_id=run_id)
            refused += 1
        assert [file.read_bytes() for file in (path, log_of(path))] == before
        assert salvage(path, path.with_name("afterwards.sqlite")).rows == at_once.rows
    assert refused == 6


def test_a_batch_that_is_at_the_provider_is_not_lost_with_the_end_of_the_log(tmp_path: Path, long: bool) -> None:
    """Nothing has to follow it: it is no longer in the log when it is acknowledged."""
    sent = Batch(
        id="karenina-000001-20-x", model="m", provider_id="batch_1", status="sent", keys=(("k" * 64, 0),) * 200
    )
    folder = world.filled(tmp_path / "run", 10).parent

    async def send(tell: Any) -> None:
        journal = Journal.open(folder, run_id="the run")
        await asyncio.gather(*(world.one_item(journal, item) for item in range(10, 14)))
        await asyncio.gather(journal.put_batch(sent), world.one_item(journal, 14))
        tell("sent")
        await journal.put(world.call(15), world.outcome(15), world.FACTS)
        os.kill(os.getpid(), signal.SIGKILL)

    ended = world.child(lambda tell: asyncio.run(send(tell)))
    assert (ended.code, ended.said) == (-9, ["sent"])
    size, chance = log_of(folder / "journal.sqlite").stat().st_size, random.Random(3)
    for number in range(30 if long else 8):
        path = copied(folder / "journal.sqlite", tmp_path / str(number))
        if number % 2:
            flipped(log_of(path), chance.randrange(size * 8))
        else:
            os.truncate(log_of(path), chance.randrange(size))
        try:
            Journal.open(path.parent, run_id="the run").close()
        except RunDirectoryError:
            path = salvage(path, path.with_name("saved.sqlite")).path
        with JournalReader.open(path) as reader:
            assert reader.batches() == [sent]


def test_a_damaged_log_gives_back_what_stands_behind_the_damage(killed: Path, tmp_path: Path) -> None:
    before = contents(copied(killed, tmp_path / "before"))
    path = copied(killed, tmp_path / "run")
    flipped(path.with_name("journal.sqlite-wal"), 8 * (32 + 24 + 3000))
    assert "write-ahead log" in check(path).problems[0]
    with pytest.raises(RunDirectoryError, match="karenina doctor"):
        Journal.open(path.parent)
    calls, results = contents(salvage(path, path.with_name("saved.sqlite")).path)
    assert len(before[0]) - len(calls) + len(before[1]) - len(results) <= 1
    assert len(calls) > 20


@pytest.mark.parametrize("page", [0, 1, 2, 3, 5, 8, 11])
def test_a_page_of_zeros_costs_what_was_on_it(whole: Path, tmp_path: Path, page: int) -> None:
    before = contents(whole)
    path = copied(whole, tmp_path / "run")
    data = bytearray(path.read_bytes())
    assert len(data) > 12 * PAGE
    there = data[page * PAGE : (page + 1) * PAGE]
    with JournalReader.open(whole) as reader:
        bodies = [*before[0].values(), *(row.body for row in reader.rows(RESULTS))]
    data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(data)
    assert not check(path).sound
    opens_or_says_what_to_do(path, before)
    saved = salvage(path, path.with_name("saved.sqlite"), "the run")
    calls, results = contents(saved.path)
    assert len(before[0]) - len(calls) + len(before[1]) - len(results) == sum(there.count(body) for body in bodies)
    put_in_place(path.parent, saved)
    journal = Journal.open(path.parent, run_id="the run")
    assert (journal.notes, journal.ledger.total.calls) == ((), len(calls))
    journal.close()
    assert check(path).problems == ()


def test_a_shorter_file_is_noticed(whole: Path, killed: Path, tmp_path: Path, long: bool) -> None:
    chance = random.Random(7)
    for number in range(30 if long else 12):
        origin, name = (whole, "journal.sqlite") if number % 2 else (killed, "journal.sqlite-wal")
        path = copied(origin, tmp_path / str(number))
        before = contents(copied(origin, tmp_path / f"{number} before"))
        file = path.with_name(name)
        with file.open("r+b") as opened:
            opened.truncate(chance.randrange(file.stat().st_size))
        is_told_or_harmless(path, before)
        opens_or_says_what_to_do(path, before)


def test_the_log_of_another_run_is_noticed(killed: Path, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    ended = world.child(lambda tell: asyncio.run(other_run(folder)), 0.3)
    assert ended.code == -9
    path = copied(killed, tmp_path / "run")
    shutil.copyfile(folder / "journal.sqlite-wal", path.with_name("journal.sqlite-wal"))
    assert not check(path).sound or check(path).run_id == "another run"
    with pytest.raises(RunDirectoryError):
        Journal.open(path.parent, run_id="the run")


async def other_run(folder: Path) -> None:
    journal = Journal.open(folder, run_id="another run")
    for item in range(100_000):
        await world.one_item(journal, item)


def test_rows_that_cannot_be_read_are_told_and_asked_again(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "run")
    body = contents(whole)[0][(world.call(3).key, 0)]
    flipped(path, (path.read_bytes().index(body) + 9) * 8)

    async def again() -> None:
        journal = Journal.open(path.parent)
        assert [note.split(":")[0] for note in journal.notes] == [
            f"1 row of the table calls in {path} cannot be read and count as missing"
        ]
        assert await journal.take(world.call(3)) is None
        await journal.put(world.call(3), world.outcome(3), world.FACTS)
        assert await journal.take(world.call(3)) is not None
        assert (await journal.take(world.call(4))) is not None
        await journal.aclose()

    asyncio.run(again())


def test_a_check_reads_what_rows_say(whole: Path, tmp_path: Path) -> None:
    """A row that is as it was written, and is no JSON."""
    path = copied(whole, tmp_path / "run")
    with JournalReader.open(path) as reader:
        row = next(iter(reader.rows(RESULTS)))
    values = sealed(RESULTS, row.id, row.run, tuple(row.facts.values()), b"{no JSON")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"REPLACE INTO results VALUES ({','.join('?' * len(values))})", values)
    assert check(path).problems == ("1 row of the table results cannot be read: not JSON",)


def test_a_log_without_its_file_is_not_taken_for_nothing(killed: Path, tmp_path: Path) -> None:
    path = copied(killed, tmp_path / "run")
    path.unlink()
    before = path.with_name("journal.sqlite-wal").read_bytes()
    with pytest.raises(RunDirectoryError, match="the file itself is gone"):
        Journal.open(path.parent)
    assert path.with_name("journal.sqlite-wal").read_bytes() == before


def test_something_else_is_no_journal(tmp_path: Path) -> None:
    import sqlite3

    for content in (b"", b"not a database " * 1000):
        (tmp_path / "journal.sqlite").write_bytes(content)
        assert not check(tmp_path).sound
        with pytest.raises(RunDirectoryError):
            Journal.open(tmp_path)
    (tmp_path / "journal.sqlite").unlink()
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("CREATE TABLE calls(a)")
    connection.close()
    before = (tmp_path / "journal.sqlite").read_bytes()
    with pytest.raises(RunDirectoryError, match="not a journal of karenina"):
        Journal.open(tmp_path)
    assert (tmp_path / "journal.sqlite").read_bytes() == before
    with pytest.raises(ConfigError, match="there is no journal"):
        check(tmp_path / "nothing")


def test_a_record_that_cannot_be_one_is_passed_over(whole: Path, tmp_path: Path) -> None:
    """Its header says that its values are of types which there are not."""
    path = copied(whole, tmp_path / "run")
    data = bytearray(path.read_bytes())
    leaves = [page for page in range(1, len(data) // PAGE) if data[page * PAGE] == 0x0D and data[page * PAGE + 4]]
    for page in leaves:
        (pointer,) = struct.unpack_from(">H", data, page * PAGE + 8)
        columns = 4  # as the table meta has
        cell = bytes([100, 1, 9 * columns + 1]) + b"\xff" * 9 * columns
        data[page * PAGE + pointer : page * PAGE + pointer + len(cell)] = cell
    path.write_bytes(data)
    assert not check(path).sound
    saved = salvage(path, path.with_name("saved.sqlite"), "the run")
    calls, results = contents(saved.path)
    before = contents(whole)
    assert calls.items() <= before[0].items()
    assert results.items() <= before[1].items()
    assert len(calls) + len(results) > 10


def test_a_journal_that_is_gone_is_not_begun_anew(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "run")
    path.unlink()
    with pytest.raises(RunDirectoryError, match="is gone, and what was paid for was in it"):
        Journal.open(path.parent, run_id="the run")
    assert not path.exists()
