"""The power fails: what was acknowledged had been flushed, and whatever part of the rest is lost harms nothing.

It is an approximation: of what SQLite has written and not flushed, any sectors reach the disk and others do not. Names
of files are taken to be there once the file was flushed, as SQLite and the run directory flush the folder then; a disk
that says it has flushed and has not is not looked at.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, JournalReader
from karenina_runs.journal.rows import PAGE


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_power", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, power, invariants = loaded("journal_world"), loaded("power"), loaded("invariants")
ITEMS, CONCURRENCY, LOSSES = 60, 4, 60
FEW = 15
"""Losses in the short form."""
PIECES = 10
"""Of a page and what stands before it in the log, by sectors."""
PARTS = (0.0, 0.3, 0.7, 1.0)
"""Of what was not flushed, that reaches the disk all the same."""


class Failing:
    """Lets the power fail again and again at moments when something was acknowledged, in copies of the folder."""

    def __init__(self, folder: Path, disk: Any, chance: random.Random, losses: int) -> None:
        self.folder, self.disk, self.chance, self.left = folder, disk, chance, losses
        self.often = losses / 100  # not all at the beginning
        self.said: list[str] = []

    def acknowledged(self, text: str) -> None:
        self.said.append(text)
        if self.left and self.chance.random() < self.often:
            self.left -= 1
            self.fail(self.chance.choice(PARTS))

    def fail(self, part: float) -> None:
        after = self.folder.with_name(f"after-{self.left}")
        after.mkdir()
        if self.chance.random() < 0.5:  # it is never flushed; before the others, which go on being written
            shutil.copyfile(self.folder / "run.lock", after / "run.lock")
        self.disk.after_a_loss(after, self.chance, part)
        assert check(after).problems == (), part
        kept = [text.split()[1].split(".") for text in self.said if text.startswith("kept")]
        calls = [(world.call(int(item), int(number)).key, 0) for item, number in kept]
        invariants.assert_journal(after, calls, [text.replace("done", "task") for text in self.said if "done" in text])
        Journal.open(after, run_id="the run").close()
        with JournalReader.open(after) as reader:
            for result in reader.results():
                assert result.line == world.line(result.position)
            sent = {text for text in self.said if text.startswith("sent")}
            assert sent <= {f"sent {batch.id}" for batch in reader.batches()}
        shutil.rmtree(after)


def test_when_the_power_fails_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    monkeypatch.setattr("karenina_runs.journal.writer.AT_MOST", 8)  # so that places are written, too
    monkeypatch.setattr("karenina_runs.journal.writer.WAL_PAGES", 20)  # and the log is copied into the database
    seed, rounds = random.randrange(1 << 30), 30 if long else 1
    print("seed", seed)
    for number in range(rounds):
        folder = tmp_path / str(number) / "run"
        folder.mkdir(parents=True)
        with power.watched_disk(folder) as disk:
            failing = Failing(folder, disk, random.Random(seed + number), LOSSES if long else FEW)
            asyncio.run(world.run(folder, ITEMS, CONCURRENCY, failing.acknowledged))
            assert failing.left == 0
            assert disk.files["journal.sqlite"].flushes > 2, "the log was copied into the database"
            assert disk.files["journal.sqlite-wal"].flushes > ITEMS // CONCURRENCY
        assert check(folder).problems == ()


def test_when_the_power_fails_no_batch_that_is_at_a_provider_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    one_item = world.one_item

    async def with_batches(journal: Journal, item: int, said: Callable[[str], None]) -> None:
        await one_item(journal, item, said)
        if item % 5 == 0:
            await journal.put_batch(Batch(id=f"b{item}", model="m", provider_id=f"batch_{item}", status="sent"))
            said(f"sent b{item}")

    monkeypatch.setattr(world, "one_item", with_batches)
    seed = random.randrange(1 << 30) if long else 1
    print("seed", seed)
    folder = tmp_path / "run"
    folder.mkdir()
    with power.watched_disk(folder) as disk:
        failing = Failing(folder, disk, random.Random(seed), LOSSES if long else FEW)
        asyncio.run(world.run(folder, ITEMS, CONCURRENCY, failing.acknowledged))
    assert failing.left == 0
    assert failing.said.count("sent b55") == 1


@pytest.fixture
def bulky(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies that do not compress: a transaction takes several pages of the log."""

    def outcome(item: int, part: int = 0) -> dict[str, Any]:
        return {"reply": {"content": random.Random(f"{item}.{part}").randbytes(2500).hex()}}

    monkeypatch.setattr(world, "outcome", outcome)


