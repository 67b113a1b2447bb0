"""What a run with a directory returns lies in that directory: the same results, read when they are asked for."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.execute import watchdogs
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.execute.watchdogs import OBJECTS, fewer_collections
from karenina_runs.results import stored
from karenina_runs.results.stored import StoredSequence, line_index, read_line

from karenina_core import VerificationResult, VerificationResultSet
from karenina_core.errors import BenchmarkError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]


def ran(world: Make, tmp_path: Path, questions: int = 6) -> VerificationResultSet:
    """Every third answer is wrong; two replicates."""
    number = count()
    judge = ScriptedLLM(lambda call: {"target": "BCL2" if next(number) % 3 else "TP53"})
    here = world(judge=judge, questions=questions)
    found: VerificationResultSet = here.run(
        here.config(replicate_count=2), destination=Destination(run_dir=tmp_path / "run")
    )
    return found


@pytest.fixture(params=["few", "many"])
def results(request: Any, world: Make, tmp_path: Path, monkeypatch: Any) -> VerificationResultSet:
    """Of few results that are read once, and of so many that each is read whenever it is asked for."""
    if request.param == "many":
        monkeypatch.setattr(stored, "MOST_KEPT", 0)
    return ran(world, tmp_path)


def test_it_is_the_set_that_is_loaded(results: VerificationResultSet, tmp_path: Path) -> None:
    loaded = VerificationResultSet.load(tmp_path / "run")
    assert isinstance(results.results, StoredSequence)
    assert isinstance(loaded.results, tuple)
    assert len(results) == 12
    assert results.results == loaded.results
    assert loaded.results == results.results
    assert list(results) == list(loaded)
    assert [results[place] for place in range(-12, 12)] == [loaded[place] for place in range(-12, 12)]
    assert list(results[3:-2:2]) == list(loaded[3:-2:2])
    assert results[2:5][1] == loaded[3]
    with pytest.raises(IndexError):
        _ = results[12]


def test_what_is_taken_from_it_is_the_same(results: VerificationResultSet, tmp_path: Path) -> None:
    loaded = VerificationResultSet.load(tmp_path / "run")
    wanted: list[dict[str, Any]] = [
        {"outcomes": ["passed"]},
        {"replicates": [2], "question_ids": "q1"},
        {"where": lambda r: r.metadata.outcome == "failed"},
        {"question_ids": []},
    ]
    for conditions in wanted:
        assert list(results.filter(**conditions)) == list(loaded.filter(**conditions))
        twice = results.filter(outcomes=["passed"]).filter(**conditions)
        assert list(twice) == list(loaded.filter(outcomes=["passed"]).filter(**conditions))
    assert {key: list(group) for key, group in results.group_by_question().items()} == {
        key: list(group) for key, group in loaded.group_by_question().items()
    }
    assert [list(group) for group in results.group_by_replicate().values()] == [
        list(group) for group in loaded.group_by_replicate().values()
    ]


def test_what_was_counted_while_it_ran_is_what_is_counted_afterwards(
    results: VerificationResultSet, tmp_path: Path
) -> None:
    loaded = evolve(VerificationResultSet.load(tmp_path / "run"), notes=results.notes)
    assert results.get_summary(times=True) == loaded.get_summary(times=True)
    assert results.usage_by_task() == loaded.usage_by_task()
    half, of_half = results.filter(replicates=[1]), loaded.filter(replicates=[1])
    assert half.get_summary(times=True) == of_half.get_summary(times=True) != results.get_summary(times=True)


def test_a_result_is_read_only_when_it_is_asked_for(world: Make, tmp_path: Path, monkeypatch: Any) -> None:
    read: list[int] = []

    def counting(file: Path, number: int, line: bytes) -> VerificationResult:
        read.append(number)
        return read_line(file, number, line)

    monkeypatch.setattr(stored, "read_line", counting)
    results = ran(world, tmp_path)
    assert results.get_summary()["num_results"] == len(results) == 12
    assert read == []
    assert results[4].metadata.question_id
    assert next(iter(results[7:9])) is not None
    assert read == [5, 8, 9]


def test_a_directory_that_is_gone_or_changed_is_told(world: Make, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(stored, "MOST_KEPT", 0)
    results = ran(world, tmp_path)
    file = tmp_path / "run" / "results.jsonl"
    assert len(list(results)) == 12
    with file.open("ab") as lines:
        lines.write(b"\n")
    with pytest.raises(BenchmarkError, match="has changed; load the results again"):
        list(results)
    assert len(list(VerificationResultSet.load(tmp_path / "run"))) == 12
    file.unlink()
    with pytest.raises(BenchmarkError, match="can no longer be read"):
        _ = results[0]
    assert results.get_summary()["num_results"] == 12


def test_of_several_lines_for_one_item_the_last_counts_among_many_lines(tmp_path: Path) -> None:
    begin = '{"metadata":{"question_id":"q","template_id":"t","result_id":"%016x"}}\n'
    file = tmp_path / "results.jsonl"
    file.write_text("".join(begin % (number * 77 % 9000) for number in range(10_000)), "ascii")
    with file.open("rb") as lines:
        index, notes = line_index(file, lines)
    assert notes == ()
    assert list(index.numbers) == [*range(9001, 10_001), *range(1001, 9001)]
    assert list(index.offsets) == [(number - 1) * len(begin % 0) for number in index.numbers]


def test_without_a_directory_the_results_are_in_memory(world: Make) -> None:
    results = world(questions=2).run()
    assert isinstance(results.results, tuple)
    assert len(results) == 2


def test_the_loop_has_its_turn_between_items_of_models_that_answer_at_once(world: Make) -> None:
    """Else nothing else happens until the run is over: no signal, no timer, no other task."""
    here = world(questions=30)
    turns: list[None] = []

    async def beside() -> None:
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    async def both() -> None:
        other = asyncio.create_task(beside())
        await execute(here.prepare(here.config(concurrency=1)))
        other.cancel()

    asyncio.run(both())
    assert len(turns) >= 30


def test_what_somebody_else_has_frozen_stays_so_and_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdogs, "_frozen", [])
    frozen, asked = gc.get_freeze_count, list[int]()
    monkeypatch.setattr(gc, "get_freeze_count", lambda: asked.append(1) or frozen())
    gc.unfreeze()
    try:
        with fewer_collections():
            assert frozen() > 0
            with fewer_collections():
                pass
            assert frozen() > 0
        assert frozen() == 0
        gc.freeze()
        asked.clear()
        for _ in range(3):
            with fewer_collections():
                pass
        assert asked == [1]
        assert frozen() > 0
    finally:
        gc.freeze()  # as conftest.py does


def test_the_collector_is_set_back_when_the_last_run_ends() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, 10, 10)
        with fewer_collections(), fewer_collections():
            assert gc.get_threshold() == OBJECTS
        assert gc.get_threshold() == (700, 10, 10)
        gc.set_threshold(0, 10, 10)
        with fewer_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
