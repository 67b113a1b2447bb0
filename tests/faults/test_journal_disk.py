"""A journal that cannot be written any more: everybody is told at once, nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.files.run_files import check_place
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader

from karenina_core.errors import RunDirectoryError

SPEC = importlib.util.spec_from_file_location("journal_world_disk", Path(__file__).with_name("journal_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader
INVARIANTS = importlib.util.spec_from_file_location("invariants_disk", Path(__file__).with_name("invariants.py"))
assert INVARIANTS is not None
invariants: Any = importlib.util.module_from_spec(INVARIANTS)
INVARIANTS.loader.exec_module(invariants)  # type: ignore[union-attr] # as above
MEGABYTE = 1 << 20
ITEMS = 6


async def until_it_fails(folder: Path, concurrency: int = 16) -> tuple[list[str], list[str], float]:
    """Items until nothing can be written any more: what was said before the first failure, what after it, and how long
    it took from then until the last caller knew."""
    journal = Journal.open(folder, run_id="the run")
    before: list[str] = []
    after: list[str] = []
    failed: list[float] = []
    advice: set[bool] = set()

    async def worker(number: int) -> None:
        for item in range(number, 100_000, concurrency):
            try:
                await world.one_item(journal, item, (after if failed else before).append)
            except RunDirectoryError as error:
                failed.append(time.monotonic())
                advice.add("karenina resume" in str(error))
                return

    await asyncio.gather(*(worker(number) for number in range(concurrency)))
    assert (len(failed), advice) == (concurrency, {True})
    with pytest.raises(RunDirectoryError):
        await journal.take(world.call(1))
    with pytest.raises(RunDirectoryError):
        await journal.put(world.call(1, 7), world.outcome(1), world.FACTS)
    with pytest.raises(RunDirectoryError):
        await journal.put_result(world.done(1), world.line(1))
    with pytest.raises(RunDirectoryError):
        await journal.aclose()
    return before, after, max(failed) - min(failed)


def assert_kept(folder: Path, said: list[str]) -> None:
    invariants.assert_journal(folder)
    with JournalReader.open(folder) as reader:
        calls, results = world.contents(reader)
    for text in said:
        verb, _, name = text.partition(" ")
        if verb == "kept":
            item, part = map(int, name.split("."))
            assert (world.call(item, part).key, 0) in calls
        elif verb == "done":
            assert results[f"task {name}"] == (int(name), world.line(int(name)))


def test_a_full_disk_stops_everybody_at_once_and_loses_nothing(small_disk: Path) -> None:
    if not os.path.ismount(small_disk):
        resource_limit_instead(small_disk)
        return
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(MEGABYTE))
    folder = small_disk / "run"
    folder.mkdir()
    before, after, seconds = asyncio.run(until_it_fails(folder))
    assert len([text for text in before if text.startswith("done")]) > 50
    assert seconds < 1.0
    assert [text for text in after if text.startswith("asked")] == []
    assert_kept(folder, before + after)
    ballast.unlink()
    said = before + after
    finished = max(int(text.split()[1]) for text in said if text.startswith("done"))
    asyncio.run(world.run(folder, finished, 4, said.append))
    assert_kept(folder, said)
    assert len({text for text in said if text.startswith("asked")}) >= 2 * finished
    assert len(said) - len(set(said)) <= 16
    assert check(folder).problems == ()


def test_every_point_at_which_the_disk_can_be_full_is_survived(tmp_path: Path) -> None:
    """The size of files is limited in a process of its own, each time to some more."""
    codes = []
    for number, limit in enumerate([*range(8192, 240_000, 12_288), 8 * MEGABYTE]):
        folder = tmp_path / str(number)
        folder.mkdir()
        ended = world.child(lambda tell, folder=folder, limit=limit: limited(folder, limit, tell))
        codes.append(ended.code)
        if (folder / "journal.sqlite").exists():
            assert_kept(folder, ended.said)
        asyncio.run(world.run(folder, ITEMS, 4))
        assert_kept(folder, ended.said)
        assert check(folder).problems == ()
    assert set(codes) == {0, 74}
    assert codes == sorted(codes, reverse=True)
    assert codes.count(74) > 5


def limited(folder: Path, limit: int, tell: Any) -> None:
    """Ends with 74 where the run directory cannot be written, as the command line does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        asyncio.run(world.run(folder, ITEMS, 4, tell))
    except RunDirectoryError:
        os._exit(74)


def resource_limit_instead(folder: Path) -> None:
    ended = world.child(lambda tell: limited(folder, MEGABYTE // 4, tell))
    assert ended.code == 74
    assert_kept(folder, ended.said)


def test_a_folder_that_vanishes_stops_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()

    async def vanishing() -> None:
        journal = Journal.open(folder)
        await world.one_item(journal, 1)
        shutil.rmtree(folder)
        with pytest.raises(RunDirectoryError, match="No such file"):
            await world.one_item(journal, 2)
        with pytest.raises(RunDirectoryError):
            await journal.take(world.call(3))
        with pytest.raises(RunDirectoryError):
            await journal.aclose()

    asyncio.run(vanishing())


def as_nobody(work: Any) -> Any:
    """A process that is not allowed everything, whoever runs the tests."""

    def working(tell: Any) -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        work(tell)

    return working


def test_a_folder_that_may_not_be_written_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    reachable(tmp_path)
    folder.chmod(0o555)

    def refused(tell: Any) -> None:
        with pytest.raises(RunDirectoryError, match=r"cannot be written: .*in another directory"):
            Journal.open(folder)
        with pytest.raises(RunDirectoryError):
            check_place(folder)
        tell("refused")

    ended = world.child(as_nobody(refused))
    assert (ended.said, ended.code) == (["refused"], 0)
    assert list(folder.iterdir()) == []


def test_a_journal_in_a_folder_that_may_not_be_written_can_be_read(tmp_path: Path) -> None:
    path = world.filled(tmp_path / "finished", 5)
    killed = tmp_path / "killed"
    killed.mkdir()
    ended = world.child(lambda tell: asyncio.run(world.run(killed, 10_000, 4, tell)), 0.3)
    (killed / "journal.sqlite-shm").unlink()
    reachable(tmp_path)
    for folder in (path.parent, killed):
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)

    def read(tell: Any) -> None:
        with JournalReader.open(path) as reader:
            assert len(list(reader.results())) == 5
        assert_kept(killed, ended.said)
        tell("read")

    names = sorted(file.name for file in killed.iterdir())
    assert world.child(as_nobody(read)).said == ["read"]
    assert sorted(file.name for file in killed.iterdir()) == names


def reachable(folder: Path) -> None:
    """Temporary folders are their owner's alone."""
    for above in (folder, *folder.parents):
        if above.owner() == folder.owner() and above != Path("/"):
            above.chmod(above.stat().st_mode | 0o755)
