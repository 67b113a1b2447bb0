"""Results of a finished run that are made anew: which, with what, and what is left when it is interrupted."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_runs.amend import repair as repairing
from karenina_runs.amend import repair_record
from karenina_runs.amend.repair import begun_repair, planned_repair
from karenina_runs.answers.answers import ReplayStore
from karenina_runs.execute.runner import Destination
from karenina_runs.files.run_lock import RunLock
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.folder.status import read_status
from karenina_runs.journal.check import check
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, RESULTS
from karenina_runs.journal.salvage import put_in_place, salvage
from karenina_runs.resume import Wanted, configured_by

from karenina_core import (
    LLMRubricTrait,
    ModelConfig,
    RepairSelection,
    Rubric,
    VerificationResultSet,
    aextend_run,
    arepair_run,
    aresume_run,
    repair_run,
    undo_repair,
)
from karenina_core.errors import ConfigError, ParseError, PortError, RunDirectoryError, UnknownName
from karenina_core.testing import ScriptedLLM, application

Make = Callable[..., Any]
ALL = RepairSelection(everything=True)
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2", "j3")]
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
TIMES = {"timestamp", "execution_time", "seconds"}


class Stopped(Exception):
    """What ends a repair in these tests."""


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def lines(folder: Path) -> dict[str, Any]:
    """Results by their ids, in the order of the file, without times."""
    read = [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
    return {row["metadata"]["result_id"]: without_times(row) for row in read}


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def record(folder: Path, number: int = -1) -> Any:
    return json.loads((folder / manifest(folder)["repairs"][number] / "repair.json").read_text("utf-8"))


def finished(here: Any, folder: Path, **facts: Any) -> VerificationResultSet:
    results: VerificationResultSet = here.run(here.config(**facts), Destination(run_dir=folder), run_name="the run")
    return results


def repaired(here: Any, folder: Path, selection: RepairSelection = ALL, **options: Any) -> VerificationResultSet:
    return asyncio.run(arepair_run(folder, selection, benchmark=here.benchmark, app=here.app, **options))


def resumed(here: Any, folder: Path, **options: Any) -> VerificationResultSet:
    return asyncio.run(aresume_run(folder, benchmark=here.benchmark, app=here.app, **options))


# Judged again


def test_the_answers_stay_and_only_the_chosen_results_are_judged_again(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    finished(here, tmp_path / "run", parsing_models=JUDGES[:2])
    before, said = lines(tmp_path / "run"), []
    wrong = ScriptedLLM(lambda call: said.append(call) or {"target": "BAX"})
    other = world(questions=3, judge=wrong, answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    results = repaired(other, tmp_path / "run", RepairSelection(question_ids="q1", parsing_models="j2"))
    after = lines(tmp_path / "run")
    assert len(said) == 1
    assert list(after) == list(before)
    changed = [row for name, row in after.items() if row != before[name]]
    assert [(row["metadata"]["question_id"], row["metadata"]["parsing"]["model_name"]) for row in changed] == [
        ("q1", "j2")
    ]
    assert changed[0]["metadata"]["outcome"] == "failed"
    assert changed[0]["generation"] == before[changed[0]["metadata"]["result_id"]]["generation"] | {
        "usage_metadata": changed[0]["generation"]["usage_metadata"]
    }
    assert results.get_summary()["outcomes"] == {"passed": 5, "failed": 1}


def test_judges_that_say_the_same_again_leave_the_same_results(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run", parsing_models=JUDGES, answering_models=ANSWERERS, replicate_count=2)
    before, asked = lines(tmp_path / "run"), len(here.judge.calls)
    repaired(here, tmp_path / "run")
    assert lines(tmp_path / "run") == before
    assert len(here.judge.calls) == 2 * asked
    assert record(tmp_path / "run")["changed"] == 0


def test_what_an_answer_took_is_still_counted_once(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    before = finished(here, tmp_path / "run", parsing_models=JUDGES).get_summary()
    after = repaired(here, tmp_path / "run").get_summary()
    assert after["calls"] == before["calls"] == 8
    assert after["tokens"] == before["tokens"]
    assert after["paid"]["calls"] == 14
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.ledger().to_dict() == manifest(tmp_path / "run")["ledger"]
        assert reader.ledger().total.calls == 14


def test_results_without_an_answer_are_named_and_nothing_is_asked(world: Make, tmp_path: Path) -> None:
    answerer = ScriptedLLM(lambda call: PortError("no", kind="auth") if "target 1" in call.text else "BCL2")
    here = world(questions=3, answerer=answerer)
    finished(here, tmp_path / "run")
    asked, files = len(here.judge.calls), sorted(tmp_path.rglob("*"))
    with pytest.raises(ConfigError, match="1 of these results has no answer") as caught:
        repaired(here, tmp_path / "run")
    assert "q1, answering:a, judging:j, replicate 1" in str(caught.value)
    assert "--mode live" in str(caught.value)
    assert len(here.judge.calls) == asked
    assert sorted(tmp_path.rglob("*")) == files


# Answered again


def test_the_question_is_asked_again_and_all_judges_of_the_answer_read_the_new_one(world: Make, tmp_path: Path) -> None:
    finished(world(questions=3), tmp_path / "run", parsing_models=JUDGES)
    before = lines(tmp_path / "run")
    here = world(questions=3, answerer=ScriptedLLM(lambda call: "It is MCL1, or BCL2."))
    repaired(here, tmp_path / "run", RepairSelection(question_ids=["q2"], parsing_models=["j3"]), mode="live")
    after = lines(tmp_path / "run")
    assert (len(here.answerer.calls), len(here.judge.calls)) == (1, 3)
    texts = {row["metadata"]["question_id"]: set() for row in after.values()}  # type: dict[str, set[str]]
    for row in after.values():
        texts[row["metadata"]["question_id"]].add(row["generation"]["raw_llm_response"])
    assert texts == {"q0": {"It is BCL2."}, "q1": {"It is BCL2."}, "q2": {"It is MCL1, or BCL2."}}
    assert [name for name in after if after[name] != before[name]] == list(before)[6:]
    told = record(tmp_path / "run")
    assert (told["selected"], told["rows"], told["mode"]) == (1, 3, "live")


def test_answers_that_a_run_was_given_are_asked_for(world: Make, tmp_path: Path) -> None:
    given_ = ReplayStore.from_results(world().run())
    here = world(answerer=ScriptedLLM(lambda call: "It is MCL1, or BCL2."))
    here.run(destination=Destination(run_dir=tmp_path / "run"), answers=given_)
    (result,) = repaired(here, tmp_path / "run", mode="live")
    assert len(here.answerer.calls) == 1
    assert result.generation.raw_llm_response == "It is MCL1, or BCL2."
    assert result.generation.replayed_from is None


@pytest.fixture
def given_anew(world: Make, tmp_path: Path) -> Path:
    """A run that was given three answers, of which a live repair has asked for one."""
    run = tmp_path / "run"
    given_ = ReplayStore.from_results(world(questions=3).run())
    world(questions=3).run(destination=Destination(run_dir=run), answers=given_, run_name="the run")
    here = world(questions=3, answerer=ScriptedLLM(lambda call: "It is MCL1, or BCL2."))
    found = repaired(here, run, RepairSelection(question_ids="q1"), mode="live")
    assert any("2 of 3 answers are replayed" in note for note in found.notes), found.notes
    assert any("1 answer not replayed" in note for note in found.notes), found.notes
    return run


def answers(folder: Path) -> list[str]:
    return [row["generation"]["raw_llm_response"] for row in lines(folder).values()]


NEW = ["It is BCL2.", "It is MCL1, or BCL2.", "It is BCL2."]


def test_a_fork_takes_the_answers_that_a_live_repair_has_made(world: Make, given_anew: Path, tmp_path: Path) -> None:
    here = world(questions=3, answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    resumed(here, given_anew, fork=tmp_path / "fork")
    assert (answers(tmp_path / "fork"), here.answerer.calls) == (NEW, [])
    resumed(here, tmp_path / "fork", fork=tmp_path / "second")
    assert (answers(tmp_path / "second"), here.answerer.calls) == (NEW, [])


def test_another_judge_reads_the_answers_that_a_live_repair_has_made(
    world: Make, given_anew: Path, tmp_path: Path
) -> None:
    here = world(questions=3, answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    config = here.config(parsing_models=[*here.config().parsing_models, JUDGES[0]])
    options: dict[str, Any] = {"benchmark": here.benchmark, "app": here.app, "run_dir": tmp_path / "more"}
    asyncio.run(aextend_run(given_anew, config=config, **options))
    assert answers(tmp_path / "more") == [text for text in NEW for _ in range(2)]
    assert here.answerer.calls == []


def test_a_result_that_was_lost_gets_the_answer_that_a_live_repair_has_made(world: Make, given_anew: Path) -> None:
    path = given_anew / "journal.sqlite"
    with JournalReader.open(given_anew) as reader:
        lost = [row.body for row in reader.rows(RESULTS)]
    data = bytearray(path.read_bytes())
    for body in lost:
        data[data.index(body) + 9] ^= 1
    path.write_bytes(data)
    put_in_place(given_anew, salvage(path, given_anew / "saved.sqlite"))
    assert read_status(given_anew).done == 0
    here = world(questions=3, answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    resumed(here, given_anew)
    assert (answers(given_anew), here.answerer.calls) == (NEW, [])


def test_when_a_live_repair_is_taken_back_the_given_answers_stand_again(
    world: Make, given_anew: Path, tmp_path: Path
) -> None:
    undo_repair(given_anew)
    here = world(questions=3, answerer=ScriptedLLM(lambda call: PortError("asked", kind="auth")))
    resumed(here, given_anew, fork=tmp_path / "fork")
    assert answers(tmp_path / "fork") == ["It is BCL2."] * 3


def test_what_other_runs_have_asked_is_asked_again_too(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "first")
    here.run(destination=Destination(run_dir=tmp_path / "run", reuse=(tmp_path / "first",)), run_name="the run")
    assert len(here.judge.calls) == 2
    repaired(here, tmp_path / "run", mode="live")
    assert (len(here.answerer.calls), len(here.judge.calls)) == (4, 4)


def test_errors_can_be_repaired_by_their_kind(world: Make, tmp_path: Path) -> None:
    silent = ScriptedLLM(lambda call: ParseError("?") if "q1" in call.context.question_id else {"target": "BCL2"})
    finished(world(questions=3, judge=silent), tmp_path / "run")
    here = world(questions=3)
    results = repaired(here, tmp_path / "run", RepairSelection(outcomes="error", details="judge"))
    assert len(here.judge.calls) == 1
    assert results.get_summary()["outcomes"] == {"passed": 3}
    told = record(tmp_path / "run")
    assert (told["outcomes_before"], told["outcomes_after"], told["changed"]) == ({"error": 1}, {"passed": 1}, 1)


# What is kept


def test_what_was_there_before_is_kept_and_can_be_put_back(world: Make, tmp_path: Path) -> None:
    run = tmp_path / "run"
    finished(world(questions=2), run)
    kept = {name: (run / name).read_bytes() for name in ("results.jsonl", "manifest.json")}
    repaired(world(questions=2, judge=ScriptedLLM(lambda call: {"target": "BAX"})), run)
    own = run / manifest(run)["repairs"][0]
    assert {name: (own / name).read_bytes() for name in kept} == kept
    assert record(run)["source_sha256"] == sha256(kept["results.jsonl"]).hexdigest()
    assert record(run)["result_sha256"] == sha256((run / "results.jsonl").read_bytes()).hexdigest()
    assert undo_repair(run) == own
    here = world(questions=2)
    assert resumed(here, run).get_summary()["outcomes"] == {"passed": 2}
    assert repaired(here, run).get_summary()["outcomes"] == {"passed": 2}
    assert lines(run) == {row["metadata"]["result_id"]: row for row in map(_line, kept["results.jsonl"].splitlines())}


def _line(text: bytes) -> Any:
    return without_times(json.loads(text))


def test_the_record_says_which_results_and_how_they_had_ended(world: Make, tmp_path: Path) -> None:
    finished(world(questions=2), tmp_path / "run")
    repaired(world(questions=2), tmp_path / "run", RepairSelection(question_ids="q1"))
    told = record(tmp_path / "run")
    assert told["schema_version"] == "1.0"
    assert told["status"] == "completed"
    assert told["run_id"] == manifest(tmp_path / "run")["run_id"]
    assert told["selected_keys"] == [
        {
            "result_id": list(lines(tmp_path / "run"))[1],
            "question_id": "q1",
            "answering_model": "answering:a",
            "parsing_model": "judging:j",
            "replicate": 1,
            "outcome": "passed",
            "detail": None,
        }
    ]
    assert manifest(tmp_path / "run")["repair"] is None


def test_repairs_follow_each_other(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run")
    for number in range(3):
        repaired(here, tmp_path / "run", RepairSelection(question_ids="q0"))
        assert len(manifest(tmp_path / "run")["repairs"]) == number + 1
    assert len(here.judge.calls) == 5


def test_it_works_without_an_event_loop_of_ones_own(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run")
    assert len(repair_run(tmp_path / "run", ALL, benchmark=here.benchmark, app=here.app)) == 2


# Refused


def test_a_run_that_has_not_ended_is_not_repaired(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run")
    told = manifest(tmp_path / "run")
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({**told, "status": "interrupted"}), "utf-8")
    with pytest.raises(ConfigError, match="karenina resume"):
        repaired(here, tmp_path / "run")


@pytest.mark.parametrize(("status", "said"), [("running", "killed"), ("interrupted", "interrupted")])
def test_of_a_run_that_has_not_ended_the_same_is_said_as_its_status_says(
    world: Make, tmp_path: Path, status: str, said: str
) -> None:
    here, run = world(questions=2), tmp_path / "run"
    finished(here, run)
    (run / "manifest.json").write_text(json.dumps({**manifest(run), "status": status}), "utf-8")
    assert read_status(run).state == said
    with pytest.raises(ConfigError, match=rf"has not ended \({said}\)"):
        repaired(here, run)
    with pytest.raises(ConfigError, match=rf"is not finished \({said}\)"):
        asyncio.run(aextend_run(run, run_dir=tmp_path / "more", benchmark=here.benchmark, app=here.app))


def test_a_run_that_another_process_works_on_is_left_alone(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run")
    with RunLock(tmp_path / "run"), pytest.raises(RunDirectoryError, match="is being written by process"):
        repaired(here, tmp_path / "run")
    assert "repair" not in manifest(tmp_path / "run")


def test_nothing_is_repaired_where_the_numbers_would_not_belong_together(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    finished(here, tmp_path / "run")
    before = lines(tmp_path / "run")
    judge = ModelConfig(model_name="j", interface="judging", max_retries=0, temperature=0.9)
    with pytest.raises(Changed, match="temperature"):
        repaired(here, tmp_path / "run", config=here.config(parsing_models=[judge]))
    assert lines(tmp_path / "run") == before
    assert not (tmp_path / "run" / "repairs").exists()


def test_an_unknown_mode_is_refused(world: Make, tmp_path: Path) -> None:
    here = world()
    finished(here, tmp_path / "run")
    with pytest.raises(ConfigError, match="replay, live"):
        repaired(here, tmp_path / "run", mode="again")


def test_where_nothing_can_be_kept_nothing_is_changed(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    here, run = world(), tmp_path / "run"
    finished(here, run)
    before, asked = manifest(run), len(here.judge.calls)
    monkeypatch.setattr(repair_record, "write_json", full)
    with pytest.raises(RunDirectoryError, match="nothing was changed"):
        repaired(here, run)
    assert (manifest(run), len(here.judge.calls)) == (before, asked)
    assert list((run / "repairs").iterdir()) == []


# Selections


@pytest.mark.parametrize(
    ("selection", "count"),
    [
        (ALL, 24),
        (RepairSelection(question_ids="q0"), 12),
        (RepairSelection(question_ids="q0", replicates=2), 6),
        (RepairSelection(answering_models="answering:a1"), 12),
        (RepairSelection(answering_models="a1", parsing_models=["j1", "j2"]), 8),
        (RepairSelection(outcomes=["failed"]), 12),
        (RepairSelection(outcomes=["failed", "passed"]), 24),
    ],
)
def test_conditions_narrow_the_selection(world: Make, tmp_path: Path, selection: Any, count: int) -> None:
    judge = ScriptedLLM(lambda call: {"target": "BAX" if call.context.question_id == "q1" else "BCL2"})
    facts: dict[str, Any] = {"answering_models": ANSWERERS, "parsing_models": JUDGES, "replicate_count": 2}
    finished(world(questions=2, judge=judge), tmp_path / "run", **facts)
    plan = planned_repair(tmp_path / "run", selection)
    assert (len(plan.rows), plan.selected, plan.results) == (count, count, 24)
    assert plan.to_dict()["rows"] == count
    live = planned_repair(tmp_path / "run", selection, "live")
    assert live.selected == count
    assert {row.result_id for row in live.rows} >= {row.result_id for row in plan.rows}
    assert len(live.rows) % 3 == 0


def test_stages_that_failed_can_be_chosen(world: Make, tmp_path: Path) -> None:
    silent = ScriptedLLM(lambda call: ParseError("?") if "q1" in call.context.question_id else {"target": "BCL2"})
    finished(world(questions=3, judge=silent), tmp_path / "run")
    plan = planned_repair(tmp_path / "run", RepairSelection(stages="ParseTemplate"))
    assert [row.question_id for row in plan.rows] == ["q1"]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (RepairSelection(), "choose the results"),
        (RepairSelection(question_ids=["q7"]), r"no result has 'q7'.*available: q0"),
        (RepairSelection(outcomes=["pased"]), r"did you mean 'passed'\?"),
        (RepairSelection(replicates=[3]), "available: 1"),
        (RepairSelection(details=["judge"]), "available: none"),
    ],
)
def test_a_selection_of_nothing_is_refused(world: Make, tmp_path: Path, selection: Any, said: str) -> None:
    finished(world(), tmp_path / "run")
    with pytest.raises(ConfigError, match=said):
        planned_repair(tmp_path / "run", selection)


# Interrupted


def stopped_after(items: int) -> Callable[[Any], None]:
    left = [items]

    def on_result(_: Any) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Stopped

    return on_result


def interrupted(here: Any, folder: Path, items: int, selection: RepairSelection, mode: Any) -> None:
    plan = planned_repair(folder, selection, mode)
    begun = begun_repair(folder, plan, configured_by(None, here.app), Wanted(benchmark=here.benchmark))
    with pytest.raises(Stopped):
        asyncio.run(begun.carry_out(on_result=stopped_after(items)))


@settings(
    max_examples=4, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(items=st.integers(1, 11), concurrency=st.integers(1, 8), mode=st.sampled_from(["replay", "live"]))
def test_a_repair_that_was_interrupted_anywhere_equals_one_that_was_not(
    world: Make, tmp_path_factory: pytest.TempPathFactory, items: int, concurrency: int, mode: Any
) -> None:
    """Every chosen result is made anew, once; nothing else is; and nothing is asked a third time."""
    folder = tmp_path_factory.mktemp("runs")
    facts: dict[str, Any] = {"parsing_models": JUDGES, "replicate_count": 2, "concurrency": concurrency}
    finished(world(questions=3), folder / "run", **facts)
    before = lines(folder / "run")
    shutil.copytree(folder / "run", folder / "other")
    here, other = (
        world(
            questions=3,
            judge=ScriptedLLM(lambda call: {"target": "BAX"}),
            answerer=ScriptedLLM(lambda call: "It is BAX."),
        )
        for _ in range(2)
    )
    selection = RepairSelection(question_ids=["q0", "q2"])
    interrupted(here, folder / "run", items, selection, mode)
    assert read_status(folder / "run").is_resumable
    resumed(here, folder / "run")
    repaired(other, folder / "other", selection, mode=mode)
    after = lines(folder / "run")
    assert after == lines(folder / "other")
    assert {row["metadata"]["question_id"] for name, row in after.items() if row != before[name]} == {"q0", "q2"}
    assert record(folder / "run")["outcomes_after"] == {"failed": 12}
    assert len(here.judge.calls) <= 12 + concurrency
    assert manifest(folder / "run")["summary"]["outcomes"] == {"passed": 6, "failed": 12}


def test_no_other_repair_begins_before_one_that_was_interrupted_has_ended(world: Make, tmp_path: Path) -> None:
    here = world(questions=3)
    finished(here, tmp_path / "run")
    interrupted(here, tmp_path / "run", 1, ALL, "replay")
    with pytest.raises(ConfigError, match=r"a repair of .* is not finished"):
        repaired(here, tmp_path / "run")
    resumed(here, tmp_path / "run")
    assert len(repaired(here, tmp_path / "run")) == 3


def test_a_repair_that_ended_before_that_was_written_down_is_only_written_down(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=3), tmp_path / "run"
    finished(here, run)
    repaired(here, run)
    told, asked = manifest(run), len(here.judge.calls)
    (name,) = told["repairs"]
    (run / "manifest.json").write_text(
        json.dumps({**told, "repair": name, "repairs": [], "continuations": ["repair"]}), "utf-8"
    )
    found = read_status(run)
    assert (found.state, found.unrepaired, found.is_resumable) == ("completed", 0, True)
    assert len(resumed(here, run)) == 3
    assert len(here.judge.calls) == asked
    assert manifest(run)["repairs"] == [name]


def test_a_repair_is_taken_back_also_where_the_journal_cannot_be_read_any_more(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=3), tmp_path / "run"
    finished(here, run)
    before = lines(run)
    interrupted(here, run, 1, ALL, "live")
    data = bytearray((run / "journal.sqlite").read_bytes())
    data[data.index(b"CREATE TABLE") + 2] ^= 128
    (run / "journal.sqlite").write_bytes(data)
    with pytest.raises(RunDirectoryError, match="karenina doctor"):
        resumed(here, run)
    undo_repair(run)
    assert lines(run) == before
    assert check(run).problems == ()


@pytest.mark.parametrize("mode", ["replay", "live"])
def test_a_repair_goes_on_after_its_journal_was_saved(world: Make, tmp_path: Path, mode: Any) -> None:
    """What was lost was from before it: nothing is asked a third time, and the repair ends."""
    here, run, other = world(questions=4), tmp_path / "run", tmp_path / "other"
    finished(here, run, concurrency=1)
    shutil.copytree(run, other)
    interrupted(here, run, 2, ALL, mode)
    asked = len(here.judge.calls)
    path = run / "journal.sqlite"
    data = bytearray(path.read_bytes())
    with JournalReader.open(run) as reader:
        lost = [row.body for row in reader.rows(CALLS) if row["task"] == "parsing" and row.id <= 8][:3]
        lost.append(next(row.body for row in reader.rows(RESULTS) if row.id <= 4))
    for body in lost:
        assert data.count(body) >= 1
        data[data.index(body) + 9] ^= 1
    path.write_bytes(data)
    put_in_place(run, salvage(path, run / "saved.sqlite"))
    assert check(run).problems == ()
    resumed(here, run)
    assert len(here.judge.calls) == asked + 4 - 2
    assert (len(manifest(run)["repairs"]), manifest(run)["repair"]) == (1, None)
    repaired(here, other, mode=mode)
    assert lines(run) == lines(other)
    assert check(run).problems == ()


def test_a_repair_whose_record_is_gone_is_not_forgotten(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=3), tmp_path / "run"
    finished(here, run)
    interrupted(here, run, 1, ALL, "replay")
    (run / manifest(run)["repair"] / "repair.json").unlink()
    with pytest.raises(RunDirectoryError, match="put it back"):
        resumed(here, run)


def test_a_budget_that_is_used_up_leaves_a_repair_that_can_be_gone_on_with(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=6), tmp_path / "run"
    results = finished(here, run)
    before, tokens = lines(run), results.get_summary()["paid"]["tokens"]["total"]
    config = here.config(budget_tokens=tokens + 40, concurrency=1)
    found = repaired(world(questions=6, judge=ScriptedLLM(lambda call: {"target": "BAX"})), run, config=config)
    assert 0 < len([name for name, row in lines(run).items() if row != before[name]]) < 6, found.notes
    assert manifest(run)["repair"]
    other = world(questions=6, judge=ScriptedLLM(lambda call: {"target": "BAX"}))
    resumed(other, run)
    assert other.judge.calls == []  # its budget holds
    config = here.config(budget_tokens=10 * tokens)
    assert resumed(other, run, config=config).get_summary()["outcomes"] == {"failed": 6}
    assert manifest(run)["repair"] is None


def test_sinks_have_the_new_results_in_the_place_of_the_old_ones(world: Make, tmp_path: Path) -> None:
    first, run = world(questions=2), tmp_path / "run"
    sink = f"jsonl:{tmp_path / 'copy.jsonl'}"
    first.run(destination=Destination(run_dir=run, sinks=(sink,)), run_name="the run")
    here = world(questions=2, judge=ScriptedLLM(lambda call: {"target": "BAX"}))
    repaired(here, run, RepairSelection(question_ids="q1"))
    found = VerificationResultSet.load(tmp_path / "copy.jsonl")
    assert [str(result.outcome) for result in found] == ["passed", "failed"]


def test_a_plan_is_no_promise(world: Make, tmp_path: Path) -> None:
    """What was planned before another repair of the run began is refused."""
    here, run = world(questions=2), tmp_path / "run"
    finished(here, run)
    plan = planned_repair(run, ALL)
    interrupted(here, run, 1, ALL, "replay")
    with pytest.raises(ConfigError, match="is not finished"):
        begun_repair(run, evolve(plan), configured_by(None, here.app), Wanted(benchmark=here.benchmark))


# Outages


@pytest.mark.parametrize(("mode", "calls"), [("replay", (0, 2)), ("live", (2, 2))])
def test_what_an_outage_left_of_a_repair_is_asked_for_when_it_is_gone_on_with(
    world: Make, tmp_path: Path, mode: Any, calls: tuple[int, int]
) -> None:
    run = tmp_path / "run"
    finished(world(questions=3), run)
    down = ScriptedLLM(lambda call: PortError("503", kind="server"))
    ill = {"judge": down} if mode == "replay" else {"answerer": down}
    chosen = RepairSelection(question_ids=["q0", "q2"])
    found = repaired(world(questions=3, **ill), run, chosen, mode=mode)
    assert found.get_summary()["outcomes"] == {"passed": 1, "error": 2}
    assert any("2 results" in note and f"karenina resume {run}" in note for note in found.notes)
    told = manifest(run)
    assert (told["status"], bool(told["repair"]), told.get("repairs", [])) == ("interrupted", True, [])
    assert read_status(run).is_resumable
    here = world(questions=3, judge=ScriptedLLM(lambda call: {"target": "BAX"}))
    assert resumed(here, run).get_summary()["outcomes"] == {"passed": 1, "failed": 2}
    assert (len(here.answerer.calls), len(here.judge.calls)) == calls
    assert (manifest(run)["status"], manifest(run)["repair"]) == ("completed", None)
    assert record(run)["outcomes_after"] == {"failed": 2}


def test_a_judge_that_is_down_while_questions_are_asked_again_reads_the_new_answer_later(
    world: Make, tmp_path: Path
) -> None:
    """The new answer is not asked for twice, and the old one is not taken for it."""
    run, fresh = tmp_path / "run", ScriptedLLM(lambda call: "It is MCL1, or BCL2.")
    finished(world(), run, parsing_models=JUDGES)
    down = ScriptedLLM(lambda call: PortError("503", kind="server"))
    repaired(world(answerer=fresh, judge=down), run, mode="live")
    assert manifest(run)["repair"]
    here = world(answerer=fresh)
    results = resumed(here, run)
    assert (len(fresh.calls), len(here.judge.calls)) == (1, 3)
    assert {result.generation.raw_llm_response for result in results} == {"It is MCL1, or BCL2."}
    assert manifest(run)["repair"] is None


def test_a_judge_that_stays_down_leaves_the_repair_as_it_is(world: Make, tmp_path: Path) -> None:
    run = tmp_path / "run"
    finished(world(questions=2), run)
    down = ScriptedLLM(lambda call: PortError("503", kind="server"))
    repaired(world(questions=2, judge=down), run)
    here = world(questions=2, judge=ScriptedLLM(lambda call: PortError("503", kind="server")))
    resumed(here, run)
    assert (len(here.answerer.calls), len(here.judge.calls)) == (0, 2)
    assert (manifest(run)["status"], bool(manifest(run)["repair"])) == ("interrupted", True)


# Taken back


def test_repairs_are_taken_back_one_after_the_other(world: Make, tmp_path: Path) -> None:
    run = tmp_path / "run"
    finished(world(questions=2), run)
    states = [lines(run)]
    for said in ("BAX", "MCL1"):
        repaired(world(questions=2, judge=ScriptedLLM(lambda call, said=said: {"target": said})), run)
        states.append(lines(run))
    second, first = undo_repair(run), None
    assert lines(run) == states[1]
    repaired(world(questions=2), run)
    assert lines(run) == states[0]
    undo_repair(run)
    assert lines(run) == states[1]
    first = undo_repair(run)
    assert lines(run) == states[0]
    assert first < second
    assert [record(run, number)["status"] for number in range(3)] == ["undone"] * 3
    with pytest.raises(ConfigError, match="no repair"):
        undo_repair(run)
    here = world(questions=2)
    assert resumed(here, run).get_summary()["outcomes"] == {"passed": 2}
    assert len(here.judge.calls) == 0


@pytest.mark.parametrize("mode", ["replay", "live"])
def test_a_repair_that_has_not_ended_can_be_taken_back(world: Make, tmp_path: Path, mode: Any) -> None:
    here, run = world(questions=3, judge=ScriptedLLM(lambda call: {"target": "BAX"})), tmp_path / "run"
    finished(world(questions=3), run)
    before, told = lines(run), manifest(run)
    interrupted(here, run, 2, ALL, mode)
    own = undo_repair(run)
    assert lines(run) == before
    kept = f"repairs/{own.name}"
    now = manifest(run)
    assert now | {"updated_at": ""} == told | {"updated_at": "", "repair": None, "repairs": [kept]}
    with JournalReader.open(run) as reader:
        assert reader.outcomes() == {"passed": 3}
        assert reader.ledger().to_dict() == told["ledger"]
    assert repaired(world(questions=3), run).get_summary()["outcomes"] == {"passed": 3}


def test_taking_back_that_was_interrupted_is_ended_by_the_same_again(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, run = world(questions=2), tmp_path / "run"
    finished(here, run)
    before = lines(run)
    repaired(world(questions=2, judge=ScriptedLLM(lambda call: {"target": "BAX"})), run)
    with monkeypatch.context() as patched:
        patched.setattr(repairing.shutil, "copyfileobj", _full)
        with pytest.raises(RunDirectoryError, match=r"karenina repair .* --undo"):
            undo_repair(run)
    for work in (resumed, repaired):
        with pytest.raises(RunDirectoryError, match=r"karenina repair .* --undo"):
            work(here, run)
    undo_repair(run)
    assert lines(run) == before
    assert manifest(run)["status"] == "completed"


def _full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_nothing_is_taken_back_where_what_was_kept_is_gone_or_somebody_works(world: Make, tmp_path: Path) -> None:
    run = tmp_path / "run"
    finished(world(questions=2), run)
    repaired(world(questions=2, judge=ScriptedLLM(lambda call: {"target": "BAX"})), run)
    with RunLock(run), pytest.raises(RunDirectoryError, match="is being written by process"):
        undo_repair(run)
    (run / manifest(run)["repairs"][0] / "journal.sqlite").write_bytes(b"nothing")
    told, after = manifest(run), lines(run)
    with pytest.raises(RunDirectoryError, match="nothing was changed"):
        undo_repair(run)
    assert (manifest(run), lines(run)) == (told, after)


# Beginning and ending


def test_a_repair_that_cannot_start_is_none(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=2), tmp_path / "run"
    finished(here, run)
    told, asked = manifest(run), len(here.judge.calls)
    plan = planned_repair(run, ALL)
    wanted = Wanted(benchmark=here.benchmark, sinks=["nosuch:there"])
    begun = begun_repair(run, plan, configured_by(None, here.app), wanted)
    with pytest.raises(UnknownName, match="nosuch"):
        asyncio.run(begun.carry_out())
    assert (manifest(run), len(here.judge.calls)) == (told, asked)
    assert not (run / "repairs").exists()
    assert len(repaired(here, run)) == 2


def test_a_repair_that_was_begun_before_is_not_forgotten_by_one_who_cannot_go_on(world: Make, tmp_path: Path) -> None:
    here, run = world(questions=2), tmp_path / "run"
    finished(here, run)
    begun_repair(run, planned_repair(run, ALL), configured_by(None, here.app), Wanted(benchmark=here.benchmark))
    with pytest.raises(UnknownName, match="nosuch"):
        resumed(here, run, sinks=["nosuch:there"])
    assert manifest(run)["repair"]
    asked = len(here.judge.calls)
    resumed(here, run)
    assert len(here.judge.calls) == asked + 2


def test_what_a_repair_left_that_was_killed_before_it_was_named_is_removed(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, run = world(), tmp_path / "run"
    finished(here, run)
    with monkeypatch.context() as patched:
        patched.setattr(repair_record, "change_manifest", _full)
        with pytest.raises(OSError, match="No space"):
            repaired(here, run)
    (left,) = (run / "repairs").iterdir()
    (run / "repairs" / f".{left.name}.0000").mkdir()
    repaired(here, run)
    assert [f"repairs/{own.name}" for own in (run / "repairs").iterdir()] == manifest(run)["repairs"]
    assert not left.exists()


def test_the_end_of_a_repair_is_written_by_one_who_has_the_run(world: Make, tmp_path: Path) -> None:
    here, run = world(), tmp_path / "run"
    finished(here, run)
    begun = begun_repair(run, planned_repair(run, ALL), configured_by(None, here.app), Wanted(benchmark=here.benchmark))
    repair = begun.destination.continuation
    assert isinstance(repair, repair_record.Repair)
    with RunLock(run), pytest.raises(RunDirectoryError, match="is being written by process"):
        repair_record.end_repair(run, repair)
    asyncio.run(begun.carry_out())
    assert repair_record.end_repair(run, repair) is None
    assert len(manifest(run)["repairs"]) == 1


# Traits without a score


def test_results_with_a_trait_that_has_no_score_are_chosen_whatever_their_outcome(
    world: Make, plugin_names: set[str], tmp_path: Path
) -> None:
    broken = [True]

    def judge(call: Any) -> Any:
        if call.task.startswith("rubric"):
            if broken[0] and "target 1" in call.text:
                return PortError("no such model", kind="invalid_request")
            return dict.fromkeys(call.output.schema["properties"], True)
        return {"target": "BCL2"}

    run, brief = tmp_path / "run", LLMRubricTrait(name="brief", kind="boolean", summary="brevity")
    here = world(questions=3, judge=ScriptedLLM(judge), rubric=Rubric(llm_traits=[brief]))
    adapters = here.answerer.adapter("answering"), here.judge.adapter("judging")
    installed = plugin_names | {"rubric-evaluation", "trait-llm"}
    here = evolve(here, app=application(*adapters, installed=installed))
    facts: dict[str, Any] = {"rubric_evaluation_strategy": "sequential"}
    results = finished(here, run, **facts)
    assert results.get_summary()["outcomes"] == {"passed": 3}
    before, asked, answered = lines(run), len(here.judge.calls), len(here.answerer.calls)
    assert len(resumed(here, run)) == 3
    assert len(here.judge.calls) == asked, "its outcome stands"
    broken[0] = False
    repaired(here, run, RepairSelection(unscored=True))
    assert (len(here.judge.calls) - asked, len(here.answerer.calls)) == (2, answered)
    after = lines(run)
    (changed,) = [row for name, row in after.items() if row != before[name]]
    assert changed["metadata"]["question_id"] == "q1"
    assert [row["rubric"]["llm_trait_scores"] for row in after.values()] == [{"brief": True}] * 3
    with pytest.raises(ConfigError, match="no result has a trait without a score"):
        planned_repair(run, RepairSelection(unscored=True))


# Answers that came about in a folder


def test_an_answer_of_an_extended_run_that_came_about_in_a_folder_is_asked_for_again(
    world: Make, make_question: Make, tmp_path: Path
) -> None:
    (tmp_path / "root" / "rivers").mkdir(parents=True)
    facts: dict[str, Any] = {
        "questions": [make_question(0, workspace_path="rivers")],
        "workspace_root": tmp_path / "root",
    }
    here, run = world(**facts), tmp_path / "run"
    here.run(here.config(parsing_models=JUDGES[:1]), Destination(run_dir=tmp_path / "first"), run_name="the run")
    config = here.config(parsing_models=JUDGES[:2])
    extended = aextend_run(tmp_path / "first", run_dir=run, benchmark=here.benchmark, config=config, app=here.app)
    assert len(asyncio.run(extended)) == 2
    other = world(answerer=ScriptedLLM(lambda call: "It is MCL1, or BCL2."), **facts)
    results = repaired(other, run, mode="live")
    assert (len(other.answerer.calls), len(other.judge.calls)) == (1, 2)
    assert {result.generation.raw_llm_response for result in results} == {"It is MCL1, or BCL2."}
