"""Runs that are gone on with from Python: as if they had never been interrupted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from karenina_core import ModelConfig, VerificationResultSet, aresume_run, resume_run
from karenina_core.errors import ConfigError, ParseError, PortError, RunDirectoryError
from karenina_core.run.control import RunControl
from karenina_core.run.journal_reader import JournalReader
from karenina_core.run.owner import RunLock
from karenina_core.run.resume import Changed
from karenina_core.run.runner import Destination, execute
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2", "j3")]
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
TIMES = {"timestamp", "execution_time", "seconds", "run_dir"}
CANCELLED = {"failed", "failed_attempts"}
"""Attempts that were under way when the run was cancelled are counted as failed."""


class Stopped(Exception):
    """What ends a run in these tests."""


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES | CANCELLED}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def told(folder: Path) -> tuple[list[str], Any, Any]:
    """Results, summary and ledger of a run, without times."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    lines = (folder / "results.jsonl").read_text("utf-8").splitlines()
    results = [json.dumps(without_times(json.loads(line))) for line in lines]
    return results, without_times(manifest["summary"]), without_times(manifest["ledger"])


def stop_after(items: int) -> Callable[[Any], None]:
    left = [items]

    def on_result(result: Any) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Stopped

    return on_result


def interrupted(here: Any, folder: Path, items: int, **facts: Any) -> Any:
    """Run until so many items are done. The configuration."""
    config = here.config(**facts)
    prepared = here.prepare(config, run_name="the run")
    with pytest.raises(Stopped):
        asyncio.run(execute(prepared, Destination(run_dir=folder), on_result=stop_after(items)))
    return config


def resumed(here: Any, folder: Path, config: Any = None, **options: Any) -> VerificationResultSet:
    return asyncio.run(
        aresume_run(folder, benchmark=here.benchmark, app=here.app, config=config or here.config(), **options)
    )


@settings(
    max_examples=10, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=st.integers(1, 23), concurrency=st.integers(1, 8), replicates=st.integers(1, 2))
def test_a_run_that_was_interrupted_anywhere_equals_one_that_was_not(
    world: Make, tmp_path_factory: pytest.TempPathFactory, items: int, concurrency: int, replicates: int
) -> None:
    facts: dict[str, Any] = {"answering_models": ANSWERERS, "parsing_models": JUDGES, "concurrency": concurrency}
    facts["replicate_count"] = replicates
    tmp_path = tmp_path_factory.mktemp("runs")
    here, other = world(questions=4), world(questions=4)
    config = interrupted(here, tmp_path / "run", items, **facts)
    results = resumed(here, tmp_path / "run", config)
    other.run(other.config(**facts), Destination(run_dir=tmp_path / "other"), run_name="the run")
    assert told(tmp_path / "run") == told(tmp_path / "other")
    assert len(results) == 24 * replicates
    assert len(here.answerer.calls) - len(other.answerer.calls) <= concurrency
    assert here.app is not other.app


