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
from pathlib import Path
from typing import Any

import pytest

from karenina_core.run.journal import Journal
from karenina_core.run.journal_check import check
from karenina_core.run.journal_reader import JournalReader


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_power", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, power, invariants = loaded("journal_world"), loaded("power"), loaded("invariants")
ITEMS, CONCURRENCY, LOSSES = 60, 4, 60
PARTS = (0.0, 0.3, 0.7, 1.0)
"""Of what was not flushed, that reaches the disk all the same."""


class Failing:
    """Lets the power fail again and again at moments when something was acknowledged, in copies of the folder."""

    def __init__(self, folder: Path, disk: Any, chance: random.Random, losses: int) -> None:
        self.folder, self.disk, self.chance, self.left = folder, disk, chance, losses
        self.said: list[str] = []

    def acknowledged(self, text: str) -> None:
        self.said.append(text)
        if self.left and self.chance.random() < 0.5:
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
        shutil.rmtree(after)


def test_when_the_power_fails_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    monkeypatch.setattr("karenina_core.run.journal_commits.AT_MOST", 8)  # so that places are written, too
    monkeypatch.setattr("karenina_core.run.journal_writer.WAL_PAGES", 20)  # and the log is copied into the database
    seed, rounds = random.randrange(1 << 30), 30 if long else 1
    print("seed", seed)
    for number in range(rounds):
        folder = tmp_path / str(number) / "run"
        folder.mkdir(parents=True)
        with power.watched_disk(folder) as disk:
            failing = Failing(folder, disk, random.Random(seed + number), LOSSES)
            asyncio.run(world.run(folder, ITEMS, CONCURRENCY, failing.acknowledged))
            assert failing.left == 0
            assert disk.files["journal.sqlite"].flushes > 2, "the log was copied into the database"
            assert disk.files["journal.sqlite-wal"].flushes > ITEMS // CONCURRENCY
        assert check(folder).problems == ()


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
