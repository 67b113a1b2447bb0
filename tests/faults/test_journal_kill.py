"""A journal whose process is killed: what was acknowledged is there, nothing is there twice, and it can go on."""

from __future__ import annotations

import asyncio
import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader

SPEC = importlib.util.spec_from_file_location("journal_world_kill", Path(__file__).with_name("journal_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader
INVARIANTS = importlib.util.spec_from_file_location("invariants_kill", Path(__file__).with_name("invariants.py"))
assert INVARIANTS is not None
invariants: Any = importlib.util.module_from_spec(INVARIANTS)
INVARIANTS.loader.exec_module(invariants)  # type: ignore[union-attr] # as above


def assert_kept(folder: Path, said: list[str]) -> None:
    """Everything that was acknowledged is there, as it was given."""
    if not (folder / "journal.sqlite").exists():
        assert not said
        return
    with JournalReader.open(folder) as reader:
        for text in said:
            verb, _, name = text.partition(" ")
            if verb == "kept":
                item, part = map(int, name.split("."))
                wanted = world.call(item, part)
                assert reader.call(wanted.key, 0) is not None, text
            elif verb == "done":
                result = reader.result(f"task {name}")
                assert result is not None, text
                assert result.line == world.line(int(name))
        assert not reader.damaged


def test_killed_at_random_moments_it_loses_nothing_that_was_acknowledged(tmp_path: Path, long: bool) -> None:
    seed, items, concurrency = random.randrange(1 << 30), 600, 16
    print("seed", seed)
    chance = random.Random(seed)
    folder, uninterrupted = tmp_path / "run", tmp_path / "other"
    folder.mkdir()
    said: list[str] = []
    kills = 0
    while kills < 50:
        ended = world.child(
            lambda tell: asyncio.run(world.run(folder, items, concurrency, tell)), chance.uniform(0.0, 0.06)
        )
        said += ended.said
        if ended.code == 0:
            break
        assert ended.code == -9
        kills += 1
        assert_kept(folder, ended.said)
    ended = world.child(lambda tell: asyncio.run(world.run(folder, items, concurrency, tell)))
    assert ended.code == 0
    said += ended.said
    assert kills > (10 if long else 3)
    assert_kept(folder, said)
    invariants.assert_journal(folder)
    asked = [text for text in said if text.startswith("asked")]
    assert set(asked) == {f"asked {item}.{part}" for item in range(items) for part in range(2)}
    assert len(asked) - len(set(asked)) <= kills * concurrency
    world.filled(uninterrupted, items)
    with JournalReader.open(folder) as one, JournalReader.open(uninterrupted) as other:
        assert world.contents(one) == world.contents(other)
        assert one.ledger().to_dict() == other.ledger().to_dict()
        assert [result.line for result in one.results()] == [world.line(item) for item in range(items)]
    assert check(folder).problems == ()


def test_killed_at_every_statement_it_loses_nothing_that_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    """In the short form at every other one."""
    monkeypatch.setattr("karenina_runs.journal.writer.AT_MOST", 4)  # so that the index is written, too
    monkeypatch.setattr("karenina_runs.journal.writer.WAL_PAGES", 8)
    step = 1 if long else 2
    point, code = random.randrange(step) + 1 - step, -9
    print("from statement", point + step)
    while code == -9:
        point += step
        folder = tmp_path / str(point)
        folder.mkdir()

        def work(tell: Any, folder: Path = folder, point: int = point) -> None:
            world.die_at(point)
            asyncio.run(world.run(folder, 3, 2, tell))

        ended = world.child(work)
        code = ended.code
        assert_kept(folder, ended.said)
        again = world.child(lambda tell, folder=folder: asyncio.run(world.run(folder, 3, 2, tell)))
        assert again.code == 0, point
        assert_kept(folder, ended.said + again.said)
        invariants.assert_journal(folder)
        assert check(folder).problems == ()
        repeated = len([text for text in ended.said + again.said if text.startswith("asked")]) - 6
        assert 0 <= repeated <= 2
    assert code == 0
    assert point > 30


def test_a_process_that_is_killed_leaves_a_journal_that_can_be_read_without_being_changed(tmp_path: Path) -> None:
    ended = world.child(lambda tell: asyncio.run(world.run(tmp_path, 10_000, 8, tell)), 0.3)
    assert ended.code == -9
    files = {name: (tmp_path / name).read_bytes() for name in ("journal.sqlite", "journal.sqlite-wal", "run.lock")}
    assert_kept(tmp_path, ended.said)
    assert check(tmp_path).problems == ()
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_a_finished_journal_is_one_file(tmp_path: Path) -> None:
    world.filled(tmp_path, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.sqlite", "run.lock"]
    Journal.open(tmp_path).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.sqlite", "run.lock"]