def test_the_results_that_are_returned_are_those_of_the_whole_run(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    interrupted(here, tmp_path / "run", 1)
    results = resumed(here, tmp_path / "run")
    assert [r.metadata.question_id for r in results] == ["q0", "q1", "q2"]
    assert results.get_summary()["outcomes"] == {"passed": 3}
    assert results.run_dir == tmp_path / "run"


def test_it_works_without_an_event_loop_of_ones_own(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    interrupted(here, tmp_path / "run", 1)
    assert len(resume_run(tmp_path / "run", benchmark=here.benchmark, app=here.app)) == 3


def test_the_configuration_is_that_of_the_beginning(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    interrupted(here, tmp_path / "run", 1, replicate_count=2, request_timeout=7.0)
    asyncio.run(aresume_run(tmp_path / "run", benchmark=here.benchmark, app=here.app))
    config = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["config"]
    assert (config["replicate_count"], config["request_timeout"]) == (2, 7.0)
    assert len(VerificationResultSet.load(tmp_path / "run")) == 6


def test_a_benchmark_that_is_in_no_file_is_asked_for(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path / "run", 1)
    with pytest.raises(ConfigError, match=r"karenina_core\.resume_run\(.*benchmark="):
        asyncio.run(aresume_run(tmp_path / "run", app=here.app))


def test_a_finished_run_is_read_and_nobody_is_asked(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    calls, before = len(here.answerer.calls), told(tmp_path / "run")
    assert len(resumed(here, tmp_path / "run")) == 2
    assert (len(here.answerer.calls), told(tmp_path / "run")) == (calls, before)


def test_a_run_that_another_process_works_on_is_left_alone(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path / "run", 1)
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with RunLock(tmp_path / "run"), pytest.raises(RunDirectoryError, match="is being written by process"):
        resumed(here, tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_drained_run_keeps_what_was_paid_for(world: Make, tmp_path: Path) -> None:
    here = world(
        questions=6,
        answerer=ScriptedLLM(lambda call: "It is BCL2.", seconds=0.1),
        judge=ScriptedLLM(lambda call: {"target": "BCL2"}, seconds=0.1),
    )
    control = RunControl()

    async def drained() -> None:
        work = execute(here.prepare(here.config(concurrency=2)), Destination(run_dir=tmp_path / "run"), control=control)
        task = asyncio.ensure_future(work)
        await asyncio.sleep(0.25)
        control.drain()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(drained())
    asked = len(here.answerer.calls) + len(here.judge.calls)
    assert 0 < asked < 12
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.ledger().total.calls == asked
    assert len(resumed(here, tmp_path / "run", here.config(concurrency=2))) == 6
    assert len(here.answerer.calls) + len(here.judge.calls) == 12


# Errors


@pytest.mark.parametrize(
    ("error", "options", "again"),
    [
        (PortError("busy", kind="rate_limited"), {}, True),
        (PortError("late", kind="timeout"), {}, True),
        (PortError("no", kind="auth"), {}, False),
        (PortError("no", kind="auth"), {"retry_failed": True}, True),
        (ParseError("prose"), {}, False),
        (ParseError("prose"), {"retry_failed": True}, True),
    ],
)
def test_which_errors_are_tried_again(
    world: Make, tmp_path: Path, error: PortError, options: dict[str, Any], again: bool
) -> None:
    broken = [True]

    def judged(call: Any) -> Any:
        if broken[0] and call.context.question_id == "q1":
            raise error
        return {"target": "BCL2"}

    here = world(questions=3, judge=ScriptedLLM(judged))
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    broken[0], calls = False, len(here.judge.calls)
    results = resumed(here, tmp_path / "run", **options)
    assert [r.metadata.outcome for r in results] == ["passed", "passed" if again else "error", "passed"]
    assert len(here.judge.calls) == calls + again
    assert len(here.answerer.calls) == 3
    assert results.get_summary()["outcomes"] == ({"passed": 3} if again else {"passed": 2, "error": 1})


def test_what_is_still_broken_stays_an_error_and_counts_once(world: Make, tmp_path: Path) -> None:
    def judged(call: Any) -> Any:
        if call.context.question_id == "q1":
            raise PortError("busy", kind="rate_limited")
        return {"target": "BCL2"}

    here = world(questions=3, judge=ScriptedLLM(judged))
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    results = resumed(here, tmp_path / "run")
    assert results.get_summary()["outcomes"] == {"passed": 2, "error": 1}
    assert len(results) == 3


# What has changed


def test_what_has_changed_is_named_and_nobody_is_asked(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    interrupted(here, tmp_path / "run", 1)
    calls, before = len(here.answerer.calls), (tmp_path / "run" / "manifest.json").read_bytes()
    hotter = [ModelConfig(model_name="a", interface="answering", temperature=0.9)]
    with pytest.raises(Changed) as caught:
        resumed(here, tmp_path / "run", here.config(answering_models=hotter, replicate_count=2))
    told = [problem.message for problem in caught.value.problems]
    assert any("temperature was 0.1 and is 0.9" in line for line in told)
    assert any("replicate_count was 1 and is 2" in line for line in told)
    assert len(here.answerer.calls) == calls
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_models_in_another_order_are_another_plan(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path / "run", 1, parsing_models=JUDGES)
    with pytest.raises(Changed, match="another order"):
        resumed(here, tmp_path / "run", here.config(parsing_models=JUDGES[::-1]))


def test_a_fork_asks_only_the_judge_that_is_new(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    config = here.config(parsing_models=JUDGES[:2])
    here.run(config, Destination(run_dir=tmp_path / "run"))
    answered, judged = len(here.answerer.calls), len(here.judge.calls)
    results = resumed(here, tmp_path / "run", here.config(parsing_models=JUDGES), fork=tmp_path / "fork")
    assert len(results) == 9
    assert len(here.answerer.calls) == answered
    assert len(here.judge.calls) == judged + 3
    assert len(VerificationResultSet.load(tmp_path / "run")) == 6
