"""Runs that are gone on with from Python: as if they had never been interrupted."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_runs.config.config_file import RunConfig
from karenina_runs.execute import continuation as keeping
from karenina_runs.execute import runner
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.files.run_lock import RunLock, owner_of
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.journal.reader import JournalReader
from karenina_runs.resume import Wanted, resumption

from karenina_core import (
    Karenina,
    ModelConfig,
    VerificationConfig,
    VerificationResultSet,
    aresume_run,
    extend_run,
    resume_run,
)
from karenina_core.errors import ConfigError, ParseError, PortError, RunDirectoryError
from karenina_core.testing import ScriptedLLM, ScriptedServer, application

Make = Callable[..., Any]
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2", "j3")]
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
TIMES = {"timestamp", "execution_time", "seconds", "run_dir"}
CANCELLED = {"failed", "failed_attempts", "unknown_cost_attempts"}
"""Attempts that were under way when the run was cancelled are counted as failed."""
IMPATIENT = {"retry_max_elapsed_seconds": 0.2}
"""A provider that answers others may refuse a call for so long."""


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


def test_where_an_application_is_given_no_other_is_made(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path, 1)
    monkeypatch.setattr(Karenina, "installed", None)
    results = asyncio.run(aresume_run(tmp_path, benchmark=here.benchmark, app=here.app))
    assert results.get_summary()["outcomes"] == {"passed": 2}


WHOLE: dict[int, tuple[Any, int]] = {}
"""What is on the disk after runs that were not interrupted, and how many answers they asked for, by replicates."""


@settings(
    max_examples=10, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=st.integers(1, 23), concurrency=st.integers(1, 8), replicates=st.integers(1, 2))
def test_a_run_that_was_interrupted_anywhere_equals_one_that_was_not(
    world: Make, tmp_path_factory: pytest.TempPathFactory, items: int, concurrency: int, replicates: int
) -> None:
    """Nor does it matter how many items are made at once."""
    facts: dict[str, Any] = {"answering_models": ANSWERERS, "parsing_models": JUDGES, "replicate_count": replicates}
    tmp_path = tmp_path_factory.mktemp("runs")
    if replicates not in WHOLE:
        other = world(questions=4)
        other.run(other.config(**facts), Destination(run_dir=tmp_path / "other"), run_name="the run")
        WHOLE[replicates] = told(tmp_path / "other"), len(other.answerer.calls)
    whole, calls = WHOLE[replicates]
    here = world(questions=4)
    config = interrupted(here, tmp_path / "run", items, concurrency=concurrency, **facts)
    results = resumed(here, tmp_path / "run", config)
    assert told(tmp_path / "run") == whole
    assert len(results) == 24 * replicates
    assert len(here.answerer.calls) - calls <= concurrency


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
        while not here.answerer.calls:
            await asyncio.sleep(0.01)
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
        (PortError("no", kind="auth"), {}, True),
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
    here.run(here.config(**IMPATIENT), destination=Destination(run_dir=tmp_path / "run"))
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
    config = here.config(**IMPATIENT)
    here.run(config, destination=Destination(run_dir=tmp_path / "run"))
    results = resumed(here, tmp_path / "run", config)
    assert results.get_summary()["outcomes"] == {"passed": 2, "error": 1}
    assert len(results) == 3


# Judges that could not be read, over HTTP


@define(eq=False)
class Spoken:
    """A run of three questions with a model behind an address; the judge of the second one speaks in prose."""

    server: ScriptedServer
    here: Any
    prose: list[bool]

    @property
    def config(self) -> VerificationConfig:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=self.server.url)
        config: VerificationConfig = self.here.config(answering_models=[model], parsing_models=[model], concurrency=1)
        return config

    def asked(self, work: Callable[[], VerificationResultSet]) -> tuple[int, list[str]]:
        """How many requests came, and the outcomes."""
        before = self.server.count
        outcomes: list[str] = [result.metadata.outcome for result in work()]
        return self.server.count - before, outcomes

    def run(self, folder: Path, **facts: Any) -> tuple[int, list[str]]:
        return self.asked(lambda: self.here.run(self.config, Destination(run_dir=folder, **facts)))

    def resume(self, folder: Path, **options: Any) -> tuple[int, list[str]]:
        about: dict[str, Any] = {"benchmark": self.here.benchmark, "app": self.here.app, "config": self.config}
        return self.asked(lambda: resume_run(folder, **about, **options))


@pytest.fixture
def spoken(world: Make, plugin_names: set[str]) -> Iterator[Spoken]:
    prose = [True]

    def script(request: Any) -> Any:
        if request.schema is None:
            return "It is BCL2."
        return "I cannot say." if prose[0] and "target 1?" in request.text else {"target": "BCL2"}

    with ScriptedServer(script) as server:
        app = application(installed={*plugin_names, "openai_endpoint"})
        yield Spoken(server, evolve(world(questions=3), app=app), prose)
        app.loop.close()


LEFT, HEALED = ["passed", "error", "passed"], ["passed", "passed", "passed"]


def test_a_judge_that_could_not_be_read_is_asked_again_where_errors_are_tried_again(
    spoken: Spoken, tmp_path: Path
) -> None:
    assert spoken.run(tmp_path / "run")[1] == LEFT
    asked, outcomes = spoken.resume(tmp_path / "run", retry_failed=True)
    assert outcomes == LEFT
    assert 0 < asked < 6  # its repairs too
    spoken.prose[0] = False
    assert spoken.resume(tmp_path / "run") == (0, LEFT)
    assert spoken.resume(tmp_path / "run", retry_failed=True) == (1, HEALED)
    assert spoken.resume(tmp_path / "run", retry_failed=True) == (0, HEALED)


def test_a_fork_asks_judges_again_that_could_not_be_read_where_errors_are_tried_again(
    spoken: Spoken, tmp_path: Path
) -> None:
    spoken.run(tmp_path / "run")
    spoken.prose[0] = False
    assert spoken.resume(tmp_path / "run", fork=tmp_path / "same") == (0, LEFT)
    assert spoken.resume(tmp_path / "run", fork=tmp_path / "other", retry_failed=True) == (1, HEALED)
    assert spoken.resume(tmp_path / "same", fork=tmp_path / "another", retry_failed=True) == (1, HEALED)


def test_a_fork_that_was_interrupted_still_asks_those_judges_again(spoken: Spoken, tmp_path: Path) -> None:
    spoken.run(tmp_path / "run")
    spoken.prose[0] = False
    wanted = Wanted(benchmark=spoken.here.benchmark, fork=tmp_path / "other", retry_failed=True)
    made = RunConfig(app=spoken.here.app, config=spoken.config)
    with pytest.raises(Stopped):
        asyncio.run(resumption(tmp_path / "run", made, wanted).carry_out(on_result=stop_after(1)))
    assert spoken.resume(tmp_path / "other") == (1, HEALED)


def test_a_reply_that_could_not_be_read_is_reused_until_its_error_is_tried_again(
    spoken: Spoken, tmp_path: Path
) -> None:
    spoken.run(tmp_path / "old")
    spoken.prose[0] = False
    assert spoken.run(tmp_path / "run", reuse=(tmp_path / "old",)) == (0, LEFT)
    assert spoken.resume(tmp_path / "run") == (0, LEFT)
    assert spoken.resume(tmp_path / "run", retry_failed=True) == (1, HEALED)


def test_what_judges_said_in_the_run_that_was_extended_is_asked_again_too(spoken: Spoken, tmp_path: Path) -> None:
    spoken.run(tmp_path / "run")
    spoken.prose[0] = False
    about: dict[str, Any] = {"benchmark": spoken.here.benchmark, "app": spoken.here.app}
    config = evolve(spoken.config, replicate_count=2)
    extended = extend_run(tmp_path / "run", run_dir=tmp_path / "more", config=config, **about)
    assert extended.get_summary()["outcomes"] == {"passed": 5, "error": 1}
    asked, outcomes = spoken.asked(lambda: resume_run(tmp_path / "more", config=config, retry_failed=True, **about))
    assert (asked, outcomes) == (1, ["passed"] * 6)


def test_a_reply_that_two_items_share_is_asked_for_once_more_and_no_more(spoken: Spoken, tmp_path: Path) -> None:
    model = spoken.config.answering_models[0]
    config = evolve(spoken.config, answering_models=[model, evolve(model, model_name="other")])
    spoken.here.run(config, Destination(run_dir=tmp_path / "run"))
    spoken.prose[0] = False
    about: dict[str, Any] = {"benchmark": spoken.here.benchmark, "app": spoken.here.app, "config": config}
    forked = {**about, "fork": tmp_path / "other"}
    assert spoken.asked(lambda: resume_run(tmp_path / "run", retry_failed=True, **about)) == (1, ["passed"] * 6)
    assert spoken.asked(lambda: resume_run(tmp_path / "run", retry_failed=True, **forked)) == (0, ["passed"] * 6)


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


# Results that could not be written, and replies that are gone


def unwritable(here: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose results could not be written at its end."""

    def full(folder: Path) -> None:
        raise RunDirectoryError(f"{folder / 'results.jsonl'} cannot be written: no space")

    with monkeypatch.context() as patch:
        patch.setattr(keeping, "write_results", full)
        with pytest.raises(RunDirectoryError, match="no space"):
            here.run(destination=Destination(run_dir=folder), run_name="the run")


