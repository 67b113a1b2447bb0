"""A sink that fails is closed and reported, and the run goes on; one that cannot be opened stops it before it costs."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_runs.execute.runner import Destination
from karenina_runs.journal.reader import JournalReader
from karenina_runs.results.sinks import RunInfo

from karenina_core import VerificationResultSet, hookimpl
from karenina_core.errors import PluginError, RunDirectoryError, UnknownName

Make = Callable[..., Any]


@define(eq=False)
class Memory:
    """A sink, and the plugin that brings it. Fails where it is told to."""

    name: str = "memory"
    fails: Mapping[str, BaseException] = field(factory=dict)
    after: int = 0
    """How many results are written before `write` fails."""
    run: RunInfo | None = None
    written: list[str] = field(factory=list)
    closed: list[Mapping[str, Any]] = field(factory=list)
    target: str | None = None

    @hookimpl
    def karenina_register_sinks(self, registry: Any) -> None:
        registry.add(self.made, name=self.name)

    def made(self, target: str) -> Memory:
        self.target = target
        return self

    async def open(self, run: RunInfo) -> None:
        self._fail("open")
        self.run = run

    async def write(self, result: Any) -> None:
        await asyncio.sleep(0.001)
        if len(self.written) >= self.after:
            self._fail("write")
        self.written.append(result.metadata.result_id)

    async def close(self, summary: Mapping[str, Any]) -> None:
        self.closed.append(summary)
        self._fail("close")

    def _fail(self, where: str) -> None:
        if where in self.fails:
            raise self.fails[where]


PLACE = f" ({Memory.__module__.replace('.', '/')}.py:{Memory._fail.__code__.co_firstlineno + 2} in _fail)"
"""Where what fails is raised."""


def test_a_sink_is_told_of_the_run_and_gets_every_result_and_the_summary(world: Make) -> None:
    sink = Memory()
    here = world(sink, questions=3)
    results = here.run(destination=Destination(sinks=["memory:somewhere"]), run_name="mine")
    assert sink.target == "somewhere"
    assert sink.run is not None
    assert (sink.run.run_name, sink.run.benchmark, sink.run.items, sink.run.run_dir) == ("mine", "targets", 3, None)
    assert sorted(sink.written) == sorted(r.metadata.result_id for r in results)
    assert [summary["outcomes"] for summary in sink.closed] == [{"passed": 3}]
    assert results.sink_failures == {}


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("after", [0, 2])
def test_a_failing_sink_is_closed_and_the_run_goes_on(
    world: Make, tmp_path: Path, concurrency: int, after: int
) -> None:
    broken = Memory(fails={"write": OSError("disk full")}, after=after)
    fine = Memory(name="fine")
    here = world(broken, fine, questions=8)
    destination = Destination(run_dir=tmp_path / "run", sinks=["memory", "fine"])
    results = here.run(here.config(concurrency=concurrency), destination)
    assert len(results) == len(fine.written) == 8
    assert len(broken.written) <= after + concurrency
    assert broken.closed == [{}]
    assert results.sink_failures == {"memory": f"OSError: disk full{PLACE}"}
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
    assert (manifest["status"], manifest["sink_failures"]) == ("completed", {"memory": f"OSError: disk full{PLACE}"})
    assert len(VerificationResultSet.load(tmp_path / "run")) == 8


def test_a_sink_that_cannot_be_closed_is_reported(world: Make) -> None:
    broken = Memory(fails={"close": ValueError("still busy")})
    results = world(broken).run(destination=Destination(sinks=["memory"]))
    assert results.sink_failures == {"memory": f"ValueError: still busy{PLACE}"}
    assert len(results) == 1


def test_a_sink_that_fails_twice_is_reported_with_its_first_failure(world: Make) -> None:
    broken = Memory(fails={"write": OSError("first"), "close": OSError("second")})
    results = world(broken, questions=2).run(destination=Destination(sinks=["memory"]))
    assert results.sink_failures == {"memory": f"OSError: first{PLACE}"}
    assert len(broken.closed) == 1


def test_a_sink_that_cannot_be_opened_stops_the_run_before_any_call(world: Make, tmp_path: Path) -> None:
    broken = Memory(fails={"open": OSError("read only")})
    here = world(broken)
    with pytest.raises(PluginError, match=re.escape(f"sink 'memory' cannot be opened: OSError: read only{PLACE}")):
        here.run(destination=Destination(run_dir=tmp_path / "run", sinks=["memory"]))
    assert (here.answerer.calls, here.judge.calls) == ([], [])
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "failed"
    assert here.answerer.opened == 1
    assert here.answerer.closed >= 1


def test_an_unknown_sink_leaves_no_folder_behind(world: Make, tmp_path: Path) -> None:
    here = world(Memory())
    with pytest.raises(UnknownName, match=r"'memroy' \(did you mean 'memory'\?\)"):
        here.run(destination=Destination(run_dir=tmp_path / "run", sinks=["memroy:x"]))
    assert not (tmp_path / "run").exists()
    assert here.answerer.calls == []


def test_a_sink_that_cannot_be_made_names_itself(world: Make) -> None:
    class Bad:
        name = "bad"

        def __init__(self, target: str) -> None:
            raise ValueError(f"cannot read {target!r}")

        @staticmethod
        @hookimpl
        def karenina_register_sinks(registry: Any) -> None:
            registry.add(Bad)

    with pytest.raises(PluginError, match="sink 'bad:nowhere' cannot be made: ValueError: cannot read 'nowhere'"):
        world(Bad).run(destination=Destination(sinks=["bad:nowhere"]))


def test_observers_see_the_run_from_beginning_to_end(world: Make) -> None:
    seen: list[tuple[str, Any]] = []

    class Observer:
        @hookimpl
        def karenina_run_started(self, run: Any) -> None:
            seen.append(("started", run["items"]))
            raise RuntimeError("an observer that fails")

        @hookimpl
        def karenina_item_finished(self, result: Any) -> None:
            seen.append(("item", result.metadata.question_id))
            raise SystemExit(1)

        @hookimpl
        def karenina_run_finished(self, summary: Any, status: str) -> None:
            seen.append((status, summary["outcomes"]))

    here = world(Observer(), questions=2)
    here.run(here.config(concurrency=1))
    assert seen == [("started", 2), ("item", "q0"), ("item", "q1"), ("completed", {"passed": 2})]


def test_a_run_whose_folder_is_renamed_says_where_to_go_on(world: Make, tmp_path: Path) -> None:
    class Observer:
        @hookimpl
        def karenina_item_finished(self) -> None:
            if not (tmp_path / "renamed").exists():
                (tmp_path / "run").rename(tmp_path / "renamed")

    here = world(Observer(), questions=3)
    with pytest.raises(RunDirectoryError, match=r"is gone.*karenina resume NEW-NAME") as error:
        here.run(here.config(concurrency=1), Destination(run_dir=tmp_path / "run"))
    assert "is safe" not in str(error.value)
    assert not (tmp_path / "run").exists()
    with JournalReader.open(tmp_path / "renamed") as reader:
        assert len(list(reader.results())) == 1


def test_observers_hear_how_a_run_ended_also_where_its_directory_is_gone(world: Make, tmp_path: Path) -> None:
    seen: list[str] = []

    class Observer:
        @hookimpl
        def karenina_item_finished(self) -> None:
            shutil.rmtree(tmp_path / "run")

        @hookimpl
        def karenina_run_finished(self, status: str) -> None:
            seen.append(status)

    here = world(Observer())
    with pytest.raises(RunDirectoryError, match=r"is gone.*What was deleted is lost"):
        here.run(destination=Destination(run_dir=tmp_path / "run"))
    broken = world(Observer(), Memory(fails={"open": PluginError("no")}))
    with pytest.raises(PluginError):
        broken.run(destination=Destination(sinks=["memory:x"]))
    assert seen == ["interrupted", "failed"]