@pytest.mark.usefixtures("bulky")
@pytest.mark.parametrize("over_another", [False, True])
def test_of_a_transaction_that_was_not_flushed_yet_any_sectors_may_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool, over_another: bool
) -> None:
    """The moment is that at which all of a transaction is written, and none of it flushed: its end may be on the disk
    and what is before that may not. `over_another`: the log is begun anew, over what an older one has left."""
    monkeypatch.setattr("karenina_runs.journal.writer.WAL_PAGES", 60 if over_another else 4000)
    seed = random.randrange(1 << 30) if long else 0
    print("seed", seed)
    folder = tmp_path / "run"
    folder.mkdir()
    with power.watched_disk(folder) as disk:
        losses, items = (300, 1200) if long else (FEW, 60)
        failing = Failing(folder, disk, random.Random(seed), losses)
        torn = []

        def about_to_flush(name: str) -> None:
            pieces = len(disk.files[name].since)
            if name == "journal.sqlite-wal" and failing.left and pieces > 2 and failing.chance.random() < 0.7:
                failing.left -= 1
                torn.append(pieces)
                failing.fail(failing.chance.choice((0.5, 0.8, 0.95)))

        disk.before_flush = about_to_flush
        asyncio.run(world.run(folder, items, CONCURRENCY, failing.said.append))
    assert failing.left == 0
    assert max(torn) > 12, "of some transactions, several pages"


class FirstLost(random.Random):
    """Of what was written, the first page is lost and all else is there."""

    drawn = 0

    def random(self) -> float:
        self.drawn += 1
        return 1.0 if self.drawn <= PIECES else 0.0


@pytest.mark.usefixtures("bulky")
def test_the_power_fails_again_soon_after_it_came_back(tmp_path: Path) -> None:
    """What the first failure left of a transaction is not taken for one that followed what came after it."""
    folder = tmp_path / "run"
    folder.mkdir()
    said: list[str] = []
    for at_once in (9, 4, 2):  # less and less is written over what was left
        after = tmp_path / f"after {at_once}"
        fail_soon(folder, at_once, said, after)
        assert check(after).problems == (), at_once
        kept = [text.split()[1].split(".") for text in said if text.startswith("kept")]
        invariants.assert_journal(after, [(world.call(int(item), int(part)).key, 0) for item, part in kept])
        folder = after
    Journal.open(folder, run_id="the run").close()


def fail_soon(folder: Path, at_once: int, said: list[str], after: Path) -> None:
    """Make items until the power fails before a transaction of several pages is flushed that is not the log's first:
    that is left in `after`."""
    acknowledged: list[str] = []

    def about_to_flush(name: str) -> None:
        log = disk.files[name] if name == "journal.sqlite-wal" else None
        if log and len(log.since) > 4 and len(log.flushed) > PAGE and not after.exists():
            after.mkdir()
            shutil.copyfile(folder / "run.lock", after / "run.lock")
            disk.after_a_loss(after, FirstLost(), 0.5)
            acknowledged.extend(said)

    with power.watched_disk(folder) as disk:
        disk.before_flush = about_to_flush
        asyncio.run(world.run(folder, 40, at_once, said.append))
    assert after.exists(), "the power failed"
    said[:] = acknowledged


def test_what_is_not_flushed_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: where SQLite does not flush at every commit, it loses what was acknowledged."""
    connected = world.CONNECT

    class Careless(world.sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> Any:
            return super().execute(statement.replace("synchronous = FULL", "synchronous = OFF"), *values)

    monkeypatch.setattr("sqlite3.connect", lambda *facts, **options: connected(*facts, factory=Careless, **options))
    folder = tmp_path / "run"
    folder.mkdir()
    with power.watched_disk(folder) as disk:
        failing = Failing(folder, disk, random.Random(3), LOSSES)
        with pytest.raises(AssertionError):
            asyncio.run(world.run(folder, ITEMS, CONCURRENCY, failing.acknowledged))