def lines(folder: Path) -> list[str]:
    """What the journal has for `results.jsonl`."""
    with JournalReader.open(folder) as reader:
        return [found.line for found in reader.results()]


def test_results_that_could_not_be_written_are_written_when_the_run_is_gone_on_with(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(questions=3)
    unwritable(here, tmp_path / "run", monkeypatch)
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "interrupted"
    assert len(VerificationResultSet.load(tmp_path / "run")) == 3, "whoever reads it meanwhile takes the journal"
    calls = len(here.answerer.calls)
    assert len(resumed(here, tmp_path / "run")) == 3
    assert (tmp_path / "run" / "results.jsonl").read_text("utf-8").splitlines() == lines(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "completed"
    assert len(here.answerer.calls) == calls


@pytest.mark.parametrize("damage", ["removed", "cut", "longer", "other"])
def test_results_of_a_finished_run_are_what_its_journal_says(world: Make, tmp_path: Path, damage: str) -> None:
    here = world(questions=3)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    results = tmp_path / "run" / "results.jsonl"
    before = results.read_bytes()
    first, *others = before.splitlines(keepends=True)
    if damage == "removed":
        results.unlink()
    else:
        changed = first.replace(b'"passed"', b'"failed"')
        results.write_bytes({"cut": first, "longer": before + first, "other": b"".join([changed, *others])}[damage])
        assert results.read_bytes() != before
    calls = len(here.answerer.calls)
    assert [result.metadata.outcome for result in resumed(here, tmp_path / "run")] == ["passed"] * 3
    assert (results.read_bytes(), len(here.answerer.calls)) == (before, calls)


def test_a_finished_run_that_is_whole_is_not_written_to(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    resumed(here, tmp_path / "run")
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()} == before


def reusing(here: Any, folder: Path, source: Path) -> None:
    """A run that reuses another one, and is interrupted after one item of three."""
    destination = Destination(run_dir=folder, reuse=[source])
    prepared = here.prepare(here.config(concurrency=1), run_name="the run")
    with pytest.raises(Stopped):
        asyncio.run(execute(prepared, destination, on_result=stop_after(1)))


def test_what_is_reused_is_found_from_any_working_directory(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(questions=3)
    here.run(destination=Destination(run_dir=tmp_path / "first"))
    monkeypatch.chdir(tmp_path)
    reusing(here, tmp_path / "run", Path("first"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    calls = len(here.answerer.calls) + len(here.judge.calls)
    assert len(resumed(here, tmp_path / "run")) == 3
    assert len(here.answerer.calls) + len(here.judge.calls) == calls


def test_a_run_does_not_go_on_without_what_it_reuses_unless_a_fork_is_asked_for(world: Make, tmp_path: Path) -> None:
    here = world(questions=3, answerer=ScriptedLLM(lambda call: "It is BCL2.", seconds=0.01))
    here.run(destination=Destination(run_dir=tmp_path / "first"))
    reusing(here, tmp_path / "run", tmp_path / "first")
    (tmp_path / "first").rename(tmp_path / "away")
    calls = len(here.answerer.calls)
    with pytest.raises(
        ConfigError, match=r"replies of .*first, which cannot be found; put it back, or .*--fork NEWDIR"
    ):
        resumed(here, tmp_path / "run")
    assert len(here.answerer.calls) == calls
    results = resumed(here, tmp_path / "run", fork=tmp_path / "fork")
    assert any("first no longer exists" in note for note in results.notes)
    (tmp_path / "away").rename(tmp_path / "first")
    calls = len(here.answerer.calls)
    assert len(resumed(here, tmp_path / "run")) == 3
    assert len(here.answerer.calls) == calls
    (tmp_path / "first").rename(tmp_path / "away")
    assert len(resumed(here, tmp_path / "run")) == 3, "a run that has ended needs nothing of others"


def test_one_path_is_one_path(world: Make, tmp_path: Path) -> None:
    here, sink = world(questions=2), f"jsonl:{tmp_path / 'all.jsonl'}"
    about: dict[str, Any] = {"app": here.app, "run_name": "the run"}
    one = {"question_ids": here.benchmark.questions[0].id, "sinks": sink}
    results = here.benchmark.run_verification(here.config(), run_dir=tmp_path / "first", **one, **about)
    assert len(results) == len((tmp_path / "all.jsonl").read_text("utf-8").splitlines()) == 1
    calls = len(here.answerer.calls) + len(here.judge.calls)
    for number, reuse in enumerate([tmp_path / "first", str(tmp_path / "first"), [str(tmp_path / "first")]]):
        folder = tmp_path / f"run{number}"
        here.benchmark.run_verification(
            here.config(), run_dir=folder, reuse=reuse, question_ids=one["question_ids"], **about
        )
    assert len(here.answerer.calls) + len(here.judge.calls) == calls
    (tmp_path / "all.jsonl").unlink()
    other = {"questions": here.benchmark.questions[1].id, "sinks": sink, "benchmark": here.benchmark}
    extended = extend_run(tmp_path / "first", run_dir=tmp_path / "more", config=here.config(), app=here.app, **other)
    assert len(extended) == len((tmp_path / "all.jsonl").read_text("utf-8").splitlines()) == 2


# Files that are damaged


@pytest.mark.parametrize("part", ["run_name", "status", "items", "benchmark", "config", "questions", "left_out"])
def test_a_part_of_the_manifest_that_is_gone_is_named_with_what_to_do(world: Make, tmp_path: Path, part: str) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path / "run", 1)
    file = tmp_path / "run" / "manifest.json"
    manifest = json.loads(file.read_text("utf-8"))
    told = rf"'{part}' .*; put manifest\.json back, or start a new run .*--reuse"
    for damaged in ({name: value for name, value in manifest.items() if name != part}, {**manifest, part: [1]}):
        file.write_text(json.dumps(damaged), "utf-8")
        with pytest.raises(ConfigError, match=told):
            resumed(here, tmp_path / "run")


@pytest.mark.parametrize("text", ["[]", "{}", '{"questions": []}', "{", "null"])
def test_a_damaged_fingerprint_is_named_with_what_to_do(world: Make, tmp_path: Path, text: str) -> None:
    here = world(questions=2)
    interrupted(here, tmp_path / "run", 1)
    (tmp_path / "run" / "fingerprint.json").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=r"fingerprint\.json .*; put fingerprint\.json back, or start .*--reuse"):
        resumed(here, tmp_path / "run")


# What goes wrong before the first call


@pytest.mark.parametrize("step", ["Schedule", "Verifier"])
def test_a_run_that_cannot_begin_lets_go_of_its_folder(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    here = world(questions=2)

    def broken(*_: Any, **__: Any) -> Any:
        raise Stopped

    threads, turns = threading.active_count(), sys.getswitchinterval()
    with monkeypatch.context() as patch:
        patch.setattr(runner, step, broken)
        with pytest.raises(Stopped):
            here.run(destination=Destination(run_dir=tmp_path / "run"), run_name="the run")
    assert owner_of(tmp_path / "run") is None
    assert (threading.active_count(), sys.getswitchinterval()) == (threads, turns)
    assert len(resumed(here, tmp_path / "run")) == 2
